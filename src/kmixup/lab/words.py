"""Numbers and times in words, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "epoch"), count(1200, "trial")
    ('1 epoch', '1,200 trials')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """
    >>> duration(42), duration(600), duration(8000), duration(4e5)
    ('42 s', '10 min', '2.2 h', '4.6 days')
    """
    for least, unit, size in ((2 * 86400, "days", 86400), (2 * 3600, "h", 3600)):
        if seconds >= least:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its columns aligned.

    >>> print(markdown(["k", "time"], [["16", "2 s"]]))
    | k  | time |
    | -- | ---- |
    | 16 | 2 s  |
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    cells = [[cell.ljust(size) for cell, size in zip(line, widths, strict=True)] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
