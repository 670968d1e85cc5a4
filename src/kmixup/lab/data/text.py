"""Lines of a text file, or one sentence on why it is none."""

from __future__ import annotations

from pathlib import Path


def lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file without the spaces around them; empty ones stay, to be counted."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be plain text, byte {error.start} is not") from error
