"""The readings of an inspection against k, as drawings of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from kmixup.inspection import Halfway, Inspection, Measured
from kmixup.inspection.readings import FIRST_IN_FIT
from kmixup.lab.pages.html import Drawing
from kmixup.lab.pages.style import BLACK, BLUE, FAINT, ORANGE, k_axis
from kmixup.lab.pages.svg import inline
from kmixup.lab.xray import wording

CROSSING = (
    "Share of partners of another class. Chance is that of random pairs; the least is what "
    "classes far apart have, because two sets rarely hold the same number of each class. The "
    "nearer to the least, the more do distances know of the classes."
)
HALFWAY = (
    "Distance from points half-way between partners to the nearest sample that had no part in "
    "them, as a multiple of what it is for samples. At 1 mixed points look like samples; far "
    "above they lie in voids."
)
INTRUSION = (
    "Share of half-way points whose nearest sample is of neither partner’s class (manifold "
    "intrusion), beside the share of samples whose nearest one is not of theirs."
)


Point = tuple[int, Measured]  # k, and what was measured there
Draw = Callable[[Axes], None]


def drawings(inspection: Inspection) -> list[Drawing]:
    """All drawings that there are readings for."""
    drawn = [_distances(inspection), _alphas(inspection)]
    if any(reading.crossing is not None for reading in inspection.readings):
        drawn.append(_crossing(inspection))
    if inspection.by_labels:
        drawn.append(_labels(inspection))
    halves = [(reading.k, reading.halfway) for reading in inspection.readings if reading.halfway]
    if halves:
        drawn.append(_halfway(inspection, halves))
    if any(half.contradiction is not None for _, half in halves):
        drawn.append(_intrusion(inspection, halves))
    return drawn


def _distances(inspection: Inspection) -> Drawing:
    points = _points((reading.k, reading.ratio) for reading in inspection.readings)
    points = [(k, ratio) for k, ratio in points if ratio.value > 0]

    def draw(axes: Axes) -> None:
        _line(axes, points, "measured", BLUE, scale=100)
        axes.set_yscale("log")
        if inspection.decay is not None:
            fit = [(k, 100 * ratio.value) for k, ratio in points if k >= FIRST_IN_FIT]
            ks, heights = np.array(fit).T
            slope = inspection.decay.slope.value
            level = np.log(heights).mean() - slope * np.log(ks).mean()
            label = f"slope {slope:.2f}".replace("-", "−")
            heights = np.exp(level + slope * np.log(ks))
            axes.plot(ks, heights, color=ORANGE, ls="dashed", label=label)
        _plain_log(axes, [100 * ratio.value for _, ratio in points])
        axes.set_ylabel("% of that of random pairs")

    nearer = "Mean squared distance of partners, in per cent of that of random pairs."
    note = f"{nearer} {wording.dimension(inspection.decay)}"
    return _drawing(inspection, "How near partners are", note, draw)


def _alphas(inspection: Inspection) -> Drawing:
    readings = inspection.readings
    reached = [(reading.k, reading.alpha) for reading in readings if reading.reachable]
    beyond = [reading.k for reading in readings if not reading.reachable]
    reach = [(reading.k, reading.reach) for reading in readings if np.isfinite(reading.reach)]

    def draw(axes: Axes) -> None:
        axes.plot(*zip(*reached, strict=True), color=BLUE, marker="o", ms=4.5, label="keeps xi")
        if reach:
            label = "mixup’s alpha it can match"
            axes.plot(*zip(*reach, strict=True), color=ORANGE, ls="dashed", label=label)
        axes.set_yscale("log")
        _plain_log(axes, [alpha for _, alpha in (*reached, *reach)])
        if beyond:
            axes.axvspan(
                beyond[0] / 2**0.5, beyond[-1] * 2**0.5, color=FAINT, alpha=0.35, lw=0,
                label=wording.OUT_OF_REACH,
            )  # fmt: skip
        axes.set_ylabel("alpha")

    usual = f"mixup with alpha = {inspection.alpha:g}"
    if beyond:
        told = (
            f"From k = {beyond[0]} on partners are so near that no alpha does; the dashed line is "
            "the strongest mixup that can be matched there."
        )
    else:
        told = (
            "Some alpha does at every k that was looked at; the dashed line is the strongest "
            "mixup that can be matched."
        )
    note = f"Perturbs samples as much as {usual} does. {told}"
    return _drawing(inspection, "The alpha that keeps the strength", note, draw)


def _crossing(inspection: Inspection) -> Drawing:
    readings = inspection.readings
    points = _points((reading.k, reading.crossing) for reading in readings)
    least = [(reading.k, 100 * reading.least) for reading in readings if reading.least is not None]

    def draw(axes: Axes) -> None:
        _line(axes, points, "measured", BLUE, scale=100)
        axes.plot(*zip(*least, strict=True), color=ORANGE, ls="dashed", label="least")
        axes.axhline(100 * points[0][1].value, color=BLACK, ls="dotted", lw=1, label="chance")
        _from_zero(axes, "partners of another class, %")

    return _drawing(inspection, "How often the label changes", CROSSING, draw)


def _labels(inspection: Inspection) -> Drawing:
    readings = inspection.by_labels

    def draw(axes: Axes) -> None:
        weights = [reading.labels for reading in readings]
        for label, colour, values in (
            ("partners of another class", BLUE, [reading.crossing for reading in readings]),
            ("squared distance, of random pairs", ORANGE, [reading.ratio for reading in readings]),
        ):
            axes.errorbar(
                weights,
                [100 * value.value for value in values],
                yerr=[100 * value.error for value in values],
                label=label, color=colour, marker="o", ms=4.5, lw=1.4, capsize=2.5,
            )  # fmt: skip
        axes.set_xlabel("labels = c")
        _from_zero(axes, "%")

    note = wording.by_labels(inspection)
    return Drawing("If the match looks at labels", inline(draw, "labels", ncols=1), note)


def _halfway(inspection: Inspection, halves: Sequence[tuple[int, Halfway]]) -> Drawing:
    def draw(axes: Axes) -> None:
        points = _points((k, half.distance) for k, half in halves)
        _line(axes, points, "half-way points", BLUE)
        axes.axhline(1, color=ORANGE, ls="dashed", label="samples")
        _from_zero(axes, "distance to other samples")

    return _drawing(inspection, "How far mixed points lie from the data", HALFWAY, draw)


def _intrusion(inspection: Inspection, halves: Sequence[tuple[int, Halfway]]) -> Drawing:
    def draw(axes: Axes) -> None:
        points = _points((k, half.contradiction) for k, half in halves)
        own = _points((k, half.disagreement) for k, half in halves)
        _line(axes, points, "half-way points", BLUE, scale=100)
        _line(axes, own, "samples", ORANGE, scale=100, marker="s", ls="dashed")
        _from_zero(axes, "next to the wrong class, %")

    return _drawing(inspection, "How often mixed labels are contradicted", INTRUSION, draw)


def _points(measured: Iterable[tuple[int, Measured | None]]) -> list[Point]:
    return [(k, value) for k, value in measured if value is not None]


def _from_zero(axes: Axes, ylabel: str) -> None:
    axes.set_ylim(bottom=0)
    axes.set_ylabel(ylabel)


def _drawing(inspection: Inspection, title: str, note: str, draw: Draw) -> Drawing:
    def whole(axes: Axes) -> None:
        draw(axes)
        k_axis(axes, [reading.k for reading in inspection.readings])

    name = "".join(word[0] for word in title.split())
    return Drawing(title, inline(whole, name, ncols=2), note)


def _line(
    axes: Axes,
    points: Sequence[Point],
    label: str,
    colour: str,
    *,
    scale: float = 1,
    marker: str = "o",
    ls: str = "solid",
) -> None:
    """Points with error bars of one standard error."""
    axes.errorbar(
        [k for k, _ in points],
        [scale * measured.value for _, measured in points],
        yerr=[scale * measured.error for _, measured in points],
        label=label, color=colour, marker=marker, ls=ls, ms=4.5, lw=1.4, capsize=2.5,
    )  # fmt: skip


def _plain_log(axes: Axes, values: Sequence[float]) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10 and so on, or every power of 10 if it is long."""
    low, high = min(values) / 1.15, max(values) * 1.15
    ticks = list(_ticks(low, high))
    axes.set_ylim(min(low, ticks[0]) if ticks else low, high)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())


def _ticks(low: float, high: float) -> Iterator[float]:
    steps = (1, 2, 5) if high / low < 1e3 else (1,)
    for power in range(-6, 7):
        for step in steps:
            if low <= step * 10.0**power <= high:
                yield step * 10.0**power
