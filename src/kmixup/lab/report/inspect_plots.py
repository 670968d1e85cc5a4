"""Plots and pictures of `kmixup inspect`: readings against k, couplings, example pairs."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from PIL import Image
from torch import Tensor

from kmixup.inspection import Inspection, Measured
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


Value = Measured | float | None
COLOURS, DASHES = (BLUE, ORANGE, BLACK), ("solid", "dashed", "dotted")


@dataclass(frozen=True)
class Plot:
    """Readings against k, or against another number `x`, with error bars of one standard error."""

    title: str
    ylabel: str
    lines: Mapping[str, Callable[[Any], Value]]  # the value of a reading by the line's label
    note: str = ""
    scale: float = 1.0
    log: bool = False
    x: str = "k"


PLOTS = (
    Plot(
        "Distance of partners",
        "% of that of random pairs",
        {"measured": lambda reading: reading.ratio if reading.ratio.value > 0 else None},
        "Mean squared distance of partners, in per cent of that of random pairs. {decay}",
        scale=100,
        log=True,
    ),
    Plot(
        "The alpha that keeps the strength",
        "alpha",
        {
            "keeps xi": lambda reading: reading.alpha if reading.reachable else None,
            "mixup’s alpha it can match": lambda reading: reading.reach,
        },
        "The alpha that perturbs samples as much as mixup with alpha = {alpha:g}, as far as there "
        "is one. The dashed line is the strongest mixup that can be matched.",
        log=True,
    ),
    Plot(
        "Partners of another class",
        "partners of another class, %",
        {"measured": lambda reading: reading.crossing, "least": lambda reading: reading.least},
        "At k = 1 pairs are random. The least is that of classes far apart, because two sets "
        "rarely hold the same number of each class. The closer to the least, the better distances "
        "separate the classes.",
        scale=100,
    ),
    Plot(
        "Distance of mixed points from the data",
        "distance to other samples",
        {
            "half-way points": lambda reading: reading.halfway and reading.halfway.distance,
            "samples": lambda reading: reading.halfway and 1.0,
        },
        "Distance from points half-way between partners to the nearest other sample, as a multiple "
        "of that between samples. At 1 mixed points look like samples; far above, they lie in "
        "empty space.",
    ),
    Plot(
        "Manifold intrusion",
        "next to the wrong class, %",
        {
            "half-way points": lambda reading: reading.halfway and reading.halfway.contradiction,
            "samples": lambda reading: reading.halfway and reading.halfway.disagreement,
        },
        "Share of half-way points whose nearest sample is of neither partner’s class (manifold "
        "intrusion), beside the share of samples whose nearest sample is of another class.",
        scale=100,
    ),
)
BY_LABELS = Plot(
    "Matching with a cost of labels",
    "%",
    {
        "another class": lambda reading: reading.crossing,
        "squared distance": lambda reading: reading.ratio,
    },
    "Partners of another class, and their squared distance in per cent of that of random pairs.",
    scale=100,
    x="labels",
)


def figures(inspection: Inspection, decay: str) -> list[doc.Figure]:
    """All plots that there are readings for; `decay` describes how distances fall."""
    shown = [(plot, _points(plot, inspection.readings)) for plot in PLOTS]
    shown.append((BY_LABELS, _points(BY_LABELS, inspection.by_labels)))
    return [
        doc.Figure(
            plot.title,
            partial(_draw, plot, lines),
            plot.note.format(decay=decay, alpha=inspection.alpha),
            legend=2,
        )
        for plot, lines in shown
        if all(lines.values())
    ]


Points = list[tuple[float, Measured]]


def _points(plot: Plot, readings: Iterable[object]) -> dict[str, Points]:
    lines: dict[str, Points] = {label: [] for label in plot.lines}
    for reading in readings:
        for label, get in plot.lines.items():
            value = get(reading)
            measured = value if isinstance(value, Measured | None) else Measured(value, 0.0)
            if measured is not None and np.isfinite(measured.value):
                lines[label].append((getattr(reading, plot.x), measured))
    return lines


def _draw(plot: Plot, lines: Mapping[str, Points], axes: Axes) -> None:
    for (label, points), colour, dash in zip(lines.items(), COLOURS, DASHES, strict=False):
        axes.errorbar(
            [x for x, _ in points],
            [plot.scale * value.value for _, value in points],
            yerr=[plot.scale * value.error for _, value in points],
            label=label, color=colour, ls=dash, marker="o", ms=4.5, lw=1.4, capsize=2.5,
        )  # fmt: skip
    if plot.x == "k":
        k_axis(axes, sorted({k for points in lines.values() for k, _ in points}))
    else:
        axes.set_xlabel(f"{plot.x} = c")
    if plot.log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(plot.ylabel)


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
