"""The report of `kmixup inspect`: what k and alpha do to a data set, before any training."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.lines import Line2D
from PIL import Image
from torch import Tensor

from kmixup.coefficient import Beta
from kmixup.inspection import Inspection, Measured, Reading
from kmixup.lab._provenance import versions
from kmixup.lab.figures.clouds import SIZE, Cloud, class_handles
from kmixup.lab.figures.couplings import PAIRS, coupling, vicinal
from kmixup.lab.formatting import count, measured, percent
from kmixup.lab.inspection import DataInspection
from kmixup.lab.plotting import BLACK, BLUE, FAINT, ORANGE, k_axis, panels, png, styled
from kmixup.lab.report import document as doc
from kmixup.matching import match

LISTED, NAMED = 12, 20  # at most so many classes in the text, and in a legend
MIXED = 512  # points
PICTURES = 6  # example pairs
PIXELS = 96  # of the longer side of a picture
SOURCES = {"loaders": "a second loader", "batch": "the same batch"}
ADVICE = "Choose k and alpha on validation samples with kmixup tune."


@dataclass(frozen=True)
class ReadingColumn:
    """A column of the table of readings, and a line of a plot."""

    name: str  # with % at its end if the value is a share
    value: Callable[[Reading], Measured | None]
    meaning: str
    labelled: bool = True  # whether it needs classes

    def text(self, reading: Reading) -> str:
        value = self.value(reading)
        return percent(value) if self.name.endswith("%") else measured(value)


def _exact(value: float | None) -> Measured | None:
    return None if value is None else Measured(value, 0.0)


def _of_midpoints(name: str) -> Callable[[Reading], Measured | None]:
    return lambda reading: getattr(reading.halfway, name) if reading.halfway else None


COLUMNS = (
    ReadingColumn(
        "squared distance %",
        lambda reading: reading.ratio,
        "mean over partners, relative to random pairs",
        labelled=False,
    ),
    ReadingColumn(
        "alpha",
        lambda reading: _exact(reading.alpha if reading.reachable else None),
        "the alpha that perturbs as much as mixup with alpha = {alpha:g}, if there is one",
        labelled=False,
    ),
    ReadingColumn("other class %", lambda at: at.crossing, "partners of another class"),
    ReadingColumn(
        "least %",
        lambda reading: _exact(reading.least),
        "the least that any matching can have, as for classes far apart",
    ),
    ReadingColumn(
        "midpoint",
        _of_midpoints("distance"),
        "distance from midpoints of partners to other samples, relative to that of samples",
        labelled=False,
    ),
    ReadingColumn(
        "third class %",
        _of_midpoints("contradiction"),
        "midpoints next to a class of neither partner (manifold intrusion)",
    ),
    ReadingColumn(
        "samples %",
        _of_midpoints("disagreement"),
        "samples next to another class than their own, for comparison",
    ),
)
PLOTS = {  # the columns of each
    "Distance of partners": ("squared distance %",),
    "The alpha that keeps the strength": ("alpha",),
    "Partners of another class": ("other class %", "least %"),
    "Distance of mixed points from the data": ("midpoint",),
    "Manifold intrusion": ("third class %", "samples %"),
}


def inspect_document(data: DataInspection, command: str) -> doc.Document:
    inspection = data.inspection
    figures = list(_figures(inspection))
    blocks: list[doc.Block] = [
        doc.Headline(_summary(data), [equal_strength(inspection), ADVICE]),
        *figures[:1],
        doc.Paragraph(_extent(data)),
        doc.Section("Readings by k", list(_readings(inspection, labelled=data.labelled))),
        doc.Section("Plots", figures[1:]),
        doc.Section("Matched pairs and mixed points", list(_couplings(data))),
    ]
    if shown := examples(data):
        blocks.append(doc.Section("Example pairs", shown))
    settings = {"alpha of mixup": inspection.alpha, "seed": data.seed, **versions()}
    details = doc.Details("Settings and versions", [doc.Facts(settings)])
    blocks.append(doc.Section("Repeat it", [doc.Code(command), details]))
    return doc.Document(f"Inspection of {data.data.name}", blocks)


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


def equal_strength(inspection: Inspection) -> str:
    """Which k and alpha perturb the data as much as mixup."""
    xi = math.sqrt(Beta(inspection.alpha).mean_square_step * inspection.at(1).square_distance.value)
    larger = [at for at in inspection.readings if at.k > 1]
    reached = [f"k = {at.k} at alpha {at.alpha:.3g}" for at in larger if at.reachable]
    text = f"Mixup with alpha = {inspection.alpha:g} has xi = {xi:.4g}"
    if reached:
        text += f". Equally strong: {'; '.join(reached)}"
    if weaker := [str(at.k) for at in larger if not at.reachable]:
        text += f". No alpha is as strong at k = {', '.join(weaker)}"
    return f"{text}."


def _extent(data: DataInspection) -> str:
    inspection, names = data.inspection, data.data.classes
    learned = f"in {len(names):,} class{'' if len(names) == 1 else 'es'}"
    if data.regression:
        learned = "with a numeric target, whose thirds serve as classes"
    listed = ""
    if 0 < len(inspection.classes) <= LISTED:
        counts = [f"{names[int(index)]}: {n:,}" for index, n in inspection.classes.items()]
        listed = f" ({', '.join(counts)})"
    return (
        f"{data.data.title}: {count(inspection.samples, 'training sample')} of "
        f"{count(inspection.features, 'number')} {learned}, scaling {data.data.scaling}; "
        f"{inspection.used:,} inspected{listed}, with partners from {SOURCES[data.pairing]}. ± is "
        "one standard error over random draws."
    )


def _readings(inspection: Inspection, *, labelled: bool) -> Iterator[doc.Block]:
    columns = [column for column in COLUMNS if labelled or not column.labelled]
    rows = [[str(at.k), *(column.text(at) for column in columns)] for at in inspection.readings]
    yield doc.ReportTable(["k", *(column.name for column in columns)], rows, numeric=True)
    meanings = [f"{column.name.removesuffix(' %')}: {column.meaning}" for column in columns]
    yield doc.Bullets([meaning.format(alpha=inspection.alpha) for meaning in meanings])


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


# Plots and pictures


def _figures(inspection: Inspection) -> Iterator[doc.Figure]:
    for title, names in PLOTS.items():
        lines: dict[str, dict[int, Measured]] = {}  # the known values of a column by k
        for column in (column for column in COLUMNS if column.name in names):
            values = {reading.k: column.value(reading) for reading in inspection.readings}
            lines[column.name] = {k: value for k, value in values.items() if value is not None}
        if all(lines.values()):
            yield doc.Figure(title, partial(_draw, lines), legend=2)


def _draw(lines: Mapping[str, Mapping[int, Measured]], axes: Axes) -> None:
    looks = zip(lines.items(), (BLUE, ORANGE), ("solid", "dashed"), strict=False)
    for (name, points), colour, dash in looks:
        scale = 100 if name.endswith("%") else 1
        axes.errorbar(
            [*points],
            [scale * value.value for value in points.values()],
            yerr=[scale * value.error for value in points.values()],
            label=name, color=colour, ls=dash, marker="o", ms=4.5, lw=1.4, capsize=2.5,
        )  # fmt: skip
    k_axis(axes, sorted({k for points in lines.values() for k in points}))
    if "alpha" in lines:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


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


def examples(data: DataInspection) -> list[doc.Images]:
    """Some pictures, each with its partner at every k that is compared; none if there are none."""
    pixels = data.data.x_train
    if pixels.dim() != 4 or pixels.shape[1] not in (1, 3):
        return []
    low, high = data.data.pixel_range or (float(pixels.min()), float(pixels.max()))

    def image(title: str, picture: Tensor) -> doc.Image:
        scaled = ((picture.double() - low) / (high - low) * 255).round().byte()
        return doc.Image(title, lambda: _png(scaled))

    shown = []
    firsts, partners = _matched(data)
    for row, first in enumerate(firsts):
        sample = pixels[data.drawn[first]]
        images = [image(data.class_name(first), sample)]
        for k, seconds in partners.items():
            partner = pixels[data.drawn[seconds[row]]]
            images.append(image(f"k = {k}: {data.class_name(seconds[row])}", partner))
            images.append(image("midpoint", (sample.double() + partner.double()) / 2))
        shown.append(doc.Images(images))
    return shown


def _matched(data: DataInspection) -> tuple[list[int], dict[int, list[int]]]:
    """Some samples, and their partners at every k, all from the same second set."""
    n, largest = len(data.points), max(data.compared)
    half = min(n // 2, -(-PICTURES // largest) * largest)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(data.seed))
    first, second = order[:half], order[half : 2 * half]
    partners = {
        k: second[match(data.points[first], data.points[second], k=k)][:PICTURES].tolist()
        for k in data.compared
    }
    return first[:PICTURES].tolist(), partners


def _png(pixels: Tensor) -> bytes:
    """A picture `(1 or 3, height, width)` of bytes as a PNG file."""
    values = pixels.numpy()
    image = Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))
    image.thumbnail((PIXELS, PIXELS))
    stream = io.BytesIO()
    image.save(stream, format="png", optimize=True)
    return stream.getvalue()
