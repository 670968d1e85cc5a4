"""`kmixup predict` and `kmixup evaluate`: a trained network on new samples."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kmixup.lab.checks import SettingError
from kmixup.lab.commands.options import print_status
from kmixup.lab.files import csv_text, replace_content
from kmixup.lab.train.config import Flag
from kmixup.lab.train.model import Model, load

Run = Annotated[Path, Parameter(help="Folder of a run, see `kmixup train --out`.")]
AllowCode = Annotated[
    Flag,
    Parameter(
        help="Import the package.module:name of your own network that the run names. Use it only "
        "for runs that you trust."
    ),
]


def predict(
    run: Run, samples: str, *, out: Path | None = None, allow_code: AllowCode = False
) -> None:
    """Predict new samples with a network that `kmixup train` has trained.

    The result is a CSV with one line per sample: its row number or file name, the prediction
    and, for classes, the probability of each. Columns may have any order; columns that training
    did not have are ignored.

    ```
    kmixup train table.csv --target species --out runs/species
    kmixup predict runs/species new.csv --out predictions.csv
    # images and arrays
    kmixup predict runs/photos new-photos/
    kmixup predict runs/arrays new.npz
    # from Python
    kmixup.lab.load("runs/species").predict_proba("new.csv")
    ```

    Args:
        samples: A table, an .npz with an array x, or a folder of images.
        out: File to write. By default standard output.
    """
    model = _load(run, samples, "predict", allow_code=allow_code)
    predictions = model.predictions(samples)
    for note in predictions.notes:
        print_status(note)
    rows = [["sample", "prediction", *(f"probability of {name}" for name in model.classes)]]
    for i, (name, value) in enumerate(zip(predictions.names, predictions.values, strict=True)):
        rows.append([name, str(value) if model.classes else f"{value:.7g}"])
        if predictions.probabilities is not None:
            rows[-1] += [f"{share:.6g}" for share in predictions.probabilities[i]]
    if out is None:
        print(csv_text(rows), end="")
        return
    if out.is_dir():
        raise SettingError("out", f"must be a file, {out} is a folder: name a .csv in it")
    replace_content(out, csv_text(rows))
    print(f"{len(predictions.names):,} predictions: {out}")


def evaluate(
    run: Run,
    samples: str,
    *,
    target: str | None = None,
    allow_code: AllowCode = False,
) -> None:
    """Score a network that `kmixup train` has trained on labelled samples.

    Prints error, log-loss, balanced accuracy and AUC, precision and recall of each class, and
    the confusion matrix; for a regression RMSE and R².

    ```
    kmixup evaluate runs/species labelled.csv
    kmixup evaluate runs/photos labelled-photos/
    ```

    Args:
        samples: A table with the target, an .npz with x and y, or a folder of images by class.
        target: Column of a table with the true values. By default that of the training.
    """
    model = _load(run, samples, "evaluate on", allow_code=allow_code)
    evaluation = model.evaluate(samples, target=target)
    for note in evaluation.notes:
        print_status(note)
    print(evaluation)


def _load(run: Path, samples: str, purpose: str, *, allow_code: bool) -> Model:
    if not Path(samples).expanduser().exists():
        raise ValueError(f"there is no file or folder {samples!r} to {purpose}")
    if allow_code:
        sys.path.append(os.getcwd())
    return load(run, allow_code=allow_code)
