"""What is known of a table before training, for the secondary analysis; writes `tables.csv`.

Measured on the training rows of the split 0, scaled as for the networks: rows, columns of the
network's input, classes, the share of partners of another class at k = 1 and 16 in batches of 64,
its ratio `left`, the leave-one-out error of the nearest neighbor, and the five-fold error of
logistic regression.

    KMIXUP_DATA=… python results/keel/measure.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import torch
from grid import BATCH, MOST_ROWS, TABLES, K
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from kmixup import Optimal
from kmixup.lab.data import load

DRAWS = 200  # of two batches


def measure(table: str) -> dict[str, object]:
    data = load(f"keel-{table}", limit=MOST_ROWS, seed=0)
    x, y = data.normalise(data.x_train), data.y_train
    generator = torch.Generator().manual_seed(0)
    crossing = {1: 0.0, K: 0.0}
    rows = min(BATCH, len(x) // K * K)
    for _ in range(DRAWS):
        first, second = (torch.randperm(len(x), generator=generator)[:rows] for _ in range(2))
        for k in crossing:
            partner = Optimal(k)(x[first], x[second])
            crossing[k] += float((y[first] != y[second[partner]]).double().mean()) / DRAWS
    near = torch.cdist(x, x).fill_diagonal_(torch.inf).argmin(1)
    folds = cross_val_score(LogisticRegression(max_iter=1000), x.numpy(), y.numpy(), cv=5)
    return {
        "table": table,
        "rows": len(x),
        "columns": x.shape[1],
        "classes": data.num_classes,
        "other_1": round(crossing[1], 4),
        "other_16": round(crossing[K], 4),
        "left": round(crossing[K] / crossing[1], 4),
        "neighbor_error": round(float((y[near] != y).double().mean()), 4),
        "linear_error": round(1 - float(folds.mean()), 4),
    }


def main() -> None:
    torch.set_num_threads(1)
    measured = [measure(table) for table in TABLES]
    with (Path(__file__).parent / "tables.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, measured[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(measured)


if __name__ == "__main__":
    main()
