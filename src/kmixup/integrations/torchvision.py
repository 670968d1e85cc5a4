"""`MixUp` and `CutMix` of `torchvision.transforms.v2`, with optimal pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F
from torchvision import tv_tensors
from torchvision.transforms import v2

from kmixup.coefficient import Beta
from kmixup.interpolation import Cut, Interpolation, Linear
from kmixup.matching import Optimal
from kmixup.mixer import Mixer


class _Matched(v2.Transform):
    """What the two transforms share.

    torchvision's base class finds and checks images and labels, and calls `transform` on each.
    """

    interpolation: ClassVar[Interpolation]
    num_classes: int | None
    _check_image_or_video: Callable[..., None]

    def __init__(self, *, k: int = 16, alpha: float = 1.0, **options: Any) -> None:
        coefficient = Beta(alpha)
        # torchvision raises on alpha = 0; what it would draw is not used
        super().__init__(alpha=alpha or 1.0, **options)
        self.alpha = float(alpha)
        self.mixer = Mixer(Optimal(k), coefficient, self.interpolation)

    @property
    def k(self) -> int:
        """The number of samples in a block."""
        return self.mixer.k

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"images": [entry for entry in flat_inputs if isinstance(entry, Tensor)]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        images, labels = params["images"], params["labels"]
        if "mixed" not in params:  # at the first entry, when the number of labels is known
            for image in images:
                self._check_image_or_video(image, batch_size=params["batch_size"])
            soft = F.one_hot(labels, self.num_classes or -1) if labels.ndim == 1 else labels
            soft = soft if soft.is_floating_point() else soft.float()
            params["mixed"] = self.mixer.mix([x.as_subclass(Tensor) for x in images], soft)
        mixed = params["mixed"]
        if inpt is labels:
            return mixed.y
        output = mixed.x[next(i for i, image in enumerate(images) if image is inpt)]
        if isinstance(inpt, (tv_tensors.Image, tv_tensors.Video)):
            return tv_tensors.wrap(output, like=inpt)
        return output

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}"


class MixUp(_Matched, v2.MixUp):
    """`torchvision.transforms.v2.MixUp` with partners matched inside blocks of `k`.

    `k=1` takes random partners; lam then has torchvision's distribution. In `.eval()` mode images
    are returned unchanged, and labels one-hot.

    Args:
        k: the number of samples in a block.
        alpha: lam ~ Beta(alpha, alpha); 0 mixes nothing.
        options: `num_classes` and `labels_getter` of torchvision.

    Attributes:
        mixer: the `kmixup.Mixer` that draws and mixes; its `generator`, `lam_per` and `prob` can be
            set.

    >>> import torch
    >>> mix = MixUp(k=4, num_classes=10)
    >>> images, labels = mix(torch.rand(16, 3, 8, 8), torch.randint(10, (16,)))
    >>> images.shape, labels.shape
    (torch.Size([16, 3, 8, 8]), torch.Size([16, 10]))
    """

    interpolation = Linear()


class CutMix(_Matched, v2.CutMix):
    """`torchvision.transforms.v2.CutMix` with partners matched inside blocks of `k`.

    `k=1` takes random partners; box and lam then have torchvision's distribution. The arguments
    are those of `MixUp`.

    >>> import torch
    >>> mix = CutMix(k=4, num_classes=10)
    >>> images, labels = mix(torch.rand(16, 3, 8, 8), torch.randint(10, (16,)))
    >>> labels.shape
    torch.Size([16, 10])
    """

    interpolation = Cut()
