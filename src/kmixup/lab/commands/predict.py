"""`kmixup predict`: predictions of a trained network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kmixup.lab.checks import SettingError
from kmixup.lab.commands.options import print_status
from kmixup.lab.files import csv_text, replace_content
from kmixup.lab.train.config import Flag
from kmixup.lab.train.model import Model, Predictions, load


def predict(run: Path, samples: str, *, out: Path | None = None, allow_code: Flag = False) -> None:
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
        run: Folder of a run, see `kmixup train --out`.
        samples: A table, an .npz with an array x, or a folder of images.
        out: File to write. By default standard output.
        allow_code: Import the package.module:name of your own network that the run names. Use
            it only for runs that you trust.
    """
    if not Path(samples).expanduser().exists():
        raise ValueError(f"there is no file or folder {samples!r} to predict")
    if allow_code:
        sys.path.append(os.getcwd())
    model = load(run, allow_code=allow_code)
    predictions = model.predictions(samples)
    for note in predictions.notes:
        print_status(note)
    text = table(model, predictions)
    if out is None:
        print(text, end="")
        return
    if out.is_dir():
        raise SettingError("out", f"must be a file, {out} is a folder: name a .csv in it")
    replace_content(out, text)
    print(f"{len(predictions.names):,} predictions: {out}")


def table(model: Model, predictions: Predictions) -> str:
    """Return predictions as the text of a CSV file."""
    rows: list[list[object]] = [
        ["sample", "prediction", *(f"probability of {c}" for c in model.classes)]
    ]
    probabilities = predictions.probabilities
    for i, (name, value) in enumerate(zip(predictions.names, predictions.values, strict=True)):
        shares = [] if probabilities is None else [f"{share:.6g}" for share in probabilities[i]]
        rows.append([name, str(value) if model.classes else f"{value:.7g}", *shares])
    return csv_text(rows)
