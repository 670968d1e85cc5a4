"""How a network is trained: the settings that do not depend on what is mixed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Precision = Literal["fp32", "bf16"]
Layout = Literal["channels_last"]
CleanPass = Literal["always", "matched"]


def check_whole(name: str, value: object, *, least: int = 1) -> None:
    """Refuse what is no whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse what is not one of the choices."""
    if value not in (known := tuple(choices)):
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")


@dataclass(frozen=True)
class Protocol:
    """How a network is trained, whatever the method.

    >>> Protocol(epochs=4).rates()
    (0.1, 0.1, 0.01, 0.001)
    >>> Protocol(epochs=4, warmup=0.5, milestones=()).rates()
    (0.05, 0.1, 0.1, 0.1)

    Attributes:
        epochs: length of the training.
        rate: the learning rate, divided by 10 at each of the `milestones`.
        milestones: shares of the epochs, so that they move with them.
        momentum, weight_decay: of stochastic gradient descent.
        batch_size: samples of a step.
        augment: random crops after a padding of 4, and random flips, of images.
        precision: "fp32", or "bf16" for mixed precision.
        warmup: the share of the epochs in which the rate rises to its first value in equal
            steps; by default there are none.
        test_every: epochs between two tests, each with a checkpoint; the last epoch is always
            tested. By default every epoch is.
        layout: "channels_last" keeps the channels of a pixel together, which is faster on most
            CPUs and gives other roundings.
        drop_last: leave out the last batch of an epoch where it is short.
        clean_pass: before each step also run the batch through the network as it is, unmixed,
            in training mode, which moves the running statistics of batch norm and no weight:
            "always", or where the pairs are "matched", k > 1, as the paper's public script does.
    """

    epochs: int = 200
    rate: float = 0.1
    milestones: tuple[float, ...] = (0.5, 0.75)
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch_size: int = 128
    augment: bool = False
    precision: Precision = "fp32"
    # None where nothing is chosen: ids leave it out, so that those of older trials stay
    warmup: float | None = None
    test_every: int | None = None
    layout: Layout | None = None
    drop_last: bool | None = None
    clean_pass: CleanPass | None = None

    def __post_init__(self) -> None:
        check_whole("epochs", self.epochs)
        check_whole("batch_size", self.batch_size, least=2)
        if not 0 < self.rate < math.inf:
            raise ValueError(f"rate must be a finite number above 0, got {self.rate}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got {self.momentum}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(
                f"weight_decay must be a finite number, 0 or more, got {self.weight_decay}"
            )
        if not isinstance(self.augment, bool):
            raise ValueError(f"augment must be true or false, got {self.augment!r}")
        for name in ("rate", "momentum", "weight_decay"):  # 1 and 1.0 are one setting
            object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "milestones", tuple(map(float, self.milestones)))
        if list(self.milestones) != sorted(self.milestones) or not all(
            0 < share < 1 for share in self.milestones
        ):
            raise ValueError(
                "milestones must be rising shares of the epochs between 0 and 1, "
                f"e.g. (0.5, 0.75), got {self.milestones}"
            )
        check_choice("precision", self.precision, get_args(Precision))
        self._check_optional()

    def _check_optional(self) -> None:
        if self.warmup is not None and not 0 <= self.warmup < 1:
            raise ValueError(f"warmup must be a share of the epochs in [0, 1), got {self.warmup}")
        if self.test_every is not None:
            check_whole("test_every", self.test_every)
        if self.layout is not None:
            check_choice("layout", self.layout, get_args(Layout))
        if self.clean_pass is not None:
            check_choice("clean_pass", self.clean_pass, get_args(CleanPass))
        for name in ("warmup", "drop_last"):  # the default has one form
            object.__setattr__(self, name, getattr(self, name) or None)

    def rates(self) -> tuple[float, ...]:
        """The learning rate of every epoch."""
        # a third of the epochs may come out a rounding error above a whole number
        starts = [math.ceil(share * self.epochs - 1e-9) for share in self.milestones]
        rising = math.ceil((self.warmup or 0.0) * self.epochs - 1e-9)
        return tuple(
            self.rate
            / 10 ** sum(epoch >= start for start in starts)
            * (min(1.0, (epoch + 1) / rising) if rising else 1.0)
            for epoch in range(self.epochs)
        )

    def tests(self, epoch: int) -> bool:
        """Whether the network is tested after an epoch, counted from 0."""
        return epoch + 1 == self.epochs or (epoch + 1) % (self.test_every or 1) == 0
