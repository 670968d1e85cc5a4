"""timm's `Mixup`, `FastCollateMixup` and `NaFlexMixup`, with optimal pairs.

The classes extend those of `timm.data`, take their arguments and replace them in timm's training
script. They draw from torch's generators, where timm draws from NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from timm import data
from timm.data.naflex_mixup import mix_batch_variable_size, pairwise_mixup_target
from torch import Generator, Tensor
from torch.nn import functional as F
from torchvision.transforms.functional import center_crop

from kmixup._checks import check_choice
from kmixup._randomness import uniforms
from kmixup.coefficient import Beta, Uniform, per_sample
from kmixup.interpolation import GROUP, Cut, Linear, Pair, Region, Size
from kmixup.matching import Blocks, Optimal
from kmixup.matching._assignment import Points
from kmixup.matching.pairing import Targets
from kmixup.mixer import Mixer

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
        b = b[super().partners(own, their, Blocks(len(a), min(self.k, len(a))))]
        partner = torch.empty_like(torch.cat([a, b]))
        partner[a], partner[b] = b, a
        return partner


@dataclass(frozen=True)
class MixupOrCutMix(Cut):
    """Mixup or CutMix, chosen at random for each lam."""

    options: data.Mixup  # whose attributes are read for every batch

    def draw(self, n: int, shape: Size = (), generator: Generator | None = None) -> Tensor:
        """Draw for each lam whether to mix, whether to cut, and the box, `(n, 6)`."""
        return uniforms((n, 6), generator)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Tensor]:
        """Return lam for the quantiles `lam`, and boxes `(..., 4)`, -1 where none is cut."""
        options = self.options
        assert spot is not None
        if options.mode == "pair":
            partner = pair.partner.cpu()
            one = torch.minimum(partner, torch.arange(len(partner)))  # one draw for both samples
            lam, spot = lam[one], spot[one]
        both = options.mixup_alpha > 0 and options.cutmix_alpha > 0
        share = options.switch_prob if both else float(options.cutmix_alpha > 0)
        # the mixer itself leaves whole batches unmixed, before they are matched
        mixes = (spot[..., 0] < options.mix_prob) | (options.mode == "batch")
        cut = spot[..., 1] < share
        cutmix, mixup = (
            Beta(max(alpha, 0.0)).lam(lam) for alpha in (options.cutmix_alpha, options.mixup_alpha)
        )
        lam, cut = torch.where(mixes, torch.where(cut, cutmix, mixup), 1.0), cut & mixes
        outside, box = self._box(lam, spot[..., 2:], pair)
        return torch.where(cut, outside, lam), torch.where(cut[..., None], box, -1)

    def _box(self, lam: Tensor, spot: Tensor, pair: Pair) -> tuple[Tensor, Tensor]:
        if self.options.cutmix_minmax is None:
            outside, box = super().settle(lam, spot[..., :2], pair)
            return (outside if self.options.correct_lam else lam), box
        image = torch.tensor(pair.samples[0].shape[-2:])
        least, most = ((image * bound).long() for bound in self.options.cutmix_minmax)
        side = least + (spot[..., :2] * (most - least)).long()
        start = (spot[..., 2:] * (image - side + 1)).long()
        return 1 - side.prod(-1) / image.prod().double(), torch.cat([start, start + side], -1)

    def box(self, centre: Tensor, side: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return lam and the box; in timm odd sides are rounded up, not down."""
        start = (centre - side // 2).clamp(min=0)
        stop = torch.minimum(centre + (side + 1) // 2, image)
        share = (stop - start).prod(-1) / image.prod().double()
        return 1 - share, torch.cat([start, stop], -1)

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        assert isinstance(region, Tensor)
        cut = region[..., 0] >= 0
        weight = torch.where(cut, 1.0, lam)
        if (weight < 1).any():
            x = _blend(x, other, partner, weight)
        return super().__call__(x, other, partner, lam, region) if cut.any() else x


def _blend(x: Tensor, other: Tensor, partner: Tensor, lam: Tensor) -> Tensor:
    """Mix images linearly; bytes a few images at a time, which stay in the cache, and rounded."""
    if x.is_floating_point():
        return Linear()(x, other, partner, lam)
    mixed = torch.empty_like(x)
    step = max(1, GROUP // x[:1].nbytes)
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        own, their = x[rows].float(), other.index_select(0, partner[rows]).float()
        weight = per_sample(lam if lam.dim() == 0 else lam[rows], own)
        mixed[rows] = their.lerp_(own, weight).round_()
    return mixed


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
        mixer: the `kmixup.Mixer` that draws and mixes; its `generator` can be set.

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
        self.mixer = Mixer(
            (Mutual if self.mode == "pair" else Optimal)(k),
            Uniform(),  # the quantile, which the interpolation turns into lam
            MixupOrCutMix(self),
            num_classes=self.num_classes,
            lam_per="batch" if self.mode == "batch" else "sample",
        )

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
        self.mixer.train(self.mixup_enabled)
        self.mixer.prob = self.mix_prob if self.mode == "batch" else 1.0
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
