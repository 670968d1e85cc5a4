"""Samples as points that can be matched."""

from __future__ import annotations

import torch
from torch import Tensor

MATCHED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def is_channels_last(x: Tensor) -> bool:
    """Return whether images or videos are stored channels-last."""
    return x.dim() >= 4 and not x.is_contiguous() and x.movedim(1, -1).is_contiguous()


def as_rows(x: Tensor, like: Tensor | None = None) -> Tensor:
    """Return samples as detached rows `(n, d)`, without a copy where memory allows it.

    Features are in the order of `like`, the batch that `x` is matched with, or else of `x`.
    """
    x = x.detach()
    if x.dim() == 2:
        return x
    like = x if like is None else like
    if not like.is_contiguous() and is_channels_last(like):  # any order gives the same distances
        return x.movedim(1, -1).flatten(1)
    return x.flatten(1) if x.dim() > 1 else x.unsqueeze(1)


def as_floats(x: Tensor, like: Tensor | None = None) -> Tensor:
    """Return samples as rows of floats, or of bytes, which matching converts a few at a time."""
    rows = as_rows(x, like)
    if x.is_floating_point() or x.dtype == torch.uint8:
        return rows
    # float32 would round integers above 2**24, such as times in seconds
    return rows.float() if x.dtype.itemsize <= 2 else rows.double()


def check_dense(x: Tensor, name: str) -> None:
    """Raise on a tensor that is not one block of numbers in memory."""
    if x.is_nested:
        remedy = "torch.nested.to_padded_tensor"
        raise TypeError(f"{name} must be a dense tensor, got a nested one: use {remedy}")
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got {x.layout}: use .to_dense()")
    if x.device.type == "meta":
        raise TypeError(f"{name} must have values, got a tensor on the device meta: use real data")


def check_points(x1: Tensor, x2: Tensor | None = None) -> None:
    """Raise if samples cannot be matched, naming the argument."""
    named = [("x", x1)] if x2 is None else [("x1", x1), ("x2", x2)]
    for name, x in named:
        check_dense(x, name)
        if x.dtype not in MATCHED:
            raise TypeError(
                f"{name} must be floating point, float16 or wider, got {x.dtype}: use "
                f"{name}.float()"
            )
    if x2 is not None:
        check_alike(x1, x2, "x1", "x2")


def check_alike(x1: Tensor, x2: Tensor, name1: str, name2: str) -> None:
    """Raise if two batches cannot be paired row by row, naming both."""
    for what, first, second in (
        ("length", len(x1), len(x2)),
        ("sample shape", tuple(x1.shape[1:]), tuple(x2.shape[1:])),
        ("device", x1.device, x2.device),
        ("dtype", x1.dtype, x2.dtype),
    ):
        if first != second:
            raise ValueError(
                f"{name1} and {name2} must have the same {what}, got {first} and {second}"
            )


def raise_non_finite(x: Tensor, name: str) -> None:
    """Raise if samples have a NaN or an infinity, naming the first one."""
    bad = (~as_rows(x).isfinite().all(1).cpu()).nonzero()
    if len(bad):
        raise ValueError(
            f"{name} must be finite to be matched, "
            f"sample {int(bad[0])} has a NaN or an infinity: clean or drop it"
        )
