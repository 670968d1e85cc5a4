"""Plots and pictures of `kmixup inspect`: readings against k, couplings, example pairs."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence

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
from kmixup.lab.figures.clouds import SIZE, Cloud, class_handles
from kmixup.lab.figures.couplings import PAIRS, coupling, vicinal
from kmixup.lab.inspection import DataInspection
from kmixup.lab.plotting import BLACK, BLUE, FAINT, ORANGE, k_axis, panels, png, styled
from kmixup.lab.report import document as doc
from kmixup.matching import match

NAMED = 20  # classes in a legend
MIXED = 512  # points
PICTURES, TABLES = 6, 4  # examples of each kind
FEATURES = 6  # rows of an example in numbers
PIXELS = 96  # of the longer side of a picture
Point = tuple[float, Measured]  # k, and what was measured there


def figures(inspection: Inspection, decay: str) -> list[doc.Figure]:
    """All plots that there are readings for; `decay` describes how distances fall."""
    drawn = [_distances(inspection, decay), _alphas(inspection)]
    if any(reading.crossing is not None for reading in inspection.readings):
        drawn.append(_crossing(inspection))
    if inspection.by_labels:
        drawn.append(_labels(inspection))
    halves = [(reading.k, reading.halfway) for reading in inspection.readings if reading.halfway]
    if halves:
        drawn.append(_halfway(halves))
    if any(half.contradiction is not None for _, half in halves):
        drawn.append(_intrusion(halves))
    return drawn


def _distances(inspection: Inspection, decay: str) -> doc.Figure:
    points = [(r.k, r.ratio) for r in inspection.readings if r.ratio and r.ratio.value > 0]

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
        k_axis(axes, [k for k, _ in points])

    note = f"Mean squared distance of partners, in per cent of that of random pairs. {decay}"
    return doc.Figure("Distance of partners", draw, note, legend=2)


def _alphas(inspection: Inspection) -> doc.Figure:
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
            span = beyond[0] / 2**0.5, beyond[-1] * 2**0.5
            axes.axvspan(*span, color=FAINT, alpha=0.35, lw=0, label="out of reach")
        axes.set_ylabel("alpha")
        k_axis(axes, [reading.k for reading in readings])

    note = (
        f"The alpha that perturbs samples as much as mixup with alpha = {inspection.alpha:g}. The "
        "dashed line is the strongest mixup that can be matched."
    )
    if beyond:
        note += f" From k = {beyond[0]} on, partners are too close for any alpha."
    return doc.Figure("The alpha that keeps the strength", draw, note, legend=2)


def _crossing(inspection: Inspection) -> doc.Figure:
    points = _points((reading.k, reading.crossing) for reading in inspection.readings)
    least = [(r.k, 100 * r.least) for r in inspection.readings if r.least is not None]

    def draw(axes: Axes) -> None:
        _line(axes, points, "measured", BLUE, scale=100)
        axes.plot(*zip(*least, strict=True), color=ORANGE, ls="dashed", label="least")
        random = 100 * points[0][1].value
        axes.axhline(random, color=BLACK, ls="dotted", lw=1, label="random pairs")
        _from_zero(axes, "partners of another class, %", points)

    note = (
        "Share of partners of another class. The least is that of classes far apart, because two "
        "sets rarely hold the same number of each class. The closer to the least, the better "
        "distances separate the classes."
    )
    return doc.Figure("Partners of another class", draw, note, legend=2)


def _labels(inspection: Inspection) -> doc.Figure:
    readings = inspection.by_labels

    def draw(axes: Axes) -> None:
        for label, colour, name in (
            ("partners of another class", BLUE, "crossing"),
            ("squared distance, of random pairs", ORANGE, "ratio"),
        ):
            points = [(reading.labels, getattr(reading, name)) for reading in readings]
            _line(axes, points, label, colour, scale=100)
        axes.set(xlabel="labels = c", ylabel="%")
        axes.set_ylim(bottom=0)

    return doc.Figure("Matching with a cost of labels", draw, legend=1)


def _halfway(halves: Sequence[tuple[int, Halfway]]) -> doc.Figure:
    def draw(axes: Axes) -> None:
        points = _points((k, half.distance) for k, half in halves)
        _line(axes, points, "half-way points", BLUE)
        axes.axhline(1, color=ORANGE, ls="dashed", label="samples")
        _from_zero(axes, "distance to other samples", points)

    note = (
        "Distance from points half-way between partners to the nearest other sample, as a multiple "
        "of that between samples. At 1 mixed points look like samples; far above, they lie in "
        "empty space."
    )
    return doc.Figure("Distance of mixed points from the data", draw, note, legend=2)


def _intrusion(halves: Sequence[tuple[int, Halfway]]) -> doc.Figure:
    def draw(axes: Axes) -> None:
        points = _points((k, half.contradiction) for k, half in halves)
        own = _points((k, half.disagreement) for k, half in halves)
        _line(axes, points, "half-way points", BLUE, scale=100)
        _line(axes, own, "samples", ORANGE, scale=100, marker="s", ls="dashed")
        _from_zero(axes, "next to the wrong class, %", points)

    note = (
        "Share of half-way points whose nearest sample is of neither partner’s class (manifold "
        "intrusion), beside the share of samples whose nearest sample is of another class."
    )
    return doc.Figure("Manifold intrusion", draw, note, legend=2)


def _points(measured: Iterable[tuple[int, Measured | None]]) -> list[Point]:
    return [(k, value) for k, value in measured if value is not None]


def _from_zero(axes: Axes, ylabel: str, points: Sequence[Point]) -> None:
    axes.set_ylim(bottom=0)
    axes.set_ylabel(ylabel)
    k_axis(axes, [k for k, _ in points])


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
        [x for x, _ in points],
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
            names = [data.data.classes[int(name)].replace("$", r"\$") for name in cloud.classes]
            handles += class_handles(names)
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def examples(data: DataInspection) -> list[doc.ReportTable | doc.Images]:
    """Some samples, each with its partner at every k that is compared, as tables or pictures."""
    x = data.data.x_train
    images = x.dim() == 4 and x.shape[1] in (1, 3)
    firsts, partners = _matched(data, PICTURES if images else TABLES)
    shown = _in_pictures if images else _in_numbers
    return [
        shown(data, first, {k: second[i] for k, second in partners.items()})
        for i, first in enumerate(firsts)
    ]


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


def _in_numbers(data: DataInspection, first: int, mates: dict[int, int]) -> doc.ReportTable:
    """The features in which the sample and its partners differ most, in raw units."""
    gaps = data.points[list(mates.values())] - data.points[first]
    gap = gaps.abs().amax(0)
    most = [j for j in gap.argsort(descending=True, stable=True)[:FEATURES].tolist() if gap[j] > 0]
    names = data.data.columns or [f"feature {j + 1}" for j in range(len(gap))]
    shown = [first, *mates.values()]
    raw = data.data.x_train[data.drawn[shown]].flatten(1)
    rows = [["class", *map(data.class_name, shown)]]
    rows += [[names[j], *(f"{float(value):.4g}" for value in raw[:, j])] for j in sorted(most)]
    distances = gaps.double().norm(dim=1).tolist()
    rows.append(["distance", "", *(f"{distance:.3g}" for distance in distances)])
    return doc.ReportTable(["", "sample", *(f"k = {k}" for k in mates)], rows, numeric=True)


def _in_pictures(data: DataInspection, first: int, mates: dict[int, int]) -> doc.Images:
    pixels = data.data.x_train
    low, high = data.data.pixel_range or (float(pixels.min()), float(pixels.max()))

    def image(title: str, picture: Tensor) -> doc.Image:
        scaled = ((picture.double() - low) / (high - low) * 255).round().byte()
        return doc.Image(title, lambda: _png(scaled))

    sample = pixels[data.drawn[first]]
    images = [image(data.class_name(first), sample)]
    for k, i in mates.items():
        partner = pixels[data.drawn[i]]
        images.append(image(f"k = {k}: {data.class_name(i)}", partner))
        images.append(image("half-way", (sample.double() + partner.double()) / 2))
    return doc.Images(images, style="pair")


def _png(pixels: Tensor) -> bytes:
    """A picture `(1 or 3, height, width)` of bytes as a PNG file."""
    values = pixels.numpy()
    image = Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))
    image.thumbnail((PIXELS, PIXELS))
    stream = io.BytesIO()
    image.save(stream, format="png", optimize=True)
    return stream.getvalue()
