"""Options and small helpers that several commands share."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kmixup.lab.data import Dataset
from kmixup.lab.imports import is_import_path

DataName = Annotated[
    str,
    Parameter(
        help="A name from `kmixup data list`, the path of a table, an .npz or a folder of images, "
        "or package.module:name of your own."
    ),
]
ModelName = Annotated[
    str | None,
    Parameter(help="Network by name, or package.module:name. By default one for the data."),
]
Out = Annotated[Path | None, Parameter(help="Folder of the rows. By default one in out/.")]


def print_status(text: str) -> None:
    """Print to standard error, so that standard output has results only."""
    print(text, file=sys.stderr)


@contextmanager
def spinner(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal what the command is waiting for."""
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True, quiet=quiet).status(Text(text)):
        yield


def print_columns(data: Dataset) -> None:
    """Report how the columns of your own table were read, where that is not obvious."""
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


def option_words(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as command-line options.

    >>> option_words({"rate": 0.1, "model": None, "drop": ("id",), "resize": (6, 5)})
    ['--rate', '0.1', '--drop', 'id', '--resize', '6x5']
    >>> option_words({"augment": False})
    ['--no-augment']
    """
    words = []
    for name, value in settings.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif name == "resize" and value is not None:
            words += ["--resize", "x".join(map(str, value))]
        elif value is not None:
            for entry in value if isinstance(value, tuple) else (value,):
                words += [f"--{option}", str(entry)]
    return words
