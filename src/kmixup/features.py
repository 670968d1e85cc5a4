"""Features: what samples are matched on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from kmixup.matching.points import as_floats, check_points
from kmixup.nests import Nest, mixed_entries
from kmixup.networks import evaluating

# given per sample, for both sides, by the key of an entry, or as a function of the inputs
Features = Tensor | tuple[Tensor, Tensor] | str | int | Callable[[Any], Tensor]


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
    if not isinstance(sides[0], Tensor):
        raise TypeError(
            f"features must return one tensor (n, ...) for a batch, got {type(sides[0]).__name__}"
        )
    return sides[0] if other is None else (sides[0], sides[1])


def features_of_both(
    features: Features, x: Nest, other: tuple[Nest, Nest] | None, n: int
) -> tuple[Tensor, Tensor]:
    """Return what to match on, as a tensor for each side."""
    given = compute_features(features, x, other)
    paired = other is not None
    if isinstance(given, (str, int)):
        own = _entry(x, given)
        their = own if other is None else _entry(other[0], given)
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
        if side.dim() == 0 or side.shape[0] != n:
            raise ValueError(
                f"features must have one row for each of the {n} samples, got shape "
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
    parts = [as_floats(part) for part in mixed_entries(entry, torch.is_tensor)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)
