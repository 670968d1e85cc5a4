"""What a batch may be: a tensor or a nest of tensors, one row for each sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypedDict

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from kmixup.modes import evaluating
from kmixup.points import check_alike

Nest = Any  # a tensor, or a dict, list or tuple of them to any depth, other entries among them
# given for the samples, for both sides, by the key of an entry, or as a function of the inputs
Features = Tensor | tuple[Tensor, Tensor] | str | int | Callable[[Any], Tensor]
Importance = Tensor | tuple[Tensor, Tensor]  # of pixels (n, height, width), or of both batches
Mixes = Callable[[object], bool]  # whether an entry of a nest is mixed


class Known(TypedDict, total=False):
    """What may be known of a batch, as in `Mixing.draw`."""

    features: Features | None
    importance: Importance | None


class Beside(Known, total=False):
    """What may be given beside a batch and its draw, as in `Mixing.draw`."""

    other: tuple[Nest, Nest] | None


def over(function: Callable[..., Any], *nests: Nest) -> Nest:
    """Apply `function` to the entries of equally nested nests; the result is nested alike."""
    if isinstance(nests[0], Tensor):
        return function(*nests)
    return pytree.tree_map(function, *nests)


def pairs_over(
    function: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], nest: Nest, other: Nest
) -> tuple[Nest, Nest]:
    """Apply `function`, which returns two values, to the entries of two nests; two nests out."""
    if nest is None:
        return None, None
    if isinstance(nest, Tensor):
        return function(nest, other)
    entries, structure = pytree.tree_flatten(nest)
    if not entries:
        return nest, other
    pairs = [function(*pair) for pair in zip(entries, pytree.tree_leaves(other), strict=True)]
    first, second = (pytree.tree_unflatten(side, structure) for side in zip(*pairs, strict=True))
    return first, second


def batch_length(x: Nest) -> int:
    """Number of samples: the length of the first tensor. `check_batch` checks the others."""
    if not isinstance(x, Tensor):
        x = next((entry for entry in pytree.tree_leaves(x) if isinstance(entry, Tensor)), None)
    return x.shape[0] if x is not None and x.dim() else 0


def mixed_entries(x: Nest, name: str, mixes: Mixes) -> list[Tensor]:
    """The tensors of a nest that are mixed; a tensor alone always is."""
    if isinstance(x, Tensor):
        return [x]
    entries = pytree.tree_leaves(x)
    tensors = [entry for entry in entries if isinstance(entry, Tensor)]
    if not tensors:
        kinds = sorted({type(entry).__name__ for entry in entries}) or ["nothing"]
        numbers = {"ndarray", "float", "int"}.intersection(kinds)
        remedy = ": use torch.as_tensor" if numbers else ""
        raise TypeError(
            f"{name} must be a tensor or a nest of tensors, got {', '.join(kinds)}{remedy}"
        )
    return [tensor for tensor in tensors if mixes(tensor)] or tensors


def check_batch(x: Nest, y: Nest, x_name: str, y_name: str, *, mixes: Mixes) -> int:
    """Refuse a batch that cannot be mixed, and return its length.

    `mixes` says which entries of `x` are mixed.
    """
    entries = mixed_entries(x, x_name, mixes)
    for entry in entries:
        if not mixes(entry) and not entry.is_floating_point():
            raise TypeError(
                f"{x_name} must be floating point, got {entry.dtype}: token ids and other integers "
                "cannot be averaged (mix embeddings instead; images: x.float() / 255)"
            )
        _check_width(entry, x_name)
    lengths = {entry.shape[0] if entry.dim() else None for entry in entries}
    if len(lengths) > 1 or None in lengths:
        raise ValueError(
            f"all tensors of {x_name} must share their first dimension, the batch, "
            f"got shapes {[tuple(entry.shape) for entry in entries]}"
        )
    n = entries[0].shape[0]
    for target in _targets(y, y_name):
        if target.dim() == 0 or target.shape[0] != n:
            raise ValueError(
                f"{y_name} must have one target for each of the {n} samples of {x_name}, "
                f"got shape {tuple(target.shape)}"
            )
        _check_width(target, y_name)
    return n


def _check_width(entry: Tensor, name: str) -> None:
    if entry.dtype.itemsize == 1 and entry.is_floating_point():
        raise TypeError(
            f"{name} must be float16 or wider to be mixed, got {entry.dtype}: use .float()"
        )


def _targets(y: Nest, name: str) -> list[Tensor]:
    """The tensors of a nest of targets; none where there are no targets."""
    if isinstance(y, Tensor):
        return [y]
    targets: list[Tensor] = [] if y is None else pytree.tree_leaves(y)
    if not all(isinstance(target, Tensor) for target in targets):
        kinds = sorted({type(target).__name__ for target in targets})
        raise TypeError(
            f"{name} must be a tensor, a nest of tensors, or None to mix inputs alone, "
            f"got {type(y).__name__} of {', '.join(kinds)}: use torch.as_tensor"
        )
    return targets


def check_nests_alike(nest: Nest, other: Nest, name: str, other_name: str) -> None:
    """Refuse two nests that cannot be paired tensor by tensor."""
    if isinstance(nest, Tensor) and isinstance(other, Tensor):
        check_alike(nest, other, name, other_name)
        return
    structures = pytree.tree_structure(nest), pytree.tree_structure(other)
    if structures[0] != structures[1]:
        raise ValueError(
            f"{other_name} must be nested like {name}, got {structures[1]} and {structures[0]}"
        )
    pairs = zip(pytree.tree_leaves(nest), pytree.tree_leaves(other), strict=True)
    for entry, counterpart in pairs:
        if isinstance(entry, Tensor) and isinstance(counterpart, Tensor):
            check_alike(entry, counterpart, name, other_name)


def computed_features(
    features: Features | None, x: Nest, other: tuple[Nest, Nest] | None
) -> Features | None:
    """What a function of the inputs gives as features; all other features as they are.

    No gradient is kept. A network, or the method of one, runs in eval mode, and every
    submodule is in its own mode afterwards.
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
        sides = [features(batch) for batch in (x, *([] if other is None else other[:1]))]
    for side in sides:
        if not isinstance(side, Tensor):
            raise TypeError(
                f"features must give one tensor (n, ...) for a batch, gave {type(side).__name__}"
            )
    return sides[0] if other is None else (sides[0], sides[1])


