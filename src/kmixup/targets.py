"""Stage 4: types of targets, mixed targets, losses and accuracies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup._nests import Nest, over, spread
from kmixup.coefficient import per_sample
from kmixup.matching._points import check_dense

# classes; soft or multi-label rows; numbers; classes and numbers laid out like the image; unmixed
TargetType = Literal["classes", "soft", "regression", "map", "dense", "pass"]
Criterion = Callable[[Any, Any], Tensor]  # of logits and targets, both may be nests


def type_of(y: Tensor, inputs: Sequence[Tensor] = ()) -> TargetType | None:
    """Return the type of targets `y`; the first of `inputs` with three dimensions is the image.

    Integers `(n,)` are classes, and integers laid out like the image a map of classes. Floats
    `(n,)` are a regression, floats `(n, c)` soft labels, and floats laid out like the image a dense
    map. The last two dimensions of targets laid out like the image have its proportions; for floats
    of three dimensions they must equal those of the image. None stands for other targets of three
    or more dimensions: with an interpolation that mixes regions, their type must be given.

    Raises:
        TypeError: on booleans and complex numbers.
        ValueError: on integers of two dimensions, which are ambiguous.
    """
    if y.is_floating_point():
        if y.dim() < 3:
            return "regression" if y.dim() == 1 else "soft"
        return "dense" if _laid_out_like(inputs, y, exactly=y.dim() == 3) else None
    if y.dtype == torch.bool or y.is_complex():
        raise TypeError(
            f"targets must be floats or class indices, got {y.dtype}: use y.float() for labels of "
            "0 and 1, or y.long() for classes"
        )
    if y.dim() == 2:
        shape, n = tuple(y.shape), len(y)
        if shape[1] == 1:
            raise ValueError(f"class indices must have the shape ({n},), got {shape}: use y[:, 0]")
        raise ValueError(
            f"integer targets of shape {shape} are ambiguous: use y.float() for one-hot or "
            'multi-label rows, or targets="classes" for several classes in each sample'
        )
    if y.dim() < 2:
        return "classes"
    return "map" if _laid_out_like(inputs, y) else None


def _laid_out_like(inputs: Sequence[Tensor], y: Tensor, *, exactly: bool = False) -> bool:
    """Return whether the last two dimensions of `y` have the proportions, or size, of the image."""
    check_dense(y, "y")
    height, width = y.shape[-2:]
    image = next((tuple(x.shape[-2:]) for x in inputs if x.dim() > 2), (0, 0))
    if exactly:
        return image == (height, width)
    return image != (0, 0) and height * image[1] == width * image[0]


def check_type(y: Tensor, given: TargetType) -> TargetType:
    """Return the type `given` for targets `y`, or raise if they cannot have it."""
    whole = not (y.is_floating_point() or y.is_complex() or y.dtype == torch.bool)
    fits = whole if given in ("classes", "map") else y.is_floating_point()
    if given != "pass" and not fits:
        remedy = "y.long()" if given in ("classes", "map") else "y.float()"
        raise TypeError(f"targets={given!r} cannot be {y.dtype}: use {remedy}")
    if (given in ("map", "dense") and y.dim() < 3) or (given == "soft" and y.dim() != 2):
        shape = "(n, classes)" if given == "soft" else "(n, …, height, width)"
        raise ValueError(f"targets={given!r} must have the shape {shape}, got {tuple(y.shape)}")
    return given


def types_of(y: Nest, given: Nest, inputs: Sequence[Tensor] = ()) -> Nest:
    """Return the type of each target in a nest like `y`.

    `given` is a type for all targets or a nest of types and None; those that are None follow from
    `type_of`. Boxes and lists of dicts raise unless their type is given.
    """
    if given is None and type(y) is Tensor:
        return type_of(y, inputs)

    def typed(part: Nest, given: TargetType | None) -> Nest:
        if given is None:
            check_no_boxes(part, "y")
        return pytree.tree_map(lambda entry: _type_of_entry(entry, given, inputs), part)

    return spread(typed, given, y, "targets")


def mixed_targets(y: Nest, types: Nest) -> list[Tensor]:
    """Return the tensors of `y` that are mixed, given its types."""
    if isinstance(y, Tensor):
        return [] if types == "pass" else [y]
    leaves = zip(pytree.tree_leaves(y), pytree.tree_leaves(types), strict=True)
    return [target for target, kind in leaves if kind != "pass"]


def classes_of(y: Nest, num_classes: Nest) -> Nest:
    """Return the number of classes of each target in a nest like `y`."""
    return spread(lambda part, number: over(lambda _: number, part), num_classes, y, "num_classes")


def _type_of_entry(
    entry: object, given: TargetType | None, inputs: Sequence[Tensor]
) -> TargetType | None:
    if given == "pass":
        return given
    if not isinstance(entry, Tensor):
        raise TypeError(
            "y must be a tensor, a nest of tensors, or None to mix inputs only, got "
            f'{type(entry).__name__}: use torch.as_tensor, or targets="pass" for this entry'
        )
    return type_of(entry, inputs) if given is None else check_type(entry, given)


def check_no_boxes(nest: Nest, name: str) -> None:
    """Raise on bounding boxes and on lists of dicts, the targets of detection."""
    instead = (
        'pass them through with targets="pass" for their entry, or mix images only'
        if name == "y"
        else "leave them out, or name inputs and targets of the whole batch with keys="
    )
    if _is_boxes(nest) or (isinstance(nest, dict) and "boxes" in nest):
        raise TypeError(f"{name} has bounding boxes, which cannot be mixed: {instead}")
    if isinstance(nest, list) and nest and all(isinstance(entry, dict) for entry in nest):
        raise TypeError(
            f"{name} has a list of dicts, as in object detection, which cannot be mixed: {instead}"
        )
    if isinstance(nest, (dict, list, tuple)):
        for entry in nest.values() if isinstance(nest, dict) else nest:
            check_no_boxes(entry, name)


def _is_boxes(entry: object) -> bool:
    """Return whether an entry is a `BoundingBoxes` of torchvision, which need not be installed."""
    return type(entry) is not Tensor and any(
        kind.__name__ == "BoundingBoxes" and kind.__module__.startswith("torchvision.")
        for kind in type(entry).__mro__
    )


def check_targets(
    y: Nest,
    types: Nest,
    num_classes: Nest,
    ignore_index: int | None = None,
    *,
    numbers: bool = False,
) -> None:
    """Raise if targets of known types do not fit `num_classes`, one number or a nest like `y`.

    `numbers` allows floats of any shape, as in a nest that shares one `num_classes`.
    """
    if y is None or num_classes is None:
        return
    if isinstance(y, Tensor) and isinstance(num_classes, int):
        if types != "pass":
            _check_target(y, num_classes, ignore_index, numbers=numbers)
        return
    numbers = numbers or isinstance(num_classes, int)
    nests = y, types, classes_of(y, num_classes)
    for entry, kind, number in zip(*map(pytree.tree_leaves, nests), strict=True):
        if kind != "pass" and number is not None:
            _check_target(entry, number, ignore_index, numbers=numbers)


def _check_target(y: Tensor, num_classes: int, ignore_index: int | None, *, numbers: bool) -> None:
    if y.is_floating_point():
        if not numbers and (y.dim() < 2 or y.shape[1] != num_classes):
            raise ValueError(
                f"with num_classes={num_classes} y must be class indices, or soft labels of shape "
                f"(n, {num_classes}), got {y.dtype} of shape {tuple(y.shape)}: use y.long(), or "
                "leave out num_classes to interpolate numbers"
            )
        return
    # Reading a value from a device would wait for all of its work; `scatter_` checks there itself.
    if y.device.type != "cpu" or not y.numel():
        return
    if ignore_index is not None and _can_hold(y.dtype, ignore_index):
        y = y.masked_fill(y == ignore_index, 0)
    bounds = y.aminmax()
    low, high = bounds.min.item(), bounds.max.item()
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"class indices must lie in 0 … {num_classes - 1} with num_classes={num_classes}, "
            f"got {(wrong := low if low < 0 else high)}: fix the label or num_classes, or pass "
            f"ignore_index={wrong}"
        )


def ignored_in_both(y_a: Tensor, y_b: Tensor, ignore_index: int | None) -> tuple[Tensor, Tensor]:
    """Return the class indices of both sides; what one of them ignores is ignored in both."""
    if ignore_index is None or not _can_hold(y_a.dtype, ignore_index):
        return y_a, y_b
    ignored = (y_a == ignore_index) | (y_b == ignore_index)
    return y_a.masked_fill(ignored, ignore_index), y_b.masked_fill(ignored, ignore_index)


def _can_hold(dtype: torch.dtype, index: int) -> bool:
    """Return whether targets of a dtype may be a class index; -100 as uint8 would be 156."""
    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        return False
    return torch.iinfo(dtype).min <= index <= torch.iinfo(dtype).max


def mix_targets(
    y_a: Tensor,
    y_b: Tensor,
    lam: Tensor,
    num_classes: int | None = None,
    ignore_index: int | None = None,
    kind: TargetType | None = None,
) -> Tensor:
    """Return lam · y_a + (1 - lam) · y_b, where integers are classes, for targets of a `kind`.

    Classes become one-hot along a new dimension 1, in the precision of `lam`. Where one of them is
    `ignore_index`, all classes have 0.
    """
    if y_a.is_floating_point():
        weight = per_sample(lam, y_a).to(y_a.device)
        return (weight * y_a + (1 - weight) * y_b).to(y_a.dtype)
    if ignore_index is not None and not _can_hold(y_a.dtype, ignore_index):
        ignore_index = None
    if num_classes is None:
        number = int(y_a.max()) + 1 if y_a.numel() else 10
        raise ValueError(
            f"integer targets need num_classes, e.g. KMixup(num_classes={number}); to interpolate "
            "targets (regression), pass floats"
        )
    own, partner = y_a.long().unsqueeze(1), y_b.long().unsqueeze(1)
    shape = len(own), num_classes, *own.shape[2:]
    soft = torch.zeros(shape, dtype=lam.dtype, device=own.device)
    # partners first: lam and 1 - lam add up to exactly 1 where both are the same class
    if lam.dim() == 0 and ignore_index is None and not lam.requires_grad:
        share = lam.item()
        return soft.scatter_(1, partner, 1 - share).scatter_(1, own, share, reduce="add")
    weight = per_sample(lam, own).to(own.device, non_blocking=True)
    own_share, partner_share = weight.expand_as(own), (1 - weight).expand_as(partner)
    if ignore_index is not None:
        known = (own != ignore_index) & (partner != ignore_index)
        own, partner = torch.where(known, own, 0), torch.where(known, partner, 0)
        own_share, partner_share = known * own_share, known * partner_share
    return soft.scatter_(1, partner, partner_share).scatter_add_(1, own, own_share)


def mixed_loss(
    criterion: Criterion, logits: Any, y_a: Any, y_b: Any, lam: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Return weight · (lam · criterion(logits, y_a) + (1 - lam) · criterion(logits, y_b)).

    With several lam, or weights `(n,)`, the criterion must return one loss per sample.
    """
    if y_a is None:
        raise ValueError("there are no targets to take a loss of: y was None")
    loss_a, loss_b = criterion(logits, y_a), criterion(logits, y_b)
    n = lam.numel() if weight is None else len(weight)
    if (weight is not None or lam.dim() > 0) and (loss_a.dim() == 0 or len(loss_a) != n):
        what = "lam differs" if weight is None else "the weight of the loss differs"
        raise ValueError(
            f"{what} between the samples of this batch, so the criterion must return one loss per "
            f'sample, got shape {tuple(loss_a.shape)}: use reduction="none"'
        )
    share = per_sample(lam, loss_a).to(loss_a.device)
    loss = share * loss_a + (1 - share) * loss_b
    return loss if weight is None else per_sample(weight, loss).to(loss.device) * loss


def agreement(
    logits: Tensor, y_a: Tensor, y_b: Tensor, lam: Tensor, ignore_index: int | None = None
) -> Tensor:
    """Return lam · [class is y_a] + (1 - lam) · [class is y_b], without what is ignored.

    Classes are along dimension 1 of `logits`, and of soft targets.
    """
    if y_a.is_floating_point():
        if y_a.shape != logits.shape or y_a.dim() < 2:
            raise ValueError(
                "accuracy needs class indices, or soft labels of the shape of the logits "
                f"{tuple(logits.shape)}, got targets of shape {tuple(y_a.shape)}"
            )
        y_a, y_b, ignore_index = y_a.argmax(1), y_b.argmax(1), None
    chosen = logits.argmax(1)
    weight = per_sample(lam, chosen).to(chosen.device)
    met = weight * (chosen == y_a) + (1 - weight) * (chosen == y_b)
    if ignore_index is not None and _can_hold(y_a.dtype, ignore_index):
        met = met[(y_a != ignore_index) & (y_b != ignore_index)]
    return met
