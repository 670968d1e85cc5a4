"""What the benchmarks print."""

from __future__ import annotations

from collections.abc import Sequence

from kmixup.lab.words import markdown


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n### {title}\n\n{markdown(header, rows)}", flush=True)
