"""The report of `kmixup tune`: the final test first, then the search."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from kmixup.lab.evaluate.baseline import constant_sentence, is_constant
from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.experiments.budget import minutes
from kmixup.lab.experiments.rows import done_of
from kmixup.lab.experiments.search import Round, Tried
from kmixup.lab.experiments.strategy import Setting
from kmixup.lab.experiments.tuning import Finalist, Tuned
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, number, strength, with_error
from kmixup.lab.report import stats
from kmixup.lab.report.document import (
    Block,
    Box,
    Details,
    Document,
    Facts,
    Figure,
    Figures,
    Headline,
    HeatMap,
    Paragraph,
    ReportTable,
    Section,
)
from kmixup.lab.report.plots import Curve, against_alpha, against_k
from kmixup.lab.report.render_html import html
from kmixup.lab.report.sweep import XI, provenance

RECIPES = {
    "simple": "alpha as given, and a search over k (the paper's simplest recipe)",
    "two-step": "mixup's best alpha, then a search over k at the same xi (the paper's second "
    "recipe)",
    "grid": "every k with every alpha (the paper's full search)",
    "halving": "every k with every alpha; about the better half continues with twice the seeds, "
    "again and again (Optuna's successive halving)",
    "tpe": "every k at one alpha, then the settings that Optuna's TPE proposes",
}
NO_MIXING = "ERM (alpha=0)"


def tune_document(tuned: Tuned, command: str) -> Document:
    """The report of a search and its final test."""
    plan, measure = tuned.plan, tuned.measure
    recipe = RECIPES[plan.strategy.name]
    search: list[Block] = [surface(tuned)]
    search.append(Paragraph(f"Strategy {plan.strategy.name}: {recipe}. {reach(tuned)}"))
    if plan.strategy.name == "two-step":
        search.append(Paragraph(XI, style="fine"))
    search.append(
        Paragraph(
            "Settings are compared by their mean validation error on the seeds that all of them "
            "have. Of equal settings the smaller k wins, then the smaller alpha; a setting with a "
            "failed trial cannot win. The numbers of the map are over all seeds of a setting, so "
            "one with fewer seeds may look better than the winner.",
            style="fine",
        )
    )
    search.append(Figures(_curves(tuned)))
    search.append(Details("All rounds", [_rounds(tuned), _of_mixup(tuned)]))
    protocol = (
        "Training and test set were split once, by the seed. Every trial of the searches held out "
        f"{100 * plan.validation:g} % of the training set for validation, drawn by its own seed, "
        "and fitted the scaling to the rest. The winners and ERM were then trained on the whole "
        "training set."
    )
    rows = sorted(tuned.rows, key=lambda row: row.id)
    return Document(
        f"k and alpha for {Path(plan.base.data).name}",
        [
            headline(tuned),
            Section("Final test", list(_test(tuned, measure))),
            Section("Search", search),
            Section("Protocol", [Paragraph(protocol, style="fine"), Facts(_protocol(tuned))]),
            *provenance(rows, command),
        ],
    )


def write_tune(tuned: Tuned, folder: Path, command: str) -> Path:
    """Write `tune.html` into `folder`, and return it."""
    replace_content(folder / "tune.html", html(tune_document(tuned, command)))
    return folder / "tune.html"


# The verdict


def headline(tuned: Tuned) -> Headline:
    """The best of the final test, whether it is significantly better, and a line to copy."""
    tested = [finalist for finalist in tuned.tests if finalist.mean is not None]
    best = best_of(tuned)
    if best is None:
        return Headline("Every trial of the final test failed.", [_validated(tuned)], mood="bad")
    scores = [row.scores for finalist in tested for row in finalist.done]
    if all(map(is_constant, scores)):
        text = "No network learned anything: all of them predict a constant."
        return Headline(text, [constant_sentence(scores)], mood="bad")
    unit = " %" if best.measure is PERCENT else ""
    error = f"{best.measure.name} {with_error(best.mean, best.standard_error)}{unit}"
    verdicts = {
        pair.name: verdict
        for pair, verdict in _against(best, [other for other in tested if other is not best])
    }
    worse = [name for name, verdict in verdicts.items() if verdict.side < 0]
    alike = [name for name, verdict in verdicts.items() if verdict.side >= 0]
    if worse and not alike:
        text = f"{best.name} is better than {' and '.join(worse)}: test {error}."
    elif worse:
        text = (
            f"{best.name} is better than {worse[0]}, with no significant difference from "
            f"{alike[0]}: test {error}."
        )
    elif alike:
        text = f"No significant difference; lowest test {error}, {best.name}."
    else:
        text = f"Only {best.name} finished the final test: test {error}."
    sentences = [constant_sentence(scores), _validated(tuned)]
    if "ERM" in alike:
        sentences.insert(0, f"The simplest choice is as good: {NO_MIXING}.")
    mood: stats.Mood = "good" if worse and not alike else "open"
    return Headline(text, [s for s in sentences if s], line_of(best), mood)


def _against(best: Finalist, others: Sequence[Finalist]) -> list[tuple[Finalist, stats.Verdict]]:
    """The verdicts on the best against the others, with Holm correction."""
    differences = [stats.paired(best.errors, other.errors) for other in others]
    corrected = stats.holm([1.0 if d is None else d.p for d in differences])
    return [
        (other, stats.verdict(difference, best.name, other.name, p=p))
        for other, difference, p in zip(others, differences, corrected, strict=True)
    ]


def best_of(tuned: Tuned) -> Finalist | None:
    """The finalist with the lowest mean test error, the simpler of equal ones."""

    def key(finalist: Finalist) -> tuple[float, int]:
        simple = 0 if finalist.setting is None else finalist.setting.k
        return round(finalist.mean or 0.0, 9), simple

    tested = [finalist for finalist in tuned.tests if finalist.mean is not None]
    return min(tested, key=key, default=None)


def line_of(finalist: Finalist) -> str:
    """The code that mixes like a finalist; alpha is the mean over its trials."""
    if finalist.setting is None:
        return NO_MIXING
    return f"KMixup(k={finalist.setting.k}, alpha={_alpha(finalist):.3g})"


def method_words(finalist: Finalist) -> list[str]:
    """The same as options of `kmixup train`."""
    if finalist.setting is None:
        return ["--method", "erm"]
    return ["--k", str(finalist.setting.k), "--alpha", f"{_alpha(finalist):.3g}"]


def _alpha(finalist: Finalist) -> float:
    done, setting = finalist.done, finalist.setting
    return fmean(row.alpha for row in done) if done or setting is None else setting.alpha


def _validated(tuned: Tuned) -> str:
    """How the best setting compares with ERM on the validation samples."""
    if any(math.isnan(error) for error in tuned.erm):
        return "On validation samples a trial of ERM failed."
    mixed, plain = fmean(tuned.kmixup.best.errors[: len(tuned.erm)]), fmean(tuned.erm)
    if plain < mixed:
        return "On validation samples ERM had a lower error than every setting."
    if plain == mixed:
        return "On validation samples the best setting had the same error as ERM."
    return "On validation samples the best setting had a lower error than ERM."


# The final test


def _test(tuned: Tuned, measure: Measure) -> Iterator[Block]:
    error = f"test {measure.name} {measure.unit}"
    yield ReportTable(
        ["method", "chosen on validation samples", error, "trials", "trained with"],
        [
            [
                tested.name,
                name_of(tested.setting),
                with_error(tested.mean, tested.standard_error),
                str(len(tested.errors)),
                trained_with(tested),
            ]
            for tested in tuned.tests
        ],
    )
    compared = comparisons(tuned)
    yield ReportTable(
        ["difference", f"{measure.points} [95 %]", "p (Holm)", "verdict"],
        [
            [
                f"{new.name} − {old.name}",
                NOTHING if difference is None else difference.text,
                NOTHING if difference is None else stats.p_text(p),
                verdict.text,
            ]
            for new, old, difference, p, verdict in compared
        ],
        moods=[verdict.mood for *_, verdict in compared],
        verdict=3,
    )
    yield Paragraph(
        "The test set was used once, after both searches. Differences are paired by seed, with "
        "Student's 95 % interval; below 0 is better. Verdicts are corrected for three tests "
        "(Holm). All trials share one split: the interval covers initial weights and sample order, "
        "not other splits.",
        style="fine",
    )


Compared = tuple[Finalist, Finalist, stats.PairedDifference | None, float, stats.Verdict]


def comparisons(tuned: Tuned) -> list[Compared]:
    """k-mixup against mixup, k-mixup against ERM, and mixup against ERM, with Holm correction."""
    kmixup, mixup, erm = tuned.tests
    pairs = [(kmixup, mixup), (kmixup, erm), (mixup, erm)]
    differences = [stats.paired(new.errors, old.errors) for new, old in pairs]
    corrected = stats.holm([1.0 if d is None else d.p for d in differences])
    return [
        (new, old, difference, p, _verdict(new, old, difference, p))
        for (new, old), difference, p in zip(pairs, differences, corrected, strict=True)
    ]


def _verdict(
    new: Finalist, old: Finalist, difference: stats.PairedDifference | None, p: float
) -> stats.Verdict:
    if new.setting == old.setting:
        text = f"the search chose {old.name} itself: no difference"
        return stats.Verdict(stats.Outcome.NOT_SIGNIFICANT, text)
    return stats.verdict(difference, new.name, old.name, p=p)


def name_of(setting: Setting | None) -> str:
    """A setting as the page writes it.

    >>> name_of(Setting(1, 0.5)), name_of(Setting(4, 1.0, "xi")), name_of(None)
    ('k = 1, alpha 0.5', 'k = 4, alpha of mixup 1 at equal xi', '–')
    """
    if setting is None:
        return NOTHING
    alpha = f"alpha of mixup {setting.alpha:g} at equal xi"
    return f"k = {setting.k}, {alpha if setting.alpha_rule == 'xi' else f'alpha {setting.alpha:g}'}"


def trained_with(tested: Finalist) -> str:
    """The mean alpha that a method trained with, and its xi."""
    if tested.setting is None or not tested.done:
        return NOTHING
    alpha = fmean(row.alpha for row in tested.done)
    xis = [row.xi for row in tested.done if row.xi is not None]
    return f"α {strength(alpha)}, ξ {strength(fmean(xis) if xis else None)}"


# The search


def reach(tuned: Tuned) -> str:
    """How far the budget went."""
    search, budget = tuned.kmixup, tuned.budget
    mixup = f"{tuned.mixup.trials:,}" if tuned.mixup.trials != search.trials else "as many"
    ran = f"It ran {count(search.trials, 'trial')} of k-mixup and {mixup} of mixup"
    if not budget.limited:
        return f"{ran}, the whole strategy."
    used = f"{minutes(search.seconds)} of " if budget.timed else ""
    cut = [
        f"“{part.title}” had {part.seeds} of {count(part.planned, 'seed')}"
        for part in search.rounds
        if part.seeds < part.planned
    ]
    return f"{': '.join([f'{ran}, from {used}a budget of {budget.text} for each', *cut])}."


def surface(tuned: Tuned) -> HeatMap:
    """Validation errors by k and alpha, and of ERM."""
    search, measure = tuned.kmixup, tuned.measure
    places = {(tried.setting.k, tried.setting.alpha): tried for tried in search.table}
    alphas = sorted({alpha for _, alpha in places})

    def box(tried: Tried | None) -> Box:
        if tried is None:
            return Box("")
        mean, best = scaled(tried.mean, measure), tried.setting == search.winner
        small = []
        if (spread := scaled(tried.standard_error, measure)) is not None:
            small.append(f"± {number(spread, measure.digits(mean))}")
        small.append(f"({len(tried.ended)})")
        if tried.failed:
            small.append(f"{tried.failed} failed")
        return Box(number(mean, measure.digits(mean)), [" ".join(small)], mean, best)

    rows = [
        (f"k = {k}", [box(places.get((k, alpha))) for alpha in alphas])
        for k in sorted({k for k, _ in places})
    ]
    if tuned.erm:
        rows.insert(0, ("ERM", [box(Tried(Setting(1, 0.0), tuple(tuned.erm)))]))
    return HeatMap(
        f"k-mixup: validation {measure.name} {measure.unit}",
        [(f"α {alpha:g}", "") for alpha in alphas],
        rows,
        caption="± standard error (seeds). The winner is marked.",
        scale="sequential",
    )


def scaled(error: float, measure: Measure) -> float | None:
    """An error in table units, None for NaN."""
    return measure.factor * error if math.isfinite(error) else None


def _curves(tuned: Tuned) -> list[Figure]:
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
    return [
        Figure(
            f"k-mixup, validation {measure.name} against k",
            against_k(kmixup, erm=plain, ylabel=axis),
            legend=3,
        ),
        Figure(
            f"mixup, validation {measure.name} against alpha",
            against_alpha([mixup], ylabel=axis),
            legend=3,
        ),
    ]


def _curve(label: str, points: Sequence[Tried], measure: Measure, *, k: bool = True) -> Curve:
    known = [tried for tried in points if tried.ended]
    return Curve(
        label,
        tuple(tried.setting.k if k else tried.setting.alpha for tried in known),
        tuple(measure.factor * tried.mean for tried in known),
        tuple(scaled(tried.standard_error, measure) or 0.0 for tried in known),
    )


def _rounds(tuned: Tuned) -> ReportTable:
    """The rounds of both searches, and the lowest mean error of each."""
    measure = tuned.measure
    rows = [
        [name, part.title, _extent(part), *_leader(part, measure)]
        for name, search in (("k-mixup", tuned.kmixup), ("mixup", tuned.mixup))
        for part in search.rounds
    ]
    lowest = f"lowest {measure.name}"
    return ReportTable(["search", "round", "extent", lowest, measure.unit], rows)


def _extent(part: Round) -> str:
    given = f"{part.seeds} of " if part.seeds < part.planned else ""
    return f"{count(len(part.tried), 'setting')} × {given}{count(part.planned, 'seed')}"


def _leader(part: Round, measure: Measure) -> tuple[str, str]:
    whole = [tried for tried in part.tried if tried.errors and not tried.failed]
    if not whole:
        return NOTHING, NOTHING
    best = min(whole, key=lambda tried: (tried.mean, tried.setting.k, tried.setting.alpha))
    return name_of(best.setting), _error(best, measure)


def _of_mixup(tuned: Tuned) -> ReportTable:
    measure = tuned.measure
    ordered = sorted(tuned.mixup.table, key=lambda tried: tried.setting.alpha)
    rows = [
        [f"α {tried.setting.alpha:g}", _error(tried, measure), str(len(tried.ended))]
        for tried in ordered
    ]
    return ReportTable(["mixup", f"validation {measure.name} {measure.unit}", "seeds"], rows)


def _error(tried: Tried, measure: Measure) -> str:
    return with_error(scaled(tried.mean, measure), scaled(tried.standard_error, measure))


def _protocol(tuned: Tuned) -> dict[str, object]:
    """All that a reader needs to repeat it."""
    plan = tuned.plan
    base = {key: value for key, value in plan.base.to_dict().items() if value not in (None, [])}
    # there is such a row, or nothing would have won
    held = next(row.data for row in done_of(tuned.rows) if row.trial.validation is not None)
    tested = [row.data.test for finalist in tuned.tests for row in finalist.done]
    shown = ("limit", "size", "target", "drop", "task", "resize", "test", "test_size")
    return {
        "data": base["data"],
        "network": base["model"],
        **base["protocol"],
        **{key: base[key] for key in shown if key in base},
        "classes": held.classes or None,  # a regression has none
        "scaling": held.scaling,
        "training samples": held.train + held.test,
        "of them held out": held.test,
        **({"test samples": tested[0]} if tested else {}),
        "seed": base["seed"],
        "test seeds": f"{plan.tests}, from {plan.test_trials(None)[0].seed}",
    }
