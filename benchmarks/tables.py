"""What the benchmarks print."""

from __future__ import annotations

from collections.abc import Sequence

from kmixup.lab.formatting import TextTable


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n### {title}\n\n{TextTable(header, rows).aligned()}", flush=True)
