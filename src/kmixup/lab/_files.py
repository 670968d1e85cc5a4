"""The lab's file layer: everything that is read or written passes through it.

Files are replaced atomically through a new file of a random name, so that nobody can prepare a
link in its place. Only ordinary files are read: a named pipe would block, a device never ends. What
is parsed has a budget, because small files can describe huge contents.
"""

from __future__ import annotations

import csv
import errno
import gzip
import hashlib
import io
import json
import os
import secrets
import stat
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from kmixup._checks import SettingError

ROOM = 1 << 30  # bytes: an archive that unpacks to less is harmless, however small it is
RATIO = 100  # measured arrays compress to no less than a hundredth
JSON_BYTES, JSON_VALUES = 1 << 26, 4_000_000  # a value takes up to a hundred bytes of memory
TOML_BYTES = 100_000

# flags that only some systems have: do not follow links, do not wait, keep line ends
NOFOLLOW, NONBLOCK, BINARY = (
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)
NO_FILE = (errno.EISDIR, errno.ELOOP, errno.ENXIO)  # a folder, a link, a socket


class FileError(ValueError):
    """A file is no ordinary one, or exceeds its budget; the message names it."""


# writing


def check_folder(out: Path) -> None:
    """Raise if `out` is a file; a path that does not exist yet is fine."""
    if out.exists() and not out.is_dir():
        raise SettingError("out", f"must be a folder, {out} is a file")


def replace_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file whole or not at all: a crash or a full disk leaves the old file in place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW | BINARY, 0o666)
    try:
        with os.fdopen(file, "wb") as stream:
            with suppress(OSError):  # a disk without locks
                _lock(file)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_content(path: Path, content: str | bytes) -> None:
    """Write text or bytes to `path`, whole or not at all."""
    data = content.encode() if isinstance(content, str) else content
    replace_file(path, lambda stream: stream.write(data))


def remove_partial(folder: Path) -> None:
    """Delete what killed writers have left in a folder: nobody holds its lock."""
    for partial in folder.glob(".*.partial"):
        with suppress(OSError, FileError):
            file = _open(partial, os.O_RDWR, follow=False)
            try:
                _lock(file)
                partial.unlink()
            finally:
                os.close(file)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk: a new file survives a crash only with its name."""
    if os.name == "nt":  # Windows cannot open a folder, and writes names through by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Open a file for reading and appending, made if necessary, and lock it; yield its handle.

    Raises `BlockingIOError` if another process holds the lock. A lock on the content itself cannot
    be removed, unlike a lock file; `in_place` returns whether the content was.
    """
    while True:
        file = _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, follow=False)
        try:
            _lock(file)
            if in_place(file, path):  # else it was replaced in between
                yield file
                return
        finally:
            os.close(file)


