"""`Mixup` and `FastCollateMixup` of timm, with optimal pairs.

The classes extend those of `timm.data`, take their arguments and stand in for them in timm's
training script. They draw from torch's generators, where timm draws from NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from timm import data
from torch import Generator, Tensor

from kmixup.coefficient import Beta
from kmixup.integrations.ranks import TakesRank, generator_of_rank
from kmixup.interpolation import Cut, Linear, Pair, Size
from kmixup.matching import Metric, Optimal
from kmixup.randomness import Source, device_of, uniforms
from kmixup.targets import check_targets, mix_targets

Images = tuple[Tensor, Tensor]  # mixed images and soft targets
Samples = Sequence[tuple[Any, int]]  # images of bytes and their classes


@dataclass(frozen=True)
class TimmCut(Cut):
    """`Cut` with timm's box, whose odd sides are one pixel longer, and timm's two options.

    Attributes:
        minmax: least and greatest side of the box, as shares of the image. Then the box does
            not depend on lam and lies inside the image.
        correct_lam: whether lam becomes the true share outside of the box.
    """

    minmax: tuple[float, float] | None = None
    correct_lam: bool = True

    def sample(self, size: Size, shape: Size = (), generator: Generator | None = None) -> Tensor:
        """Centres of the boxes `(*size, 2)`; with `minmax` their sides and corners `(*size, 4)`."""
        return uniforms((*size, 2 if self.minmax is None else 4), generator)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Tensor]:
        if self.minmax is None or spot is None:
            share, box = super().settle(lam, spot, pair)
            return (share if self.correct_lam else lam), box
        image = torch.tensor(pair.samples[0].shape[-2:], device=lam.device)
        least, most = ((image * bound).long() for bound in self.minmax)
        side = least + (spot[..., :2] * (most - least)).long()
        start = (spot[..., 2:] * (image - side + 1)).long()
        return 1 - side.prod(-1) / image.prod().double(), torch.cat([start, start + side], -1)

    def box(self, centre: Tensor, side: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        start = (centre - side // 2).clamp(min=0)
        stop = torch.minimum(centre + (side + 1) // 2, image)
        share = (stop - start).prod(-1) / image.prod().double()
        return 1 - share, torch.cat([start, stop], -1)


class Mixup(TakesRank, data.Mixup):
    """`timm.data.Mixup` with partners matched inside blocks of `k`.

    `k=1` takes random partners; then lam and box have the law of timm's. Batches may be odd
    except in mode "pair", where both samples of a pair share lam and box. Nothing is changed
    in place.

    Args:
        mixup_alpha: of lam ~ Beta(alpha, alpha) in mixup; 0 is no mixup.
        cutmix_alpha: of lam in CutMix; 0 is no CutMix.
        cutmix_minmax: least and greatest side of a box as shares of the image, instead of
            `cutmix_alpha`.
        prob: the chance that a batch, pair or element is mixed at all.
        switch_prob: the chance of CutMix where both are active.
        mode: one lam for each "batch", "pair" or "elem".
        correct_lam: whether lam becomes the true share outside of the box.
        label_smoothing: of the soft targets.
        num_classes: number of classes.
        k: size of the blocks that are matched.
        metric: that of `kmixup.Optimal`.
        generator: source of all randomness, torch's global one by default.

    Attributes:
        mixup_enabled: False hands out unmixed images and smoothed one-hot targets.

    >>> import torch
    >>> mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=10, k=4)
    >>> images, targets = mixup(torch.rand(16, 3, 8, 8), torch.randint(10, (16,)))
    >>> targets.shape
    torch.Size([16, 10])
    """

    MODES: tuple[str, ...] = ("batch", "pair", "elem")

    def __init__(
        self,
        mixup_alpha: float = 1.0,
        cutmix_alpha: float = 0.0,
        cutmix_minmax: Sequence[float] | None = None,
        prob: float = 1.0,
        switch_prob: float = 0.5,
        mode: str = "batch",
        correct_lam: bool = True,
        label_smoothing: float = 0.1,
        num_classes: int = 1000,
        *,
        k: int = 16,
        metric: Metric = "sqeuclidean",
        generator: Generator | None = None,
    ) -> None:
        if mode not in self.MODES:
            raise ValueError(f"mode must be one of {self.MODES}, got {mode!r}")
        if mixup_alpha <= 0 and cutmix_alpha <= 0 and cutmix_minmax is None:
            raise ValueError(
                "one of mixup_alpha, cutmix_alpha and cutmix_minmax must be active, got "
                f"{mixup_alpha}, {cutmix_alpha} and None: set mixup_alpha=0.8, or mix nothing"
            )
        if cutmix_minmax is not None and not _ordered(cutmix_minmax):
            raise ValueError(
                "cutmix_minmax must be two shares of the image, the smaller first, "
                f"got {cutmix_minmax}: use e.g. (0.2, 0.8)"
            )
        super().__init__(
            mixup_alpha=mixup_alpha,
            cutmix_alpha=cutmix_alpha,
            cutmix_minmax=cutmix_minmax,
            prob=prob,
            switch_prob=switch_prob,
            mode=mode,
            correct_lam=correct_lam,
            label_smoothing=label_smoothing,
            num_classes=num_classes,
        )
        self.pairing = Optimal(k, metric)
        self._source = Source(generator)

    def __call__(self, x: Tensor, target: Tensor) -> Images:
        """Mixed images `(n, channels, height, width)` and soft targets `(n, num_classes)`."""
        return self._mixed(x, target)

    def _mixed(self, x: Tensor, target: Tensor) -> Images:
        check_targets(target, self.num_classes)
        n = len(x) // 2 if self.mode == "half" else len(x)
        partner, lam = torch.arange(n, device=x.device), torch.ones(())
        mixed = x[:n]
        if self.mixup_enabled:
            generator = generator_of_rank(self._source, self.rank)
            partner, row = self._pair(x, generator)
            mixed, lam = self._mix(mixed, x, partner, row, generator)
        index = partner.to(target.device)
        soft = mix_targets(target[:n], target.index_select(0, index), lam, self.num_classes)
        smooth = self.label_smoothing
        return mixed, (soft * (1 - smooth) + smooth / self.num_classes).float()

    def _pair(self, x: Tensor, generator: Generator | None) -> tuple[Tensor, Tensor | None]:
        """The partner of every mixed sample, and which lam it has; None is one for the batch."""
        n = len(x)
        if self.mode == "batch":
            return self.pairing(x, generator=generator), None
        if self.mode == "elem":
            return self.pairing(x, generator=generator), torch.arange(n)
        if n % 2:
            raise ValueError(
                f"mode {self.mode!r} needs an even number of samples, got {n}: use drop_last=True"
            )
        draw = torch.arange(n // 2)
        if self.mode == "half":
            first, second = x.chunk(2)
            return n // 2 + self.pairing(first, second), draw
        order = torch.randperm(n, generator=generator, device=device_of(generator)).to(x.device)
        a, b = order.chunk(2)
        b = b[self.pairing(x.index_select(0, a), x.index_select(0, b))]
        partner, row = torch.empty_like(order), torch.empty(n, dtype=torch.long)
        partner[a], partner[b] = b, a
        row[a.cpu()] = row[b.cpu()] = draw
        return partner, row

    def _mix(
        self,
        own: Tensor,
        x: Tensor,
        partner: Tensor,
        row: Tensor | None,
        generator: Generator | None,
    ) -> tuple[Tensor, Tensor]:
        """Samples `own` mixed with their partners in `x`, and lam."""
        size = () if row is None else (int(row.max()) + 1,)
        lam, cut, box = self._strength(size, x, generator)
        if row is not None:
            lam, cut, box = (value[row].to(x.device) for value in (lam, cut, box))
        lam = lam.to(torch.promote_types(x.dtype, torch.float32))
        blended = torch.where(cut, 1.0, lam)
        if (blended < 1).any():
            own = Linear()(own, x, partner, blended)
        if cut.any():
            own = Cut()(own, x, partner, lam, box)
        return own, lam

    def _strength(
        self, size: tuple[int, ...], x: Tensor, generator: Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """lam, whether it is that of a box, and the box `(*size, 4)`, empty where there is none."""
        mixes, switch, u = (uniforms(size, generator).cpu() for _ in range(3))
        both = self.mixup_alpha > 0 and self.cutmix_alpha > 0
        share = self.switch_prob if both else float(self.cutmix_alpha > 0)
        applies, cut = mixes < self.mix_prob, switch < share
        of_cutmix, of_mixup = (
            Beta(max(alpha, 0.0)).lam(u) for alpha in (self.cutmix_alpha, self.mixup_alpha)
        )
        lam = torch.where(cut, of_cutmix, of_mixup)
        lam, cut = torch.where(applies, lam, 1.0), cut & applies
        if not cut.any():
            return lam, cut, torch.zeros((*size, 4), dtype=torch.long)
        minmax = None if self.cutmix_minmax is None else tuple(self.cutmix_minmax)
        cutting = TimmCut(minmax, self.correct_lam)
        share_outside, box = cutting.settle(
            lam, cutting.sample(size, generator=generator).cpu(), Pair.of([x])
        )
        return torch.where(cut, share_outside, lam), cut, box * cut[..., None]


class FastCollateMixup(Mixup, data.FastCollateMixup):
    """`timm.data.FastCollateMixup` with partners matched inside blocks of `k`.

    The `collate_fn` of `timm.data.create_loader` with the prefetcher: samples are pairs of
    an image of bytes and a class, and images are mixed before they are normalised. They are
    matched in the same form. Mode "half" mixes the first half of a batch with partners from
    the second half, and returns that. Unlike timm's, `mixup_enabled` reaches workers that run
    already. The arguments are those of `Mixup`.

    >>> import numpy as np
    >>> collate = FastCollateMixup(mixup_alpha=0.8, num_classes=10, k=4)
    >>> samples = [(np.full((3, 8, 8), number, np.uint8), number % 10) for number in range(16)]
    >>> images, targets = collate(samples)
    >>> images.dtype, targets.shape
    (torch.uint8, torch.Size([16, 10]))
    """

    MODES = (*Mixup.MODES, "half")

    @property
    def mixup_enabled(self) -> bool:
        return bool(self._enabled)

    @mixup_enabled.setter
    def mixup_enabled(self, enabled: bool) -> None:
        if "_enabled" not in self.__dict__:
            self._enabled = torch.ones((), dtype=torch.bool).share_memory_()
        self._enabled.fill_(enabled)

    def __call__(self, batch: Samples, _: object = None) -> Images:  # type: ignore[override]
        """Mixed images of bytes `(n, channels, height, width)`, and soft targets."""
        images = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x, _ in batch]
        target = torch.tensor([label for _, label in batch], dtype=torch.int64)
        mixed, soft = self._mixed(torch.stack(images).float(), target)
        return mixed.round().byte(), soft


def _ordered(minmax: Sequence[float]) -> bool:
    return len(minmax) == 2 and 0 <= minmax[0] < minmax[1] <= 1
