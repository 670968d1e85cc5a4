"""Checks before a file is read: that it is no pipe, no archive bomb, and text where it must be."""

from __future__ import annotations

import stat
from pathlib import Path

ROOM = 1 << 30  # bytes: what unpacks to less is harmless, however small its file
RATIO = 100  # measured arrays and photographs compress to no less than a hundredth

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


def check_regular(path: Path) -> None:
    """Raise unless a path is an ordinary file: opening a named pipe would wait for ever."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise ValueError(f"{path} must be an ordinary file, is {kind}: copy its content into one")


def check_expansion(path: Path, *, packed: int, declared: int) -> None:
    """Raise if `packed` bytes declare that they unpack to far more, before they do so."""
    if declared > ROOM and declared > RATIO * packed:
        raise ValueError(
            f"{path} must not unpack to more than {RATIO} times its size, {_size(packed)} of it "
            f"declare {_size(declared)}: store it without compression if that is what it holds"
        )


def read_lines(path: Path) -> list[str]:
    """Return the stripped lines of a UTF-8 file; empty lines stay, so that numbers are right."""
    check_regular(path)
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be plain text, byte {error.start} is not") from error


def _size(count: int) -> str:
    """
    >>> _size(21_000), _size(3_100_000), _size(8_000_000_000)
    ('21 kB', '3.1 MB', '8.0 GB')
    """
    if count >= 10**9:
        return f"{count / 1e9:,.1f} GB"
    return f"{count / 1e6:,.1f} MB" if count >= 10**6 else f"{count / 1e3:,.0f} kB"
