"""What came of a search for k and alpha, in words, maps and curves."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.experiments.budget import minutes
from kmixup.lab.experiments.rows import done_of
from kmixup.lab.experiments.search import Round, Searched, Tried
from kmixup.lab.experiments.strategy import Setting
from kmixup.lab.experiments.tuning import Finalist, Tuned
from kmixup.lab.formatting import NOTHING, count, number, strength, with_error
from kmixup.lab.pages.heat import Box, HeatMap, sequential
from kmixup.lab.pages.html import Drawing
from kmixup.lab.report.curves import Curve, against_alpha, against_k
from kmixup.lab.report.verdict import Mood, PairedDifference, paired

RECIPES = {
    "simple": "alpha as given, and a search over k: the paper's very simple recipe",
    "two-step": "the best alpha of mixup, then a search over k at the xi of that alpha: the "
    "paper's second recipe",
    "grid": "every k with every alpha: the paper's full search",
    "halving": "every k with every alpha, of which about the better half goes on with twice the "
    "seeds, again and again (Optuna's successive halving)",
    "tpe": "every k at one alpha, then the settings that Optuna's TPE proposes",
}
TIES = (
    "Settings are compared by their mean validation error on the seeds that all of them have. "
    "Of equal settings the smaller k wins, then the smaller alpha; a setting with a failed trial "
    "cannot win. The figures of the map are over all seeds of a setting: a setting with fewer "
    "seeds may look better than the winner."
)
CAUTION = (
    "The test part was looked at once, after both searches. The differences are of trials in "
    "pairs of equal seeds, with Student's interval of 95 %, and below 0 is better. All trials "
    "share one division into training and test part: the interval says how first weights and "
    "order move the figures, not how another division would."
)


class FinalVerdict(Enum):
    """What the final test says of two methods.

    Attributes:
        text: the verdict; `{new}` and `{old}` are filled in with the names of the methods.
        mood: how the verdict is coloured.
    """

    SAME = ("the search over k chose mixup itself, with the same alpha: no difference", Mood.OPEN)
    NONE = ("no verdict: that takes three trials of both", Mood.OPEN)
    UNDECIDED = ("no difference can be told: the interval contains 0", Mood.OPEN)
    BETTER = ("{new} is better than {old}", Mood.GOOD)
    WORSE = ("{new} is worse than {old}", Mood.BAD)

    def __init__(self, text: str, mood: Mood) -> None:
        self.text, self.mood = text, mood


@dataclass(frozen=True)
class FinalComparison:
    """Two methods of the final test.

    Attributes:
        new: the method that should be better.
        old: the method that it is compared with.
    """

    new: Finalist
    old: Finalist

    @property
    def difference(self) -> PairedDifference | None:
        """In points, over the seeds of both; None with fewer than three seeds."""
        return paired(self.new.errors, self.old.errors)

    @property
    def verdict(self) -> FinalVerdict:
        if self.new.setting == self.old.setting:
            return FinalVerdict.SAME
        if (difference := self.difference) is None:
            return FinalVerdict.NONE
        by_side = {-1: FinalVerdict.BETTER, 0: FinalVerdict.UNDECIDED, 1: FinalVerdict.WORSE}
        return by_side[difference.side]

    @property
    def text(self) -> str:
        """The verdict in words."""
        return self.verdict.text.format(new=self.new.name, old=self.old.name)

    @property
    def mood(self) -> Mood:
        return self.verdict.mood

    @property
    def figures(self) -> str:
        """The difference and its interval."""
        return NOTHING if self.difference is None else self.difference.text

    @property
    def sentence(self) -> str:
        points = self.new.measure.points
        return f"{self.new.name} less {self.old.name}: {self.figures} {points}; {self.text}."


def comparisons(tuned: Tuned) -> tuple[FinalComparison, ...]:
    """k-mixup against mixup, k-mixup against ERM, and mixup against ERM."""
    kmixup, mixup, erm = tuned.tests
    pairs = ((kmixup, mixup), (kmixup, erm), (mixup, erm))
    return tuple(FinalComparison(new, old) for new, old in pairs)


def name_of(setting: Setting | None) -> str:
    """A setting as the page writes it.

    >>> name_of(Setting(1, 0.5)), name_of(Setting(4, 1.0, "xi")), name_of(None)
    ('k = 1, alpha 0.5', 'k = 4, alpha of mixup 1 at equal xi', '–')
    """
    if setting is None:
        return NOTHING
    alpha = f"alpha of mixup {setting.alpha:g} at equal xi"
    return f"k = {setting.k}, {alpha if setting.alpha_rule == 'xi' else f'alpha {setting.alpha:g}'}"


def reach(tuned: Tuned) -> str:
    """How far the budget went."""
    search, budget = tuned.kmixup, tuned.budget
    same = tuned.mixup.trials == search.trials
    mixup = "as many" if same else f"{tuned.mixup.trials:,}"
    said = f"{count(search.trials, 'trial')} of k-mixup and {mixup} of mixup"
    if not budget.limited:
        return f"{said}, all that the strategy has."
    used = f"{minutes(search.seconds)} of " if budget.timed else ""
    cut = [
        f"“{part.title}” had {part.seeds} of {count(part.planned, 'seed')}"
        for part in search.rounds
        if part.seeds < part.planned
    ]
    return f"{': '.join([f'{said}, from {used}a budget of {budget.text} for each', *cut])}."


def surface(
    search: Searched, title: str, *, erm: Sequence[float] = (), measure: Measure = PERCENT
) -> HeatMap:
    """Validation errors by k and alpha; `erm` are those without mixing."""
    places = {(tried.setting.k, tried.setting.alpha): tried for tried in search.table}
    plain = Tried(Setting(1, 0.0), tuple(erm))
    tint = sequential(scaled(tried.mean, measure) for tried in (*search.table, plain))
    alphas = sorted({alpha for _, alpha in places})

    def box(tried: Tried | None) -> Box:
        if tried is None:
            return Box("")
        mean, best = scaled(tried.mean, measure), tried.setting == search.winner
        text = number(mean, measure.digits(mean))
        return Box(text, _small(tried, measure), tint(mean), best)

    rows = [
        (f"k = {k}", tuple(box(places.get((k, alpha))) for alpha in alphas))
        for k in sorted({k for k, _ in places})
    ]
    if erm:
        rows.insert(0, ("ERM", (box(plain),)))
    return HeatMap(title, tuple((f"α {alpha:g}", "") for alpha in alphas), tuple(rows))


def _small(tried: Tried, measure: Measure) -> str:
    spread = scaled(tried.standard_error, measure)
    digits = measure.digits(scaled(tried.mean, measure))
    words = [f"± {number(spread, digits)}"] if spread is not None else []
    words += [f"({len(tried.ended)})"]
    words += [f"{tried.failed} failed"] if tried.failed else []
    return " ".join(words)


def scaled(error: float, measure: Measure) -> float | None:
    """An error in the unit of tables, None for NaN."""
    return measure.factor * error if math.isfinite(error) else None


def curves(tuned: Tuned) -> tuple[Drawing, ...]:
    """Validation error against k for every alpha, and of mixup against alpha."""
    measure = tuned.measure
    axis = f"{measure.name} {measure.unit}"
    by_alpha: dict[float, list[Tried]] = defaultdict(list)
    for tried in tuned.kmixup.table:
        by_alpha[tried.setting.alpha].append(tried)
    kmixup = [_curve(f"α {alpha:g}", by_alpha[alpha], measure) for alpha in sorted(by_alpha)]
    alphas = sorted(tuned.mixup.table, key=lambda tried: tried.setting.alpha)
    mixup = _curve("mixup", alphas, measure, k=False)
    plain = scaled(fmean(tuned.erm), measure)
    return (
        Drawing(
            f"k-mixup, validation {measure.name} against k",
            against_k(kmixup, name="k", erm=plain, ylabel=axis),
        ),
        Drawing(
            f"mixup, validation {measure.name} against alpha",
            against_alpha([mixup], name="alpha", ylabel=axis),
        ),
    )


def _curve(label: str, points: Sequence[Tried], measure: Measure, *, k: bool = True) -> Curve:
    known = [tried for tried in points if tried.ended]
    return Curve(
        label,
        tuple(tried.setting.k if k else tried.setting.alpha for tried in known),
        tuple(measure.factor * tried.mean for tried in known),
        tuple(scaled(tried.standard_error, measure) or 0.0 for tried in known),
    )


@dataclass(frozen=True)
class SearchStep:
    """One round of a search, in words.

    Attributes:
        search: "k-mixup" or "mixup".
        title: what was tried in the round.
        extent: how many settings and seeds were tried.
        leader: the setting with the least mean error in the round.
        error: the mean validation error of the leader.
    """

    search: str
    title: str
    extent: str
    leader: str
    error: str


def course(tuned: Tuned) -> tuple[SearchStep, ...]:
    """The rounds of both searches, and who had the least mean error in each."""
    return tuple(
        SearchStep(name, part.title, _extent(part), *_leader(part, tuned.measure))
        for name, search in (("k-mixup", tuned.kmixup), ("mixup", tuned.mixup))
        for part in search.rounds
    )


def _extent(part: Round) -> str:
    given = f"{part.seeds} of " if part.seeds < part.planned else ""
    return f"{count(len(part.tried), 'setting')} × {given}{count(part.planned, 'seed')}"


def _leader(part: Round, measure: Measure) -> tuple[str, str]:
    whole = [tried for tried in part.tried if tried.errors and not tried.failed]
    if not whole:
        return NOTHING, NOTHING
    best = min(whole, key=lambda tried: (tried.mean, tried.setting.k, tried.setting.alpha))
    return name_of(best.setting), figure_of(best, measure)


def figure_of(tried: Tried, measure: Measure) -> str:
    """The mean error of a setting, with its standard error."""
    return with_error(scaled(tried.mean, measure), scaled(tried.standard_error, measure))


def trained_with(tested: Finalist) -> str:
    """The mean alpha that a method trained with, and its xi."""
    if tested.setting is None or not tested.done:
        return NOTHING
    alpha = fmean(row.alpha for row in tested.done)
    xis = [row.xi for row in tested.done if row.xi is not None]
    return f"α {strength(alpha)}, ξ {strength(fmean(xis) if xis else None)}"


def protocol(tuned: Tuned) -> dict[str, object]:
    """All that a reader needs to do the same."""
    plan = tuned.plan
    base = {key: value for key, value in plan.base.to_dict().items() if value not in (None, [])}
    # there is such a row, or nothing would have won
    held = next(row.data for row in done_of(tuned.rows) if row.trial.validation is not None)
    tested = [row.data.test for finalist in tuned.tests for row in finalist.done]
    return {
        "data": base["data"],
        "network": base["model"],
        **base["protocol"],
        **{
            key: base[key]
            for key in ("limit", "size", "target", "drop", "task", "resize")
            if key in base
        },
        "classes": held.classes or None,  # a regression has none
        "scaling": held.scaling,
        "training samples": held.train + held.test,
        "of them held out": held.test,
        **({"test samples": tested[0]} if tested else {}),
        "seed": base["seed"],
        "seeds of the test": f"{plan.tests}, from {plan.test_trials(None)[0].seed}",
    }
