"""The progress bar of a run."""

from __future__ import annotations

import math
import sys

from kmixup.lab.evaluate.scores import Measure


class Progress:
    """A progress bar with loss, test error, learning rate and the time left.

    It is `shown` by default if standard error is a terminal.
    """

    def __init__(self, title: str, epochs: int, measure: Measure, *, shown: bool | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.title, self.epochs, self.measure, self._error = title, epochs, measure, "–"
        self.shown = sys.stderr.isatty() if shown is None else shown
        columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn()
        self._bar = Progress(*columns, console=Console(stderr=True), disable=not self.shown)
        self._task = self._bar.add_task(title, total=epochs)

    def step(self, epochs: float, rate: float, loss: float, error: float | None = None) -> None:
        """Show how many epochs are done, e.g. 1.5, and a new test error if there is one."""
        if error is not None:
            self._error = self.measure.text(error)
        if self.shown:
            text = f"{self.title} {math.ceil(epochs)}/{self.epochs}  loss {loss:.4f}  "
            text += f"{self.measure.name} {self._error}  rate {rate:g}"
            self._bar.update(self._task, completed=epochs, description=text)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.stop()
