"""Batches: checked and normalised once, before anything is drawn or mixed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from kmixup._compiling import check_not_exported
from kmixup._nests import Mixes, Nest, check_nested_alike, key_of, mixed_entries
from kmixup._networks import evaluating
from kmixup.matching import Blocks, Pairing
from kmixup.matching._assignment import Points
from kmixup.matching._points import MATCHED, as_floats, as_rows, check_alike, check_dense
from kmixup.targets import check_no_boxes, mixed_targets, types_of

# given per sample, for both sides, by the key of an entry, or as a function of the inputs
Features = Tensor | tuple[Tensor, Tensor] | str | int | Callable[[Any], Tensor]
# dtypes that torch has few operations for, with signed ones of the same width
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
Importance = Tensor | tuple[Tensor, Tensor]  # of pixels (n, height, width), or of both batches


class Extras(TypedDict, total=False):
    """The optional arguments of `Mixing.mix`, other than the draw."""

    other: tuple[Nest, Nest] | None
    features: Features | None
    importance: Importance | None


@dataclass(frozen=True, eq=False)
class Batch:
    """A checked batch. Create it with `Batch.of`; `Mixing.mix_batch` does not validate it again.

    Attributes:
        x: inputs, a tensor `(n, ...)` or a nest.
        y: targets, a tensor `(n, ...)` or a nest of them; None if only inputs are mixed.
        types: the `TargetType` of each target, nested like `y`; None where it does not matter.
        n: the number of samples to mix. Rows beyond them only serve as partners.
        other: the inputs and targets of a second batch that holds the partners, or None.
        features: what to match on, for both sides; None for everything that is mixed.
        importance: of pixels `(n, height, width)`, for both sides; None if it was not given.

    >>> Batch.of(torch.randn(16, 3), torch.randn(16)).n
    16
    """

    x: Nest
    y: Nest
    n: int
    other: tuple[Nest, Nest] | None = None
    features: tuple[Tensor, Tensor] | None = None
    importance: tuple[Tensor, Tensor] | None = None
    types: Nest = None
    # by pairing, blocks and entries that are matched, for mixers that share them
    _partners: dict[tuple[Pairing, Blocks, tuple[int, ...]], Tensor] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(
        cls,
        x: Nest,
        y: Nest,
        *,
        other: tuple[Nest, Nest] | None = None,
        features: Features | None = None,
        importance: Importance | None = None,
        targets: Nest = None,
        mixes: Mixes = torch.is_tensor,
        matched: bool = True,
    ) -> Batch:
        """Return a checked batch; raise if it cannot be mixed.

        Args:
            x, y, other, features, importance: those of `Mixing.mix`.
            targets: types of targets, as in `Mixer`.
            mixes: whether an entry of `x` is mixed.
            matched: whether samples are going to be matched; otherwise features are left out.
        """
        if matched:
            check_not_exported()
        entries = _check_inputs(x, "x", mixes)
        n, types = entries[0].shape[0], None
        if y is not None:
            types = types_of(y, targets, entries)
            _check_rows(y, types, n, "y", "x")
        elif not isinstance(x, Tensor):
            _check_unpacked(x, mixes)
        if other is not None:
            other = _check_other(x, y, types, other, mixes)
        points = pixels = None
        if matched and features is not None:
            points = _features_of_both(features, x, other, n)
        if importance is not None:
            pixels = _importance_of_both(importance, n, paired=other is not None)
        return cls(x, y, n, other, points, pixels, types)

    def partners(
        self, pairing: Pairing, blocks: Blocks, points: tuple[Points, Points], mixes: Mixes
    ) -> Tensor:
        """Return the partners that `pairing` finds in `blocks` of `points`, and keep them.

        `mixes` says whether an entry of `x` mixes.
        """
        key = pairing, blocks, tuple(map(id, mixed_entries(self.x, mixes)))
        partner = self._partners.get(key)
        if partner is None:
            targets = self.y, self.y if self.other is None else self.other[1]
            partner = self._partners[key] = pairing.partners(*points, blocks, targets)
        return partner

    def points(self, mixes: Mixes) -> tuple[Points, Points]:
        """Return what to match on for both sides, given whether an entry of `x` `mixes`.

        Within one batch both sides are the same object.
        """
        if self.features is not None:
            own, their = self.features
            first = [as_floats(own)]
            return first, first if their is own else [as_floats(their, own)]
        if isinstance(self.x, Tensor) and self.other is None and self.x.is_floating_point():
            first = [as_rows(self.x)]
            return first, first
        entries = mixed_entries(self.x, mixes)
        first = [as_floats(entry) for entry in entries]
        if self.other is None:
            return first, first
        others = mixed_entries(self.other[0], mixes)
        return first, [as_floats(*pair) for pair in zip(others, entries, strict=True)]


def _check_inputs(x: Nest, name: str, mixes: Mixes) -> list[Tensor]:
    """Raise if inputs cannot be mixed, and return those that are."""
    if not isinstance(x, Tensor):
        check_no_boxes(x, name)
    entries = mixed_entries(x, mixes)
    if not entries:
        kinds = sorted({type(entry).__name__ for entry in pytree.tree_leaves(x)}) or ["nothing"]
        raise TypeError(
            f"{name} must be a tensor or a nest of tensors, got {', '.join(kinds)}: use "
            "torch.as_tensor"
        )
    for entry in entries:
        check_dense(entry, name)
    n = entries[0].shape[0] if entries[0].dim() else 0
    for entry in entries:
        if not entry.is_floating_point() and not mixes(entry):
            raise TypeError(
                f"{name} must be floating point, got {entry.dtype}: token ids and other integers "
                "cannot be averaged (mix embeddings instead; images: x.float() / 255)"
            )
        if entry.dim() == 0 or entry.shape[0] != n:
            raise ValueError(
                f"all tensors of {name} must share their first dimension, the batch, "
                f"got shapes {[tuple(entry.shape) for entry in entries]}"
            )
        if entry.dtype.itemsize == 1:
            _check_width(entry, name)
    return entries


def _check_rows(y: Nest, types: Nest, n: int, name: str, inputs: str) -> None:
    """Raise if targets that are mixed are not one for each sample, or have an odd dtype."""
    for target in mixed_targets(y, types):
        check_dense(target, name)
        if target.dim() == 0 or target.shape[0] != n:
            raise ValueError(
                f"{name} must have one target for each of the {n} samples of {inputs}, "
                f"got shape {tuple(target.shape)}"
            )
        if target.dtype in SIGNED:
            raise TypeError(
                f"{name} must be uint8, signed integers or floats, got {target.dtype}: use .long()"
            )
        if target.dtype.itemsize == 1:
            _check_width(target, name)


def _check_width(tensor: Tensor, name: str) -> None:
    if tensor.is_floating_point():
        raise TypeError(
            f"{name} must be float16 or wider to be mixed, got {tensor.dtype}: use .float()"
        )


def _check_unpacked(x: Nest, mixes: Mixes) -> None:
    """Raise if inputs without targets are a packed batch, whose classes would stay unmixed."""
    places = pytree.tree_flatten_with_path(x)[0]
    for way, entry in places:
        if isinstance(entry, Tensor) and entry.dim() == 1 and _is_integer(entry):
            image = next(way for way, entry in places if mixes(entry))
            given, labels = (key_of(x, part) for part in (image, way))
            raise ValueError(
                f"x holds integers of shape {tuple(entry.shape)} at {labels!r} and there are no "
                f"targets: pass keys=({given!r}, {labels!r}) to the mixer if they are classes, or "
                f"keys=({given!r}, None) to leave them unmixed"
            )


def _is_integer(entry: Tensor) -> bool:
    return not (entry.is_floating_point() or entry.is_complex() or entry.dtype == torch.bool)


def _check_other(
    x: Nest, y: Nest, types: Nest, other: tuple[Nest, Nest], mixes: Mixes
) -> tuple[Nest, Nest]:
    if not isinstance(other, (tuple, list)) or len(other) != 2:
        raise TypeError(f"other must be a pair (x2, y2), got {type(other).__name__}: add targets")
    names = "the inputs of other", "the targets of other"
    n = len(_check_inputs(other[0], names[0], mixes)[0])
    check_nested_alike(x, other[0], "x", names[0], mixes)
    check_nested_alike(y, other[1], "y", names[1], torch.is_tensor)
    if y is not None:
        _check_rows(other[1], types, n, names[1], names[0])
    return other[0], other[1]


def _compute_features(features: Features, x: Nest, other: tuple[Nest, Nest] | None) -> Features:
    """Call `features` where it is a function of the inputs; return all other features unchanged.

    No gradient is kept. A network, or a method of one, runs in eval mode, and every submodule is
    back in its own mode afterwards.
    """
    if isinstance(features, (Tensor, str, int, tuple, list)):
        return features
    if not callable(features):
        raise TypeError(
            "features must be a tensor, two with other, the key of an entry of x, or a function "
            f"of x, got {type(features).__name__}"
        )
    owner: Any = features
    while isinstance(owner, partial):
        owner = owner.func
    net = owner if isinstance(owner, nn.Module) else getattr(owner, "__self__", None)
    with evaluating(net) if isinstance(net, nn.Module) else nullcontext(), torch.no_grad():
        sides = [features(x)] if other is None else [features(x), features(other[0])]
    if not isinstance(sides[0], Tensor):
        raise TypeError(
            f"features must return one tensor (n, ...) for a batch, got {type(sides[0]).__name__}"
        )
    return sides[0] if other is None else (sides[0], sides[1])


def _features_of_both(
    features: Features, x: Nest, other: tuple[Nest, Nest] | None, n: int
) -> tuple[Tensor, Tensor]:
    given = _compute_features(features, x, other)
    if isinstance(given, (str, int)):
        own = _entry(x, given)
        given = own if other is None else (own, _entry(other[0], given))
    sides = _both_sides("features", given, paired=other is not None)
    for side in sides:
        if side.dim() == 0 or side.shape[0] != n:
            raise ValueError(
                f"features must have one row for each of the {n} samples, got shape "
                f"{tuple(side.shape)}"
            )
        if side.is_complex() or (side.is_floating_point() and side.dtype not in MATCHED):
            raise TypeError(
                "features must be real numbers, floats with 16 bits or more, got "
                f"{side.dtype}: use {'torch.view_as_real' if side.is_complex() else '.float()'}"
            )
    return sides


def _entry(x: Nest, key: str | int) -> Tensor:
    """Return the entry of `x` with a given key, its tensors side by side."""
    try:
        entry = None if isinstance(x, Tensor) else x[key]
    except (KeyError, IndexError, TypeError):
        entry = None
    parts = [part for part in mixed_entries(entry, torch.is_tensor) if part.dim()]
    if not parts:
        entries = list(x) if isinstance(x, dict) else type(x).__name__
        raise ValueError(
            f"features must name an entry of x, got {key!r}, but x has {entries}: name one that "
            "holds tensors"
        )
    if len(parts) == 1:
        return parts[0]  # `points` brings both sides into one order
    return torch.cat([as_floats(part.contiguous()) for part in parts], 1)


def _importance_of_both(importance: Importance, n: int, *, paired: bool) -> tuple[Tensor, Tensor]:
    own, other = _both_sides("importance", importance, paired=paired)
    for side in (own,) if other is own else (own, other):
        if side.dim() != 3 or len(side) != n:
            raise ValueError(
                f"importance must have the shape ({n}, height, width), one number for each "
                f"pixel of the {n} samples, got {tuple(side.shape)}"
            )
        usable = (side.isfinite() & (side >= 0)).flatten(1).all(1).cpu()
        if not usable.all():
            raise ValueError(
                "importance must be finite and non-negative, sample "
                f"{int((~usable).nonzero()[0])} is not: check the network that produced it"
            )
    return own, other


def _both_sides(name: str, given: Any, *, paired: bool) -> tuple[Tensor, Tensor]:
    """Return what was given for both sides, detached; without `other` they are the same object."""
    sides = given if paired and isinstance(given, (tuple, list)) else [given]
    if len(sides) != (2 if paired else 1) or not all(isinstance(side, Tensor) for side in sides):
        raise ValueError(
            f"{name} must be a pair ({name} of x, {name} of other) with other, and one tensor "
            f"without, got {type(given).__name__}"
        )
    for side in sides:
        check_dense(side, name)
    if paired and all(side.dim() for side in sides):
        check_alike(sides[0], sides[1], f"{name} of x", f"{name} of other")
    own = sides[0].detach()
    return own, sides[1].detach() if paired else own
