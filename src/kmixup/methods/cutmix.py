"""CutMix: a box of one image in another."""

from kmixup.interpolation import Cut
from kmixup.methods.kmixup import PairMixer


class CutMix(PairMixer):
    """CutMix: paste a box of the partner into every image; lam is the area outside of it.

    `k=1` is CutMix as published (Yun et al. 2019), with random partners; with a larger
    `k` the partners are matched by optimal transport. `Cut` lists the images it takes.

    Args:
        k: the number of samples in a block.
        alpha: 1 - lam, the fraction of the box, is drawn from Beta(alpha, alpha); 0 pastes nothing.
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> import torch
    >>> mix = CutMix(k=16, alpha=1.0, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    interpolation = Cut()
