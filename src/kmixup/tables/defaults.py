"""Training defaults for your own tables: how they follow from the size of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

HIDDEN = (120, 120, 84)  # hidden layers, as for most of the paper's tables
LARGEST_BATCH, LEAST_EPOCHS = 128, 200  # as in the paper's protocol
LEAST_DECAY, MOST_DECAY = 1e-4, 0.03  # the least is the paper's


class TableSettings(NamedTuple):
    """Settings of SGD for one table."""

    batch_size: int
    epochs: int
    rate: float
    weight_decay: float


@dataclass(frozen=True)
class TableRule:
    """How training settings follow from the size of a table.

    The paper's protocol has one step per epoch on a table of 120 rows, and too little weight
    decay for one: the network is under-trained, and overfits once it trains longer. No
    alternative has a significantly lower validation error (`python -m benchmarks.own_defaults`).

    Attributes:
        rate: initial learning rate.
        decay: weight decay times the number of rows.
        rare: least factor of the weight decay where a class is rare: the network would give it up.
        steps: fewest training steps.
        batch: smallest batch size; it grows with the table.

    >>> TableRule().settings(200)
    TableSettings(batch_size=32, epochs=286, rate=0.01, weight_decay=0.03)
    >>> TableRule().settings(60_000)
    TableSettings(batch_size=128, epochs=200, rate=0.01, weight_decay=0.0001)
    """

    rate: float = 0.01
    decay: float = 6.0
    rare: float = 1 / 3
    steps: int = 2000
    batch: int = 32

    def settings(self, n: int, *, balance: float = 1.0) -> TableSettings:
        """Return the settings for a table.

        Args:
            n: number of training rows.
            balance: size of the rarest class over the mean size; 1 for a regression.
        """
        batch_size = self.batch
        while batch_size < LARGEST_BATCH and n >= 32 * batch_size:
            batch_size *= 2
        steps_per_epoch = -(-n // batch_size)
        decay = self.decay * max(balance, self.rare) / n
        return TableSettings(
            batch_size=batch_size,
            epochs=max(LEAST_EPOCHS, -(-self.steps // steps_per_epoch)),
            rate=self.rate,
            weight_decay=float(f"{min(max(decay, LEAST_DECAY), MOST_DECAY):.2g}"),
        )
