"""Every figure of the readings against k, as inline SVG with a caption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from kmixup.inspection import Inspection, Measured
from kmixup.inspection.readings import FIRST_IN_FIT
from kmixup.lab.figures.style import BLACK, BLUE, FAINT, ORANGE
from kmixup.lab.report.curves import k_axis, svg
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


@dataclass(frozen=True)
class Plot:
    """A drawing, its title, and how to read it."""

    title: str
    caption: str
    svg: Markup


Point = tuple[int, Measured]


def plots(found: Inspection) -> list[Plot]:
    """All that there are figures for."""
    drawn = (
        _distances(found),
        _alphas(found),
        _crossing(found),
        _halfway(found),
        _intrusion(found),
    )
    return [plot for plot in drawn if plot is not None]


def _distances(found: Inspection) -> Plot | None:
    points = [(one.k, one.ratio) for one in found.readings if one.ratio.value > 0]
    values = [100 * m.value for _, m in points]

    def draw(axes: Axes) -> None:
        _line(axes, points, "measured", BLUE, scale=100)
        axes.set_yscale("log")
        if found.decay is not None:
            fit = [(k, 100 * m.value) for k, m in points if k >= FIRST_IN_FIT]
            ks, heights = np.array(fit).T
            slope = found.decay.slope.value
            level = np.log(heights).mean() - slope * np.log(ks).mean()
            label = f"slope {slope:.2f}".replace("-", "−")
            axes.plot(
                ks, np.exp(level + slope * np.log(ks)), color=ORANGE, ls="dashed", label=label
            )
        _plain_log(axes, values)
        axes.set_ylabel("% of that of random pairs")

    nearer = "Mean squared distance of partners, in per cent of that of random pairs."
    caption = f"{nearer} {wording.dimension(found.decay)}"
    return _plot(found, "How near partners are", caption, draw)


def _alphas(found: Inspection) -> Plot | None:
    reached = [(one.k, one.alpha) for one in found.readings if one.reachable]
    beyond = [one.k for one in found.readings if not one.reachable]
    reach = [(one.k, one.reach) for one in found.readings if np.isfinite(one.reach)]

    def draw(axes: Axes) -> None:
        axes.plot(*zip(*reached, strict=True), color=BLUE, marker="o", ms=4.5, label="keeps xi")
        if reach:
            axes.plot(
                *zip(*reach, strict=True),
                color=ORANGE,
                ls="dashed",
                label="mixup’s alpha it can match",
            )
        axes.set_yscale("log")
        _plain_log(axes, [alpha for _, alpha in (*reached, *reach)])
        if beyond:
            axes.axvspan(
                beyond[0] / 2**0.5,
                beyond[-1] * 2**0.5,
                color=FAINT,
                alpha=0.35,
                lw=0,
                label=wording.OUT_OF_REACH,
            )
        axes.set_ylabel("alpha")

    usual = f"mixup with alpha = {found.alpha:g}"
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
    return _plot(
        found,
        "The alpha that keeps the strength",
        f"Perturbs samples as much as {usual} does. {told}",
        draw,
    )


def _crossing(found: Inspection) -> Plot | None:
    points = [(one.k, one.crossing) for one in found.readings if one.crossing is not None]
    least = [(one.k, 100 * one.least) for one in found.readings if one.least is not None]
    if not points:
        return None

    def draw(axes: Axes) -> None:
        _line(axes, points, "measured", BLUE, scale=100)
        axes.plot(*zip(*least, strict=True), color=ORANGE, ls="dashed", label="least")
        axes.axhline(100 * points[0][1].value, color=BLACK, ls="dotted", lw=1, label="chance")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("partners of another class, %")

    return _plot(
        found,
        "How often the label changes",
        CROSSING,
        draw,
    )


def _halfway(found: Inspection) -> Plot | None:
    points = [(one.k, one.halfway.distance) for one in found.readings if one.halfway is not None]
    if not points:
        return None

    def draw(axes: Axes) -> None:
        _line(axes, points, "half-way points", BLUE)
        axes.axhline(1, color=ORANGE, ls="dashed", label="samples")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("distance to other samples")

    return _plot(
        found,
        "How far mixed points lie from the data",
        HALFWAY,
        draw,
    )


def _intrusion(found: Inspection) -> Plot | None:
    seen = [(one.k, one.halfway) for one in found.readings if one.halfway is not None]
    points = [(k, half.contradiction) for k, half in seen if half.contradiction is not None]
    own = [(k, half.disagreement) for k, half in seen if half.disagreement is not None]
    if not points:
        return None

    def draw(axes: Axes) -> None:
        _line(axes, points, "half-way points", BLUE, scale=100)
        _line(axes, own, "samples", ORANGE, scale=100, marker="s", ls="dashed")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("next to the wrong class, %")

    return _plot(
        found,
        "How often mixed labels are contradicted",
        INTRUSION,
        draw,
    )


def _plot(found: Inspection, title: str, caption: str, draw: Callable[[Axes], None]) -> Plot:
    advice = found.advice

    def whole(axes: Axes) -> None:
        draw(axes)
        if advice.alpha:
            axes.axvline(advice.k, color="grey", lw=1, ls=(0, (4, 3)), label="advised k", zorder=1)
        k_axis(axes, [one.k for one in found.readings])

    name = "".join(word[0] for word in title.split())
    return Plot(title, caption, Markup(svg(whole, name, ncols=2)))


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
        [scale * m.value for _, m in points],
        yerr=[scale * m.error for _, m in points],
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
