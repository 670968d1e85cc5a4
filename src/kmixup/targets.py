"""Stage 4: against what. Mixed targets, and losses and accuracies of mixed pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup.coefficient import per_sample

Criterion = Callable[[Any, Any], Tensor]  # of logits and targets, both may be nests
Locality = Callable[[Tensor], Tensor]  # distances of the pairs to weights of their losses, (n,)


def check_targets(y: object, num_classes: object) -> None:
    """Refuse targets that mixing would misread: numbers taken for classes, or one-hot integers.

    Floats of a nest may be numbers beside classes, unless they have a `num_classes` of their own.
    """
    if isinstance(y, Tensor):
        if isinstance(num_classes, int):
            _check_numbers(y, num_classes)
            _check_indices(y, num_classes)
        return
    if y is None or num_classes is None:
        return
    if isinstance(num_classes, int):
        for entry in pytree.tree_leaves(y):
            _check_indices(entry, num_classes)
    else:
        pytree.tree_map(check_targets, y, num_classes)


def _check_numbers(y: Tensor, num_classes: int) -> None:
    if y.is_floating_point() and (y.dim() < 2 or y.shape[1] != num_classes):
        raise ValueError(
            f"with num_classes={num_classes} y must be class indices, or soft labels of shape "
            f"(n, {num_classes}), got {y.dtype} of shape {tuple(y.shape)}: use y.long(), or leave "
            "out num_classes to interpolate numbers"
        )


def _check_indices(y: Tensor, num_classes: int) -> None:
    if not y.is_floating_point() and y.dim() == 2 and y.shape[1] == num_classes:
        raise ValueError(
            f"integer targets must be class indices, got {y.dtype} of shape {tuple(y.shape)}, as "
            f"wide as num_classes={num_classes}: one-hot labels are y.float()"
        )


def ignored_in_both(y_a: Tensor, y_b: Tensor, ignore_index: int | None) -> tuple[Tensor, Tensor]:
    """Class indices of both sides; what one of them ignores is ignored in both.

    >>> ignored_in_both(torch.tensor([3, 255, 1]), torch.tensor([255, 2, 0]), 255)
    (tensor([255, 255,   1]), tensor([255, 255,   0]))
    """
    if ignore_index is None or not _can_hold(y_a.dtype, ignore_index):
        return y_a, y_b
    ignored = (y_a == ignore_index) | (y_b == ignore_index)
    return y_a.masked_fill(ignored, ignore_index), y_b.masked_fill(ignored, ignore_index)


def _can_hold(dtype: torch.dtype, index: int) -> bool:
    """Whether targets of a dtype may be a class index; -100 as uint8 would be 156.

    >>> _can_hold(torch.uint8, 255), _can_hold(torch.uint8, -100), _can_hold(torch.float32, 1)
    (True, False, False)
    """
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
    """lam · y_a + (1 - lam) · y_b.

    Floating-point targets are interpolated as they are: regression, soft labels,
    multi-label. Integers are classes and become one-hot along a new dimension 1,
    in the precision of `lam`; the class indices themselves are never rounded. Where one of them
    is `ignore_index`, all classes have 0.
    """
    if y_a.is_floating_point():
        weight = per_sample(lam, y_a).to(y_a.device)
        return (weight * y_a + (1 - weight) * y_b).to(y_a.dtype)
    if y_a.dtype == torch.bool or y_a.is_complex():
        remedy = "y.float()" if num_classes is None else "y.long()"
        raise TypeError(f"targets must be floats or class indices, got {y_a.dtype}: use {remedy}")
    if ignore_index is not None and not _can_hold(y_a.dtype, ignore_index):
        ignore_index = None
    num_classes = _check_classes(y_a, y_b, num_classes, ignore_index)
    both = ignored_in_both(y_a, y_b, ignore_index)
    own, partner = (_one_hot(y, num_classes, lam.dtype, ignore_index) for y in both)
    # where one of the two is 0 and the other 1, or both are alike, lerp does not round
    return partner.lerp_(own, per_sample(lam, own).to(own.device))


def mixed_loss(
    criterion: Criterion,
    logits: Any,
    y_a: Any,
    y_b: Any,
    lam: Tensor,
    weight: Tensor | None = None,
) -> Tensor:
    """weight · (lam · criterion(logits, y_a) + (1 - lam) · criterion(logits, y_b)).

    With one lam for the batch and no weights any criterion will do; with several lam,
    or weights `(n,)`, it must return one loss per sample (`reduction="none"`), and so
    does this.
    """
    if y_a is None:
        raise ValueError("there are no targets to take a loss of: y was None")
    loss_a, loss_b = criterion(logits, y_a), criterion(logits, y_b)
    n = lam.numel() if weight is None else len(weight)
    if (weight is not None or lam.dim() > 0) and (loss_a.dim() == 0 or len(loss_a) != n):
        what, instead = (
            ("lam differs", ", or the criterion on the mixed targets")
            if weight is None
            else ("the weight of the loss differs", "")
        )
        raise ValueError(
            f"{what} between the samples of this batch, so the criterion must return one loss "
            f"per sample, got shape {tuple(loss_a.shape)}: "
            f'use reduction="none"{instead}'
        )
    share = per_sample(lam, loss_a).to(loss_a.device)
    loss = share * loss_a + (1 - share) * loss_b
    return loss if weight is None else per_sample(weight, loss).to(loss.device) * loss


def mixed_accuracy(
    logits: Tensor, y_a: Tensor, y_b: Tensor, lam: Tensor, ignore_index: int | None = None
) -> Tensor:
    """Mean over the samples of lam · [class is y_a] + (1 - lam) · [class is y_b].

    Classes are along dimension 1 of `logits`, and of soft targets. What `ignore_index` marks in
    one of the targets does not count.
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
    return met.mean()


