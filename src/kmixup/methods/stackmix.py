"""StackMix: two images, one above the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack, cast

import torch
from torch import Tensor

from kmixup._nests import Nest, over
from kmixup.coefficient import Half
from kmixup.interpolation import Interpolation, Region, rows_of
from kmixup.methods.kmixup import PairMixer, PairOptions, check_options


@dataclass(frozen=True)
class Stack(Interpolation):
    """A sample and its partner, one after the other along `axis`; unmixed samples come twice."""

    dense: ClassVar[bool] = False

    axis: int = -2

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        return self._stacked(x, rows_of(other, partner))

    def twice(self, x: Tensor) -> Tensor:
        """Return clean samples `(n, ...)` next to themselves."""
        return self._stacked(x, x)

    def mixes(self, entry: object) -> bool:  # images of any dtype: nothing is averaged
        return isinstance(entry, Tensor) and (entry.is_floating_point() or entry.dim() >= 4)

    def _stacked(self, x: Tensor, below: Tensor) -> Tensor:
        if self.axis not in (*range(1 - x.dim(), 0), *range(1, x.dim())):
            raise ValueError(
                f"axis must be a dimension of a sample, got {self.axis!r} for inputs of the shape "
                f"{tuple(x.shape)}: use -2 for the height of images, or 1 for the features of "
                "tables"
            )
        return torch.cat([x, below], self.axis)


class StackMix(PairMixer):
    """StackMix: an image above its partner, and the mean of their labels.

    `k=1` is StackMix as published (Chen et al. 2021, "StackMix: A complementary Mix algorithm"),
    with random partners; with a larger `k` they are matched by optimal transport. The network
    always sees inputs of twice the length: unmixed samples are duplicated, in `.eval()` mode too
    (our reading of the paper, which has no public code).

    Args:
        k: the number of samples in a block.
        axis: the dimension of the inputs that becomes twice as long: -2 is the height of images,
            -1 the width of images and the features of tables.
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> mix = StackMix(k=1, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    >>> x.shape, mix.encode_clean(torch.randn(7, 3, 32, 32)).shape
    (torch.Size([128, 3, 64, 32]), torch.Size([7, 3, 64, 32]))
    """

    encodes_clean = True

    def __init__(
        self,
        k: int = 1,
        num_classes: Nest = None,
        *,
        axis: int = -2,
        **options: Unpack[PairOptions],
    ) -> None:
        check_options(self, options, alpha="lam is always 1/2")
        self.interpolation = Stack(axis)
        super().__init__(k, Half(), num_classes, **options)

    def encode_clean(self, x: Nest) -> Nest:
        twice = cast(Stack, self.interpolation).twice
        return over(lambda entry: twice(entry) if entry is x or self.mixes(entry) else entry, x)
