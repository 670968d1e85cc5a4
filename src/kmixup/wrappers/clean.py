"""Clean samples appended to the mixed ones, as in RegMixup."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from kmixup._batch import Batch
from kmixup._nests import Nest, over
from kmixup.interpolation import joined
from kmixup.mixed import Draw, Mixed, Unmixed
from kmixup.targets import Criterion
from kmixup.wrappers.wrapper import Wrapper


@dataclass(frozen=True, eq=False)
class BesideClean(Mixed):
    """The n samples of `mixed`, and below them the clean ones, their own partners with lam = 1."""

    mixed: Mixed = field(kw_only=True)
    clean: Mixed = field(kw_only=True)
    penalty: Tensor | None = field(default=None, kw_only=True, repr=False)

    @cached_property
    def y(self) -> Nest:
        return over(joined, self.mixed.y, self.clean.y)

    @cached_property
    def distance(self) -> Tensor:
        return torch.cat([self.mixed.distance, torch.zeros_like(self.mixed.distance)])

    @cached_property
    def weight(self) -> Tensor | None:
        weight = self.mixed.weight
        return None if weight is None else torch.cat([weight, torch.ones_like(weight)])

    def loss(self, criterion: Criterion, logits: Any) -> Tensor:
        """Return the losses of both halves, or the mean of the two if the criterion averages."""
        n = len(self.mixed.partner)
        top = self.mixed.loss(criterion, over(lambda rows: rows.narrow(0, 0, n), logits))
        bottom = self.clean.loss(criterion, over(lambda rows: rows.narrow(0, n, n), logits))
        loss = torch.cat([top, bottom]) if top.dim() else (top + bottom) / 2
        return loss if self.penalty is None else loss + self.penalty

    def agreement(self, logits: Tensor) -> Tensor:
        top, bottom = logits.chunk(2)
        return torch.cat([self.mixed.agreement(top), self.clean.agreement(bottom)])


def beside_clean(mixed: Mixed, clean: Mixed, penalty: Tensor | None = None) -> BesideClean:
    """Return a mixed batch with the clean batch appended."""
    n, device = len(mixed.partner), mixed.partner.device

    def rows(entry: object, below: object) -> Tensor:
        if not isinstance(entry, Tensor) or not isinstance(below, Tensor) or len(below) != n:
            what = tuple(below.shape) if isinstance(below, Tensor) else type(below).__name__
            raise TypeError(
                "clean rows below mixed rows need tensors with one row for each of the "
                f"{n} samples in all entries of x and y, got {what}: leave that entry out"
            )
        return joined(entry, below)

    y, itself, second = clean.targets[0], torch.arange(n, device=device), len(mixed.points[1][0])
    own, their = (over(rows, side, y) for side in mixed.targets)
    lam = mixed.lam.to(device).expand(n)
    one = torch.ones((), dtype=lam.dtype)  # one lam for all of them, so that any criterion will do
    return BesideClean(
        x=over(rows, mixed.x, clean.x),
        targets=(own, their),
        partner=torch.cat([mixed.partner, second + itself]),
        lam=torch.cat([lam, torch.ones_like(lam)]),
        region=mixed.region,
        num_classes=mixed.num_classes,
        ignore_index=mixed.ignore_index,
        types=mixed.types,
        mixed=mixed,
        clean=Mixed(
            None, (y, y), itself, one, None, mixed.num_classes, mixed.ignore_index, mixed.types
        ),
        penalty=penalty,
    )


class WithClean(Wrapper):
    """Append the clean batch to the mixed batch, so that n samples become 2n.

    The mean loss over both halves is half the sum of the clean loss and the mixed loss. A batch
    that is not mixed, or has clean rows already, is not doubled. `RegMixup` is `KMixup` with clean
    rows.

    Args:
        mixer: the mixer inside.

    >>> from kmixup import CutMix
    >>> mix = WithClean(CutMix(num_classes=10))
    >>> x, y = mix(torch.randn(64, 3, 32, 32), torch.randint(10, (64,)))
    >>> x.shape, y.shape
    (torch.Size([128, 3, 32, 32]), torch.Size([128, 10]))
    """

    def mix_batch(self, batch: Batch, draw: Draw) -> Mixed:
        mixed = self.mixer.mix_batch(batch, draw)
        if isinstance(mixed, (Unmixed, BesideClean)):
            return mixed
        return beside_clean(mixed, self.mixer.mix_batch(batch, Draw()))
