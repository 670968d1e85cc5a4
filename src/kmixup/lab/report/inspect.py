"""The report of `kmixup inspect`: what k and alpha do to a data set, before any training."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from PIL import Image
from torch import Tensor

from kmixup.inspection import DistanceDecay, Inspection, Measured, Reading, readings
from kmixup.lab.figures.clouds import SIZE, Cloud, class_handles
from kmixup.lab.figures.couplings import PAIRS, coupling, vicinal
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, measured, percent
from kmixup.lab.inspection import DataInspection
from kmixup.lab.plotting import BLACK, BLUE, FAINT, ORANGE, k_axis, panels, png, styled
from kmixup.lab.report import document as doc
from kmixup.lab.report.render_html import html
from kmixup.lab.train.record import versions
from kmixup.matching import match

LISTED = 12  # classes by name
MANY = 100  # dimensions that cannot be distinguished from more
NAMED = 20  # classes in a legend
MIXED = 512  # points
PICTURES, TABLES = 6, 4  # examples of each kind
FEATURES = 6  # rows of an example in numbers
PIXELS = 96  # of the longer side of a picture
SOURCES = {"loaders": "a second loader", "batch": "the same batch"}
SETS = {
    "loaders": "independent random sets of k samples were drawn, as from two loaders",
    "batch": "disjoint random sets of k samples were drawn, as inside a batch",
}
ADVICE = "Choose k and alpha on validation samples with kmixup tune."
# the table of readings: the text and the meaning of each column
COLUMNS: dict[str, tuple[Callable[[Reading], str], str]] = {
    "squared distance %": (
        lambda reading: percent(reading.ratio),
        "mean over partners, in per cent of that of random pairs",
    ),
    "alpha": (
        lambda reading: f"{reading.alpha:.3g}" if reading.reachable else "out of reach",
        "the alpha that perturbs as much as mixup with alpha = {alpha:g}, if there is one",
    ),
    "other class %": (
        lambda reading: percent(reading.crossing),
        "partners of another class",
    ),
    "least %": (
        lambda reading: NOTHING if reading.least is None else f"{100 * reading.least:.1f}",
        "the same for classes far apart, the least that any matching can have",
    ),
    "half-way": (
        lambda reading: measured(reading.halfway.distance if reading.halfway else None),
        "distance from points half-way between partners to other samples, as a multiple of that "
        "between samples",
    ),
    "third class %": (
        lambda reading: percent(reading.halfway.contradiction if reading.halfway else None),
        "half-way points next to a class of neither partner",
    ),
    "samples %": (
        lambda reading: _disagreement(reading),
        "samples next to another class than their own, for comparison",
    ),
}
UNLABELLED = ("squared distance %", "alpha", "half-way")  # columns that need no classes


def _disagreement(reading: Reading) -> str:
    own = reading.halfway.disagreement if reading.halfway else None
    return NOTHING if own is None else f"{100 * own.value:.1f}"


def inspect_document(data: DataInspection, command: str) -> doc.Document:
    """The report of an inspection."""
    inspection = data.inspection
    blocks: list[doc.Block] = [
        doc.Headline(_summary(data), [ADVICE]),
        doc.Paragraph(_extent(data)),
        doc.Section("Readings by k", list(_readings(inspection, labelled=data.labelled))),
        doc.Section("Plots", list(_figures(inspection))),
        doc.Section("Matched pairs and mixed points", list(_couplings(data))),
        doc.Section("Example pairs", list(_examples(data))),
        doc.Section("Repeat it", [doc.Code(command), _method(data)]),
    ]
    return doc.Document(f"Inspection of {data.data.name}", blocks)


def write_inspect(data: DataInspection, folder: Path, command: str) -> Path:
    """Write `inspect.html` into `folder`, and return it."""
    replace_content(folder / "inspect.html", html(inspect_document(data, command)))
    return folder / "inspect.html"


def _summary(data: DataInspection) -> str:
    first, last = (data.inspection.at(k) for k in (data.compared[0], data.compared[-1]))
    text = (
        f"At k = {last.k}, partners have {100 * last.ratio.value:.0f} % of the squared distance of "
        "random pairs"
    )
    if not data.labelled or first.crossing is None or last.crossing is None:
        return f"{text}."
    crossing, random = 100 * last.crossing.value, 100 * first.crossing.value
    return f"{text}, and {crossing:.0f} % are of another class (random pairs: {random:.0f} %)."


def _extent(data: DataInspection) -> str:
    inspection, names = data.inspection, data.data.classes
    learned = f"in {len(names):,} class{'' if len(names) == 1 else 'es'}"
    if data.regression:
        learned = "with a numeric target, whose thirds serve as classes"
    inspected = "all"
    if inspection.used < inspection.samples:
        inspected = f"a random {inspection.used:,} of them"
    counts = Counter({int(index): n for index, n in inspection.classes.items()})
    listed = ", ".join(f"{names[i]}: {n:,}" for i, n in counts.most_common(LISTED))
    if len(counts) > LISTED:
        listed += f" and {len(counts) - LISTED} more"
    return (
        f"{data.data.title}: {count(inspection.samples, 'training sample')} of "
        f"{count(inspection.features, 'number')} {learned}{f' ({listed})' if listed else ''}, "
        f"scaling {data.data.scaling}; {inspected} inspected, with partners from "
        f"{SOURCES[data.pairing]}; no network trained."
    )


def _readings(inspection: Inspection, *, labelled: bool) -> Iterator[doc.Block]:
    names = [name for name in COLUMNS if labelled or name in UNLABELLED]
    rows = [[str(at.k), *(COLUMNS[name][0](at) for name in names)] for at in inspection.readings]
    yield doc.ReportTable(["k", *names], rows, numeric=True)
    meanings = [f"{name.removesuffix(' %')}: {COLUMNS[name][1]}" for name in names]
    yield doc.Bullets([meaning.format(alpha=inspection.alpha) for meaning in meanings])
    yield doc.Paragraph(dimension(inspection.decay))
    if inspection.by_labels:
        rows = [
            [f"{reading.labels:g}", percent(reading.crossing), percent(reading.ratio)]
            for reading in inspection.by_labels
        ]
        title = (
            f"Optimal(k={inspection.by_labels[0].k}, labels=c): a pair of different classes costs "
            "c times the mean distance of its block more"
        )
        header = ["c", "other class %", "squared distance %"]
        yield doc.ReportTable(header, rows, title, numeric=True)


def dimension(decay: DistanceDecay | None) -> str:
    """The intrinsic dimension of the data, estimated from how distances fall with k."""
    if decay is None:
        return "The intrinsic dimension cannot be estimated: it takes three k from 4 on."
    low, high = decay.low, decay.high
    if low > MANY:
        found = f"in more than {MANY} dimensions"
    elif high > MANY:
        found = f"in {low:.0f} dimensions or more"
    elif f"{low:.0f}" == f"{high:.0f}":
        found = f"in {low:.0f} dimension{'' if round(low) == 1 else 's'}"
    else:
        found = f"in {low:.0f} to {high:.0f} dimensions"
    caution = ""
    if low <= 3 and high >= 2:
        caution = " Two and three dimensions can hardly be distinguished this way."
    elif low <= 4 <= high:
        caution = " Distant clusters look like four dimensions, whatever their own."
    return (
        f"The squared distance of partners falls like k to the power {measured(decay.slope)}, as "
        f"{found}.{caution}"
    )


def _couplings(data: DataInspection) -> Iterator[doc.Block]:
    generator = torch.Generator().manual_seed(data.seed)
    some = torch.randperm(len(data.points), generator=generator)[:SIZE]
    cloud = Cloud.of("", data.points[some].double().numpy(), data.labels[some].numpy())
    title = f"Matched pairs and mixed points at k = {' and k = '.join(map(str, data.compared))}"
    yield doc.Images([doc.Image(title, lambda: png(_draw_couplings(data, cloud)))], style="wide")
    projected = f" The points are {cloud.note}." if cloud.note else ""
    yield doc.Paragraph(
        "Lines join partners of two random sets, dashed if their classes differ. A mixed point has "
        f"the marker of its main class and a mixture of both colours.{projected}",
        style="fine",
    )


def _examples(data: DataInspection) -> Iterator[doc.Block]:
    shown = examples(data)
    matched = ""
    if len(data.compared) > 1:
        matched = f" and with their partner at k = {data.compared[-1]}, from the same second set"
    units = ""
    if isinstance(shown[0], doc.ReportTable):
        units = "; features are those that differ most, in units of the data"
    yield doc.Paragraph(
        f"The same samples with a random partner (k = 1){matched}. Distances are those of the "
        f"network's inputs{units}.",
        style="fine",
    )
    yield from shown


def _method(data: DataInspection) -> doc.Details:
    inspection = data.inspection
    drawn = (
        f"At every k two {SETS[data.pairing]}, and "
        f"matched with the least sum of squared distances: {readings.MATCHES:,} pairs in total, "
        f"and at least {readings.LEAST_BLOCKS} pairs of sets. ± is one standard error over these "
        "draws. The strength of mixing is xi, the root mean square distance that mixing moves a "
        "sample; it follows from alpha and the squared distance in closed form. Half-way points "
        "(lam = 1/2) and the samples of the first set are compared with the samples outside of "
        "both sets. If k takes more than a quarter of the samples, too few remain for that."
    )
    facts = {
        "training samples": f"{inspection.samples:,}",
        "inspected": f"{inspection.used:,}",
        "numbers in a sample": f"{inspection.features:,}",
        "scaling": data.data.scaling,
        "mixup to compare with": f"alpha = {inspection.alpha:g}",
        "seed": str(data.seed),
    }
    note = doc.Paragraph(drawn, style="fine")
    return doc.Details("How it was measured", [note, doc.Facts(facts | versions())])


# Plots and pictures

Value = Measured | float | None
Points = list[tuple[float, Measured]]  # by k or labels
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
        {"keeps xi": lambda reading: reading.alpha if reading.reachable else None},
        "The alpha that perturbs samples as much as mixup with alpha = {alpha:g}, as far as there "
        "is one.",
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
    Plot(
        "Matching with a cost of labels",
        "%",
        {
            "another class": lambda reading: reading.crossing,
            "squared distance": lambda reading: reading.ratio,
        },
        "Partners of another class, and their squared distance in per cent of that of random "
        "pairs.",
        scale=100,
        x="labels",
    ),
)


def _figures(inspection: Inspection) -> Iterator[doc.Figure]:
    """All plots that there are readings for."""
    notes = {"decay": dimension(inspection.decay), "alpha": inspection.alpha}
    for plot in PLOTS:
        found = inspection.readings if plot.x == "k" else inspection.by_labels
        lines = {label: _points(plot.x, get, found) for label, get in plot.lines.items()}
        if all(lines.values()):
            note = plot.note.format(**notes)
            yield doc.Figure(plot.title, partial(_draw, plot, lines), note, legend=2)


def _points(x: str, get: Callable[[Any], Value], found: Iterable[object]) -> Points:
    """The known values of a line, by k or labels."""
    points = []
    for reading in found:
        if (value := get(reading)) is not None:
            known = value if isinstance(value, Measured) else Measured(value, 0.0)
            points.append((getattr(reading, x), known))
    return [(at, known) for at, known in points if np.isfinite(known.value)]


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


@styled
def _draw_couplings(data: DataInspection, cloud: Cloud) -> MatplotlibFigure:
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
