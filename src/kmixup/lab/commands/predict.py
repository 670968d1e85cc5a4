"""`kmixup predict`: what a trained network says of new samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kmixup.lab.train.model import Model, Predictions

HELP = """Predict new samples with a network that `kmixup train` has trained.

The answer is a .csv with a line for every sample: the number of its row or its file, the
prediction and, for classes, the probability of each.

\b
Train, then predict:
  kmixup train --data table.csv --target species --out runs/species
  kmixup predict runs/species new.csv --out predictions.csv
The columns may stand in any order; those that training did not have are not looked at.
Images and arrays:
  kmixup predict runs/photos new-photos/
  kmixup predict runs/arrays new.npz
From Python:
  kmixup.lab.load("runs/species").predict_proba("new.csv")
"""


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a run, see `kmixup train --out`.")],
    samples: Annotated[
        str, typer.Argument(help="A .csv, an .npz with an array x, or a folder of images.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The file to write; by default standard output.")
    ] = None,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Load a network of your own, which runs its code.")
    ] = False,
) -> None:
    from kmixup.lab.files import replace_content
    from kmixup.lab.train.model import load

    if not Path(samples).expanduser().exists():
        raise ValueError(f"there is no file or folder {samples!r} to predict")
    model = load(run, allow_code=allow_code)
    predictions = model.predictions(samples)
    for note in predictions.notes:
        typer.echo(note, err=True)
    text = table(model, predictions)
    if out is None:
        typer.echo(text, nl=False)
        return
    if out.is_dir():
        raise ValueError(f"out must be a file, {out} is a folder: name a .csv in it")
    replace_content(out, text)
    typer.echo(f"{len(predictions.names):,} predictions: {out}")


def table(model: Model, predictions: Predictions) -> str:
    """Predictions as the text of a .csv."""
    from kmixup.lab.files import csv_text

    rows: list[list[object]] = [
        ["sample", "prediction", *(f"probability of {c}" for c in model.classes)]
    ]
    probabilities = predictions.probabilities
    for i, (name, value) in enumerate(zip(predictions.names, predictions.values, strict=True)):
        shares = [] if probabilities is None else [f"{share:.6g}" for share in probabilities[i]]
        rows.append([name, str(value) if model.classes else f"{value:.7g}", *shares])
    return csv_text(rows)
