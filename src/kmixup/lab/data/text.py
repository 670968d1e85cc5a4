"""Lines of a text file, or one sentence on why they cannot be read."""

from __future__ import annotations

from pathlib import Path

from kmixup.lab.data.safety import check_regular


def lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, stripped; empty lines stay, so that line numbers are right."""
    check_regular(path)
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be plain text, byte {error.start} is not") from error
