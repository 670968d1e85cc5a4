"""C-Mixup: partners with similar targets, for regression."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Unpack

import torch
from torch import Tensor

from kmixup._batch import Batch
from kmixup._checks import check_number
from kmixup._randomness import Source, uniforms
from kmixup.coefficient import Beta
from kmixup.interpolation import Linear
from kmixup.matching import Blocks, Optimal
from kmixup.matching._assignment import Points
from kmixup.matching._points import raise_non_finite
from kmixup.matching.pairing import Targets
from kmixup.methods.kmixup import MixerOptions, check_options
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import Mixer


@dataclass(frozen=True, eq=False)
class KernelBlocks(Blocks):
    """Blocks for partners that are drawn at random, by a quantile `u` `(n,)`."""

    u: Tensor = field(kw_only=True)


@dataclass(frozen=True)
class Kernel(Optimal):
    """Partners drawn with probabilities ∝ exp(-|xᵢ - xⱼ|² / 2 sigma²), or matched in blocks.

    With `k=1` they are drawn from the whole batch: partners may repeat, and within one batch a
    sample may be its own. With a larger `k` this is `Optimal`.
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("sigma", self.sigma, "a positive number", lambda number: number > 0)

    def draw(self, n: int, *, within: bool = True, source: Source | None = None) -> Blocks:
        source = Source() if source is None else source
        blocks = super().draw(n, within=within, source=source)
        if self.k > 1:
            return blocks
        return KernelBlocks(**vars(blocks), u=uniforms((n,), source.here()))

    @torch.no_grad()
    def partners(
        self, first: Points, second: Points, blocks: Blocks, targets: Targets | None = None
    ) -> Tensor:
        if not isinstance(blocks, KernelBlocks) or blocks.n < 2:  # nothing to draw
            return super().partners(first, second, blocks, targets)
        sides = {"x1": first} if second is first else {"x1": first, "x2": second}
        for name, side in sides.items():
            for part in side:
                raise_non_finite(part, name)
        a, b = (torch.cat([part.double() for part in side], 1) for side in (first, second))
        square = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
        exponent = -square / (2 * self.sigma**2)
        odds = (exponent - exponent.amax(1, keepdim=True)).exp()  # the largest in a row is 1
        steps = odds.cumsum(1)
        total = steps.narrow(1, blocks.n - 1, 1)
        # a product that rounds up to the total would fall behind the last sample
        point = torch.minimum(
            blocks.u.to(total).unsqueeze(1) * total, total.nextafter(torch.zeros_like(total))
        )
        return torch.searchsorted(steps, point, right=True).squeeze(1)


class CMixup(Mixer):
    """C-Mixup: samples are mixed with others of similar targets, for regression.

    `k=1` is C-Mixup as published (Yao et al. 2022, "C-Mixup: Improving Generalization in
    Regression"), with partners from the batch: the sample with target y' is drawn with a
    probability proportional to exp(-|y - y'|² / 2 sigma²), the sample itself included. With a
    larger `k`, blocks of k samples are matched by optimal transport between their targets.
    `features` replace the targets, to compare samples by something else.

    Args:
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha); 2 in most of the published experiments.
        sigma: the width of the kernel, in the unit of the targets; 0.05 to 1.75 in the paper.
        options: `MixerOptions`: targets, ignore_index, lam_per, prob and generator.

    >>> mix = CMixup(sigma=0.5)
    >>> x, y = mix(torch.randn(128, 8), torch.randn(128))
    """

    def __init__(
        self, k: int = 1, alpha: float = 2.0, *, sigma: float = 0.5, **options: Unpack[MixerOptions]
    ) -> None:
        remedy = "targets are floats, which it interpolates"
        check_options(self, options, MixerOptions, num_classes=remedy)
        super().__init__(Kernel(k, sigma=sigma), Beta(alpha), Linear(), **options)

    def mix_batch(self, batch: Batch, draw: Draw) -> Mixed:
        if self.training and batch.features is None:
            y = batch.y
            if not isinstance(y, Tensor) or not y.is_floating_point():
                kind = y.dtype if isinstance(y, Tensor) else type(y).__name__
                raise TypeError(
                    f"CMixup compares samples by their targets, so that y must be one tensor of "
                    f"floats, got {kind}: use y.float(), or pass features"
                )
            own = y.detach()
            their = own if batch.other is None else batch.other[1].detach()
            batch = replace(batch, features=(own, their))
        return super().mix_batch(batch, draw)
