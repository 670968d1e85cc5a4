"""timm's `Mixup`, `FastCollateMixup` and `NaFlexMixup`, with optimal pairs.

The classes extend those of `timm.data`, take their arguments and replace them in timm's training
script. They draw from torch's generators, where timm draws from NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, cast

import torch
from timm import data
from timm.data.naflex_mixup import mix_batch_variable_size, pairwise_mixup_target
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms.functional import center_crop

from kmixup._checks import check_choice
from kmixup.coefficient import Beta, per_sample
from kmixup.interpolation import GROUP, Cut, Linear, Pair, Region
from kmixup.matching import Blocks, Optimal
from kmixup.matching._assignment import Points
from kmixup.matching.pairing import Targets
from kmixup.mixer import Mixer
from kmixup.wrappers.choice import Choice

Images = tuple[Tensor, Tensor]  # mixed images and soft targets
Samples = Sequence[tuple[Any, int]]  # images of bytes and their classes


@dataclass(frozen=True)
class Mutual(Optimal):
    """`Optimal` between two random halves of a batch, so that partners have each other."""

    def partners(
        self, first: Points, second: Points, blocks: Blocks, targets: Targets | None = None
    ) -> Tensor:
        a, b = torch.as_tensor(blocks.order, device=first[0].device).chunk(2)
        own, their = ([part.index_select(0, half) for part in first] for half in (a, b))
        found = super().partners(own, their, Blocks(len(a), min(self.k, len(a))))
        b = b.index_select(0, found.to(b.device))
        both, facing = torch.cat([a, b]), torch.cat([b, a])
        return torch.empty_like(both).index_copy_(0, both, facing)


@dataclass(frozen=True)
class Box(Cut):
    """The box of timm's CutMix."""

    odd: ClassVar[int] = 1
    options: data.Mixup

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Tensor]:
        outside, box = super().settle(lam, spot, pair)
        if self.options.correct_lam or self.sides is not None:
            lam = outside
        if self.options.mode == "pair":
            return of_pair(lam, pair.partner), of_pair(box, pair.partner)
        return lam, box