def share_targets(y: Tensor, shares: Tensor, num_classes: int | None = None) -> Tensor:
    """Σ_j shares[i, j] · y[j] in row i, where integers are one-hot as in `mix_targets`."""
    soft = mix_targets(y, y, torch.ones((), dtype=shares.dtype), num_classes)
    dtype = torch.promote_types(soft.dtype, torch.float32)
    mixed: Tensor = torch.tensordot(shares.to(soft.device, dtype), soft.to(dtype), 1)
    return mixed.to(soft.dtype)


def shared_loss(
    criterion: Criterion,
    logits: Any,
    parts: Iterable[tuple[Tensor, Any]],
    weight: Tensor | None = None,
) -> Tensor:
    """weight · Σ share · criterion(logits, targets) over the `parts` (share, targets).

    Shares are `(n,)`, and the criterion must return one loss per sample (`reduction="none"`).
    """
    losses = []
    for share, targets in parts:
        loss = criterion(logits, targets)
        if loss.dim() == 0 or len(loss) != len(share):
            raise ValueError(
                "the shares of targets differ between the samples of this batch, so the criterion "
                f"must return one loss per sample, got shape {tuple(loss.shape)}: use "
                'reduction="none", or the criterion on the mixed targets'
            )
        share = share if weight is None else share * weight.to(share)
        losses.append(per_sample(share, loss).to(loss.device) * loss)
    return torch.stack(losses).sum(0)


def shared_accuracy(logits: Tensor, y: Tensor, shares: Tensor) -> Tensor:
    """Mean over the samples of Σ_j shares[i, j] · [class of i is y[j]]; one class per sample."""
    classes = y.argmax(1) if y.is_floating_point() else y
    if classes.dim() > 1 or logits.dim() != 2:
        raise ValueError(
            "accuracy of several mixed samples needs one class for each of them, got targets of "
            f"shape {tuple(y.shape)} and logits of shape {tuple(logits.shape)}"
        )
    agrees = logits.argmax(1)[:, None] == classes
    return (shares.to(logits.device) * agrees).sum(1).mean()


def _one_hot(y: Tensor, num_classes: int, dtype: torch.dtype, ignore_index: int | None) -> Tensor:
    """Classes `(n, ...)` as a one among zeros, `(n, num_classes, ...)`; zeros where ignored."""
    soft = torch.zeros(len(y), num_classes, *y.shape[1:], dtype=dtype, device=y.device)
    index = y.long().unsqueeze(1)
    if ignore_index is None:
        return soft.scatter_(1, index, 1.0)
    known = index != ignore_index
    return soft.scatter_(1, torch.where(known, index, 0), known.to(dtype))


def _check_classes(
    y_a: Tensor, y_b: Tensor, num_classes: int | None, ignore_index: int | None
) -> int:
    known = (y if ignore_index is None else y[y != ignore_index] for y in (y_a, y_b))
    bounds = [bound.item() for y in known if y.numel() for bound in y.aminmax()]
    low, high = (int(min(bounds)), int(max(bounds))) if bounds else (0, 0)
    if num_classes is None:
        raise ValueError(
            f"integer targets need num_classes, e.g. KMixup(num_classes={high + 1}); "
            "targets to be interpolated as they are must be floats"
        )
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"class indices must lie in 0 … {num_classes - 1} with num_classes={num_classes}, "
            f"got {low if low < 0 else high}: correct it, or name it ignore_index"
        )
    return num_classes
