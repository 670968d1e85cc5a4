"""Options and small helpers that several commands share."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, get_type_hints

from cyclopts import Group, Parameter

from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.imports import is_import_path
from kmixup.lab.methods import METHODS
from kmixup.lab.trial import Method, Protocol, TrialData

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
Flag = Annotated[bool, Parameter(negative=(), show_default=False)]  # an option without a value
Out = Annotated[Path | None, Parameter(help="Folder of the rows. By default one in out/.")]


NONE_GIVEN: dict[str, Any] = {}
if TYPE_CHECKING:
    MethodOptions: TypeAlias = dict[str, Any]
    TrainingOptions: TypeAlias = dict[str, Any]
    DataOptions: TypeAlias = dict[str, Any]
    FileOptions: TypeAlias = dict[str, Any]
    TestOptions: TypeAlias = dict[str, Any]
else:

    def _given(title, order, hints, doc=None):
        """Make an option of each hint; a command gets a dict of those that are given."""
        given = TypedDict("given", hints, total=False)
        given.__doc__ = doc
        return Annotated[given, Parameter(name="*", group=Group(title, sort_key=order))]

    _name = Parameter(
        name="--method",
        help=f"One of {', '.join(METHODS)}, or your own package.module:name. By default kmixup.",
    )
    _sides = Annotated[tuple[int, int] | None, Parameter(metavar="HEIGHT WIDTH")]
    _reading = get_type_hints(TrialData) | {"resize": _sides}
    _of_training = {"samples", "label_noise", "size", "class_weights"}
    _tests = {
        name: Annotated[
            tuple[float, ...],
            Parameter(help=f"Also test under {shift.summary}. May be repeated.", metavar="EPS"),
        ]
        for name, shift in SHIFTS.items()
    }
    _clean = (
        "Also test the network with batch-norm statistics recomputed on clean training samples, "
        "and keep them."
    )
    _tests["clean_statistics"] = Annotated[bool, Parameter(negative=(), help=_clean)]
    MethodOptions = _given(
        "Method options",
        1,
        get_type_hints(Method) | {"name": Annotated[str, _name]},
        Method.__doc__,
    )
    TrainingOptions = _given(
        "Training options (defaults depend on the data set)",
        2,
        get_type_hints(Protocol),
        Protocol.__doc__,
    )
    DataOptions = _given("Data options", 3, _reading, TrialData.__doc__)
    FileOptions = _given(
        "Data options",
        3,
        {name: hint for name, hint in _reading.items() if name not in _of_training},
        TrialData.__doc__,
    )
    TestOptions = _given("Test options", 4, _tests)


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
