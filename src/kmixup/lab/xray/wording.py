"""An X-ray in words: the same on the terminal and on the page."""

from __future__ import annotations

from dataclasses import dataclass

from kmixup.inspection import DistanceDecay, Inspection, Reading
from kmixup.lab.formatting import NOTHING, TextTable, count, measured, percent
from kmixup.lab.xray.examining import Xray

OUT_OF_REACH = "out of reach"
LISTED = 12  # classes by name
CHOOSE = "To choose k and alpha on validation samples: kmixup tune"
MANY = 100  # dimensions that cannot be told from more

DISTANCE, ALPHA, CROSSING, LEAST, HALFWAY, CONTRADICTION, DISAGREEMENT = (
    "squared distance", "alpha", "other class", "least", "half-way", "third class", "samples",
)  # fmt: skip


@dataclass(frozen=True)
class ReadingColumn:
    """One column of the table of readings.

    Attributes:
        name: its heading.
        unit: the unit of its figures, empty for none.
        meaning: what its figures say.
    """

    name: str
    unit: str
    meaning: str


def by_labels(inspection: Inspection) -> str:
    """What the readings of labels are of."""
    k = inspection.by_labels[0].k
    return (
        f"Optimal(k={k}, labels=c): a pair of different classes costs c times the mean distance of "
        "its block more. At 0 the match looks at inputs alone; a large c crosses classes only as "
        "often as their counts force it, one below 0 asks for crossings."
    )


def labels_table(inspection: Inspection) -> TextTable:
    """The readings of labels."""
    rows = [
        [f"{reading.labels:g}", percent(reading.crossing), percent(reading.ratio)]
        for reading in inspection.by_labels
    ]
    return TextTable(["c", f"{CROSSING} %", f"{DISTANCE} %"], rows)


def columns(inspection: Inspection, *, labelled: bool) -> list[ReadingColumn]:
    """The columns of the table of readings, beside k."""
    strength = f"the alpha that perturbs as much as mixup with alpha = {inspection.alpha:g}"
    told = [
        ReadingColumn(DISTANCE, "%", "mean of partners, in per cent of that of random pairs"),
        ReadingColumn(ALPHA, "", f"{strength}; {OUT_OF_REACH} if none does"),
        ReadingColumn(
            HALFWAY,
            "",
            "how far points half-way between partners are from other samples, as a multiple of "
            "how far samples are",
        ),
    ]
    if labelled:
        least = "the same for classes far apart, the least that any matching has"
        own = "samples next to another class than theirs, to compare"
        told[2:2] = [
            ReadingColumn(CROSSING, "%", "partners of another class"),
            ReadingColumn(LEAST, "%", least),
        ]
        told += [
            ReadingColumn(CONTRADICTION, "%", "half-way points next to a class of neither partner"),
            ReadingColumn(DISAGREEMENT, "%", own),
        ]
    return told


def cells(reading: Reading, *, labelled: bool) -> list[str]:
    """The figures of one reading, in the order of `columns`."""
    halfway = reading.halfway
    own = halfway.disagreement if halfway else None
    texts = {
        DISTANCE: percent(reading.ratio),
        ALPHA: f"{reading.alpha:.3g}" if reading.reachable else OUT_OF_REACH,
        CROSSING: percent(reading.crossing),
        LEAST: NOTHING if reading.least is None else f"{100 * reading.least:.1f}",
        HALFWAY: measured(halfway.distance if halfway else None),
        CONTRADICTION: percent(halfway.contradiction if halfway else None),
        DISAGREEMENT: NOTHING if own is None else f"{100 * own.value:.1f}",
    }
    alone = (DISTANCE, ALPHA, HALFWAY)
    return [text for name, text in texts.items() if labelled or name in alone]


def extent(xray: Xray) -> str:
    """How large the data are, and how many samples were looked at."""
    data, inspection = xray.data, xray.inspection
    classes = f"in {data.num_classes:,} class{'es' * (data.num_classes != 1)}"
    if xray.regression:
        classes = "with a number to learn, whose thirds are taken for classes"
    told = (
        f"{data.title}: {count(inspection.samples, 'training sample')} of "
        f"{count(inspection.features, 'number')} {classes}, scaling {data.scaling}; "
    )
    if inspection.used < inspection.samples:
        return f"{told}{inspection.used:,} of them, drawn at random, were looked at."
    return f"{told}all of them were looked at."


def classes(xray: Xray) -> str:
    """The classes with the number of samples of each that were looked at, empty without any."""
    names = xray.data.classes
    counts = [(names[int(index)], n) for index, n in xray.inspection.classes.items()]
    counts.sort(key=lambda pair: -pair[1])
    if not counts:
        return ""
    named = ", ".join(f"{name}: {n:,}" for name, n in counts[:LISTED])
    rest = f" and {len(counts) - LISTED} more" if len(counts) > LISTED else ""
    return f"Samples of each class: {named}{rest}."


def dimension(decay: DistanceDecay | None) -> str:
    """In how many dimensions the data lie, by the decay of distances."""
    if decay is None:
        return (
            "How fast distances fall with k, and so in how many dimensions the data lie, cannot "
            "be seen: that takes readings at three k from 4 on."
        )
    low, high = decay.low, decay.high
    if low > MANY:
        told = f"in more than {MANY} dimensions"
    elif high > MANY:
        told = f"in {low:.0f} dimensions or more"
    elif f"{low:.0f}" == f"{high:.0f}":
        told = f"in {low:.0f} dimension{'s' * (round(low) != 1)}"
    else:
        told = f"in {low:.0f} to {high:.0f} dimensions"
    caution = ""
    if low <= 3 and high >= 2:
        caution = " Two and three can hardly be told apart so."
    elif low <= 4 <= high:
        caution = " Clusters far apart fall like four, whatever they have themselves."
    return (
        f"The squared distance of partners falls like k to the power {measured(decay.slope)}, as "
        f"it does {told}.{caution}"
    )
