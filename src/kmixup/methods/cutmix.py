"""CutMix: a box of one image in another."""

from typing import Unpack

from kmixup._nests import Nest
from kmixup.interpolation import Cut
from kmixup.methods.kmixup import PairMixer, PairOptions


class CutMix(PairMixer):
    """CutMix: paste a box of the partner into every image; lam is the area outside of it.

    `k=1` is CutMix as published (Yun et al. 2019), with random partners; with a larger
    `k` the partners are matched by optimal transport. `Cut` lists the images it takes.

    Args:
        k: the number of samples in a block.
        alpha: 1 - lam, the fraction of the box, is drawn from Beta(alpha, alpha); 0 pastes nothing.
        num_classes: the number of classes of integer targets, which become one-hot.
        sides: the range of height and width of the box, see `Cut`; alpha then only matters if 0.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> import torch
    >>> mix = CutMix(k=16, alpha=1.0, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    def __init__(
        self,
        k: int = 1,
        alpha: float = 1.0,
        num_classes: Nest = None,
        *,
        sides: tuple[float, float] | None = None,
        **options: Unpack[PairOptions],
    ) -> None:
        self.interpolation = Cut(sides=sides)
        super().__init__(k, alpha, num_classes, **options)
