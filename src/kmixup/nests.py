"""What a batch may be: a tensor or a nest of tensors, one row for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup.pairing import check_alike

Nest = Any  # a tensor, or a dict, list or tuple of them to any depth
Features = Tensor | tuple[Tensor, Tensor] | str | int


def check_batch(x: Nest, y: Tensor, x_name: str, y_name: str, *, integers: bool = False) -> int:
    """Length of a batch that can be mixed; `integers` says whether its inputs may be such."""
    leaves = pytree.tree_leaves(x)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        kinds = sorted({type(leaf).__name__ for leaf in leaves}) or ["nothing"]
        raise TypeError(f"{x_name} must be a tensor or a nest of tensors, got {', '.join(kinds)}")
    for leaf in leaves:
        if not (integers or leaf.is_floating_point()):
            raise TypeError(
                f"{x_name} must be floating point, got {leaf.dtype}: token ids and other integers "
                "cannot be averaged (mix embeddings instead; images: x.float() / 255)"
            )
    lengths = {leaf.shape[0] if leaf.dim() else None for leaf in leaves}
    if len(lengths) > 1 or None in lengths:
        raise ValueError(
            f"all tensors of {x_name} must share their first dimension, the batch, "
            f"got shapes {[tuple(leaf.shape) for leaf in leaves]}"
        )
    n = len(leaves[0])
    if y.dim() == 0 or len(y) != n:
        raise ValueError(
            f"{y_name} must have one target for each of the {n} samples of {x_name}, "
            f"got shape {tuple(y.shape)}"
        )
    return n


def check_nests_alike(x: Nest, x2: Nest) -> None:
    """Refuse two nests that cannot be paired tensor by tensor."""
    if pytree.tree_structure(x) != pytree.tree_structure(x2):
        raise ValueError(
            "the inputs of other must be nested like x, got "
            f"{pytree.tree_structure(x2)} and {pytree.tree_structure(x)}"
        )
    for one, two in zip(pytree.tree_leaves(x), pytree.tree_leaves(x2), strict=True):
        check_alike(one, two, "x", "the inputs of other")


def matched_features(
    x: Nest, x2: Nest, features: Features | None, *, n: int, paired: bool
) -> tuple[Tensor, Tensor]:
    """What to match on, for both sides."""
    if isinstance(features, (str, int)):
        try:
            x, x2 = x[features], x2[features]
        except (KeyError, IndexError, TypeError) as error:
            entries = list(x) if isinstance(x, dict) else type(x).__name__
            raise ValueError(
                f"features must name an entry of x, got {features!r}, but x has {entries}"
            ) from error
    elif isinstance(features, Tensor):
        if paired:
            raise ValueError("features must be a pair (features of x, features of other) here")
        x = x2 = features
    elif features is not None:
        x, x2 = features
    one = _concatenated(x)
    two = one if x2 is x else _concatenated(x2)
    if one.dim() == 0 or len(one) != n:
        raise ValueError(
            f"features must have one row for each of the {n} samples, got shape {tuple(one.shape)}"
        )
    return one, two


def _concatenated(x: Nest) -> Tensor:
    """All tensors of a nest as one of floats, sample by sample: squared distances add up."""
    leaves: Sequence[Tensor] = [leaf.detach() for leaf in pytree.tree_leaves(x)]
    leaves = [leaf if leaf.is_floating_point() else leaf.float() for leaf in leaves]
    if len(leaves) == 1:
        return leaves[0]
    return torch.cat([leaf.reshape(len(leaf), -1) for leaf in leaves], dim=1)
