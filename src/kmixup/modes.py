"""Training and eval mode of networks that are looked into for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """Eval mode inside, and every submodule back in its own mode outside."""
    modes = [(module, module.training) for module in net.modules()]
    net.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
