"""Batches: checked and normalised once, before anything is drawn or mixed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup.features import Features, features_of_both
from kmixup.importance import Importance, importance_of_both
from kmixup.matching.assignment import Points
from kmixup.matching.points import as_floats, as_rows
from kmixup.nests import Mixes, Nest, check_nested_alike, mixed_entries


class Extras(TypedDict, total=False):
    """The optional arguments of `Mixing.draw` and `Mixing.mix`."""

    other: tuple[Nest, Nest] | None
    features: Features | None
    importance: Importance | None


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch that has been checked. `Batch.of` makes one; everything behind it trusts it.

    Attributes:
        x: inputs, a tensor `(n, ...)` or a nest.
        y: targets, a tensor `(n, ...)` or a nest of them; None if only inputs are mixed.
        n: the number of samples to mix. Rows beyond them only serve as partners.
        other: the inputs and targets of a second batch that holds the partners, or None.
        features: what to match on, for both sides; None for everything that is mixed.
        importance: of pixels `(n, height, width)`, for both sides; None if it was not given.

    >>> from kmixup import KMixup
    >>> KMixup(k=4).batch(torch.randn(16, 3), torch.randn(16)).n
    16
    """

    x: Nest
    y: Nest
    n: int
    other: tuple[Nest, Nest] | None = None
    features: tuple[Tensor, Tensor] | None = None
    importance: tuple[Tensor, Tensor] | None = None

    @classmethod
    def of(
        cls,
        x: Nest,
        y: Nest,
        *,
        other: tuple[Nest, Nest] | None = None,
        features: Features | None = None,
        importance: Importance | None = None,
        mixes: Mixes = torch.is_tensor,
        matched: bool = True,
    ) -> Batch:
        """Check a batch.

        Args:
            x, y, other, features, importance: those of `Mixing.draw`.
            mixes: whether an entry of `x` is mixed.
            matched: whether samples are going to be matched; otherwise features are left out.

        Returns:
            The checked batch.

        Raises:
            TypeError, ValueError: if the batch cannot be mixed.
        """
        n = _check_side(x, y, "x", "y", mixes)
        if other is not None:
            _check_other(x, y, other, mixes)
        batch = cls(x, y, n, None if other is None else (other[0], other[1]))
        if matched and features is not None:
            batch = replace(batch, features=features_of_both(features, x, other, n))
        if importance is not None:
            both = importance_of_both(importance, n, paired=other is not None)
            batch = replace(batch, importance=both)
        return batch

    def points(self, mixes: Mixes) -> tuple[Points, Points]:
        """Return what to match on for both sides, the same object within one batch.

        Args:
            mixes: whether an entry of the inputs is mixed.
        """
        if self.features is not None:
            own, their = self.features
            first = [as_floats(own)]
            return first, first if their is own else [as_floats(their)]
        if isinstance(self.x, Tensor) and self.other is None and self.x.is_floating_point():
            first = [as_rows(self.x)]
            return first, first
        first = [as_floats(entry) for entry in mixed_entries(self.x, mixes)]
        if self.other is None:
            return first, first
        return first, [as_floats(entry) for entry in mixed_entries(self.other[0], mixes)]


def _check_side(x: Nest, y: Nest, x_name: str, y_name: str, mixes: Mixes) -> int:
    """Raise if a batch cannot be mixed, and return its length."""
    entries = mixed_entries(x, mixes)
    if not entries:
        kinds = sorted({type(entry).__name__ for entry in pytree.tree_leaves(x)}) or ["nothing"]
        numbers = {"ndarray", "float", "int"}.intersection(kinds)
        remedy = ": use torch.as_tensor" if numbers else ""
        raise TypeError(
            f"{x_name} must be a tensor or a nest of tensors, got {', '.join(kinds)}{remedy}"
        )
    n = entries[0].shape[0] if entries[0].dim() else 0
    for entry in entries:
        if not entry.is_floating_point() and not mixes(entry):
            raise TypeError(
                f"{x_name} must be floating point, got {entry.dtype}: token ids and other integers "
                "cannot be averaged (mix embeddings instead; images: x.float() / 255)"
            )
        if entry.is_meta:
            raise ValueError(
                f"{x_name} must hold values to be matched, got a meta tensor: load it first"
            )
        if entry.dim() == 0 or entry.shape[0] != n:
            raise ValueError(
                f"all tensors of {x_name} must share their first dimension, the batch, "
                f"got shapes {[tuple(entry.shape) for entry in entries]}"
            )
    targets = [y] if isinstance(y, Tensor) else [] if y is None else pytree.tree_leaves(y)
    for target in targets:
        if not isinstance(target, Tensor):
            raise TypeError(
                f"{y_name} must be a tensor, a nest of tensors, or None to mix inputs only, "
                f"got {type(y).__name__} of {type(target).__name__}: use torch.as_tensor"
            )
        if target.dim() == 0 or target.shape[0] != n:
            raise ValueError(
                f"{y_name} must have one target for each of the {n} samples of {x_name}, "
                f"got shape {tuple(target.shape)}"
            )
    for name, tensors in ((x_name, entries), (y_name, targets)):
        for tensor in tensors:
            if tensor.dtype.itemsize == 1 and tensor.is_floating_point():
                raise TypeError(
                    f"{name} must be float16 or wider to be mixed, got {tensor.dtype}: use .float()"
                )
    return n


def _check_other(x: Nest, y: Nest, other: tuple[Nest, Nest], mixes: Mixes) -> None:
    if not isinstance(other, (tuple, list)) or len(other) != 2:
        raise TypeError(f"other must be a pair (x2, y2), got {type(other).__name__}: add targets")
    names = "the inputs of other", "the targets of other"
    _check_side(*other, *names, mixes)
    check_nested_alike(x, other[0], "x", names[0])
    check_nested_alike(y, other[1], "y", names[1])