@dataclass(frozen=True)
class Blend(Linear):
    """`Linear`, also for bytes: a few images at a time, which stay in the cache, and rounded."""

    options: data.Mixup

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Region]:
        return of_pair(lam, pair.partner) if self.options.mode == "pair" else lam, None

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        if x.is_floating_point():
            return super().__call__(x, other, partner, lam)
        mixed = torch.empty_like(x)
        step = max(1, GROUP // x[:1].nbytes)
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            own, their = x[rows].float(), other.index_select(0, partner[rows]).float()
            weight = per_sample(lam if lam.dim() == 0 else lam[rows], own)
            mixed[rows] = their.lerp_(own, weight).round_()
        return mixed

    def mixes(self, entry: object) -> bool:
        return Cut().mixes(entry)


class Switch(Choice):
    """CutMix, mixup or nothing, for a batch, a sample or a pair of samples."""

    def __init__(self, options: data.Mixup, k: int) -> None:
        pairing = (Mutual if options.mode == "pair" else Optimal)(k)
        lam_per: Literal["batch", "sample"] = "batch" if options.mode == "batch" else "sample"
        stages = Box(options), Blend(options), Blend(options)  # the last with alpha = 0
        make = partial(Mixer, pairing, Beta(0), num_classes=options.num_classes, lam_per=lam_per)
        super().__init__([make(stage) for stage in stages], per=lam_per)
        self._options = options

    def read(self) -> None:
        """Take the options as they are now."""
        options = self._options
        cutmix, mixup = max(options.cutmix_alpha, 0.0), max(options.mixup_alpha, 0.0)
        cut, blend = (cast(Mixer, mixer) for mixer in self.mixers[:2])
        cut.interpolation = Box(options, sides=options.cutmix_minmax)
        cut.alpha, blend.alpha = cutmix, mixup
        share = options.switch_prob if cutmix and mixup else float(cutmix > 0)
        mixed = options.mix_prob
        self.odds = mixed * share, mixed * (1 - share), 1 - mixed
        self.train(options.mixup_enabled)

    def choose(self, chosen: Tensor, partner: Tensor) -> Tensor:
        return of_pair(chosen, partner) if self._options.mode == "pair" else chosen


def of_pair(values: Tensor, partner: Tensor) -> Tensor:
    """Return the value of the first sample of each pair for both, `(n, ...)`."""
    first = torch.minimum(partner, torch.arange(len(partner), device=partner.device))
    return values.to(partner.device, non_blocking=True).index_select(0, first)


class Mixup(data.Mixup):
    """`timm.data.Mixup` with partners matched inside blocks of `k`.

    `k=1` takes random partners; lam and box then have timm's distribution. Batches may be odd
    except in mode "pair", where both samples of a pair share lam and box. Nothing is changed in
    place.

    Args:
        args, options: those of `timm.data.Mixup`.
        k: the number of samples in a block.

    Attributes:
        mixup_enabled: False returns unmixed images and smoothed one-hot targets.
        mixer: the `kmixup.Choice` that draws and mixes; its `generator` can be set.

    >>> import torch
    >>> mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=10, k=4)
    >>> images, targets = mixup(torch.rand(16, 3, 8, 8), torch.randint(10, (16,)))
    >>> targets.shape
    torch.Size([16, 10])
    """

    MODES: tuple[str, ...] = ("batch", "pair", "elem")

    def __init__(self, *args: Any, k: int = 16, **options: Any) -> None:
        super().__init__(*args, **options)
        check_choice("mode", self.mode, self.MODES)
        if self.mixup_alpha <= 0 and self.cutmix_alpha <= 0:
            raise ValueError(
                "mixup_alpha or cutmix_alpha must be above 0, got "
                f"{self.mixup_alpha} and {self.cutmix_alpha}: set mixup_alpha=0.8, or mix nothing"
            )
        self.mixer = Switch(self, k)

    def __call__(self, x: Tensor, target: Tensor) -> Images:
        """Return mixed images `(n, channels, height, width)` and targets `(n, num_classes)`."""
        if self.mode in ("pair", "half") and len(x) % 2:
            raise ValueError(
                f"mode {self.mode!r} needs an even number of samples, got {len(x)}: use "
                "drop_last=True"
            )
        other = None
        if self.mode == "half":
            (x, target), other = zip(x.chunk(2), target.chunk(2), strict=True)
        self.mixer.read()
        mixed = self.mixer.mix(x, target, other=other)
        smooth = self.label_smoothing
        return mixed.x, (mixed.y * (1 - smooth) + smooth / self.num_classes).float()


class FastCollateMixup(Mixup, data.FastCollateMixup):
    """`timm.data.FastCollateMixup` with partners matched inside blocks of `k`.

    The `collate_fn` of `timm.data.create_loader` with the prefetcher: samples are pairs of an image
    of bytes and a class, mixed before they are normalised. Mode "half" mixes the first half of a
    batch with partners from the second half, and returns only that. Unlike timm's, `mixup_enabled`
    reaches running workers. The arguments are those of `Mixup`.

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
        """Return mixed images of bytes `(n, channels, height, width)`, and soft targets."""
        images = torch.stack([torch.as_tensor(image) for image, _ in batch])
        return Mixup.__call__(self, images, torch.tensor([label for _, label in batch]))


class NaFlexMixup(data.NaFlexMixup):
    """`timm.data.NaFlexMixup` with partners matched inside blocks of `k`.

    For `--naflex-loader`, whose batches have images of different sizes. As in timm, only the
    overlap of two images that are laid centre on centre is mixed. They are matched in the same
    place, averaged over 8 x 8 pixels, with zeros beyond their borders. Every pair draws its own
    lam; in timm a batch shares it. Draws come from torch's global generator and Python's `random`:
    seed them differently on each rank, as timm's training script does.

    Args:
        k: the number of samples in a block.
        options: those of `timm.data.NaFlexMixup`, except `local_shuffle`.

    >>> import torch
    >>> mixup = NaFlexMixup(num_classes=10, k=2)
    >>> images = [torch.rand(3, 16, 16 + 8 * number) for number in range(4)]
    >>> mixed, targets = mixup(images, torch.arange(4))
    >>> [image.shape == own.shape for image, own in zip(mixed, images)], targets[0].shape
    ([True, True, True, True], torch.Size([10]))
    """

    def __init__(self, *, k: int = 16, **options: Any) -> None:
        super().__init__(**options)
        self.pairing = Mutual(k)

    def __call__(self, imgs: list[Tensor], targets: Any) -> tuple[list[Tensor], Sequence[Tensor]]:
        """Return mixed images `(channels, height, width)` and their soft targets."""
        targets = torch.as_tensor(targets)
        mixed, lam, pairs = list(imgs), [1.0] * len(imgs), {}
        mixes = self.mixup_enabled and torch.rand(()) < self.prob and len(imgs) >= 2
        for i, j in enumerate(self._partners(imgs) if mixes else []):
            if i < j:
                (mixed[i], mixed[j]), (lam[i], lam[j]), _ = mix_batch_variable_size(
                    [imgs[i], imgs[j]],
                    mixup_alpha=self.mixup_alpha,
                    cutmix_alpha=self.cutmix_alpha,
                    switch_prob=self.switch_prob,
                )
                pairs[i], pairs[j] = j, i
        soft = pairwise_mixup_target(
            targets, pairs, lam, num_classes=self.num_classes, smoothing=self.smoothing
        )
        return mixed, soft.unbind(0)

    def _partners(self, imgs: list[Tensor]) -> list[int]:
        """Return mutual partners; the last of an odd number of images has none."""
        small = [F.avg_pool2d(image, 8, ceil_mode=True) for image in imgs]
        canvas = [max(image.shape[side] for image in small) for side in (1, 2)]
        even = small[: len(imgs) // 2 * 2]
        rows = torch.stack([center_crop(image, canvas).flatten() for image in even])
        partner: list[int] = self.pairing(rows).tolist()
        return partner
