"""The paper's CIFAR-10 table by the protocol of its authors' public script.

The script differs from the paper's text. It takes batches of 512 and leaves out the last one,
normalises by constants, and matches each batch with a reshuffle of itself, in which a sample may
meet itself. It multiplies alpha by the root of the ratio of costs at 1 and at k. Where k > 1 it
makes one more forward pass of the clean batch in training mode, so that the statistics of batch
norm are half clean there, and mixed at k = 1.

The script's network is the ResNet-18 of the public code of mixup, which differs slightly from
ours of that name (see `preact_resnet`).
"""

from __future__ import annotations

from dataclasses import replace

from kmixup.lab.paper.images import CIFAR10
from kmixup.lab.paper.tables import CLEAN
from kmixup.lab.train.config import Protocol

PROTOCOL = Protocol(batch_size=512, augment=True, drop_last=True, clean_pass="matched")

_AS_TRAINED = replace(
    CIFAR10,
    name="script",
    title="CIFAR-10 by the public script",
    protocol=PROTOCOL,
    scaling="cifar",
    pairing="reshuffle",
)
SCRIPT = (
    _AS_TRAINED,
    replace(
        _AS_TRAINED,
        name="script-clean",
        title="CIFAR-10 by the public script, with clean statistics",
        measure=CLEAN,
        errors=None,
        erm=None,
        confidence=None,
    ),
)
