"""Curves of a report as inline drawings: error against k or alpha, and the course of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from kmixup.lab.pages.style import BLACK, DASHES, k_axis, shade
from kmixup.lab.pages.svg import inline
from kmixup.lab.report.grids import Cell

MARKERS = "osD^vPX*"  # of lines: neighbours differ most


@dataclass(frozen=True)
class Curve:
    """One line of a drawing.

    Attributes:
        label: its name in the legend.
        x: where its points are.
        y: how high its points are.
        errors: the heights of its error bars, empty for none.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    errors: tuple[float, ...] = ()

    @property
    def top(self) -> float:
        """The greatest height with its error bar, 0 without points."""
        return max((y + e for y, e in zip_longest(self.y, self.errors, fillvalue=0.0)), default=0.0)


def against_k(
    curves: Sequence[Curve],
    *,
    name: str,
    top: float | None = None,
    erm: float | None = None,
    ylabel: str = "error in per cent",
) -> Markup:
    """Error against k, with a line for that of ERM, which has no k.

    The same `top` makes the axes of several drawings equal.
    """

    def draw(axes: Axes) -> None:
        if erm is not None:
            axes.axhline(erm, color=BLACK, ls="dashed", linewidth=1.2, label="ERM")
        _with_bars(axes, curves)
        k_axis(axes, sorted({k for curve in curves for k in curve.x}))
        axes.set_ylim(0, top)
        axes.set_ylabel(ylabel)

    return inline(draw, name, ncols=3)


def against_alpha(
    curves: Sequence[Curve], *, name: str, ylabel: str = "error in per cent"
) -> Markup:
    """Error against alpha on a logarithmic scale."""

    def draw(axes: Axes) -> None:
        _with_bars(axes, curves)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(bottom=0)
        axes.set(xlabel="alpha", ylabel=ylabel)

    return inline(draw, name, ncols=3)


def _with_bars(axes: Axes, curves: Sequence[Curve]) -> None:
    for i, curve in enumerate(curves):
        axes.errorbar(
            curve.x,
            curve.y,
            yerr=curve.errors if any(curve.errors) else None,
            label=curve.label,
            color=shade(i, len(curves)),
            marker=MARKERS[i % len(MARKERS)],
            markersize=4.5,
            linewidth=1.4,
            capsize=2.5,
        )


def training(curves: Sequence[Curve], *, ylabel: str, name: str) -> Markup:
    """A figure of every epoch, one line for each method."""

    def draw(axes: Axes) -> None:
        for i, curve in enumerate(curves):
            colour, dash = shade(i, len(curves)), DASHES[:4][i % 4]
            axes.plot(curve.x, curve.y, label=curve.label, color=colour, ls=dash, linewidth=1.6)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="epoch", ylabel=ylabel)

    return inline(draw, name, ncols=2)


def course(cell: Cell, label: str, figure: str) -> Curve | None:
    """The mean over trials of a stored curve, "loss" or "error", at epochs that all have."""
    stored = [row.curve for row in cell.done]
    if not stored:
        return None
    trials = [dict(zip(curve.epoch, getattr(curve, figure), strict=True)) for curve in stored]
    epochs = sorted(set.intersection(*map(set, trials)))
    scale = cell.unit.factor if figure == "error" else 1
    means = tuple(scale * fmean(trial[epoch] for trial in trials) for epoch in epochs)
    return Curve(label, tuple(epochs), means)
