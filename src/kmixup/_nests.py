"""Nests: a tensor, or a dict, list or tuple of tensors to any depth."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup.matching._points import check_alike

Nest = Any  # other entries are allowed next to tensors
Mixes = Callable[[object], bool]  # whether an entry of a nest is mixed
Key = int | str | tuple[int | str, ...]  # of an entry, or the way to it
Keys = tuple[Key, Key | None]  # of inputs and targets in a packed batch


def over(function: Callable[..., Any], *nests: Nest) -> Nest:
    """Apply `function` to the entries of equally nested nests; the result is nested as they are."""
    if isinstance(nests[0], Tensor):
        return function(*nests)
    if nests[0] is None:
        return None
    return pytree.tree_map(function, *nests)


def pairs_over(function: Callable[..., tuple[Any, Any]], *nests: Nest) -> tuple[Nest, Nest]:
    """Apply `function`, which returns two values, to entries of equal nests; two nests out."""
    if isinstance(nests[0], Tensor):
        return function(*nests)
    if nests[0] is None:
        return None, None
    structure = pytree.tree_structure(nests[0])
    pairs = [function(*each) for each in zip(*map(pytree.tree_leaves, nests), strict=True)]
    first = pytree.tree_unflatten([pair[0] for pair in pairs], structure)
    return first, pytree.tree_unflatten([pair[1] for pair in pairs], structure)


def spread(function: Callable[[Any, Any], Nest], setting: Nest, nest: Nest, name: str) -> Nest:
    """Apply `function` to each part of a nest and its setting, one for all or a nest like it."""
    structure = pytree.tree_structure(setting)
    try:
        parts = structure.flatten_up_to(nest)
    except ValueError as error:
        raise ValueError(
            f"{name} must be one for all, or nested like y, a {type(nest).__name__}, got a "
            f"{type(setting).__name__}: note that loaders turn tuples into lists"
        ) from error
    values = [function(*pair) for pair in zip(parts, pytree.tree_leaves(setting), strict=True)]
    in_order = pytree.tree_structure(nest)  # entries of dicts
    leaves = in_order.flatten_up_to(pytree.tree_unflatten(values, structure))
    return pytree.tree_unflatten(leaves, in_order)


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


def over_packed(function: Callable[[Any, Any], tuple[Any, Any]], batch: Any, keys: Keys) -> Any:
    """Return a packed `batch` with what `function` returns for its inputs and targets."""
    if not isinstance(keys, (tuple, list)) or len(keys) != 2:
        raise ValueError(
            f"keys must be the key of the inputs and that of the targets, got {keys!r}: use e.g. "
            'keys=(0, 1) or keys=("image", None)'
        )
    ways = [key if isinstance(key, tuple) else (key,) for key in keys if key is not None]
    values = [_entry_at(batch, way) for way in ways]
    mixed = function(values[0], values[1] if len(values) > 1 else None)
    for way, value in zip(ways, mixed, strict=False):
        batch = _with_entry(batch, way, value)
    return batch


def key_of(nest: Nest, path: pytree.KeyPath) -> Key:
    """Return the key of the entry of `nest` that a path of torch's leads to."""
    way: list[int | str] = []
    for step in path:
        if isinstance(step, pytree.GetAttrKey):  # of a named tuple
            way.append(nest._fields.index(step.name))
        elif isinstance(step, (pytree.MappingKey, pytree.SequenceKey)):
            way.append(step.key if isinstance(step, pytree.MappingKey) else step.idx)
        nest = nest[way[-1]]
    return way[0] if len(way) == 1 else tuple(way)


def _entry_at(batch: Any, way: tuple[int | str, ...]) -> Any:
    for key in way:
        if not isinstance(batch, (tuple, list, Mapping)):
            raise TypeError(
                "a batch with keys must be a tuple, a list or a mapping of inputs and targets, "
                f"got {type(batch).__name__}: use mixer(x, y)"
            )
        try:
            batch = batch[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError) as error:
            entries = list(batch) if isinstance(batch, Mapping) else f"{len(batch)} entries"
            raise ValueError(
                f"keys must name entries of the batch, got {key!r}, but it has {entries}"
            ) from error
    return batch


def _with_entry(batch: Any, way: tuple[int | str, ...], value: Any) -> Any:
    """Return a copy of `batch` of the same type, with another value at the end of a way."""
    key, *rest = way
    if rest:
        value = _with_entry(batch[key], tuple(rest), value)
    changed: Any = list(batch) if isinstance(batch, tuple) else copy.copy(batch)
    changed[key] = value
    if isinstance(batch, tuple):
        changed = type(batch)(*changed) if hasattr(batch, "_fields") else tuple(changed)
    return changed
