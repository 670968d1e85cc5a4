"""`MixUp` and `CutMix` of torchvision's transforms.v2, with optimal pairs.

The classes extend those of `torchvision.transforms.v2` and are called like them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Unpack

from torch import Tensor
from torch.nn import functional as F
from torchvision import tv_tensors
from torchvision.transforms import v2

from kmixup.coefficient import Beta
from kmixup.integrations.ranks import TakesRank, draws_of_rank
from kmixup.interpolation import Cut, Interpolation, Linear
from kmixup.matching import Metric, Optimal
from kmixup.methods.kmixup import Options
from kmixup.mixer import Mixer
from kmixup.targets import mix_targets

LabelsGetter = Callable[[Any], Any] | str | None


class _Matched(TakesRank, v2.Transform):
    """What the two transforms share: partners are matched, and all that follows from them.

    The base class of torchvision finds images and labels and refuses what cannot be mixed.
    It asks `make_params` for all that is drawn, then calls `transform` on every entry.
    """

    interpolation: ClassVar[Interpolation]
    alpha: float
    num_classes: int | None
    _check_image_or_video: Callable[..., None]

    def __init__(
        self,
        *,
        k: int = 16,
        alpha: float = 1.0,
        num_classes: int | None = None,
        labels_getter: LabelsGetter = "default",
        metric: Metric = "sqeuclidean",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(alpha=alpha, num_classes=num_classes, labels_getter=labels_getter)
        self.mixer = Mixer(Optimal(k, metric), Beta(alpha), self.interpolation, **options)

    @property
    def k(self) -> int:
        """The number of samples in a block."""
        return self.mixer.k

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        images = [entry for entry in flat_inputs if isinstance(entry, Tensor)]
        for image in images:  # torchvision compares their length with that of the labels
            self._check_image_or_video(image, batch_size=len(image))
        with draws_of_rank(self.mixer, self.rank):
            mixed = self.mixer.draw([image.as_subclass(Tensor) for image in images], None)
        return {"mixed": mixed, "images": images}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        mixed = params["mixed"]
        if inpt is params["labels"]:
            soft = F.one_hot(inpt, self.num_classes or -1) if inpt.ndim == 1 else inpt
            soft = soft if soft.is_floating_point() else soft.float()
            partner = mixed.partner.to(soft.device)
            return mix_targets(soft, soft.index_select(0, partner), mixed.lam)
        self._check_image_or_video(inpt, batch_size=params["batch_size"])
        position = next(i for i, image in enumerate(params["images"]) if image is inpt)
        output = mixed.x[position]
        if isinstance(inpt, (tv_tensors.Image, tv_tensors.Video)):
            return tv_tensors.wrap(output, like=inpt)
        return output

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}"


class MixUp(_Matched, v2.MixUp):
    """`torchvision.transforms.v2.MixUp` with partners matched inside blocks of `k`.

    `k=1` takes random partners; then lam has the law of torchvision's. In `.eval()` mode
    images come back as they are, and labels one-hot.

    Args:
        k: size of the blocks that are matched.
        alpha: lam ~ Beta(alpha, alpha).
        num_classes: needed for labels that are class indices.
        labels_getter: how to find the labels, as in torchvision.
        metric: that of `kmixup.Optimal`.
        options: `lam_per`, `prob` and `generator` of `kmixup.Mixer`.

    >>> import torch
    >>> mix = MixUp(k=4, num_classes=10)
    >>> images, labels = mix(torch.rand(16, 3, 8, 8), torch.randint(10, (16,)))
    >>> images.shape, labels.shape
    (torch.Size([16, 3, 8, 8]), torch.Size([16, 10]))
    """

    interpolation = Linear()


class CutMix(_Matched, v2.CutMix):
    """`torchvision.transforms.v2.CutMix` with partners matched inside blocks of `k`.

    `k=1` takes random partners; then box and lam have the law of torchvision's. The other
    arguments are those of `MixUp`.

    >>> import torch
    >>> mix = CutMix(k=4, num_classes=10)
    >>> images, labels = mix(torch.rand(16, 3, 8, 8), torch.randint(10, (16,)))
    >>> labels.shape
    torch.Size([16, 10])
    """

    interpolation = Cut()
