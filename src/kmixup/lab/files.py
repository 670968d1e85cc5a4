"""Safe file access: atomic writes, checks before reading, and digests of file contents."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO

from kmixup.lab.checks import SettingError

ROOM = 1 << 30  # bytes: an archive that unpacks to less is harmless, however small it is
RATIO = 100  # measured arrays compress to no less than a hundredth


def check_folder(out: Path) -> None:
    """Raise if `out` is a file; a path that does not exist yet is fine."""
    if out.exists() and not out.is_dir():
        raise SettingError("out", f"must be a folder, {out} is a file")


def replace_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file whole or not at all: a crash or a full disk leaves the old file in place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # a crash may leave the partial file behind: its name is fixed, so the next write reuses it
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as stream:
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


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk: a new file survives a crash only with its name."""
    if os.name == "nt":  # Windows cannot open a folder, and writes names through by itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_regular(path: Path) -> None:
    """Raise unless a path is an ordinary file: opening a named pipe would block forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path} must be an ordinary file: copy its content into one")


def check_expansion(path: Path) -> None:
    """Raise if a zip file, such as an .npz or .xlsx, declares far more bytes than it has."""
    with zipfile.ZipFile(path) as archive:
        declared = sum(member.file_size for member in archive.infolist())
    if declared > ROOM and declared > RATIO * path.stat().st_size:
        raise ValueError(
            f"{path} must not unpack to more than {RATIO} times its size, declares {declared:,} "
            "bytes: store it without compression if that is what it holds"
        )


@contextmanager
def parsing(path: Path, what: str) -> Iterator[None]:
    """Turn a parser's errors, which are of many kinds on damaged files, into one ValueError."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"{path} must be a whole {what}, could not be read: {error}") from error


def read_lines(path: Path) -> list[str]:
    """Return the stripped lines of a UTF-8 file; empty lines stay, so that numbers are right."""
    check_regular(path)
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be plain text, byte {error.start} is not") from error


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
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
