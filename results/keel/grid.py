"""The study of 43 KEEL tables: which networks are trained, and in which order.

Three regimes: all training rows of a table (at most 3,000), the same with a fifth of the labels
redrawn at random, and a tenth of the rows. In each, a table is split at random into two thirds to
train on and a third to test on, anew for every split, and every arm is trained twice: on all
training rows, and on 80 % of them, with the rest as validation samples, which also fit a
temperature. All networks are the same MLP, trained by one protocol, which `protocol.py` chose with
ERM on other splits. A fourth regime, "long", repeats the first with three times the steps: mixed
samples take longer to fit than others.

    KMIXUP_DATA=… python results/keel/grid.py clean 0 10    # the splits 0 to 9, two by two

Rows are appended to `rows.jsonl` in the folder OUT, by default that of this file. The command
resumes after any interruption.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace
from pathlib import Path

from kmixup.lab.data import ENTRIES
from kmixup.lab.data.catalogue import KEEL
from kmixup.lab.experiments.driver import Watch, sweep
from kmixup.lab.experiments.engines import Local
from kmixup.lab.trial import Method, Protocol, Trial

TABLES = tuple(facts[0] for facts in KEEL)
MODEL = "mlp-120-120-84"
MOST_ROWS = 3000  # to train on, and to test on
VALIDATION = 0.2
ALPHAS = (0.02, 0.05, 0.2, 1.0)
K = 16

# fixed with ERM on other splits (protocol.csv)
BATCH, STEPS, RATE, DECAY = 64, 1000, 0.1, 1e-3
SMOOTHING, MORE_DECAY = 0.1, 10.0

REGIMES = {"clean": ALPHAS, "noise": (*ALPHAS, 8.0), "tenth": ALPHAS, "long": ALPHAS}
LABEL_NOISE, LONGER = 0.2, 3
LEAST = 48  # training rows of a tenth: k = 16 needs some blocks even in 80 % of them


def protocol(
    rows: int, *, rate: float = RATE, decay: float = DECAY, steps: int = STEPS
) -> Protocol:
    """Return the protocol for a number of training rows: about as many steps for every table."""
    epochs = math.ceil(steps / math.ceil(rows / BATCH))
    return Protocol(
        epochs=epochs,
        rate=rate,
        schedule="cosine",
        weight_decay=decay,
        batch_size=BATCH,
        test_every=epochs,
    )


def arms(regime: str, usual: Protocol) -> dict[str, tuple[Method, Protocol]]:
    """Return method and protocol of every arm of a regime, by name."""
    default = Method("kmixup", K, 0.2)
    more = replace(usual, weight_decay=MORE_DECAY * usual.weight_decay)
    smooth = replace(usual, label_smoothing=SMOOTHING)
    mixing = [
        method
        for alpha in REGIMES[regime]
        for method in (Method("mixup", alpha=alpha), Method("kmixup", K, alpha))
    ]
    return {
        "erm": (Method("erm"), usual),
        **{f"k={method.k} alpha={method.alpha:g}": (method, usual) for method in mixing},
        "erm smoothing": (Method("erm"), smooth),
        "default smoothing": (default, smooth),
        "erm decay": (Method("erm"), more),
    }


def rows_of(table: str, regime: str) -> int:
    """Return the number of training rows of a table; 0 if a tenth of them is too few."""
    rows = min(MOST_ROWS, ENTRIES[f"keel-{table}"].train)
    if regime != "tenth":
        return rows
    return rows // 10 if rows // 10 >= LEAST else 0


def trials(regime: str, table: str, split: int) -> list[Trial]:
    """Return the trials of one table in one split: every arm on 80 % and on all training rows."""
    if not (rows := rows_of(table, regime)):
        return []
    part = {"samples": rows} if regime == "tenth" else {"limit": MOST_ROWS}
    noise = LABEL_NOISE if regime == "noise" else None
    usual = protocol(rows, steps=STEPS * LONGER if regime == "long" else STEPS)
    return [
        Trial(
            f"keel-{table}", MODEL, method, trained, seed=split, label_noise=noise, **part, **held
        )
        for held in ({"validation": VALIDATION, "temperature": True}, {})
        for method, trained in arms(regime, usual).values()
    ]


def main() -> None:
    regime, first, end = sys.argv[1], *map(int, sys.argv[2:])
    folder = Path(os.environ.get("OUT", Path(__file__).parent))
    for start in range(first, end, 2):  # a variance takes two
        splits = range(start, min(start + 2, end))
        wanted = [
            trial for table in TABLES for split in splits for trial in trials(regime, table, split)
        ]
        with Watch() as watch:
            sweep(wanted, folder, engine=Local(1), started=watch.started, ended=watch.ended)


if __name__ == "__main__":
    main()
