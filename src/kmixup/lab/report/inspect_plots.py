"""Plots and pictures of `kmixup inspect`: readings against k, couplings, example pairs."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from PIL import Image
from torch import Tensor

from kmixup.inspection import Halfway, Inspection, Measured
from kmixup.inspection.readings import FIRST_IN_FIT
from kmixup.lab.figures.clouds import SIZE, Cloud
from kmixup.lab.figures.couplings import PAIRS, coupling, vicinal
from kmixup.lab.inspection import DataInspection
from kmixup.lab.plotting import (
    BLACK,
    BLUE,
    COLOURS,
    FAINT,
    MARKERS,
    ORANGE,
    k_axis,
    panels,
    png,
    styled,
)
from kmixup.lab.report.document import Figure
from kmixup.matching import match

NAMED = 20  # classes in a legend
MIXED = 512  # points
PICTURES, TABLES = 6, 4  # examples of each kind
FEATURES = 6  # rows of an example in numbers
PIXELS = 96  # of the longer side of a picture
Point = tuple[int, Measured]  # k, and what was measured there
Draw = Callable[[Axes], None]


def figures(inspection: Inspection, decay: str) -> list[Figure]:
    """All plots that there are readings for; `decay` describes how distances fall."""
    drawn = [_distances(inspection, decay), _alphas(inspection)]
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


def _distances(inspection: Inspection, decay: str) -> Figure:
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

    note = f"Mean squared distance of partners, in per cent of that of random pairs. {decay}"
    return _figure(inspection, "Distance of partners", note, draw)


def _alphas(inspection: Inspection) -> Figure:
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
                label="out of reach",
            )  # fmt: skip
        axes.set_ylabel("alpha")

    note = (
        f"The alpha that perturbs samples as much as mixup with alpha = {inspection.alpha:g}. The "
        "dashed line is the strongest mixup that can be matched."
    )
    if beyond:
        note += f" From k = {beyond[0]} on, partners are too close for any alpha."
    return _figure(inspection, "The alpha that keeps the strength", note, draw)


def _crossing(inspection: Inspection) -> Figure:
    readings = inspection.readings
    points = _points((reading.k, reading.crossing) for reading in readings)
    least = [(reading.k, 100 * reading.least) for reading in readings if reading.least is not None]

    def draw(axes: Axes) -> None:
        _line(axes, points, "measured", BLUE, scale=100)
        axes.plot(*zip(*least, strict=True), color=ORANGE, ls="dashed", label="least")
        axes.axhline(100 * points[0][1].value, color=BLACK, ls="dotted", lw=1, label="chance")
        _from_zero(axes, "partners of another class, %")

    note = (
        "Share of partners of another class. Chance is that of random pairs; the least is that of "
        "classes far apart, because two sets rarely hold the same number of each class. The closer "
        "to the least, the better distances separate the classes."
    )
    return _figure(inspection, "Partners of another class", note, draw)


def _labels(inspection: Inspection) -> Figure:
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

    return Figure("Matching with a cost of labels", draw, legend=1)


def _halfway(inspection: Inspection, halves: Sequence[tuple[int, Halfway]]) -> Figure:
    def draw(axes: Axes) -> None:
        points = _points((k, half.distance) for k, half in halves)
        _line(axes, points, "half-way points", BLUE)
        axes.axhline(1, color=ORANGE, ls="dashed", label="samples")
        _from_zero(axes, "distance to other samples")

    note = (
        "Distance from points half-way between partners to the nearest other sample, as a multiple "
        "of that between samples. At 1 mixed points look like samples; far above, they lie in "
        "empty space."
    )
    return _figure(inspection, "Distance of mixed points from the data", note, draw)


def _intrusion(inspection: Inspection, halves: Sequence[tuple[int, Halfway]]) -> Figure:
    def draw(axes: Axes) -> None:
        points = _points((k, half.contradiction) for k, half in halves)
        own = _points((k, half.disagreement) for k, half in halves)
        _line(axes, points, "half-way points", BLUE, scale=100)
        _line(axes, own, "samples", ORANGE, scale=100, marker="s", ls="dashed")
        _from_zero(axes, "next to the wrong class, %")

    note = (
        "Share of half-way points whose nearest sample is of neither partner’s class (manifold "
        "intrusion), beside the share of samples whose nearest sample is of another class."
    )
    return _figure(inspection, "Manifold intrusion", note, draw)


def _points(measured: Iterable[tuple[int, Measured | None]]) -> list[Point]:
    return [(k, value) for k, value in measured if value is not None]


def _from_zero(axes: Axes, ylabel: str) -> None:
    axes.set_ylim(bottom=0)
    axes.set_ylabel(ylabel)


def _figure(inspection: Inspection, title: str, note: str, draw: Draw) -> Figure:
    def whole(axes: Axes) -> None:
        draw(axes)
        k_axis(axes, [reading.k for reading in inspection.readings])

    return Figure(title, whole, note, legend=2)


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


def couplings(data: DataInspection) -> tuple[Callable[[], bytes], str]:
    """A picture of matched pairs and mixed points for every k, and how points were projected."""
    generator = torch.Generator().manual_seed(data.seed)
    some = torch.randperm(len(data.points), generator=generator)[:SIZE]
    cloud = Cloud.of("", data.points[some].double().numpy(), data.labels[some].numpy())
    return lambda: png(_couplings(data, cloud)), cloud.note


@styled
def _couplings(data: DataInspection, cloud: Cloud) -> MatplotlibFigure:
    alpha = data.inspection.alpha
    figure, grid = panels(2, len(data.compared), size=(3.0, 3.1))
    for k, (upper, lower) in zip(data.compared, grid.T, strict=True):
        block = cloud.block(min(k, PAIRS))
        coupling(upper, cloud, block, data.seed)
        vicinal(lower, cloud, block, alpha, MIXED, data.seed)
        upper.set_title(f"pairs, k = {block}")
        lower.set_title(f"mixed points, k = {block}, alpha = {alpha:.3g}")
    handles = [Line2D([], [], color=FAINT, label="same class")]
    if data.labelled:
        handles.append(Line2D([], [], color=BLACK, ls="dashed", label="different classes"))
        if len(cloud.classes) <= NAMED:
            handles += [
                Line2D(
                    [], [], ls="none", marker=MARKERS[i % len(MARKERS)],
                    color=COLOURS[i % len(COLOURS)], markeredgecolor=BLACK, markeredgewidth=0.4,
                    label=data.data.classes[int(name)].replace("$", r"\$"),
                )
                for i, name in enumerate(cloud.classes)
            ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


@dataclass(frozen=True)
class Mate:
    """The partner of a sample at one k, shown by pictures or by values.

    Attributes:
        k: of the matching.
        label: its class.
        distance: from the sample to it.
        picture: the partner as a PNG file, empty if it is no image.
        halfway: the point half-way between both, likewise.
        values: some of its features, empty if it is an image.
    """

    k: int
    label: str
    distance: float
    picture: bytes = b""
    halfway: bytes = b""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A sample and its partners.

    Attributes:
        label: the class of the sample.
        mates: its partners.
        picture: the sample as a PNG file, empty if it is no image.
        features: names of the features in `values`.
        values: some of its features, empty if it is an image.
    """

    label: str
    mates: tuple[Mate, ...]
    picture: bytes = b""
    features: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def examples(data: DataInspection) -> list[Example]:
    """Some samples, each with its partner at every k that is compared."""
    x = data.data.x_train
    images = x.dim() == 4 and x.shape[1] in (1, 3)
    wanted = PICTURES if images else TABLES
    firsts, partners = _matched(data, wanted)
    shown = []
    for i, first in enumerate(firsts):
        mates = {k: second[i] for k, second in partners.items()}
        shown.append(
            _in_pictures(data, first, mates) if images else _in_numbers(data, first, mates)
        )
    return shown


