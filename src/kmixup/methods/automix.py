"""AutoMix: learned masks."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Unpack, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kmixup._batch import Batch
from kmixup._nests import Nest
from kmixup._networks import as_weights, passing, unwrapped
from kmixup.interpolation import Mask, Pair, rows_of
from kmixup.methods._masks import Masked
from kmixup.methods.kmixup import PairMixer, PairOptions
from kmixup.mixed import Mixed, PairDraw
from kmixup.targets import Criterion
from kmixup.wrappers.clean import beside_clean

PLAIN = 0.08  # where lam or 1 - lam is at most this, the mask is lam everywhere
SHARE, SLACK = 0.1, 0.1  # the weight of the mask's mean in the loss, and how far it may be off
MOMENTUM = 0.999  # of the copy; less in the first steps
COARSEST = 4  # features may be so many times coarser than the image


class MixBlock(nn.Module):
    """Turns features of two images into the weight of the second at each place, as logits.

    Places of the first image attend to those of the second: softmax(q(h)ᵀ q(h') / √c) · v(h'),
    with lam as one more channel of h, and 1 - lam as one more of h'.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.query = nn.Conv2d(channels + 1, max(1, channels // 2), 1)
        self.value = nn.Conv2d(channels + 1, 1, 1)
        for name, parameter in self.named_parameters():
            nn.init.normal_(parameter, std=0.01 if name.endswith("weight") else 0.0)

    def forward(self, own: Tensor, their: Tensor, lam: Tensor) -> Tensor:
        """Logits `(n, height, width)` for features `(n, channels, height, width)`."""
        lam = lam.view(-1, 1, 1, 1).to(own).expand(-1, 1, *own.shape[-2:])
        own, their = torch.cat([own, lam], 1), torch.cat([their, 1 - lam], 1)
        q, key = self.query(own).flatten(2), self.query(their).flatten(2)
        attention = (q.mT @ key / math.sqrt(q.shape[1])).softmax(-1)
        logits: Tensor = attention @ self.value(their).flatten(2).mT
        return logits.view(len(own), *own.shape[-2:])


@dataclass(frozen=True, eq=False)
class Attentive(Masked):
    """The mask that a block makes from the features of both images; lam stays as drawn."""

    net: nn.Module = field(repr=False)
    layer: nn.Module = field(repr=False)
    block: MixBlock = field(repr=False)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Mask]:
        (x,), (other,) = pair.samples, pair.others
        lam = lam.to(x.device).expand(len(x))
        own = self.features(x)
        their = rows_of(own if other is x else self.features(other), pair.partner)
        logits = self.block(own, their, lam).unsqueeze(1)
        logits = F.interpolate(logits, size=x.shape[-2:]).squeeze(1)
        everywhere = lam.to(logits).view(-1, 1, 1)
        plain = torch.minimum(everywhere, 1 - everywhere) <= PLAIN
        return lam, Mask(torch.where(plain, everywhere, 1 - logits.sigmoid()))

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        _, h = passing(self.net, self.layer, as_weights(self.net, x))
        return as_weights(self.block, h)


