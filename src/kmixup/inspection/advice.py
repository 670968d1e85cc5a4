"""From readings to a k and an alpha, with the reasons in words.

The advice is a guess from distances and labels. The rule was fixed before its outcome on
trained networks was known. It asks three questions in turn:

1. Are near samples more often of the same class than random ones? If not, mixing by distances
   will not help. If there are too few samples to see it, the advice says so.
2. At which k are mixed points contradicted as rarely as at any k, and as near to the data? The
   smallest such k mixes most.
3. How much mixing do contradictions allow there? As much as plain mixup at the reference
   alpha, measured by xi, unless more than `TOLERATED` of the samples would get a label that
   their neighbours contradict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kmixup.inspection.halfway import Halfway
from kmixup.inspection.readings import Reading
from kmixup.measured import Measured

TOLERATED = 0.02  # share of samples that may be strongly mixed into a contradiction
STRONG = 0.25  # min(lam, 1 - lam) above which a sample is strongly mixed
LARGEST, SMALLEST = 16.0, 0.05  # of an advised alpha; above, lam is about one half anyway
CLOSE = 0.005  # contradictions so much above the least count as equally good
NEAR = 1.1  # distances up to this multiple of the least count as equally good
SIGMAS = 3.0  # standard errors by which neighbours must agree more often than random pairs
VISIBLE = 1 / 3  # "no link" is said only if disagreement so much below chance would be seen

CAVEAT = (
    "Such advice is a guess from the geometry of the data; no network was trained. Check it on "
    "validation samples, against plain training and plain mixup, before you follow it: of 9 data "
    "sets with trained networks it beat tuned mixup on 1 and lost to it on 5."
)


@dataclass(frozen=True)
class Advice:
    """A k and an alpha to start from.

    Attributes:
        k: to start from.
        alpha: to start from; 0 is not to mix.
        reasons: two sentences.
        changes: what would change the advice.
        warning: that mixing will not help, or None.
        doubt: why nothing can be said of this data set, such as "cannot tell with 60
            samples", or None. Then `k` and `alpha` are those of plain mixup.

    A part of an `Inspection`. Returned by `inspect`.
    """

    k: int
    alpha: float
    reasons: tuple[str, str]
    changes: str
    warning: str | None = None
    doubt: str | None = None

    @property
    def mixes(self) -> bool:
        """Whether the advice is to mix."""
        return self.alpha > 0 and self.doubt is None

    @property
    def answer(self) -> str:
        """The advice in a few words."""
        if self.doubt is not None:
            return f"{self.doubt[0].upper()}{self.doubt[1:]}"
        return f"k = {self.k}, alpha = {self.alpha:g}" if self.alpha else "Do not mix"

    @property
    def caveat(self) -> str:
        """How far the advice can be trusted, to be shown wherever it is."""
        return CAVEAT

    def __str__(self) -> str:
        return "\n".join([f"{self.answer}.", *self.reasons, self.changes, self.caveat])


def advise(readings: Sequence[Reading], *, samples: int, alpha: float, batch_size: int) -> Advice:
    """The advice that follows from the readings of so many `samples`.

    Args:
        readings: at rising k, the first of them at 1.
        samples: number of samples that were looked at.
        alpha: of the plain mixup that the readings refer to.
        batch_size: of the training to come. The advised k fits into it twice.
    """
    usable = [reading for reading in readings if 2 * reading.k <= batch_size] or [readings[0]]
    chance = usable[0].crossing
    if chance is not None:
        links = _links(usable, chance.value, samples)
        if not any(link.value > SIGMAS * link.error for link in links):
            visible = SIGMAS * min((link.error for link in links), default=math.inf)
            if visible > VISIBLE * chance.value:
                return _too_few(usable[0], samples, chance.value, visible)
            return _labels_apart(chance.value)
    seen = [(reading, reading.halfway) for reading in usable if reading.halfway is not None]
    if not seen:
        return _unseen(usable[0], samples)
    chosen, halfway = _smallest_good(seen)
    strength, limited = _strength(chosen, halfway)
    why_k = _why_k(chosen, halfway, seen)
    why_alpha = _why_alpha(chosen, halfway, alpha, strength, limited)
    return Advice(chosen.k, strength, (why_k, why_alpha), _changes(chosen, readings, batch_size))


def _links(readings: Sequence[Reading], chance: float, samples: int) -> list[Measured]:
    """How much less often than random pairs partners, and nearest samples, differ in class."""
    shares = [reading.crossing for reading in readings[1:]]
    shares += [reading.halfway.disagreement for reading in readings if reading.halfway is not None]
    # However many sets are drawn, they have the labels of these samples. Neighbours come in
    # mutual pairs, which at most doubles the variance.
    own = 2 * chance * (1 - chance) / samples
    return [
        Measured(chance - share.value, math.hypot(share.error, own**0.5))
        for share in shares
        if share is not None
    ]


Seen = tuple[Reading, Halfway]


def _smallest_good(seen: Sequence[Seen]) -> Seen:
    """The smallest k at which contradictions and distances are as small as at any k."""
    rates = [halfway.contradiction for _, halfway in seen]
    known = [rate for rate in rates if rate is not None]
    if known:
        least = min(known, key=lambda rate: rate.value)
        bar = least.value + max(least.error, CLOSE)  # within one standard error of the least
        seen = [pair for pair, rate in zip(seen, rates, strict=True) if rate and rate.value <= bar]
    nearest = min(halfway.distance.value for _, halfway in seen)
    return next(pair for pair in seen if pair[1].distance.value <= max(NEAR, NEAR * nearest))


def _strength(chosen: Reading, halfway: Halfway) -> tuple[float, bool]:
    """The alpha, and whether contradictions limit it."""
    wished = min(chosen.alpha, LARGEST)
    excess = halfway.excess or 0.0
    if excess * _strongly_mixed(wished) <= TOLERATED:
        return _rounded(wished), False
    if excess * _strongly_mixed(SMALLEST) > TOLERATED:
        return SMALLEST, True
    from scipy.optimize import brentq  # on first use: it loads slowly

    log = brentq(
        lambda log: excess * _strongly_mixed(math.exp(log)) - TOLERATED,
        math.log(SMALLEST),
        math.log(wished),
    )
    return _rounded(math.exp(log)), True


def _strongly_mixed(alpha: float) -> float:
    """P(min(lam, 1 - lam) > STRONG)."""
    from scipy.special import betainc  # on first use: it loads slowly

    return 1 - 2 * float(betainc(alpha, alpha, STRONG))


def _rounded(alpha: float) -> float:
    return float(f"{alpha:.2g}")


def _why_k(chosen: Reading, halfway: Halfway, seen: Sequence[Seen]) -> str:
    """The sentence on k."""
    here, first = _where(halfway), seen[0][1]
    if chosen.k == 1:
        return f"Points half-way between random pairs are {here}; no larger k improves on that."
    largest = chosen.k == seen[-1][0].k
    then = "no larger one can be used here" if largest else "a larger one gains little"
    return (
        f"At k = {chosen.k} points half-way between partners are {here}, "
        f"against {_where(first, short=True)} at k = 1; {then}."
    )


def _where(halfway: Halfway, *, short: bool = False) -> str:
    """Where half-way points lie, in words."""
    times = f"{halfway.distance.value:.3g} times"
    third = "" if halfway.contradiction is None else _share(halfway.contradiction.value)
    if short:
        return f"{times} and {third}" if third else times
    far = f"{times} as far from other samples as samples are"
    return f"{far}, and {third} of them lie next to a class of neither partner" if third else far


def _why_alpha(
    chosen: Reading, halfway: Halfway, alpha: float, strength: float, limited: bool
) -> str:
    """The sentence on alpha."""
    usual = f"mixup with alpha = {alpha:g}"
    if limited and halfway.contradiction is not None and halfway.disagreement is not None:
        return (
            f"Alpha = {strength:g} is as much as contradictions allow: "
            f"{_share(halfway.contradiction.value)} of half-way points lie next to a class of "
            f"neither partner, {_share(halfway.disagreement.value)} of samples next to a class "
            f"that is not theirs, and the excess should reach at most {TOLERATED:.0%} of the "
            "samples."
        )
    if chosen.k == 1:
        return f"Alpha = {strength:g} is the reference, and contradictions allow it."
    ratio = _share(chosen.ratio.value)
    near = f"since partners are at {ratio} of the squared distance of random pairs"
    if not chosen.reachable:
        return (
            f"No alpha perturbs as much as {usual}, {near}; alpha = {strength:g} makes lam nearly "
            "one half, which is the most that can be done."
        )
    if chosen.alpha > LARGEST:
        return (
            f"Alpha = {strength:g} perturbs almost as much as {usual}, for which it takes "
            f"{chosen.alpha:.2g}, {near}."
        )
    return f"Alpha = {strength:g} perturbs samples as much as {usual}, {near}."


def _share(value: float) -> str:
    """A share in per cent, with two digits where it is small.

    >>> _share(0.5), _share(0.0213), _share(0.00042)
    ('50%', '2.1%', '0.04%')
    """
    percent = 100 * value
    digits = 0 if percent >= 10 else 1 if percent >= 1 else 2
    return f"{percent:.{digits}f}%"


def _changes(chosen: Reading, readings: Sequence[Reading], batch_size: int) -> str:
    """What would change the advice."""
    words = []
    if chosen.k > 1:
        words.append(f"batches of fewer than {2 * chosen.k} samples, which hold no two sets of k")
    larger = next((reading.k for reading in readings if reading.k > chosen.k), 0)
    if 2 * larger > batch_size:
        words.append(f"batches of {2 * larger} samples or more, which let a larger k in")
    words.append("another scaling or an embedding of the inputs, which changes the distances")
    words.append("validation errors, which outweigh all of this")
    return f"What would change this: {'; '.join(words)}."


def _labels_apart(chance: float) -> Advice:
    return Advice(
        1,
        0.0,
        (
            "Partners and nearest samples share their class no more often than random pairs, "
            f"{1 - chance:.1%} of which do.",
            "So the label of a point between two samples is unknown, whatever k is.",
        ),
        "What would change this: another scaling or an embedding of the inputs in which "
        "neighbours share their class; more samples, if the link is weak.",
        "labels do not go with distances here: mixup will not help",
    )


def _too_few(first: Reading, samples: int, chance: float, visible: float) -> Advice:
    """Neither "mix" nor "do not mix": `visible` is the least difference that would be seen."""
    seen = "no link between labels and distances could be seen"
    if visible < chance:
        seen = (
            "a link between labels and distances could be seen only if less than "
            f"{_share(chance - visible)} of the nearest samples were of another class"
        )
    return _plain(
        first,
        f"{_share(chance)} of random pairs differ in class; with {samples:,} samples {seen}.",
        "What would change this: more samples, above all of the rarer classes; another scaling or "
        "an embedding of the inputs; validation errors.",
        f"cannot tell with {samples:,} samples",
    )


def _unseen(first: Reading, samples: int) -> Advice:
    return _plain(
        first,
        f"Of {samples:,} samples so many coincide that it cannot be seen where mixed points lie.",
        "What would change this: samples without copies.",
        "cannot tell from samples that coincide",
    )


def _plain(first: Reading, why: str, changes: str, doubt: str) -> Advice:
    """Plain mixup, for want of anything better, with the reason."""
    alpha = _rounded(min(first.alpha, LARGEST))
    trial = f"Compare plain training with mixup at alpha = {alpha:g} on validation samples."
    return Advice(1, alpha, (why, trial), changes, doubt=doubt)
