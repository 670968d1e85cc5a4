"""Options that several commands share, so that they are called and explained alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.shifts import SHIFTS

DATA = "A name from `kmixup data list`, or a .npz, a .csv or a folder."

Model = Annotated[str | None, typer.Option(help="A name, or package.module:function of your own.")]
Limit = Annotated[int | None, typer.Option(help="Only the first samples, this many of each part.")]
DrawnSamples = Annotated[
    int | None,
    typer.Option(
        "--samples", help="So many training samples, drawn at random; the test part stays whole."
    ),
]
Epochs = Annotated[int | None, typer.Option(help="The rate's milestones move along.")]
Rate = Annotated[float | None, typer.Option(help="The first learning rate.")]
Scaling = Annotated[
    str | None, typer.Option(help="paper, standard, minmax, symmetric, global, cifar or none.")
]
Points = Annotated[int | None, typer.Option(help="Points of a toy.")]
Target = Annotated[
    str | None,
    typer.Option(help="The column of a .csv to learn; by default target, label, class, y or last."),
]
Drop = Annotated[list[str], typer.Option(help="A column of a .csv to leave out; may be repeated.")]
Task = Annotated[
    str | None, typer.Option(help="classes or regression; by default as the target's values tell.")
]
Resize = Annotated[
    str | None,
    typer.Option(help="Stretch the images of a folder, e.g. 64x48.", metavar="HEIGHTxWIDTH"),
]
Weights = Annotated[
    str | None,
    typer.Option("--class-weights", help="balanced: rare classes weigh as much as frequent ones."),
]

Out = Annotated[Path | None, typer.Option(help="Folder of the rows; by default one in out/.")]
EngineName = Annotated[str, typer.Option("--engine", help="local or ray.")]
Workers = Annotated[
    int | None, typer.Option(help="Processes of the local engine; by default one a core.")
]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster; by default one is started here.")
]
NumCpus = Annotated[float, typer.Option(help="Cores that a Ray task reserves.")]
NumGpus = Annotated[float, typer.Option(help="GPUs that a Ray task reserves, e.g. 0.25.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps; tables train on the CPU.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the trials and an estimate of the time.")
]
SoFar = Annotated[
    bool,
    typer.Option("--so-far", help="Train nothing: report on what has ended, also during a run."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def height_and_width(text: str | None) -> tuple[int, int] | None:
    """
    >>> height_and_width("64x48"), height_and_width("64"), height_and_width(None)
    ((64, 48), (64, 64), None)
    """
    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) > 2 or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise ValueError(f"--resize must be a height and a width, e.g. 64x48, got {text!r}")
    return int(sides[0]), int(sides[-1])


def say_account(data: Dataset) -> None:
    """Say what was done to the user's own data, where that is not plain."""
    from kmixup.lab.data.tables import column_report

    if text := column_report(data):
        typer.echo(text, err=True)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a dataclass wherever a parameter is one.

    The fields of the dataclass are the options; the command gets an instance made of them.
    """
    signature = inspect.signature(command, eval_str=True)
    groups = {p.name: p.annotation for p in signature.parameters.values() if _is_group(p)}
    options: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name in groups:
            options += _fields_of(parameter.annotation)
        else:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{entry.name: values.pop(entry.name) for entry in fields(group)})
        command(**values)

    run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return run


def _is_group(parameter: inspect.Parameter) -> bool:
    return is_dataclass(parameter.annotation)


def _fields_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=[] if entry.default is MISSING else entry.default,
            annotation=hints[entry.name],
        )
        for entry in fields(group)
    ]


# The options of a command that tests under shifts: one for each of `SHIFTS`.
ShiftLevels = make_dataclass(
    "ShiftLevels",
    [
        (
            name,
            Annotated[
                list[float], typer.Option(help=f"Also test under {shift.summary}.", metavar="EPS")
            ],
            field(default_factory=list),
        )
        for name, shift in SHIFTS.items()
    ],
    frozen=True,
)