class AutoMix(PairMixer):
    """AutoMix: a block learns masks with which a slow copy of the network recognises both images.

    `k=1` is AutoMix as published (Liu et al. 2022, "AutoMix: Unveiling the Power of Mixup for
    Stronger Classifiers"), with random partners; with a larger `k` they are matched by optimal
    transport. The copy is an exponential moving average of the network, with a momentum
    that rises from 0.1 to 0.999 over the first 9,000 steps (published: from 0.999 to 0.999999). Its
    features of both images, and lam, make the mask; labels are not used. Features come from the
    last layer with maps of at least a quarter of the image's height and width. The mixed images
    train the network with the mask held constant, and the block through the copy, whose weights
    are frozen. With DistributedDataParallel, average the block's gradients yourself: it is not part
    of the wrapped network.

    The loss is that of the clean batch, the mixed batch, the copy on the mixed batch, and
    0.1 · max(|mean of the mask - lam| - 0.1, 0): half of the published sum. So use `mix` and
    `m.loss`. Train the block with the network, and move the mixer with `mix.to(device)`. After each
    backward pass, the copy moves towards the network before the next batch is mixed. Network and
    block share one draw (two in the paper); the block learns nothing where lam or 1 - lam is 0.08
    or less. The copy runs in eval mode, and one classifier, not two, sees clean and mixed images.

    Args:
        net: the network that is trained.
        shape: the shape of one image, `(channels, height, width)`.
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha).
        num_classes: the number of classes of integer targets, which become one-hot.
        criterion: the loss of the copy, of outputs and mixed targets.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> layers = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    >>> net = nn.Sequential(*layers, nn.Linear(8, 5))
    >>> mix = AutoMix(net, shape=(3, 16, 16), num_classes=5)
    >>> optimizer = torch.optim.SGD([*net.parameters(), *mix.block.parameters()], lr=0.1)
    >>> m = mix.mix(torch.randn(12, 3, 16, 16), torch.randint(5, (12,)))
    >>> loss = m.loss(nn.CrossEntropyLoss(reduction="none"), net(m.x)).mean()
    >>> loss.backward()
    """

    due: Tensor
    steps: Tensor

    needs_loss = True
    learns = True

    def __init__(
        self,
        net: nn.Module,
        shape: tuple[int, ...],
        k: int = 1,
        alpha: float = 2.0,
        num_classes: Nest = None,
        *,
        criterion: Criterion = F.cross_entropy,
        **options: Unpack[PairOptions],
    ) -> None:
        if len(shape) != 3:
            raise ValueError(
                f"shape must be that of an image, (channels, height, width), got {tuple(shape)}"
            )
        teacher = copy.deepcopy(unwrapped(net)).requires_grad_(False).eval()
        layer, channels = deepest_layer(teacher, shape)
        block = MixBlock(channels)
        self.interpolation = Attentive(teacher, teacher.get_submodule(layer), block)
        super().__init__(k, alpha, num_classes, **options)
        self._net = (unwrapped(net),)  # a tuple hides a module from this one
        self.teacher, self.block = teacher, block
        self.criterion = criterion
        self.register_buffer("due", torch.zeros((), dtype=torch.bool))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def train(self, mode: bool = True) -> AutoMix:
        super().train(mode)
        self.teacher.eval()  # its outputs depend only on the images
        return self

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        x, y = batch.x, batch.y
        if not isinstance(x, Tensor) or not isinstance(y, Tensor):
            raise TypeError(
                "AutoMix learns from one tensor of inputs and one of targets, got "
                f"{type(x).__name__} and {type(y).__name__}: take the tensors out of them"
            )
        if self.due.cpu():
            self._follow()
        mixed = super().mix_pairs(batch, draw)
        outputs = self.teacher(as_weights(self.teacher, mixed.x))
        weight = cast(Mask, mixed.region).weight
        off = weight.mean((1, 2)) - mixed.lam.to(weight)
        off = off.mean() if self.lam_per == "batch" else off
        loss = self.criterion(outputs, mixed.y) + SHARE * (off.abs() - SLACK).clamp(0).mean()
        penalty = loss / 2
        if penalty.requires_grad:
            penalty.register_hook(self._mark)
        mixed = replace(mixed, x=mixed.x.detach(), region=Mask(weight.detach()))
        return beside_clean(mixed, self.unmixed(batch), penalty)

    def _mark(self, gradient: Tensor) -> None:
        """Make a step of the copy due, in the backward pass of the loss."""
        self.due.fill_(True)

    @torch.no_grad()
    def _follow(self) -> None:
        """Move the copy towards the network; running statistics are taken over."""
        (net,) = self._net
        step = int(self.steps.cpu())
        momentum = min(MOMENTUM, (step + 1) / (step + 10))
        for slow, weight in zip(self.teacher.parameters(), net.parameters(), strict=True):
            slow.lerp_(weight.to(slow), 1 - momentum)
        for kept, value in zip(self.teacher.buffers(), net.buffers(), strict=True):
            kept.copy_(value)
        self.steps += 1
        self.due.fill_(False)


@torch.no_grad()
def deepest_layer(net: nn.Module, shape: tuple[int, ...]) -> tuple[str, int]:
    """Return the last layer whose feature maps are not too coarse, and its number of channels."""
    maps: dict[str, tuple[int, ...]] = {}  # channels, height and width, in the order of the layers

    def keep(name: str, module: nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, Tensor) and output.dim() == 4:
            maps[name] = tuple(output.shape[1:])

    handles = [
        module.register_forward_hook(partial(keep, name))
        for name, module in net.named_modules()
        if name
    ]
    weight = next(net.parameters(), torch.zeros(()))
    net(torch.zeros(2, *shape, dtype=weight.dtype, device=weight.device))
    for handle in handles:
        handle.remove()
    height, width = (math.ceil(side / COARSEST) for side in shape[1:])
    fine = [
        (name, channels)
        for name, (channels, rows, columns) in maps.items()
        if rows >= height and columns >= width
    ]
    if not fine:
        raise ValueError(
            "net must have a layer with feature maps of at least a quarter of the image's height "
            "and width, got none: use a convolutional network"
        )
    return fine[-1]
