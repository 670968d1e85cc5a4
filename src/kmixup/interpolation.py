"""Stage 3: how a sample and its partner become one."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from kmixup.coefficient import per_sample


@dataclass(frozen=True)
class Linear:
    """lam · x[i] + (1 - lam) · other[partner[i]]."""

    def __call__(self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor) -> Tensor:
        """Mix `x` `(n, ...)` with its partners; `lam` is a scalar or `(n,)`.

        One gather and one pass: plain index_select is several times faster than
        indexing, and lerp in place makes no further copy.
        """
        mixed = other.index_select(0, partner.to(other.device))
        if lam.dim() == 0:
            return mixed.lerp_(x, lam.item())
        weight = per_sample(lam, x).to(x.device)
        if x.dtype == weight.dtype:
            return mixed.lerp_(x, weight)
        return mixed.to(weight.dtype).lerp_(x.to(weight.dtype), weight).to(x.dtype)
