"""Stage 4: against what. Mixed targets, and losses and accuracies of mixed pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kmixup.coefficient import per_sample

Criterion = Callable[[Tensor, Tensor], Tensor]
Locality = Callable[[Tensor], Tensor]  # distances of the pairs to weights of their losses, (n,)


@dataclass(frozen=True)
class Decay:
    """exp(-distance / scale); without a `scale`, the mean distance of the batch."""

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None and not 0 < self.scale < math.inf:
            raise ValueError(f"scale must be a positive number, got {self.scale}")

    def __call__(self, distance: Tensor) -> Tensor:
        scale = distance.mean() if self.scale is None else self.scale
        return (-distance / scale).nan_to_num(0.0).exp()  # 0 / 0 where all distances are 0


@dataclass(frozen=True)
class Within:
    """1 up to the distance `radius`, and 0 beyond."""

    radius: float

    def __post_init__(self) -> None:
        if not self.radius >= 0:
            raise ValueError(f"radius must be 0 or more, got {self.radius}")

    def __call__(self, distance: Tensor) -> Tensor:
        return (distance <= self.radius).to(distance.dtype)


def mix_targets(y_a: Tensor, y_b: Tensor, lam: Tensor, num_classes: int | None = None) -> Tensor:
    """lam · y_a + (1 - lam) · y_b.

    Floating-point targets are interpolated as they are: regression, soft labels,
    multi-label. Integers are classes and become one-hot along a new dimension 1,
    in the precision of `lam`; the class indices themselves are never rounded.
    """
    if y_a.is_floating_point():
        weight = per_sample(lam, y_a).to(y_a.device)
        return (weight * y_a + (1 - weight) * y_b).to(y_a.dtype)
    if y_a.dtype == torch.bool or y_a.is_complex():
        raise TypeError(f"targets must be floats or class indices, got {y_a.dtype}: use y.float()")
    index = torch.stack([y_a, y_b], dim=1).long()
    num_classes = _check_classes(index, num_classes)
    weight = lam.reshape(-1, *[1] * (index.dim() - 1)).to(y_a.device)
    share = torch.cat([weight, 1 - weight], dim=1)
    soft = lam.new_zeros((len(y_a), num_classes, *y_a.shape[1:]), device=y_a.device)
    return soft.scatter_add_(1, index, share.expand(index.shape))


def mixed_loss(
    criterion: Criterion,
    logits: Tensor,
    y_a: Tensor,
    y_b: Tensor,
    lam: Tensor,
    weight: Tensor | None = None,
) -> Tensor:
    """weight · (lam · criterion(logits, y_a) + (1 - lam) · criterion(logits, y_b)).

    With one lam for the batch and no weights any criterion will do; with several lam,
    or weights `(n,)`, it must return one loss per sample (`reduction="none"`), and so
    does this.
    """
    loss_a, loss_b = criterion(logits, y_a), criterion(logits, y_b)
    if (weight is not None or lam.dim() > 0) and (loss_a.dim() == 0 or len(loss_a) != len(y_a)):
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


def mixed_accuracy(logits: Tensor, y_a: Tensor, y_b: Tensor, lam: Tensor) -> Tensor:
    """Mean over the samples of lam · [class is y_a] + (1 - lam) · [class is y_b].

    Classes are along dimension 1 of `logits`, and of soft targets.
    """
    if y_a.is_floating_point():
        if y_a.shape != logits.shape or y_a.dim() < 2:
            raise ValueError(
                "accuracy needs class indices, or soft labels of the shape of the logits "
                f"{tuple(logits.shape)}, got targets of shape {tuple(y_a.shape)}"
            )
        y_a, y_b = y_a.argmax(1), y_b.argmax(1)
    chosen = logits.argmax(1)
    weight = per_sample(lam, chosen).to(chosen.device)
    return (weight * (chosen == y_a) + (1 - weight) * (chosen == y_b)).mean()


def _check_classes(y: Tensor, num_classes: int | None) -> int:
    low, high = (int(bound) for bound in y.aminmax()) if y.numel() else (0, 0)
    if num_classes is None:
        raise ValueError(
            f"integer targets need num_classes, e.g. KMixup(num_classes={high + 1}); "
            "targets to be interpolated as they are must be floats"
        )
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"class indices must lie in 0 … {num_classes - 1} with num_classes={num_classes}, "
            f"got {low if low < 0 else high}"
        )
    return num_classes
