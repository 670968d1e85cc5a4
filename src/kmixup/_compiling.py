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
        if torch.compiler.is_compiling():
            # not a decorator, which would load the compiler with every `import kmixup`
            return torch.compiler.disable(function)(*args, **kwargs)  # type: ignore[no-any-return]
        return function(*args, **kwargs)

    return call


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
        if package not in ("kmixup", "torch"):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
