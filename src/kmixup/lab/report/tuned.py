"""What came of a search for k and alpha, in words, maps and curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kmixup.lab.report.curves import Line, against_alpha, against_k
from kmixup.lab.report.heat import sequential
from kmixup.lab.report.maps import Box, Map
from kmixup.lab.report.page import Drawing
from kmixup.lab.report.verdict import Estimate, interval
from kmixup.lab.report.wording import number, signed, strength
from kmixup.lab.search import Round, Searched, Tried
from kmixup.lab.strategies import Setting
from kmixup.lab.tuning import Finalist, Tuned
from kmixup.lab.words import count

RECIPES = {
    "simple": "alpha as given, and a search over k: the paper's very simple recipe",
    "two-step": "the best alpha of mixup, then a search over k at the xi of that alpha: the "
    "paper's second recipe",
    "grid": "every k with every alpha: the paper's full search",
    "halving": "every k with every alpha, of which the better half goes on with twice the "
    "seeds, again and again",
}
TIES = (
    "Settings are compared by their mean validation error on the seeds that all of them have; "
    "of equal ones the smaller k wins, then the smaller alpha, and one with a failed trial "
    "cannot win. The figures of the map are over all seeds of each: one with fewer seeds may look "
    "better than the winner."
)
CAUTION = (
    "The test part was looked at once, after both searches. The differences are of trials in "
    "pairs of equal seeds, with Student's interval of 95 %, and below 0 is better. All trials "
    "share one division into training and test part: the interval says how first weights and "
    "order move the figures, not how another division would."
)


@dataclass(frozen=True)
class Comparison:
    """Two methods of the final test, and what can be told of their difference."""

    new: Finalist
    old: Finalist

    @property
    def estimate(self) -> Estimate | None:
        """The mean difference in pairs; None with fewer than two."""
        mine, theirs = self.new.errors, self.old.errors
        seeds = sorted(mine.keys() & theirs.keys())
        return interval([mine[i] - theirs[i] for i in seeds]) if len(seeds) > 1 else None

    @property
    def verdict(self) -> str:
        new, old, found = self.new, self.old, self.estimate
        if new.setting == old.setting:
            return "the search over k chose mixup itself, with the same alpha: no difference"
        if found is None:
            return "no verdict: that takes two trials of both"
        if found.side == 0:
            return "no difference can be told: the interval contains 0"
        return f"{new.name} is {'better' if found.side < 0 else 'worse'} than {old.name}"

    @property
    def mood(self) -> str:
        side = 0 if self.estimate is None else self.estimate.side
        return {-1: "good", 0: "open", 1: "bad"}[side]

    @property
    def figures(self) -> str:
        found = self.estimate
        if found is None:
            return "–"
        return f"{signed(found.difference)} [{signed(found.low)}, {signed(found.high)}]"

    @property
    def sentence(self) -> str:
        return f"{self.new.name} less {self.old.name}: {self.figures} points; {self.verdict}."


def comparisons(tuned: Tuned) -> tuple[Comparison, ...]:
    kmixup, mixup, erm = tuned.tests
    return Comparison(kmixup, mixup), Comparison(kmixup, erm), Comparison(mixup, erm)


def name_of(setting: Setting | None) -> str:
    """
    >>> name_of(Setting(1, 0.5)), name_of(Setting(4, 1.0, "xi")), name_of(None)
    ('k = 1, alpha 0.5', 'k = 4, alpha of mixup 1 at equal xi', '–')
    """
    if setting is None:
        return "–"
    alpha = f"alpha of mixup {setting.alpha:g} at equal xi"
    return f"k = {setting.k}, {alpha if setting.alpha_rule == 'xi' else f'alpha {setting.alpha:g}'}"


def figure(mean: float | None, error: float | None) -> str:
    """
    >>> figure(3.2, 0.25), figure(3.2, None)
    ('3.20 ± 0.25', '3.20')
    """
    return number(mean) if error is None else f"{number(mean)} ± {number(error)}"


def reach(tuned: Tuned) -> str:
    """How far the budget went."""
    found, budget = tuned.kmixup, tuned.budget
    said = f"{count(found.trials, 'trial')} of k-mixup and as many of mixup"
    cut = [
        f"“{one.stage.title}” had {len(one.errors)} of {count(len(one.stage.seeds), 'seed')}"
        for one in found.rounds
        if not one.whole
    ]
    if not math.isfinite(budget.amount):
        return f"{said}, all that the strategy has."
    used = f"{budget.words(found.seconds)} of " if budget.timed else ""
    went = f"{used}a budget of {budget.words(budget.amount)} for each"
    return f"{said}, from {went}: {'; '.join(cut) or 'enough for the whole strategy'}."


def surface(found: Searched, title: str) -> Map:
    """Validation errors by k and alpha, in per cent."""
    tried = {(one.setting.k, one.setting.alpha): one for one in found.table}
    tint = sequential(percent(one.mean) for one in found.table)
    alphas = sorted({alpha for _, alpha in tried})

    def box(one: Tried | None) -> Box:
        if one is None:
            return Box("")
        best = one.setting == found.winner
        return Box(number(percent(one.mean)), _small(one), tint(percent(one.mean)), best)

    rows = [
        (f"k = {k}", tuple(box(tried.get((k, alpha))) for alpha in alphas))
        for k in sorted({k for k, _ in tried})
    ]
    return Map(title, tuple((f"α {alpha:g}", "") for alpha in alphas), tuple(rows))


def _small(one: Tried) -> str:
    spread = percent(one.standard_error)
    words = [f"± {number(spread)}"] if spread is not None else []
    words += [f"({len(one.ended)})"]
    words += [f"{one.failed} failed"] if one.failed else []
    return " ".join(words)


def percent(share: float) -> float | None:
    return 100 * share if math.isfinite(share) else None


def curves(tuned: Tuned) -> tuple[Drawing, ...]:
    """Validation error against k for every alpha, and of mixup against alpha."""
    alphas = sorted({one.setting.alpha for one in tuned.kmixup.table})
    by_alpha = [
        _line(f"α {alpha:g}", [one for one in tuned.kmixup.table if one.setting.alpha == alpha])
        for alpha in alphas
    ]
    mixup = _line("mixup", sorted(tuned.mixup.table, key=lambda one: one.setting.alpha), k=False)
    return (
        Drawing("k-mixup, validation error against k", Markup(against_k(by_alpha, name="k"))),
        Drawing(
            "mixup, validation error against alpha", Markup(against_alpha([mixup], name="alpha"))
        ),
    )


def _line(label: str, tried: Sequence[Tried], *, k: bool = True) -> Line:
    known = [one for one in tried if one.ended]
    return Line(
        label,
        tuple(one.setting.k if k else one.setting.alpha for one in known),
        tuple(100 * one.mean for one in known),
        tuple(percent(one.standard_error) or 0.0 for one in known),
    )


@dataclass(frozen=True)
class Step:
    """A line of the course of a search."""

    search: str
    title: str
    extent: str
    leader: str
    error: str


def course(tuned: Tuned) -> tuple[Step, ...]:
    """The rounds of both searches, and who had the least mean error in each."""
    return tuple(
        Step(name, one.stage.title, _extent(one), *_leader(one))
        for name, found in (("k-mixup", tuned.kmixup), ("mixup", tuned.mixup))
        for one in found.rounds
    )


def _extent(one: Round) -> str:
    given = "" if one.whole else f"{len(one.errors)} of "
    seeds = count(len(one.stage.seeds), "seed")
    return f"{count(len(one.stage.settings), 'setting')} × {given}{seeds}"


def _leader(one: Round) -> tuple[str, str]:
    columns = zip(*one.errors, strict=True)
    tried = [Tried(*pair) for pair in zip(one.stage.settings, columns, strict=False)]
    whole = [one for one in tried if not one.failed]
    if not whole:
        return "–", "–"
    best = min(whole, key=lambda one: (one.mean, one.setting.k, one.setting.alpha))
    return name_of(best.setting), figure(percent(best.mean), percent(best.standard_error))


def trained_with(tested: Finalist) -> str:
    """The mean alpha that a method trained with, and its xi."""
    if tested.setting is None or not tested.done:
        return "–"
    means = (sum(row[key] for row in tested.done) / len(tested.done) for key in ("alpha", "xi"))
    return "α {}, ξ {}".format(*map(strength, means))


def protocol(tuned: Tuned) -> dict[str, object]:
    """All that a reader needs to do the same."""
    plan = tuned.plan
    base = {key: one for key, one in plan.base.to_dict().items() if one not in (None, [])}
    # there is such a row, or nothing would have won
    held = next(
        row["data"]
        for row in tuned.rows
        if row["status"] == "done" and row["trial"]["validation"] is not None
    )
    tested = [row["data"]["test"] for one in tuned.tests for row in one.done]
    return {
        "data": base["data"],
        "network": base["model"],
        **base["protocol"],
        **{key: base[key] for key in ("limit", "size", "target") if key in base},
        "classes": held["classes"],
        "scaling": held["scaling"],
        "training samples": held["train"] + held["test"],
        "of them held out": held["test"],
        **({"test samples": tested[0]} if tested else {}),
        "seed": base["seed"],
        "seeds of the test": f"{plan.tests}, from {plan.test_trials(None)[0].seed}",
    }
