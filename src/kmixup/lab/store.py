"""Where the rows of a sweep live: one line of JSON for every trial that ended.

A store is a folder with the file `rows.jsonl`. Lines are only ever added, by one process
at a time, and each is on the disk before the next begins; what a crash may leave is a torn
last line, which is dropped. Of several rows of one trial the latest counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from kmixup.lab.checkpoint import sync_folder

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
    for row in _rows(path, _whole_lines(path.read_bytes())):
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
        self._lock = FileLock(self.folder / f".{NAME}.lock", timeout=0)

    def __enter__(self) -> Store:
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"out must be a folder, {self.folder} is a file")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout:
            raise ValueError(
                f"{self.folder} is being written by another sweep: wait for its end, "
                "or choose another folder"
            ) from None
        except OSError as error:
            raise OSError(
                f"{self.folder} cannot be written to ({error.strerror}): choose another folder"
            ) from error
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def _open(self) -> None:
        """Check what is there, and cut off a line that a crash has torn."""
        new = not self.path.exists()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            contents = self.path.read_bytes()
            whole = _whole_lines(contents)
            for _ in _rows(self.path, whole):
                pass  # refuses what is not a store
            os.ftruncate(self._file, len(whole))
            if not whole:
                self._write(json.dumps(HEADER) + "\n")
            if new:
                sync_folder(self.folder)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows; they are on the disk when this returns."""
        lines = [json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n" for row in rows]
        self._write("".join(lines))

    def _write(self, text: str) -> None:
        data = text.encode()
        start = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, start)  # half a line would spoil the one that follows it
            raise OSError(
                f"the rows could not be written to {self.path} ({error.strerror}): all earlier "
                "ones are safe; mend that and start again"
            ) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)
        self._lock.release()


def _whole_lines(contents: bytes) -> bytes:
    return contents[: contents.rfind(b"\n") + 1]


def _rows(path: Path, contents: bytes) -> Iterable[Row]:
    lines = contents.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            found = None if isinstance(row, dict) else "no object"
        except ValueError as error:
            found = str(error)
        if found is not None:
            raise ValueError(
                f"line {number} of {path} must be JSON, found {found}: restore the file, or "
                "delete that line"
            )
        if number > 1:
            if "id" not in row or "status" not in row:
                raise ValueError(
                    f"line {number} of {path} must be a row with id and status: delete that line"
                )
            yield row
        elif row != HEADER:
            version = row.get("version") if row.get("format") == HEADER["format"] else None
            wrote = f"version {version}" if version is not None else "something else"
            raise ValueError(
                f"{path} must be rows of version {VERSION}, {wrote} wrote it: choose another "
                "folder, or the kmixup that it is of"
            )
