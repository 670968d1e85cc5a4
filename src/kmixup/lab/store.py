"""Where the rows of a sweep live: one line of JSON for every trial that ended.

A store is a folder with the file `rows.jsonl`. Lines are only ever added, by one process
at a time, and are on the disk before the next begin; what a crash may leave is a torn last
line, which is dropped. Of several rows of one trial the latest counts.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from kmixup.lab.checkpoint import check_folder, sync_folder

NAME = "rows.jsonl"
VERSION = 1
HEADER = {"format": "kmixup rows", "version": VERSION}

Row = dict[str, Any]


def read(folder: str | Path) -> list[Row]:
    """The rows that count, the latest of every trial, in the order of their writing."""
    path = Path(folder).expanduser() / NAME
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} must be the folder of a sweep, it has no {NAME}")
    latest: dict[str, Row] = {}
    for row in _rows(path, _whole(path.read_bytes())):
        latest.pop(row["id"], None)
        latest[row["id"]] = row
    return list(latest.values())


class Store:
    """A store that is open for writing, as a context; a second one is refused.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Store(folder) as store:
    ...     store.append([{"id": "a", "status": "done"}])
    >>> read(folder)
    [{'id': 'a', 'status': 'done'}]
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()
        self.path = self.folder / NAME

    def __enter__(self) -> Store:
        check_folder(self.folder)
        try:
            _make(self.folder)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise OSError(
                f"{self.folder} cannot be written to ({error.strerror}): choose another folder"
            ) from error
        try:
            self._claim()
            self._mend()
        except BaseException:
            os.close(self._file)
            raise
        return self

    def _claim(self) -> None:
        """Lock the rows themselves, not a file beside them that could be deleted alone."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{self.folder} is being written by another sweep: wait for its end, "
                "or choose another folder"
            ) from None
        except OSError as error:
            raise OSError(
                f"{self.path} cannot be locked ({error.strerror}): choose a folder on another disk"
            ) from error

    def _mend(self) -> None:
        """Refuse what is not a store, and cut off a line that a crash has torn."""
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
        self._write("".join(map(_line, rows)))

    def _write(self, text: str) -> None:
        self._check_place()
        data = text.encode()
        start = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            # half a line would spoil the one that follows it; if even this fails, the next
            # opening cuts it off
            with suppress(OSError):
                os.ftruncate(self._file, start)
            raise OSError(
                f"the rows could not be written to {self.path} ({error.strerror}): all earlier "
                "ones are safe; mend that and start again"
            ) from error

    def _check_place(self) -> None:
        """Refuse to write into a file that nobody will find."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), os.fstat(self._file)):
                return
        raise OSError(
            f"{self.path} was removed or replaced while the sweep was writing it: put it back "
            "and start again"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)  # and with it goes the lock


def _line(row: Row) -> str:
    return json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n"


def _make(folder: Path) -> None:
    """Make a folder and those above it, and force their names to the disk."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in new:
        sync_folder(one.parent)


def _whole(contents: bytes) -> bytes:
    """All but a torn last line: what lacks its end is no JSON, what an editor wrote may be."""
    end = contents.rfind(b"\n") + 1
    return contents if _parsed(contents[end:]) is not None else contents[:end]


def _parsed(line: bytes) -> Row | None:
    """The object that a line holds, or None."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _rows(path: Path, contents: bytes) -> Iterator[Row]:
    for number, line in enumerate(contents.splitlines(), 1):
        row = _parsed(line)
        if number == 1:
            _check_header(path, row)
        elif row is None or not {"id", "status"} <= row.keys():
            raise ValueError(
                f"line {number} of {path} must be the row of a trial, it is damaged: restore the "
                "file, or delete that line"
            )
        else:
            yield row


def _check_header(path: Path, row: Row | None) -> None:
    if row == HEADER:
        return
    ours = row is not None and row.get("format") == HEADER["format"]
    found = f"version {row.get('version')}" if row is not None and ours else "something else"
    raise ValueError(
        f"{path} must hold rows of version {VERSION}, it holds {found}: choose another folder, "
        "or the kmixup that wrote it"
    )
