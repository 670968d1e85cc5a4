"""Options and small helpers that several commands share."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from kmixup.lab.checks import SettingError
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.imports import is_import_path
from kmixup.lab.train.config import (
    DataOptions,
    Execution,
    Method,
    Protocol,
    TrialData,
    shifts_from,
)
from kmixup.lab.train.methods import METHODS

if TYPE_CHECKING:
    from kmixup.lab.report.document import Document

PATIENCE = 2.0  # seconds without a word

DataName = Annotated[
    str,
    Parameter(
        help="A name from `kmixup data list`, the path of a table, an .npz or a folder of images, "
        "or your own package.module:name."
    ),
]
ModelName = Annotated[
    str | None,
    Parameter(help="Network by name, or package.module:name. By default one for the data."),
]
Out = Annotated[Path | None, Parameter(help="Folder of the rows. By default one in out/.")]
Flag = Annotated[bool, Parameter(negative=(), show_default=False)]  # an option without a value


def _options(title: str, order: int, **more: Any) -> Parameter:
    """Make every field of a dataclass a separate option, below a title in the help."""
    return Parameter(name="*", group=Group(title, sort_key=order), **more)


def _levels(shift: str) -> Parameter:
    text = f"Also test under {SHIFTS[shift].summary}. May be repeated."
    return Parameter(help=text, metavar="EPS", show_default=False)


class Given:
    """Mixin for a dataclass of options that keeps only the settings that a user gave, by name.

    >>> ProtocolChanges(epochs=3).given
    {'epochs': 3}
    """

    given: dict[str, Any]

    def __init__(self, **given: Any) -> None:
        vars(self)["given"] = given  # the dataclass is frozen


@_options("Method options", 1)
class MethodChoice(Given, Method):
    """The settings of a method that a user gave.

    >>> MethodChoice(name="cutmix", k=4).method().label
    'cutmix k=4 alpha=1'
    >>> MethodChoice(name="mixup", k=16).method()
    Traceback (most recent call last):
    kmixup._checks.SettingError: k has no effect in the method mixup, got 16: leave it out
    """

    name: Annotated[
        str,
        Parameter(
            name="--method",
            help=f"One of {', '.join(METHODS)}, or your own package.module:name.",
        ),
    ]

    def method(self) -> Method:
        """Return the method; raise on a setting that it would ignore."""
        chosen = Method(**self.given)
        for name in ("layers", *chosen.entry.fixed):
            value = self.given.get(name)
            if value not in (None, getattr(chosen, name)):
                raise SettingError(
                    name, f"has no effect in the method {chosen.name}, got {value}: leave it out"
                )
        return chosen


@_options("Training options (defaults depend on the data set)", 2, show_default=False)
class ProtocolChanges(Given, Protocol):
    """Protocol settings that replace those of the data set's protocol."""


Reading = Annotated[DataOptions, _options("Data options", 3)]
TrialReading = Annotated[TrialData, _options("Data options", 3)]


@_options("Test options", 4)
@dataclass(frozen=True)
class ExtraTests:
    """Tests in addition to the clean one: their levels, for each of `SHIFTS`.

    Attributes:
        clean_statistics: Also test the network with batch-norm statistics recomputed on clean
            training samples, and keep them.
    """

    noise: Annotated[tuple[float, ...], _levels("noise")] = ()
    fgsm: Annotated[tuple[float, ...], _levels("fgsm")] = ()
    clean_statistics: Flag = False

    def for_trial(self) -> dict[str, Any]:
        """Return the fields of a `Trial`."""
        shifts = shifts_from({name: getattr(self, name) for name in SHIFTS})
        return {"shifts": shifts, "clean_statistics": self.clean_statistics}


@_options("Execution options", 5)
class ExecutionOptions(Execution):
    """Where and how trials run."""

    accept_edited: Flag
    quiet: Flag


def print_status(text: str) -> None:
    """Print to standard error, so that standard output has results only."""
    print(text, file=sys.stderr)


def print_document(document: Document, *, page: bool = False) -> None:
    """Print a report, and that its page is next: many plots take up to half a minute."""
    from kmixup.lab._terminal import SafeConsole
    from kmixup.lab.report.render_text import show

    show(document, SafeConsole())
    if page:
        print_status("drawing the page …")


@contextmanager
def spinner(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what the command is waiting for; yields a function that changes it.

    A file gets a line once the wait exceeds `PATIENCE` seconds, a terminal a spinner.
    """
    from rich.text import Text

    from kmixup.lab._terminal import SafeConsole

    console = SafeConsole(stderr=True, quiet=quiet)
    if quiet or console.is_terminal:
        with console.status(Text(text)) as status:
            yield lambda text: status.update(Text(text))
        return
    begin, said = time.monotonic(), threading.Timer(PATIENCE, print_status, [f"{text} …"])
    said.daemon = True
    said.start()

    def say(text: str) -> None:
        nonlocal begin
        if time.monotonic() - begin > PATIENCE:
            begin = time.monotonic()
            print_status(f"{text} …")

    try:
        yield say
    finally:
        said.cancel()


def print_columns(data: Dataset) -> None:
    """Report how the columns of your table were read, where that is not obvious."""
    if data.notes or data.encoder is not None:
        from kmixup.lab.data.tables import column_report  # imports pandas

        if text := column_report(data):
            print_status(text)


def typed(*without: str) -> str:
    """Return the command line, without some of its flags."""
    return shlex.join(["kmixup", *(word for word in sys.argv[1:] if word not in without)])


def import_from_here(*names: str | None) -> None:
    """Let `package.module:name` be imported from the current folder, behind installed packages."""
    if any(name is not None and is_import_path(name) for name in names):
        sys.path.append(os.getcwd())