def _matched(data: DataInspection, wanted: int) -> tuple[list[int], dict[int, list[int]]]:
    """Some samples, and their partners at every k, all from the same second set."""
    n, largest = len(data.points), max(data.compared)
    half = min(n // 2, -(-wanted // largest) * largest)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(data.seed))
    first, second = order[:half], order[half : 2 * half]
    partners = {
        k: second[match(data.points[first], data.points[second], k=k)][:wanted].tolist()
        for k in data.compared
    }
    return first[:wanted].tolist(), partners


def _distance(data: DataInspection, first: int, second: int) -> float:
    return float((data.points[first] - data.points[second]).double().norm())


def _in_numbers(data: DataInspection, first: int, mates: dict[int, int]) -> Example:
    """The features in which the sample and its partners differ most, in raw units."""
    gap = (data.points[list(mates.values())] - data.points[first]).abs().amax(0)
    most = [j for j in gap.argsort(descending=True, stable=True)[:FEATURES].tolist() if gap[j] > 0]
    most.sort()

    def values(i: int) -> tuple[str, ...]:
        raw = data.data.x_train[data.drawn[i]].flatten()
        return tuple(f"{float(raw[j]):.4g}" for j in most)

    names = data.data.columns or [f"feature {j + 1}" for j in range(len(gap))]
    return Example(
        data.class_name(first),
        tuple(
            Mate(k, data.class_name(i), _distance(data, first, i), values=values(i))
            for k, i in mates.items()
        ),
        features=tuple(names[j] for j in most),
        values=values(first),
    )


def _in_pictures(data: DataInspection, first: int, mates: dict[int, int]) -> Example:
    images = data.data.x_train
    low, high = data.data.pixel_range or (float(images.min()), float(images.max()))

    def picture(pixels: Tensor) -> bytes:
        return _png(((pixels.double() - low) / (high - low) * 255).round().byte())

    sample = images[data.drawn[first]]
    partners = []
    for k, i in mates.items():
        partner = images[data.drawn[i]]
        halfway = picture((sample.double() + partner.double()) / 2)
        distance = _distance(data, first, i)
        partners.append(Mate(k, data.class_name(i), distance, picture(partner), halfway))
    return Example(data.class_name(first), tuple(partners), picture=picture(sample))


def _png(pixels: Tensor) -> bytes:
    """A picture `(1 or 3, height, width)` of bytes as a PNG file."""
    values = pixels.numpy()
    image = Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))
    image.thumbnail((PIXELS, PIXELS))
    stream = io.BytesIO()
    image.save(stream, format="png", optimize=True)
    return stream.getvalue()
