"""Interleaved timing: on a noisy machine only a ratio of neighbours means anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence


def interleaved(
    contenders: Mapping[str, Callable[[], object]], *, seconds: float, least: int = 3
) -> dict[str, float]:
    """Best time of each contender in seconds, measured in turns, one call each.

    Turns go on until `seconds` are spent on all of them together, and at least `least`
    times; the first turn warms up and does not count.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for call in contenders.values():
        call()
    started, turns = time.perf_counter(), 0
    while turns < least or time.perf_counter() - started < seconds:
        for name, call in contenders.items():
            before = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - before)
        turns += 1
    return best


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table with aligned columns."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n### {title}\n")
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(cells)} |", flush=True)