def _lock(file: int) -> None:
    try:
        fcntl = import_module("fcntl")
    except ImportError:  # on Windows, where nobody can remove or replace an open file
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def in_place(file: int, path: Path) -> bool:
    """Return whether an open file still has its name: it may have been removed or replaced."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


# reading


def open_regular(path: Path, *, follow: bool = True) -> io.BufferedReader:
    """Open an ordinary file for reading; raise on anything else, and on links unless `follow`."""
    return os.fdopen(_open(path, os.O_RDONLY, follow=follow), "rb")


def read_bytes(path: Path, *, most: int | None = None, follow: bool = True) -> bytes:
    """Return the content of an ordinary file of at most `most` bytes."""
    with open_regular(path, follow=follow) as stream:
        size = os.fstat(stream.fileno()).st_size
        if most is not None and size > most:
            raise FileError(f"{path} must have at most {most:,} bytes, has {size:,}")
        with parsing(path, "file"):
            return stream.read()


def read_gzip(path: Path) -> bytes:
    """Return what a gzip file unpacks to, within the same limits as an archive."""
    with open_regular(path) as stream, gzip.GzipFile(fileobj=stream) as unpacked:
        most = max(ROOM, RATIO * os.fstat(stream.fileno()).st_size)
        data = bytearray()
        while chunk := unpacked.read(1 << 20):
            if len(data) + len(chunk) > most:
                raise _bomb(path, f"more than {most:,}")
            data += chunk
    return bytes(data)


def read_lines(path: Path) -> list[str]:
    """Return the stripped lines of a UTF-8 file; empty lines stay, so that numbers are right."""
    try:
        text = read_bytes(path, most=ROOM).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be plain text, byte {error.start} is not") from error
    return [line.strip() for line in text.splitlines()]


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; raise before parsing more than fits the budget."""
    data = read_bytes(path, most=JSON_BYTES)
    if (values := sum(map(data.count, (b"[", b"{", b",")))) > JSON_VALUES:
        raise FileError(f"{path} must have at most {JSON_VALUES:,} values, has {values:,}")
    try:
        return json.loads(data)
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} must be JSON, could not be read: {_cause(error)}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    data = read_bytes(path, most=TOML_BYTES)
    try:
        return tomllib.loads(data.decode())
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} must be TOML: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def check_regular(path: Path) -> None:
    """Raise unless a path is an ordinary file: opening a named pipe would block forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise _not_regular(path)


def _open(path: Path, flags: int, *, follow: bool) -> int:
    try:
        file = os.open(path, flags | NONBLOCK | BINARY | (0 if follow else NOFOLLOW), 0o666)
    except OSError as error:
        if error.errno in NO_FILE:
            raise _not_regular(path) from error
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _not_regular(path)
    return file


def _not_regular(path: Path) -> FileError:
    what = ", not a link" if path.is_symlink() and path.is_file() else ""
    return FileError(f"{path} must be an ordinary file{what}: copy its content into one")


def check_expansion(path: Path, stream: IO[bytes]) -> None:
    """Raise if a zip archive, such as an .npz or .xlsx, declares far more bytes than it has."""
    with zipfile.ZipFile(stream) as archive:
        declared = sum(member.file_size for member in archive.infolist())
    check_ratio(path, declared, stream.seek(0, os.SEEK_END))
    stream.seek(0)


def check_ratio(path: Path, memory: int, size: int) -> None:
    """Raise if a file or folder of `size` bytes would take far more bytes of memory."""
    if memory > ROOM and memory > RATIO * size:
        raise _bomb(path, f"{memory:,}")


def _bomb(path: Path, bytes_: str) -> FileError:
    return FileError(
        f"{path} must not unpack to more than {RATIO} times its size, declares {bytes_} bytes: "
        "store it without compression if that is what it holds"
    )


@contextmanager
def parsing(path: Path, what: str) -> Iterator[None]:
    """Turn a parser's errors, which are of many kinds on damaged files, into one ValueError."""
    try:
        yield
    except (ImportError, FileError):
        raise
    except MemoryError as error:
        raise MemoryError(f"{path} takes more memory than there is") from error
    except Exception as error:
        raise ValueError(f"{path} must be a whole {what}, could not be read: {error}") from error


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as the text of a `.csv` that is safe to open in a spreadsheet.

    Text that a spreadsheet would run as a formula gets an apostrophe; numbers stay as they are.

    >>> print(csv_text([["sample", "prediction"], [1, "=1+2"], [2, "-3.5"]]), end="")
    sample,prediction
    1,'=1+2
    2,-3.5
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([_no_formula(cell) for cell in row] for row in rows)
    return stream.getvalue()


def _no_formula(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def digest_of(path: Path) -> str:
    """Return a SHA-256 of a file's contents, or of the names and contents in a folder."""
    if path.is_dir():
        paths: list[Path] = []
        seen = set[str]()
        for place, folders, names in os.walk(path, followlinks=True):  # images behind links too
            if (real := os.path.realpath(place)) in seen:  # a link to a folder above
                folders.clear()
            seen.add(real)
            paths += [inner for name in names if (inner := Path(place, name)).is_file()]
        paths.sort()
        digest = hashlib.sha256()
        for inner in paths:
            digest.update(f"{inner.relative_to(path).as_posix()}\0{digest_of(inner)}\0".encode())
        return digest.hexdigest()
    check_regular(path)
    status = path.stat()
    return _content_digest(path.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1 << 20)
def _content_digest(path: Path, size: int, modified: int) -> str:
    """Hash a file's bytes, once for each size and time of change."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
