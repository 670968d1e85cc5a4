"""Nests: a tensor, or a dict, list or tuple of tensors to any depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup.matching._points import check_alike

Nest = Any  # other entries are allowed beside tensors
Mixes = Callable[[object], bool]  # whether an entry of a nest is mixed


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
    """Return the tensors of a nest that are mixed; a bare tensor always is."""
    if isinstance(x, Tensor):
        return [x]
    tensors = [entry for entry in pytree.tree_leaves(x) if isinstance(entry, Tensor)]
    return [tensor for tensor in tensors if mixes(tensor)] or tensors


def batch_length(x: Nest) -> int:
    """Return the number of samples: the length of the first tensor."""
    if not isinstance(x, Tensor):
        x = next((entry for entry in pytree.tree_leaves(x) if isinstance(entry, Tensor)), None)
    return x.shape[0] if x is not None and x.dim() else 0


def check_nested_alike(
    first: Nest, second: Nest, first_name: str, second_name: str, mixes: Mixes
) -> None:
    """Raise if two nests differ in their structure, or mixed tensors in more than values."""
    structure, other_structure = pytree.tree_structure(first), pytree.tree_structure(second)
    if structure != other_structure:
        raise ValueError(
            f"{second_name} must be nested like {first_name}, got {other_structure} and {structure}"
        )
    for entry, counterpart in zip(
        pytree.tree_leaves(first), pytree.tree_leaves(second), strict=True
    ):
        is_mixed = entry is first or mixes(entry) or mixes(counterpart)
        if not isinstance(entry, Tensor) or not is_mixed:
            continue
        if not isinstance(counterpart, Tensor):
            raise ValueError(
                f"{second_name} must be nested like {first_name}, got "
                f"{type(counterpart).__name__} for a tensor"
            )
        check_alike(entry, counterpart, first_name, second_name)
