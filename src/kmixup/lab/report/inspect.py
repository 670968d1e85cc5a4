"""The report of `kmixup inspect`: what k and alpha do to a data set, before any training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from kmixup.inspection import DistanceDecay, Reading, readings
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, measured, percent
from kmixup.lab.inspection import DataInspection
from kmixup.lab.report import document as doc
from kmixup.lab.report.inspect_plots import couplings, examples, figures
from kmixup.lab.report.render_html import html
from kmixup.lab.train.record import versions

LISTED = 12  # classes by name
MANY = 100  # dimensions that cannot be distinguished from more
SOURCES = {"loaders": "a second loader", "batch": "the same batch"}
SETS = {
    "loaders": "independent random sets of k samples were drawn, as from two loaders",
    "batch": "disjoint random sets of k samples were drawn, as inside a batch",
}
ADVICE = "Choose k and alpha on validation samples with kmixup tune."


class ReadingColumn(NamedTuple):
    """One column of the table of readings."""

    name: str
    meaning: str
    text: Callable[[Reading], str]
    labels: bool = False  # whether it needs classes


COLUMNS = (
    ReadingColumn(
        "squared distance %",
        "mean over partners, in per cent of that of random pairs",
        lambda reading: percent(reading.ratio),
    ),
    ReadingColumn(
        "alpha",
        "the alpha that perturbs as much as mixup with alpha = {alpha:g}, if there is one",
        lambda reading: f"{reading.alpha:.3g}" if reading.reachable else "out of reach",
    ),
    ReadingColumn(
        "other class %",
        "partners of another class",
        lambda reading: percent(reading.crossing),
        labels=True,
    ),
    ReadingColumn(
        "least %",
        "the same for classes far apart, the least that any matching can have",
        lambda reading: NOTHING if reading.least is None else f"{100 * reading.least:.1f}",
        labels=True,
    ),
    ReadingColumn(
        "half-way",
        "distance from points half-way between partners to other samples, as a multiple of that "
        "between samples",
        lambda reading: measured(reading.halfway.distance if reading.halfway else None),
    ),
    ReadingColumn(
        "third class %",
        "half-way points next to a class of neither partner",
        lambda reading: percent(reading.halfway.contradiction if reading.halfway else None),
        labels=True,
    ),
    ReadingColumn(
        "samples %",
        "samples next to another class than their own, for comparison",
        lambda reading: _disagreement(reading),
        labels=True,
    ),
)


def _disagreement(reading: Reading) -> str:
    own = reading.halfway.disagreement if reading.halfway else None
    return NOTHING if own is None else f"{100 * own.value:.1f}"


def inspect_document(data: DataInspection, command: str) -> doc.Document:
    """The report of an inspection."""
    inspection = data.inspection
    drawn = figures(inspection, dimension(inspection.decay))
    blocks: list[doc.Block] = [
        doc.Headline(summary(data), [ADVICE]),
        doc.Paragraph(extent(data)),
        doc.Section("Readings by k", list(_readings(data))),
        doc.Section("Plots", drawn),
        doc.Section("Matched pairs and mixed points", list(_couplings(data))),
        doc.Section("Example pairs", list(_examples(data))),
        doc.Section("Repeat it", [doc.Code(command), _method(data)]),
    ]
    return doc.Document(f"Inspection of {data.data.name}", blocks)


def write_inspect(data: DataInspection, folder: Path, command: str) -> Path:
    """Write `inspect.html` into `folder`, and return it."""
    replace_content(folder / "inspect.html", html(inspect_document(data, command)))
    return folder / "inspect.html"


def summary(data: DataInspection) -> str:
    """How much closer and how much more alike partners are than random pairs."""
    first, last = (data.inspection.at(k) for k in (data.compared[0], data.compared[-1]))
    text = (
        f"At k = {last.k}, partners have {100 * last.ratio.value:.0f} % of the squared distance of "
        "random pairs"
    )
    if not data.labelled or first.crossing is None or last.crossing is None:
        return f"{text}."
    crossing, random = 100 * last.crossing.value, 100 * first.crossing.value
    return f"{text}, and {crossing:.0f} % are of another class (random pairs: {random:.0f} %)."


def extent(data: DataInspection) -> str:
    """The size of the data, and how many samples were inspected."""
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


def _readings(data: DataInspection) -> Iterator[doc.Block]:
    inspection = data.inspection
    columns = [column for column in COLUMNS if data.labelled or not column.labels]
    rows = [[str(at.k), *(column.text(at) for column in columns)] for at in inspection.readings]
    yield doc.ReportTable(["k", *(column.name for column in columns)], rows, numeric=True)
    meanings = [column.meaning.format(alpha=inspection.alpha) for column in columns]
    names = [column.name.removesuffix(" %") for column in columns]
    yield doc.Bullets(list(map("{}: {}".format, names, meanings)))
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
    png, note = couplings(data)
    title = f"Matched pairs and mixed points at k = {' and k = '.join(map(str, data.compared))}"
    yield doc.Images([doc.Image(title, png)], style="wide")
    projected = f" The points are {note}." if note else ""
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
