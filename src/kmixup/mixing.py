"""What mixes batches: the interface of every mixer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Unpack

from torch import Generator, Tensor

from kmixup.compiling import eager
from kmixup.inputs import (
    Beside,
    Features,
    Importance,
    Nest,
    batch_length,
    computed_features,
)
from kmixup.mixed import Draw, Mixed
from kmixup.randomness import Source
from kmixup.state import Resumable


class Mixing(Resumable, ABC):
    """What mixes batches: a `Mixer`, or a `Choice` among several.

    First `sample` draws all chance, without a look at the data; then `mix` follows from
    the draw and the data alone, and from what a memory holds. `draw` does both, and then lets
    the mixer `remember` the batch. (The second step is not called `apply`:
    `nn.Module.apply` visits every submodule, and mixers may be submodules.)

    In `.eval()` mode inputs and targets come back as they are: integers that training turns
    into soft targets stay integers. `draw(x, y).y` is soft in both modes. Inputs that a network
    must see in another form, such as those of `StackMix`, come back as `rest` gives them.

    Attributes:
        generator: source of all randomness, torch's global one where it is None. Its state is
            part of `state_dict()`, so that a resumed run goes on as it would have.

    >>> import torch
    >>> from kmixup import Choice, CutMix, KMixup
    >>> either = Choice([KMixup(k=4), CutMix(k=4)])
    >>> isinstance(either, Mixing) and isinstance(KMixup(), Mixing)
    True
    >>> x, y = either.train()(torch.rand(16, 3, 8, 8), torch.rand(16))
    """

    def __init__(self, generator: Generator | None = None) -> None:
        super().__init__()
        self._source = Source(generator)

    @property
    def generator(self) -> Generator | None:
        return self._source.generator

    @generator.setter
    def generator(self, generator: Generator | None) -> None:
        self._source = Source(generator)

    @eager
    def forward(
        self,
        x: Nest,
        y: Nest,
        *,
        other: tuple[Nest, Nest] | None = None,
        features: Features | None = None,
        importance: Importance | None = None,
    ) -> tuple[Nest, Nest]:
        """Mixed inputs and soft targets of a batch; see `draw` for the arguments."""
        if not self.training:
            return self.rest(x), y
        self.check_unweighted()
        mixed = self.draw(x, y, other=other, features=features, importance=importance)
        return mixed.x, mixed.y

    @eager
    def draw(
        self,
        x: Nest,
        y: Nest,
        *,
        other: tuple[Nest, Nest] | None = None,
        features: Features | None = None,
        importance: Importance | None = None,
    ) -> Mixed:
        """Mix a batch and keep the account of it.

        Args:
            x: floating-point inputs `(n, ...)`, a tensor or a nest of tensors. Other entries
                of a nest, such as integers and strings, follow their sample as they are.
                `Cut` takes images of integers too, and matches them as if they were floats.
            y: targets `(n, ...)`; integers are classes, floats are interpolated. A nest of
                targets is mixed tensor by tensor; with None inputs alone are mixed.
            other: a second, independent batch `(x2, y2)` to take the partners from,
                as in the paper; without it partners come from the same batch.
            features: what to match on, all of `x` by default: the key of an entry of
                `x`, or a tensor `(n, ...)` such as an embedding, or two of them with
                `other`; or a function of `x` that gives such a tensor, such as
                `net.embed`. It runs without gradient, a network in eval mode.
            importance: how much each pixel matters, `(n, height, width)`, or two of them
                with `other`; for methods that mix by it. `kmixup.saliency` computes it.
        """
        if self.training:
            features = computed_features(features, x, other)
        draw = self.sample(batch_length(x), within=other is None)
        mixed = self.mix(x, y, draw, other=other, features=features, importance=importance)
        self.remember(x, y, features=features, importance=importance)
        return mixed

    @abstractmethod
    def sample(self, n: int, *, within: bool = True) -> Draw:
        """Draw all chance for a batch of `n`, `within` it or with partners from another."""

    @abstractmethod
    def mix(self, x: Nest, y: Nest, draw: Draw, **beside: Unpack[Beside]) -> Mixed:
        """Mix a batch as `draw` says; the other arguments are those of `Mixing.draw`.

        >>> import torch
        >>> from kmixup import KMixup
        >>> mixer, x, y = KMixup(k=2), torch.randn(8, 3), torch.randn(8)
        >>> draw = mixer.sample(8)
        >>> torch.equal(mixer.mix(x, y, draw).x, mixer.mix(x, y, draw).x)
        True
        """

    def remember(
        self,
        x: Nest,
        y: Nest,
        *,
        features: Features | None = None,
        importance: Importance | None = None,
    ) -> None:
        """Let mixers with a memory keep a batch; the arguments are those of `draw`.

        `draw` does so after it has mixed. `mix` does not, so that it can be repeated.
        """
        return

    @property
    @abstractmethod
    def weighs(self) -> bool:
        """Whether the losses of samples may have different weights."""

    @property
    def penalises(self) -> bool:
        """Whether the loss has a penalty."""
        return False

    @property
    def rests(self) -> bool:
        """Whether unmixed inputs look different to the network from what they are."""
        return False

    def rest(self, x: Nest) -> Nest:
        """What unmixed inputs look like to the network, in evaluation too."""
        return x

    def check_unweighted(self) -> None:
        """Refuse to hand out targets alone where the loss has weights or a penalty as well."""
        if self.penalises:
            raise ValueError(
                "mixed targets cannot carry the penalty of this mixer, so that what it learns "
                'would be lost: use draw, and m.loss(criterion with reduction="none", '
                "logits).mean()"
            )
        if self.weighs:
            raise ValueError(
                "mixed targets cannot carry the weights of local mixup, so that a loss of them "
                'would be plain mixup: use draw, and m.loss(criterion with reduction="none", '
                "logits).mean()"
            )

    def get_extra_state(self) -> Tensor | None:
        """State of the generator."""
        return None if self.generator is None else self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        if self.generator is not None and len(state):
            self.generator.set_state(state.cpu())
