"""Batches: checked and normalised once, before anything is drawn or mixed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, cast

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from kmixup.matching.assignment import Points
from kmixup.matching.points import as_rows, check_alike, check_points
from kmixup.modes import evaluating

Nest = Any  # a tensor, or a dict, list or tuple of tensors to any depth, with other entries allowed
# given per sample, for both sides, by the key of an entry, or as a function of the inputs
Features = Tensor | tuple[Tensor, Tensor] | str | int | Callable[[Any], Tensor]
Importance = Tensor | tuple[Tensor, Tensor]  # of pixels (n, height, width), or of both batches
Mixes = Callable[[object], bool]  # whether an entry of a nest is mixed


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
        """Check a batch; the arguments are those of `Mixing.draw`.

        `mixes` tells which entries of `x` are mixed. Features are left out unless they are going
        to be `matched`.
        """
        n = _check_side(x, y, "x", "y", mixes)
        if other is not None:
            _check_other(x, y, other, mixes)
        batch = cls(x, y, n, None if other is None else (other[0], other[1]))
        if matched and features is not None:
            batch = replace(batch, features=_features_of_both(features, batch))
        if importance is not None:
            batch = replace(batch, importance=_importance_of_both(importance, batch))
        return batch

    @property
    def second(self) -> tuple[Nest, Nest]:
        """Inputs and targets of the batch that holds the partners."""
        return (self.x, self.y) if self.other is None else self.other

    def points(self, mixes: Mixes) -> tuple[Points, Points]:
        """Return what to match on, for both sides; the same object within one batch."""
        if self.features is not None:
            own, their = self.features
            first = [_as_floats(own)]
            return first, first if their is own else [_as_floats(their)]
        if isinstance(self.x, Tensor) and self.other is None and self.x.is_floating_point():
            first = [as_rows(self.x)]
            return first, first
        first = [_as_floats(entry) for entry in mixed_entries(self.x, mixes)]
        if self.other is None:
            return first, first
        return first, [_as_floats(entry) for entry in mixed_entries(self.other[0], mixes)]


def over(function: Callable[..., Any], *nests: Nest) -> Nest:
    """Apply `function` to the entries of equally nested nests; the result is nested alike."""
    if isinstance(nests[0], Tensor):
        return function(*nests)
    if nests[0] is None:
        return None
    return pytree.tree_map(function, *nests)


def pairs_over(
    function: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], nest: Nest, other: Nest
) -> tuple[Nest, Nest]:
    """Apply `function`, which returns two values, to the entries of two nests; two nests out."""
    if isinstance(nest, Tensor):
        return function(nest, other)
    if nest is None:
        return None, None
    entries, structure = pytree.tree_flatten(nest)
    pairs = [function(*pair) for pair in zip(entries, pytree.tree_leaves(other), strict=True)]
    first = pytree.tree_unflatten([pair[0] for pair in pairs], structure)
    return first, pytree.tree_unflatten([pair[1] for pair in pairs], structure)


def mixed_entries(x: Nest, mixes: Mixes) -> list[Tensor]:
    """Return the tensors of a nest that are mixed; a tensor alone always is."""
    if isinstance(x, Tensor):
        return [x]
    tensors = [entry for entry in pytree.tree_leaves(x) if isinstance(entry, Tensor)]
    return [tensor for tensor in tensors if mixes(tensor)] or tensors


def batch_length(x: Nest) -> int:
    """Return the number of samples: the length of the first tensor."""
    if not isinstance(x, Tensor):
        x = next((entry for entry in pytree.tree_leaves(x) if isinstance(entry, Tensor)), None)
    return x.shape[0] if x is not None and x.dim() else 0


def _as_floats(x: Tensor) -> Tensor:
    return as_rows(x) if x.is_floating_point() else as_rows(x).float()


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
        if entry.dtype.itemsize == 1 and entry.is_floating_point():
            _raise_narrow(entry, x_name)
        if entry.dim() == 0 or entry.shape[0] != n:
            raise ValueError(
                f"all tensors of {x_name} must share their first dimension, the batch, "
                f"got shapes {[tuple(entry.shape) for entry in entries]}"
            )
    for target in [y] if isinstance(y, Tensor) else [] if y is None else pytree.tree_leaves(y):
        if not isinstance(target, Tensor):
            kinds = sorted({type(leaf).__name__ for leaf in pytree.tree_leaves(y)})
            raise TypeError(
                f"{y_name} must be a tensor, a nest of tensors, or None to mix inputs only, "
                f"got {type(y).__name__} of {', '.join(kinds)}: use torch.as_tensor"
            )
        if target.dim() == 0 or target.shape[0] != n:
            raise ValueError(
                f"{y_name} must have one target for each of the {n} samples of {x_name}, "
                f"got shape {tuple(target.shape)}"
            )
        if target.dtype.itemsize == 1 and target.is_floating_point():
            _raise_narrow(target, y_name)
    return n


def _raise_narrow(entry: Tensor, name: str) -> None:
    raise TypeError(f"{name} must be float16 or wider to be mixed, got {entry.dtype}: use .float()")


def _check_other(x: Nest, y: Nest, other: tuple[Nest, Nest], mixes: Mixes) -> None:
    if not isinstance(other, (tuple, list)) or len(other) != 2:
        raise TypeError(
            f"other must be a pair (x2, y2), got {type(other).__name__}: pass the second batch "
            "with its targets"
        )
    names = "the inputs of other", "the targets of other"
    _check_side(*other, *names, mixes)
    for nest, second, name, second_name in zip((x, y), other, ("x", "y"), names, strict=True):
        structures = pytree.tree_structure(nest), pytree.tree_structure(second)
        if structures[0] != structures[1]:
            raise ValueError(
                f"{second_name} must be nested like {name}, got {structures[1]} and {structures[0]}"
            )
        pairs = zip(pytree.tree_leaves(nest), pytree.tree_leaves(second), strict=True)
        for entry, counterpart in pairs:
            if isinstance(entry, Tensor) and isinstance(counterpart, Tensor):
                check_alike(entry, counterpart, name, second_name)


def compute_features(
    features: Features | None, x: Nest, other: tuple[Nest, Nest] | None = None
) -> Features | None:
    """Call `features` where it is a function of the inputs; return all other features unchanged.

    No gradient is kept. A network, or a method of one, runs in eval mode, and every submodule is
    back in its own mode afterwards.
    """
    if features is None or isinstance(features, (Tensor, str, int, tuple, list)):
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
    for side in sides:
        if not isinstance(side, Tensor):
            raise TypeError(
                f"features must return one tensor (n, ...) for a batch, got {type(side).__name__}"
            )
    return sides[0] if other is None else (sides[0], sides[1])


def _features_of_both(features: Features, batch: Batch) -> tuple[Tensor, Tensor]:
    """What to match on, as a tensor for each side."""
    given = compute_features(features, batch.x, batch.other)
    paired = batch.other is not None
    if isinstance(given, (str, int)):
        own = _entry(batch.x, given)
        their = _entry(batch.second[0], given) if paired else own
    elif isinstance(given, (tuple, list)):
        if not paired or len(given) != 2:
            raise ValueError(
                "features must be one tensor without other, and a pair (features of x, features "
                f"of other) with it, got {len(given)} {'with' if paired else 'without'} other"
            )
        own, their = given
    else:
        if paired:
            raise ValueError("features must be a pair (features of x, features of other) here")
        own = their = cast(Tensor, given)
    for side in (own, their):
        if side.dim() == 0 or side.shape[0] != batch.n:
            raise ValueError(
                f"features must have one row for each of the {batch.n} samples, got shape "
                f"{tuple(side.shape)}"
            )
        check_points(side if side.is_floating_point() else side.float())
    own_rows = own.detach()
    return own_rows, own_rows if their is own else their.detach()


def _entry(x: Nest, key: str | int) -> Tensor:
    """The entry of `x` with a given key, its tensors side by side."""
    try:
        entry = x[key]
    except (KeyError, IndexError, TypeError) as error:
        entries = list(x) if isinstance(x, dict) else type(x).__name__
        raise ValueError(
            f"features must name an entry of x, got {key!r}, but x has {entries}"
        ) from error
    parts = [_as_floats(part) for part in mixed_entries(entry, torch.is_tensor)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _importance_of_both(importance: Importance, batch: Batch) -> tuple[Tensor, Tensor]:
    """Importance `(n, height, width)` of the samples and of the batch that holds the partners."""
    paired = batch.other is not None
    if isinstance(importance, Tensor) == paired:
        raise ValueError(
            "importance must be a pair (importance of x, importance of other) with other, "
            f"and one tensor without, got {type(importance).__name__}"
        )
    own, other = (importance, importance) if isinstance(importance, Tensor) else importance
    for side in (own,) if other is own else (own, other):
        if side.dim() != 3 or len(side) != batch.n:
            raise ValueError(
                f"importance must have the shape ({batch.n}, height, width), one number for each "
                f"pixel of the {batch.n} samples, got {tuple(side.shape)}"
            )
        usable = (side.isfinite() & (side >= 0)).flatten(1).all(1).cpu()
        if not usable.all():
            raise ValueError(
                "importance must be finite and 0 or more, sample "
                f"{int((~usable).nonzero()[0])} has another value: check the network it is from"
            )
    own_pixels = own.detach()
    return own_pixels, own_pixels if other is own else other.detach()
