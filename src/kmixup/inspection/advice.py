"""From readings to one k and one alpha, with the reasons in words.

The rule was set before its outcome was known, and asks three questions in turn. Do labels go
with distances at all? If not, no mixing by distances will help. How large a k does it take
until mixed points are contradicted as rarely as they can be, and lie as near to the data?
The smallest such k mixes most. How much mixing do contradictions allow there? As much as
plain mixup at alpha = 1, in the sense of xi, unless more than `TOLERATED` of the samples
would get a label that their neighbours contradict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kmixup.inspection.halfway import Halfway
from kmixup.inspection.readings import Reading

TOLERATED = 0.02  # share of samples that may be strongly mixed into a contradiction
STRONG = 0.25  # min(lam, 1 - lam) above which a sample is strongly mixed
LARGEST, SMALLEST = 16.0, 0.05  # of an advised alpha; above, lam is about one half anyway
CLOSE, NEAR = 0.005, 1.1  # a share above the least, or a multiple of it, that is as good
SIGMAS = 3.0  # by which labels must agree with distances


@dataclass(frozen=True)
class Advice:
    """A `k` and an `alpha` to start from; alpha = 0 is not to mix.

    `reasons`: two sentences. `changes`: what would make the advice another one. `warning`:
    that mixing will not help, or None.
    """

    k: int
    alpha: float
    reasons: tuple[str, str]
    changes: str
    warning: str | None = None


def advise(readings: Sequence[Reading], *, samples: int, alpha: float, batch_size: int) -> Advice:
    """The advice that follows from readings of `samples` at rising k, the first of them at 1.

    `alpha` is the reference of the readings; twice k have to fit into `batch_size`.
    """
    usable = [one for one in readings if 2 * one.k <= batch_size] or list(readings[:1])
    chance = usable[0].crossing
    if chance is not None and not _informative(usable, chance.value, samples):
        return _labels_apart(chance.value)
    seen = [(one, one.halfway) for one in usable if one.halfway is not None]
    if not seen:
        return _unseen(usable, samples)
    chosen, halfway = _smallest_good(seen)
    strength, limited = _strength(chosen, halfway)
    why_k = _why_k(chosen, halfway, seen)
    why_alpha = _why_alpha(chosen, halfway, alpha, strength, limited)
    return Advice(chosen.k, strength, (why_k, why_alpha), _changes(chosen, readings, batch_size))


def _informative(readings: Sequence[Reading], chance: float, samples: int) -> bool:
    """Whether partners or nearest samples share their class more often than by chance."""
    shares = [one.crossing for one in readings[1:]]
    shares += [one.halfway.disagreement for one in readings if one.halfway is not None]
    # however many sets are drawn, the labels are those of so many samples; neighbours come
    # in mutual pairs, which doubles the variance at most
    own = 2 * chance * (1 - chance) / samples
    return any(
        share is not None and chance - share.value > SIGMAS * math.hypot(share.error, own**0.5)
        for share in shares
    )


Seen = tuple[Reading, Halfway]


def _smallest_good(seen: Sequence[Seen]) -> Seen:
    """The smallest k at which contradictions and distances are as good as the least."""
    rates = [halfway.contradiction for _, halfway in seen]
    known = [rate for rate in rates if rate is not None]
    if known:
        least = min(known, key=lambda rate: rate.value)
        bar = least.value + max(least.error, CLOSE)  # the one-standard-error rule
        seen = [pair for pair, rate in zip(seen, rates, strict=True) if rate and rate.value <= bar]
    nearest = min(halfway.distance.value for _, halfway in seen)
    return next(pair for pair in seen if pair[1].distance.value <= max(NEAR, NEAR * nearest))


def _strength(chosen: Reading, halfway: Halfway) -> tuple[float, bool]:
    """The alpha, and whether contradictions have limited it."""
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
        return f"Points half-way between random pairs lie {here}, and no larger k improves on that."
    largest = chosen.k == seen[-1][0].k
    then = "no larger one can be used here" if largest else "a larger one gains little"
    return (
        f"At k = {chosen.k} points half-way between partners lie {here}, "
        f"against {_where(first, short=True)} at k = 1; {then}."
    )


def _where(halfway: Halfway, *, short: bool = False) -> str:
    """Where half-way points lie, in words."""
    times, third = f"{halfway.distance.value:.3g} times", ""
    if halfway.contradiction is not None:
        third = f" and {_share(halfway.contradiction.value)}"
    if short:
        return f"{times}{third}"
    third += " of them next to a class of neither partner" * bool(third)
    return f"{times} as far from other samples as samples do{third}"


def _why_alpha(
    chosen: Reading, halfway: Halfway, alpha: float, strength: float, limited: bool
) -> str:
    """The sentence on alpha."""
    usual = f"mixup with alpha = {alpha:g}"
    if limited and halfway.contradiction is not None and halfway.disagreement is not None:
        return (
            f"Alpha = {strength:g} is as much as contradictions allow: mixed points lie next to a "
            f"class of neither partner {_share(halfway.contradiction.value)} of the time, samples "
            f"next to another class than theirs {_share(halfway.disagreement.value)}, and at most "
            f"{TOLERATED:.0%} of the samples should be mixed into that."
        )
    if chosen.k == 1:
        return f"Alpha = {strength:g} is the reference, and contradictions do not forbid it."
    near = f"partners being at {_share(chosen.ratio.value)} of the squared distance of random pairs"
    if not chosen.reachable:
        return (
            f"No alpha perturbs as much as {usual}, {near}; alpha = {strength:g} has lam near one "
            "half, which is the most there is."
        )
    if chosen.alpha > LARGEST:
        return (
            f"Alpha = {strength:g} perturbs almost as much as {usual}, for which it takes "
            f"{chosen.alpha:.2g}, {near}."
        )
    return f"Alpha = {strength:g} perturbs the samples as much as {usual}, {near}."


def _share(value: float) -> str:
    """A share in per cent, with two digits where it is small.

    >>> _share(0.5), _share(0.0213), _share(0.00042)
    ('50%', '2.1%', '0.04%')
    """
    percent = 100 * value
    digits = 0 if percent >= 10 else 1 if percent >= 1 else 2
    return f"{percent:.{digits}f}%"


def _changes(chosen: Reading, readings: Sequence[Reading], batch_size: int) -> str:
    """What would make the advice another one."""
    words = []
    if chosen.k > 1:
        words.append(f"batches of fewer than {2 * chosen.k} samples, which hold no two sets of k")
    larger = next((one.k for one in readings if one.k > chosen.k), 0)
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
            f"Neither partners nor nearest samples share their class more often than random "
            f"pairs, {1 - chance:.1%} of which do.",
            "Between such samples there is no label to interpolate, whatever k is.",
        ),
        "What would change this: another scaling or an embedding of the inputs in which "
        "neighbours share their class; more samples, if the link is weak.",
        "labels do not go with distances here: mixup will not help",
    )


def _unseen(usable: Sequence[Reading], samples: int) -> Advice:
    return Advice(
        1,
        _rounded(min(usable[0].alpha, LARGEST)),
        (
            f"With {samples} samples, or samples that all coincide, it cannot be seen where mixed "
            "points lie.",
            "Plain mixup at its usual strength is the least to try.",
        ),
        "What would change this: more samples.",
    )
