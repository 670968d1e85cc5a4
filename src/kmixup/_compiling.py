"""Helpers for torch.compile and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def eager(function: Callable[P, R]) -> Callable[P, R]:
    """Break the graph of a compiled caller here: the solver cannot be traced."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not torch.compiler.is_compiling():
            return function(*args, **kwargs)
        # Not a decorator, which would load the compiler with every `import kmixup`. With
        # fullgraph=True the error of torch shows the next line and its comment.
        run = torch.compiler.disable(function)  # mixers run outside the graph: no fullgraph=True
        return run(*args, **kwargs)  # type: ignore[no-any-return]

    return call


def check_not_exported() -> None:
    """Raise inside of torch.export, whose tensors have no values."""
    if torch.compiler.is_compiling():
        raise RuntimeError(
            "a mixer cannot be exported, because it matches the values of a batch: call .eval() on "
            "it first, and it returns batches unchanged"
        )


def hooks_guarded() -> AbstractContextManager[object]:
    """Make code that is compiled in this context check for hooks; else the compiler assumes none.

    https://docs.pytorch.org/docs/stable/torch.compiler_nn_module.html
    """
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is None:  # nothing is compiled
        return nullcontext()
    return dynamo.config.patch(skip_nnmodule_hook_guards=False)  # type: ignore[no-any-return]


def warn_user(message: str) -> None:
    """Warn, and name the line of the user's code that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in ("kmixup", "torch", "multiprocessing"):  # a forked worker of a loader
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
