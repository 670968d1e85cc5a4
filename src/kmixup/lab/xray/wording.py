"""What was found, in words and in cells: the same on the terminal and on the page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kmixup.inspection import Decay, Inspection, Measured, Reading
from kmixup.lab.words import count
from kmixup.lab.xray.examining import Xray

NOTHING = "–"
OUT_OF_REACH = "out of reach"
MANY = 100  # dimensions that cannot be told from more

DISTANCE, ALPHA, CROSSING, LEAST, HALFWAY, CONTRADICTION, DISAGREEMENT = (
    "squared distance", "alpha", "other class", "least", "half-way", "third class", "samples",
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One figure of every reading: its heading, its unit, and what it means."""

    name: str
    unit: str
    meaning: str


def columns(found: Inspection, *, labelled: bool) -> list[Column]:
    """What the table of readings has beside k."""
    strength = f"the alpha that perturbs as much as mixup with alpha = {found.alpha:g}"
    told = [
        Column(DISTANCE, "%", "mean of partners, in per cent of that of random pairs"),
        Column(ALPHA, "", f"{strength}; {OUT_OF_REACH} if none does"),
        Column(HALFWAY, "", "how far points half-way between partners are from other samples, "
               "as a multiple of how far samples are"),
    ]  # fmt: skip
    if labelled:
        told[2:2] = [
            Column(CROSSING, "%", "partners of another class"),
            Column(LEAST, "%", "the same for classes far apart, the least that any matching has"),
        ]
        told += [
            Column(CONTRADICTION, "%", "half-way points next to a class of neither partner"),
            Column(DISAGREEMENT, "%", "samples next to another class than theirs, to compare"),
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


def measured(one: Measured | None) -> str:
    """A figure to the first digit of its error.

    >>> measured(Measured(0.72131, 0.0088)), measured(Measured(1.0, 0.0)), measured(None)
    ('0.721 ± 0.009', '1', '–')
    >>> measured(Measured(1.0883, 0.0096))
    '1.09 ± 0.01'
    """
    if one is None:
        return NOTHING
    if not one.error > 0:
        return f"{one.value:.3g}"
    digits = max(0, -math.floor(math.log10(float(f"{one.error:.0e}"))))
    return f"{one.value:.{digits}f} ± {one.error:.{digits}f}"


def percent(one: Measured | None) -> str:
    """
    >>> percent(Measured(0.57702, 0.00541)), percent(Measured(0.5, 0.0))
    ('57.7 ± 0.5', '50.0')
    >>> percent(Measured(0.000488, 0.000488))
    '0.05 ± 0.05'
    """
    if one is None:
        return NOTHING
    digits = 2 if 0 < one.error < 5e-4 else 1
    return f"{100 * one.value:.{digits}f}" + f" ± {100 * one.error:.{digits}f}" * (one.error > 0)


def extent(xray: Xray) -> str:
    """How large the data are, and how much of them was looked at."""
    data, found = xray.data, xray.found
    classes = f"in {data.num_classes:,} class{'es' * (data.num_classes != 1)}"
    told = (
        f"{data.title}: {count(found.samples, 'training sample')} of "
        f"{count(found.features, 'number')} {classes}, scaling {data.scaling}; "
    )
    if found.used < found.samples:
        return f"{told}{found.used:,} of them, drawn at random, were looked at."
    return f"{told}all of them were looked at."


def dimension(decay: Decay | None) -> str:
    """The dimensions that the decay of distances implies."""
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


def answer(found: Inspection) -> str:
    """The advice in a few words."""
    advice = found.advice
    if not advice.alpha:
        return "Do not mix"
    return f"k = {advice.k}, alpha = {advice.alpha:g}"


def code(xray: Xray) -> str | None:
    """The mixer to start from, or None where nothing should be mixed."""
    advice = xray.found.advice
    if not advice.alpha:
        return None
    return (
        f"kmixup.KMixup(k={advice.k}, alpha={advice.alpha:g}, num_classes={xray.data.num_classes})"
    )
