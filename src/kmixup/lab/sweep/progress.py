"""Progress of a sweep: how far it is, how fast it goes, and its last results."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from kmixup.lab.formatting import count, duration
from kmixup.lab.sweep.driver import weight
from kmixup.lab.sweep.rows import Done, Row, failed_of
from kmixup.lab.train.config import Trial

INTERVAL = 30.0  # seconds between two lines where there is no terminal


class Watch:
    """Shows the progress of a sweep: a bar on a terminal, elsewhere a line now and then.

    `sweep` calls the methods `started`, `training` and `ended`.

    Args:
        quiet: show nothing.
        news: makes words of the rows that have just ended; by default of the last row.
    """

    def __init__(
        self, *, quiet: bool = False, news: Callable[[Sequence[Row]], str] | None = None
    ) -> None:
        self._news = news or _last
        self.quiet, self.terminal = quiet, sys.stderr.isatty() and not quiet
        self._bar: Any = None
        self._done = self._failed = 0

    def started(self, trials: Sequence[Trial], todo: Sequence[Trial]) -> None:
        self._total = len(todo)
        self._weights = {trial.id: weight(trial) for trial in todo}
        self._left = sum(self._weights.values())
        self._whole = self._left
        self._begin = self._last = time.monotonic()
        if len(todo) < len(trials):
            self._say(f"{len(trials) - len(todo):,} of {count(len(trials), 'trial')} done before")
        if self.terminal and todo:
            self._under_way = f"training {_subjects(todo)}, 0 of {count(len(todo), 'trial')} ended"
            self._bar = _bar()
            self._task = self._bar.add_task("", total=self._whole, state="starting workers")
            self._bar.start()

    def training(self) -> None:
        if self._bar is not None and not self._done:
            self._bar.update(self._task, state=self._under_way)

    def ended(self, rows: Sequence[Row]) -> None:
        self._done += len(rows)
        self._failed += len(failed_of(rows))
        news = self._news(rows)
        self._left -= sum(self._weights[row.id] for row in rows)
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(
                self._task, completed=self._whole - self._left, state=self._state(news)
            )
        elif now - self._last > INTERVAL or self._done == self._total:
            self._last = now
            self._say(self._state(news))

    def _state(self, news: str) -> str:
        passed = max(time.monotonic() - self._begin, 1e-9)
        left = passed * self._left / (self._whole - self._left)
        words = [
            f"{self._done:,} of {count(self._total, 'trial')}",
            f"{self._done / passed * 60:,.0f} a minute",
            f"{duration(left)} left",
        ]
        words += [f"{self._failed:,} failed"] * (self._failed > 0)
        return f"{', '.join(words)}; {news}"

    def _say(self, line: str) -> None:
        if not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    state = TextColumn("{task.fields[state]}", markup=False)
    columns = (BarColumn(bar_width=30), TimeElapsedColumn(), state)
    return Progress(*columns, console=Console(stderr=True))


def _subjects(trials: Sequence[Trial]) -> str:
    """What is trained, in a few words."""
    first, *more = dict.fromkeys(f"{trial.model} on {trial.data}" for trial in trials)
    return f"{first} and {count(len(more), 'other')}" if more else first


def _last(rows: Sequence[Row]) -> str:
    row = rows[-1]
    result = row.measure.text(row.error) if isinstance(row, Done) else row.reason
    return f"last: {row.trial.data} {row.trial.method.label} {result}"
