"""What a run shows while it trains: a progress bar, and TensorBoard curves on request."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kmixup.lab.checks import SettingError
from kmixup.lab.evaluate.scores import Measure


class Progress:
    """A progress bar with loss, test error, learning rate and the time left, and curves.

    The bar is `shown` by default if standard error is a terminal, `curves` are written into a
    folder for TensorBoard.
    """

    def __init__(
        self, title: str, epochs: int, measure: Measure, *, shown: bool | None, curves: Path | None
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.title, self.epochs, self.measure, self._error = title, epochs, measure, "–"
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._writer = None if curves is None else summary_writer()(str(curves))
        columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn()
        self._bar = Progress(*columns, console=Console(stderr=True), disable=not self.shown)
        self._task = self._bar.add_task(title, total=epochs)

    def step(self, epochs: float, rate: float, loss: float) -> None:
        """Show how many epochs are done, e.g. 1.5."""
        if self.shown:
            text = f"{self.title} {math.ceil(epochs)}/{self.epochs}  loss {loss:.4f}  "
            text += f"{self.measure.name} {self._error}  rate {rate:g}"
            self._bar.update(self._task, completed=epochs, description=text)

    def epoch(self, entry: Mapping[str, Any]) -> None:
        """Show the entry of a tested epoch in the history, and add it to the curves."""
        self._error = self.measure.text(entry["error"])
        self.step(entry["epoch"], entry["rate"], entry["loss"])
        if self._writer is not None:
            for name in ("loss", "error", "rate"):
                self._writer.add_scalar(name, entry[name], entry["epoch"])

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.stop()
        if self._writer is not None:
            self._writer.close()


def summary_writer() -> Any:
    """Return TensorBoard's writer class; raise if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise SettingError(
            "tensorboard",
            'needs TensorBoard, which is not installed: pip install "kmixup[tensorboard]"',
        ) from error
    return SummaryWriter