def features_of_both(
    features: Features | None, *, paired: bool
) -> tuple[Features | None, Features | None]:
    """What to match on, for each side: a tensor, a key, or None for all that is mixed."""
    if isinstance(features, (tuple, list)):
        if not paired or len(features) != 2:
            raise ValueError(
                "features must be one tensor without other, and a pair (features of x, features "
                f"of other) with it, got {len(features)} {'with' if paired else 'without'} other"
            )
        own, their = features
        return own, their
    if isinstance(features, Tensor) and paired:
        raise ValueError("features must be a pair (features of x, features of other) here")
    return features, features


def matched_features(x: Nest, features: Features | None, *, n: int, mixes: Mixes) -> Tensor:
    """What to match on of `n` samples: all that is mixed, unless `features` are given."""
    if isinstance(features, (str, int)):
        try:
            x = x[features]
        except (KeyError, IndexError, TypeError) as error:
            entries = list(x) if isinstance(x, dict) else type(x).__name__
            raise ValueError(
                f"features must name an entry of x, got {features!r}, but x has {entries}"
            ) from error
    elif isinstance(features, Tensor):
        x = features
    matched = _concatenated(x, mixes)
    if matched.dim() == 0 or matched.shape[0] != n:
        raise ValueError(
            f"features must have one row for each of the {n} samples, got shape "
            f"{tuple(matched.shape)}"
        )
    return matched


def importance_of_both(
    importance: Importance | None, *, n: int, paired: bool
) -> tuple[Tensor, Tensor] | None:
    """Importance `(n, height, width)` of the samples and of the batch that holds the partners."""
    if importance is None:
        return None
    if isinstance(importance, Tensor) == paired:
        raise ValueError(
            "importance must be a pair (importance of x, importance of other) with other, "
            f"and one tensor without, got {type(importance).__name__}"
        )
    own, other = (importance, importance) if isinstance(importance, Tensor) else importance
    for side in (own,) if other is own else (own, other):
        if side.dim() != 3 or len(side) != n:
            raise ValueError(
                f"importance must have the shape ({n}, height, width), one number for each pixel "
                f"of the {n} samples, got {tuple(side.shape)}"
            )
        usable = (side.isfinite() & (side >= 0)).flatten(1).all(1)
        if not usable.all():
            raise ValueError(
                "importance must be finite and 0 or more, sample "
                f"{int((~usable).nonzero()[0])} has another value: check the network it is from"
            )
    return own.detach(), other.detach()


def _concatenated(x: Nest, mixes: Mixes) -> Tensor:
    """What is mixed of a nest as one tensor of floats: squared distances add up."""
    entries: Sequence[Tensor] = [entry.detach() for entry in mixed_entries(x, "x", mixes)]
    entries = [entry if entry.is_floating_point() else entry.float() for entry in entries]
    if len(entries) == 1:
        return entries[0]
    return torch.cat([entry.reshape(len(entry), -1) for entry in entries], dim=1)
