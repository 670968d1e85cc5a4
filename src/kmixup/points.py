"""Samples as points that can be matched: what is refused, and rows with their squared norms."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kmixup.assignment import Floats

MATCHED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def rows_and_norms(x: Tensor, name: str) -> tuple[Tensor, Floats]:
    """Samples as rows `(n, d)` in the precision of the match, and their squared norms `(n,)`."""
    x = x.detach()
    rows = x.flatten(1) if x.dim() > 1 else x[:, None]
    if rows.shape[1] == 0:
        raise ValueError(
            f"{name} must have at least one feature to be matched, got the shape "
            f"{tuple(x.shape)}: pass features to match on, or use k=1"
        )
    # float32 products keep as few as 8 bits where the user has allowed faster ones
    exact32 = torch.get_float32_matmul_precision() == "highest"
    dtype = torch.float32 if exact32 and x.dtype != torch.float64 else torch.float64
    if rows.dtype != dtype:
        rows = rows.to(dtype)
    square = squared_norms(rows)
    if not np.vdot(square, square) < np.inf:
        bad = (~rows.isfinite().all(1)).nonzero()
        if len(bad):
            raise ValueError(
                f"{name} must be finite to be matched, "
                f"sample {int(bad[0])} has a NaN or an infinity: clean or drop it"
            )
    return rows, square


def squared_norms(rows: Tensor) -> Floats:
    """Squared norms of rows, `(n,)` in float64."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    with np.errstate(over="ignore"):
        squares: Floats = np.square(norms.cpu().numpy(), dtype=np.float64)
    return squares


def check_points(x1: Tensor, x2: Tensor | None) -> None:
    """Refuse samples that cannot be matched, by the name of the argument."""
    named = [("x", x1)] if x2 is None else [("x1", x1), ("x2", x2)]
    for name, x in named:
        if x.dtype not in MATCHED:
            rule = "float16 or wider" if x.is_floating_point() else "floating point"
            raise TypeError(f"{name} must be {rule}, got {x.dtype}: use {_as_float(name, x)}")
    if x2 is not None:
        check_alike(x1, x2, "x1", "x2")
    for name, x in named:
        if x.layout != torch.strided:
            raise TypeError(
                f"{name} must be dense to be matched, got {x.layout}: use {name}.to_dense()"
            )
        if x.is_meta:
            raise ValueError(
                f"{name} must hold values to be matched, got a tensor on the meta device: "
                "use one on a real device"
            )


def _as_float(name: str, x: Tensor) -> str:
    """The call that makes floats of `x`."""
    if x.is_complex():
        return f"torch.view_as_real({name})"
    return f"{name}.dequantize()" if x.is_quantized else f"{name}.float()"


def check_alike(x1: Tensor, x2: Tensor, name1: str, name2: str) -> None:
    """Refuse two batches that cannot be paired row by row, naming both."""
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
