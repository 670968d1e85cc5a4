"""Beyond the paper: k larger than the batch, and other notions of "near".

Three settings with few training samples, those of `small`, and at alpha = 1 alone. Each of the
following is compared with plain k-mixup in paired trials of equal length:

- labels: pairs of different classes cost c times the mean distance more, c = 1, or less, c = -0.2;
- learned metrics: partners are matched on 50 principal components, on what the network sees, or
  on what the moving average of its weights sees, both computed afresh every 5 epochs;
- memory: with batches of 16, k = 64 from a memory of 512 samples against k = 16, the largest
  that the batch allows. These networks take as many steps, at a rate that is smaller as the batch
  is.

The values were fixed before any of these networks was trained.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from kmixup.lab.paper.small import CIFAR10_5000, MNIST_1000, MNIST_5000
from kmixup.lab.paper.tables import CLEAN, ERROR, PaperColumn, PaperTable
from kmixup.lab.train.config import Protocol, variant_words

STEPS = 3000
SMALL_BATCH, MEMORY = 16, 512
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"labels": 1.0},
    {"labels": -0.2},
    {"match_on": "pca:50"},
    {"match_on": "network:5"},
    {"match_on": "ema:5"},
)


def _tables(setting: tuple[PaperTable, ...]) -> tuple[PaperTable, ...]:
    """Tables of one setting, without its shifts, and with clean statistics where it has them."""
    plain = (table for table in setting if table.measure in (ERROR, CLEAN))
    return tuple(table for like in plain for table in _variants(like))


def _variants(like: PaperTable) -> tuple[PaperTable, ...]:
    """The variants of one table: in batches as they are, and in small ones with a memory."""
    if like.protocol is None or like.samples is None:
        raise ValueError(f"{like.name} must have a protocol and a number of samples")
    small = _small_batches(like.protocol, like.samples)
    return (
        *(_table(like, like.protocol, k=16, **variant) for variant in VARIANTS),
        _table(like, small, k=16),
        _table(like, small, k=64, memory=MEMORY),
    )


def _small_batches(protocol: Protocol, samples: int) -> Protocol:
    epochs = math.ceil(STEPS / math.ceil(samples / SMALL_BATCH))
    return replace(
        protocol,
        epochs=epochs,
        batch_size=SMALL_BATCH,
        rate=protocol.rate * SMALL_BATCH / protocol.batch_size,
        test_every=epochs // 2,
    )


def _table(like: PaperTable, protocol: Protocol, *, k: int, **variant: Any) -> PaperTable:
    table = replace(
        like, ks=(1, k), columns=(PaperColumn(1.0),), trials=5, protocol=protocol, **variant
    )
    small = protocol.batch_size == SMALL_BATCH
    words = [*([f"batches of {SMALL_BATCH}"] if small else []), *variant_words(table)]
    names = [str(value).replace(":", "-") for value in variant.values()]
    names = ["small-batches"] * small + [
        f"{name}-{value}" if name != "match_on" else value
        for name, value in zip(variant, names, strict=True)
    ]
    return replace(
        table,
        name="-".join(["beyond", like.name, *(names or ["plain"])]),
        title=", ".join([like.title, *(words or ["plain"])]),
    )


BEYOND_MNIST_1000 = _tables(MNIST_1000)
BEYOND_MNIST_5000 = _tables(MNIST_5000)
BEYOND_CIFAR10_5000 = _tables(CIFAR10_5000)
