"""AdaMixup: lam from an interval that is learned for each pair."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kmixup._batch import Batch
from kmixup._nests import Nest
from kmixup._networks import as_weights, passing, unwrapped
from kmixup.coefficient import Uniform
from kmixup.interpolation import Linear, Pair, Region
from kmixup.methods.kmixup import PairMixer, PairOptions, check_options
from kmixup.mixed import Mixed, PairDraw
from kmixup.wrappers.clean import beside_clean

HIDDEN, SIDE = 64, 8  # units of the policy, and the largest image that it sees


class Policy(nn.Sequential):
    """A small network that returns three numbers for each sample; at first 0, the middle third."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        layers: list[nn.Module] = []
        if len(shape) == 3 and min(shape[1:]) > SIDE:
            layers, shape = [nn.AdaptiveAvgPool2d(SIDE)], (shape[0], SIDE, SIDE)
        last = nn.Linear(HIDDEN, 3)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        hidden = nn.Linear(math.prod(shape), HIDDEN)
        super().__init__(*layers, nn.Flatten(), hidden, nn.ReLU(), last)


class Critic(nn.Module):
    """One number for each sample, from the inputs of a network's last `nn.Linear`."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        net = unwrapped(net)
        linear = [module for module in net.modules() if isinstance(module, nn.Linear)]
        if not linear:
            raise ValueError(
                "net must have an nn.Linear, whose inputs the critic judges by, got "
                f"{type(net).__name__} without one: end it in an nn.Linear"
            )
        self._trunk = net, linear[-1]  # a tuple hides modules: they are no part of the critic
        self.unit = nn.Linear(linear[-1].in_features, 1)

    def forward(self, x: Tensor) -> Tensor:
        net, last = self._trunk
        h, _ = passing(net, last, as_weights(net, x))
        h = h.mean(tuple(range(1, h.dim() - 1))) if h.dim() > 2 else h  # of tokens
        number: Tensor = self.unit(as_weights(self.unit, h))
        return number


@dataclass(frozen=True, eq=False)
class Interval(Linear):
    """`Linear` with lam = a + delta · u, where a, delta and the rest are the policy's softmax."""

    policy: nn.Module = field(repr=False)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Region]:
        (x,), (other,) = pair.samples, pair.partners
        average = x.detach().lerp(other.detach(), 0.5)
        a, delta, _ = self.policy(as_weights(self.policy, average)).double().softmax(1).unbind(1)
        return a + delta * lam.to(a), None


class AdaMixup(PairMixer):
    """AdaMixup: a policy learns which lam keeps a mixed pair away from real samples.

    `k=1` is AdaMixup as published (Guo, Mao and Zhang 2019, "MixUp as Locally Linear
    Out-Of-Manifold Regularization"), with random partners; with a larger `k` they are matched by
    optimal transport. A policy maps the average of a pair to an interval: lam = a + delta · u, with
    u uniform. A critic, one unit on top of the network's features, classifies samples as mixed or
    real. Policy, critic and network minimise the same loss, so the policy avoids mixed samples that
    fall among real ones. On points in the plane this may end in lam = 0 or 1, where nothing is
    mixed; then try `joint=False`.

    The loss is that of the clean batch, the mixed batch and the critic, half of the published sum,
    so use `mix` and `m.loss`. Train the mixer's parameters with the network, and move it with
    `mix.to(device)`. With DistributedDataParallel, average their gradients yourself: they are not
    part of the wrapped network. The published policy has the classifier's architecture and sees the
    average with noise, and the published critic also sees real samples of other batches.

    Args:
        net: the network that is trained; the critic runs it once more for each batch.
        shape: the shape of one sample.
        k: the number of samples in a block.
        num_classes: the number of classes of integer targets, which become one-hot.
        joint: whether the policy also minimises the loss of the mixed samples, as published.
        options: `PairOptions`: targets, metric, ignore_index, lam_per (of u, "sample" by default),
            prob and generator.

    >>> net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
    >>> mix = AdaMixup(net, shape=(2,), num_classes=3)
    >>> optimizer = torch.optim.SGD([*net.parameters(), *mix.parameters()], lr=0.1)
    >>> m = mix.mix(torch.randn(16, 2), torch.randint(3, (16,)))
    >>> loss = m.loss(nn.CrossEntropyLoss(reduction="none"), net(m.x)).mean()
    >>> loss.backward()
    """

    needs_loss = True
    learns = True

    def __init__(
        self,
        net: nn.Module,
        shape: tuple[int, ...],
        k: int = 1,
        num_classes: Nest = None,
        *,
        joint: bool = True,
        **options: Unpack[PairOptions],
    ) -> None:
        check_options(self, options, alpha="a policy learns the distribution of lam")
        policy = Policy(shape)
        self.interpolation = Interval(policy)
        options.setdefault("lam_per", "sample")
        super().__init__(k, Uniform(), num_classes, **options)
        self.policy, self.critic, self.joint = policy, Critic(net), joint

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        if not isinstance(batch.x, Tensor):
            raise TypeError(
                "AdaMixup learns from one tensor of inputs, got "
                f"{type(batch.x).__name__}: take the tensor out of it"
            )
        mixed, clean = super().mix_pairs(batch, draw), self.unmixed(batch)
        numbers = self.critic(torch.cat([mixed.x, clean.x])).flatten()
        is_mixed = (torch.arange(len(numbers), device=numbers.device) < batch.n).to(numbers)
        penalty = F.binary_cross_entropy_with_logits(numbers, is_mixed)
        if not self.joint:
            mixed = replace(mixed, x=mixed.x.detach(), lam=mixed.lam.detach())
        return beside_clean(mixed, clean, penalty)
