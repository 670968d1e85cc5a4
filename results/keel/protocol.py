"""Choose the protocol of the study: ERM alone, on splits that the study does not use.

Every third table, the splits 100 to 102, trained on 80 % of the training rows and scored on the
rest; test samples are not looked at. The protocol is that with the lowest geometric mean over
tables of (errors + ½) / (n + 1), errors and n summed over the splits; among protocols within 2 %
of it, that with the lowest geometric mean of the log-loss.

    KMIXUP_DATA=… python results/keel/protocol.py    # writes protocol.csv
"""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import numpy as np
import torch
from grid import MODEL, MOST_ROWS, TABLES, VALIDATION, protocol, rows_of

from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import Trained
from kmixup.lab.trial import Method, Trial

# with 3,000 steps and the rate 0.02, errors are 8 % lower than with 1,000; the study's budget is
# for 1,000, so higher rates make up for it
RATES, DECAYS, STEPS = (0.05, 0.1), (1e-4, 1e-3, 5e-3, 1e-2), (1000,)
SPLITS = (100, 101, 102)
WITHIN = 1.02


def measure(table: str, rate: float, decay: float, steps: int) -> tuple[float, float, float]:
    """Return error rate and log-loss on validation samples, and the training error."""
    how = protocol(rows_of(table, "clean"), rate=rate, decay=decay, steps=steps)
    trials = [
        Trial(
            f"keel-{table}", MODEL, Method("erm"), how, split, limit=MOST_ROWS,
            validation=VALIDATION,
        )
        for split in SPLITS
    ]  # fmt: skip
    records = [ended.record for ended in train_fleet(trials) if isinstance(ended, Trained)]
    if len(records) < len(SPLITS):
        return np.inf, np.inf, np.inf
    n = sum(record["data"]["test"] for record in records)
    errors = sum(record["result"]["error"] * record["data"]["test"] for record in records)
    loss = float(np.mean([record["result"]["nll"] for record in records]))
    fit = float(np.mean([record["training"]["error"] for record in records]))
    return (errors + 0.5) / (n + 1), loss, fit


def main() -> None:
    torch.set_num_threads(1)
    lines = []
    for rate, decay, steps in product(RATES, DECAYS, STEPS):
        measured = np.array([measure(table, rate, decay, steps) for table in TABLES[::3]])
        error, loss = np.exp(np.log(measured[:, :2]).mean(0))
        lines.append((rate, decay, steps, error, loss, measured[:, 2].mean()))
        print(*lines[-1], flush=True)
    with Path(__file__).with_suffix(".csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["rate", "weight_decay", "steps", "error", "log_loss", "training_error"])
        writer.writerows([*line[:3], *(f"{value:.4f}" for value in line[3:])] for line in lines)
    most = WITHIN * min(line[3] for line in lines)
    print("chosen:", min((line[4], line) for line in lines if line[3] <= most)[1])


if __name__ == "__main__":
    main()
