"""What a run shows while it trains: a progress bar on a terminal, and curves on request."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kmixup.lab.evaluate.scores import PERCENT, Measure

INTERVAL = 0.1  # seconds between two updates of the bar


class Bar:
    """A progress bar with loss, error, rate and the time left.

    Attributes:
        epochs: number of epochs of the run.
        steps: number of steps of an epoch.
        shown: whether the bar is drawn; by default where standard error is a terminal.
    """

    def __init__(
        self,
        title: str,
        epochs: int,
        steps: int,
        shown: bool | None = None,
        *,
        measure: Measure = PERCENT,
    ) -> None:
        self.epochs, self.steps, self.measure = epochs, steps, measure
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._last = 0.0
        self._fields: dict[str, Any] = {"epoch": "", "loss": "–", "error": "–", "rate": "–"}
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description} {task.fields[epoch]}", markup=False),
                BarColumn(),
                TextColumn(f"loss {{task.fields[loss]}}  {measure.name} {{task.fields[error]}}"),
                TextColumn("rate {task.fields[rate]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._progress.add_task(title, total=epochs * steps, **self._fields)

    def step(self, epoch: int, step: int, rate: float, loss: float) -> None:
        """Show that `step` steps of the epoch, counted from 0, are done."""
        if self.shown and time.monotonic() - self._last > INTERVAL:
            self._show(epoch, step, rate, loss=f"{loss:.4f}")

    def scored(self, epoch: int, figures: Mapping[str, Any]) -> None:
        """Show the figures of an epoch that is over."""
        if self.shown:
            error, loss = self.measure.text(figures["error"]), f"{figures['loss']:.4f}"
            self._show(epoch, self.steps, figures["rate"], error=error, loss=loss)

    def _show(self, epoch: int, step: int, rate: float, **fields: str) -> None:
        self._last = time.monotonic()
        self._fields |= {"epoch": f"{epoch + 1}/{self.epochs}", "rate": f"{rate:g}", **fields}
        done = epoch * self.steps + step
        self._progress.update(self._task, completed=done, **self._fields)

    def __enter__(self) -> Bar:
        if self.shown:
            self._progress.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self.shown:
            self._progress.stop()


class Curves:
    """Figures of each epoch for TensorBoard, written to `folder`; None writes nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._writer: Any = None
        if folder is not None:
            self._writer = _summary_writer()(str(folder))

    def scored(self, epoch: int, figures: Mapping[str, Any]) -> None:
        if self._writer is not None:
            for name in ("loss", "error", "rate"):
                self._writer.add_scalar(name, figures[name], epoch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            'curves need TensorBoard, which is not installed: pip install "kmixup[tensorboard]"'
        ) from error
    return SummaryWriter


def check_curves() -> None:
    """Refuse to start a run whose curves could not be written."""
    _summary_writer()
