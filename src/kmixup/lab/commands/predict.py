"""`kmixup predict`: a trained network on new samples, scored if they are labelled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kmixup._checks import SettingError
from kmixup.lab._files import csv_text, replace_content
from kmixup.lab.commands.options import Flag, import_from_here, print_status
from kmixup.lab.train.model import Model, Predictions, load, network_of


def predict(
    run: Annotated[Path, Parameter(help="Folder of a run, see `kmixup train --out`.")],
    samples: str,
    *,
    out: Path | None = None,
    score: Flag = False,
    target: str | None = None,
    scores: Annotated[Path | None, Parameter(name="--json")] = None,
    allow_code: Flag = False,
) -> None:
    """Predict new samples with a trained network.

    The result is a CSV with one line per sample: its row number or file name, the prediction
    and, for classes, the probability of each. Columns may have any order; unknown columns are
    ignored.

    With --score the samples must be labelled. Error, log-loss, balanced accuracy and AUC,
    precision and recall of each class, and the confusion matrix are printed to standard error;
    for a regression RMSE and R².

    ```
    kmixup train table.csv --target species --out runs/species
    kmixup predict runs/species new.csv --out predictions.csv
    # labelled samples
    kmixup predict runs/species labelled.csv --score --out predictions.csv
    kmixup predict runs/species labelled.csv --json scores.json --out predictions.csv
    # images and arrays
    kmixup predict runs/photos new-photos/
    kmixup predict runs/arrays new.npz
    # from Python
    kmixup.lab.load("runs/species").predict_proba("new.csv")
    ```

    Args:
        samples: A table, an .npz with an array x, or a folder of images.
        out: File to write. By default standard output.
        score: Score the predictions: needs the table's target, y of an .npz, or a folder per class.
        target: Column of a table with the true values. By default that of the training.
        scores: File for the scores, in place of standard error.
        allow_code: Import the package.module:name of your network that the run names. Use it
            only for runs that you trust.
    """
    score = score or scores is not None
    if target is not None and not score:
        raise SettingError("target", "has no effect without --score: add it, or leave target out")
    for name, file in (("out", out), ("json", scores)):
        if file is not None and file.is_dir():
            raise SettingError(name, f"must be a file, {file} is a folder: name a file in it")
    if not Path(samples).expanduser().exists():
        raise ValueError(f"there is no file or folder {samples!r} to predict")
    if allow_code:
        import_from_here(network_of(run))
    model = load(run, allow_code=allow_code)
    evaluation = None
    if score:
        predictions, evaluation = model.scored(samples, target=target)
    else:
        predictions = model.predictions(samples)
    for note in predictions.notes:
        print_status(note)
    text = _csv(model, predictions)
    if out is None:
        print(text, end="")
    else:
        replace_content(out, text)
        print(f"{len(predictions.names):,} predictions: {out}")
    if evaluation is not None and scores is not None:
        replace_content(scores, json.dumps(evaluation.to_dict(), indent=2) + "\n")
    elif evaluation is not None:
        print_status(str(evaluation))


def _csv(model: Model, predictions: Predictions) -> str:
    """Return a line for each sample."""
    rows = [["sample", "prediction", *(f"probability of {name}" for name in model.classes)]]
    for i, (name, value) in enumerate(zip(predictions.names, predictions.values, strict=True)):
        rows.append([name, str(value) if model.classes else f"{value:.7g}"])
        if predictions.probabilities is not None:
            rows[-1] += [f"{each:.6g}" for each in predictions.probabilities[i]]
    return csv_text(rows)
