"""`kmixup evaluate`: scores of a trained network on labelled samples."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kmixup.lab.commands.options import print_status
from kmixup.lab.train.config import Flag
from kmixup.lab.train.model import load


def evaluate(
    run: Path,
    samples: str,
    *,
    target: str | None = None,
    threshold: float | None = None,
    allow_code: Flag = False,
) -> None:
    """Score a network that `kmixup train` has trained on labelled samples.

    Prints error, log-loss, balanced accuracy and AUC, precision and recall of each class, and
    the confusion matrix; for a regression RMSE and R².

    ```
    kmixup evaluate runs/species labelled.csv
    kmixup evaluate runs/churn labelled.csv --threshold 0.2
    kmixup evaluate runs/photos labelled-photos/
    ```

    Args:
        run: Folder of a run, see `kmixup train --out`.
        samples: A table with the target, an .npz with x and y, or a folder of images by class.
        target: Column of a table with the true values. By default that of the training.
        threshold: With two classes, the probability from which the second one is predicted.
        allow_code: Import the package.module:name of your own network that the run names. Use
            it only for runs that you trust.
    """
    if not Path(samples).expanduser().exists():
        raise ValueError(f"there is no file or folder {samples!r} to evaluate on")
    if allow_code:
        sys.path.append(os.getcwd())
    model = load(run, allow_code=allow_code)
    evaluation = model.evaluate(samples, target=target, threshold=threshold)
    for note in evaluation.notes:
        print_status(note)
    print(evaluation)
