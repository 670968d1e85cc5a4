"""Stage 4: mixed targets, losses and accuracies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup.coefficient import per_sample

Criterion = Callable[[Any, Any], Tensor]  # of logits and targets, both may be nests


def check_targets(
    y: object, num_classes: object, ignore_index: int | None = None, *, numbers: bool = False
) -> None:
    """Raise if mixing would misread targets: numbers as classes, one-hot integers, unknown classes.

    `y` and `num_classes` may be nests. `numbers` allows floats of any shape, as in a nest that
    shares one `num_classes`.
    """
    if not isinstance(y, Tensor):
        if isinstance(num_classes, int):
            for entry in pytree.tree_leaves(y):
                if isinstance(entry, Tensor):
                    check_targets(entry, num_classes, ignore_index, numbers=True)
        elif y is not None and num_classes is not None:
            try:
                pytree.tree_structure(y).flatten_up_to(num_classes)
            except ValueError as error:
                raise ValueError(
                    f"num_classes must be one number, or nested like y, a {type(y).__name__}, got "
                    f"a {type(num_classes).__name__}: note that loaders turn tuples into lists"
                ) from error
            pytree.tree_map(lambda a, b: check_targets(a, b, ignore_index), y, num_classes)
        return
    if not isinstance(num_classes, int):
        return
    if y.is_floating_point():
        if not numbers and (y.dim() < 2 or y.shape[1] != num_classes):
            raise ValueError(
                f"with num_classes={num_classes} y must be class indices, or soft labels of shape "
                f"(n, {num_classes}), got {y.dtype} of shape {tuple(y.shape)}: use y.long(), or "
                "leave out num_classes to interpolate numbers"
            )
        return
    if y.dim() == 2 and y.shape[1] == num_classes:
        raise ValueError(
            f"integer targets must be class indices, got {y.dtype} of shape {tuple(y.shape)}, as "
            f"wide as num_classes={num_classes}: one-hot labels are y.float()"
        )
    # Reading a value from a device would wait for all of its work; `scatter_` checks there itself.
    if y.device.type != "cpu" or y.dtype == torch.bool or y.is_complex() or not y.numel():
        return
    if ignore_index is not None and _can_hold(y.dtype, ignore_index):
        y = y.masked_fill(y == ignore_index, 0)
    bounds = y.aminmax()
    low, high = bounds.min.item(), bounds.max.item()
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"class indices must lie in 0 … {num_classes - 1} with num_classes={num_classes}, "
            f"got {low if low < 0 else high}: correct it, or name it ignore_index"
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
) -> Tensor:
    """Return lam · y_a + (1 - lam) · y_b, where integers are classes.

    Classes become one-hot along a new dimension 1, in the precision of `lam`. Where one of them is
    `ignore_index`, all classes have 0.
    """
    if y_a.is_floating_point():
        weight = per_sample(lam, y_a).to(y_a.device)
        return (weight * y_a + (1 - weight) * y_b).to(y_a.dtype)
    if y_a.dtype == torch.bool or y_a.is_complex():
        remedy = "y.float()" if num_classes is None else "y.long()"
        raise TypeError(f"targets must be floats or class indices, got {y_a.dtype}: use {remedy}")
    if ignore_index is not None and not _can_hold(y_a.dtype, ignore_index):
        ignore_index = None
    if num_classes is None:
        number = int(y_a.max()) + 1 if y_a.numel() else 10
        raise ValueError(
            f"integer targets need num_classes, e.g. KMixup(num_classes={number}); targets to be "
            "interpolated as they are must be floats"
        )
    own, partner = y_a.long().unsqueeze(1), y_b.long().unsqueeze(1)
    shape = len(own), num_classes, *own.shape[2:]
    soft = torch.zeros(shape, dtype=lam.dtype, device=own.device)
    # partners first: lam and 1 - lam add up to exactly 1 where both are the same class
    if lam.dim() == 0 and ignore_index is None and not lam.requires_grad:
        soft.scatter_(1, partner, (1 - lam).item())
        return soft.scatter_(1, own, lam.item(), reduce="add")
    share = per_sample(lam, own).to(own.device, non_blocking=True)
    own_share, partner_share = share.expand_as(own), (1 - share).expand_as(partner)
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
