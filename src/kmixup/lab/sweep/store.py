"""The store of a sweep: one line of JSON for every trial that ended.

A store is a folder with the file `rows.jsonl`. One process at a time adds lines to it, and a
line is on the disk before the next is begun. A crash may leave a torn last line, which is
dropped. Of several rows of one trial the latest counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock

from kmixup.lab.files import check_folder, sync_folder
from kmixup.lab.sweep.rows import DamagedError, Row, read_row

NAME = "rows.jsonl"
VERSION = 1
HEADER = {"format": "kmixup rows", "version": VERSION}

# The lock is on the rows themselves, since a file beside them could be deleted alone. Windows
# does not let anybody read what is locked, so there the lock is on a file beside them.
CAN_READ_LOCKED = os.name != "nt"


def read(folder: str | Path) -> list[Row]:
    """The latest row of every trial, in the order in which they were written."""
    path = Path(folder).expanduser() / NAME
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} must be the folder of a sweep, it has no {NAME}")
    latest: dict[str, Row] = {}
    for row in _rows(path, _whole(path.read_bytes())):
        latest.pop(row.id, None)
        latest[row.id] = row
    return list(latest.values())


class Store:
    """A store that is open for writing, to be used with `with`. A second writer is refused."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()
        self.path = self.folder / NAME

    def __enter__(self) -> Store:
        check_folder(self.folder)
        try:
            _make(self.folder)
            self._file = _open(self.path, os.O_APPEND)
            self._lock = self._file if CAN_READ_LOCKED else _open(self.path.with_suffix(".lock"))
        except OSError as error:
            raise OSError(
                f"{self.folder} cannot be written to ({error.strerror}): choose another folder"
            ) from error
        try:
            self._claim()
            self._mend()
        except BaseException:
            self._close()
            raise
        return self

    def _claim(self) -> None:
        """Refuse a second writer. The system lifts the lock when this process ends, however."""
        try:
            claimed = filelock.lock_descriptor(self._lock, blocking=False)
        except OSError as error:
            raise OSError(
                f"{self.path} cannot be locked ({error.strerror}): choose a folder on another disk"
            ) from error
        if not claimed:
            raise ValueError(
                f"{self.folder} is being written by another sweep: wait for its end, "
                "or choose another folder"
            )

    def _mend(self) -> None:
        """Refuse a file that is not a store, and cut off a torn last line."""
        contents = self.path.read_bytes()
        whole = _whole(contents)
        for _ in _rows(self.path, whole):
            pass
        if len(whole) < len(contents):
            os.ftruncate(self._file, len(whole))
        if not whole:
            self._write(_line(HEADER))
            sync_folder(self.folder)
        elif not whole.endswith(b"\n"):
            self._write("\n")

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows; they are on the disk when this returns."""
        self._write("".join(_line(row.to_dict()) for row in rows))

    def _write(self, text: str) -> None:
        self._check_place()
        data = text.encode()
        start = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            # half a line would spoil the next line; if even this fails, the next opening of
            # the store cuts it off
            with suppress(OSError):
                os.ftruncate(self._file, start)
            raise OSError(
                f"the rows could not be written to {self.path} ({error.strerror}): all earlier "
                "ones are safe; mend that and start again"
            ) from error

    def _check_place(self) -> None:
        """Refuse to write if the file is no longer at its path."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), os.fstat(self._file)):
                return
        raise OSError(
            f"{self.path} was removed or replaced while the sweep was writing it: put it back "
            "and start again"
        )

    def __exit__(self, *raised: object) -> None:
        self._close()

    def _close(self) -> None:
        """Let go of the file and its lock."""
        for handle in {self._file, self._lock}:
            os.close(handle)


def _open(path: Path, flags: int = 0) -> int:
    binary = getattr(os, "O_BINARY", 0)  # without it Windows writes other ends of lines
    return os.open(path, os.O_RDWR | os.O_CREAT | binary | flags, 0o644)


def _line(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, allow_nan=False, separators=(",", ":")) + "\n"


def _make(folder: Path) -> None:
    """Make a folder and those above it, and force their names to the disk."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def _whole(contents: bytes) -> bytes:
    """All but a torn last line.

    A line that lacks only its line break is kept, as an editor may have left it.
    """
    end = contents.rfind(b"\n") + 1
    return contents if _parsed(contents[end:]) is not None else contents[:end]


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The object that a line holds, or None."""
    try:
        plain = json.loads(line)
    except ValueError:
        return None
    return plain if isinstance(plain, dict) else None


def _rows(path: Path, contents: bytes) -> Iterator[Row]:
    for number, line in enumerate(contents.splitlines(), 1):
        plain = _parsed(line)
        if number == 1:
            _check_header(path, plain)
        else:
            yield _row(plain, f"line {number} of {path}")


def _row(plain: dict[str, Any] | None, where: str) -> Row:
    try:
        return read_row(plain or {})
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{where} must be the row of a trial, it is damaged: restore the file, or delete "
            "that line"
        ) from None
    except DamagedError as error:
        raise ValueError(
            f"{where} must be the row of a trial, it is damaged ({error}): restore the file, or "
            "delete that line"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{where} must be a row that this version can read, {error}: take the kmixup that "
            "wrote it, or delete that line"
        ) from error


def _check_header(path: Path, plain: dict[str, Any] | None) -> None:
    if plain == HEADER:
        return
    ours = plain is not None and plain.get("format") == HEADER["format"]
    holds = f"version {plain.get('version')}" if plain is not None and ours else "something else"
    raise ValueError(
        f"{path} must hold rows of version {VERSION}, it holds {holds}: choose another folder, "
        "or the kmixup that wrote it"
    )
