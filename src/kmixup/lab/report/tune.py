"""The report of `kmixup tune`: the final test first, then the search."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean

from kmixup.lab.evaluate.baseline import all_constant, constant_sentence
from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.experiments.budget import minutes
from kmixup.lab.experiments.rows import any_diverged, done_of, unfitted_sentence
from kmixup.lab.experiments.search import Round, Tried
from kmixup.lab.experiments.strategy import Setting
from kmixup.lab.experiments.tuning import Finalist, Tuned
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, joined, number, strength, with_error
from kmixup.lab.report import document as doc
from kmixup.lab.report import stats
from kmixup.lab.report.comparisons import FinalComparison, compare_tests
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


def tune_document(tuned: Tuned, command: str) -> doc.Document:
    """The report of a search and its final test."""
    plan = tuned.plan
    name = plan.strategy.name
    rules = (
        "Settings are compared by their mean validation error on the seeds that all of them have. "
        "Of equal settings the smaller k wins, then the smaller alpha; a setting with a failed "
        "trial cannot win. The map has the means over all seeds of a setting, so one with fewer "
        "seeds may look better than the winner."
    )
    if name == "two-step":
        rules += f" {XI}"
    protocol = (
        "Training and test set were split once, by the seed. Every trial of the searches held out "
        f"{100 * plan.validation:g} % of the training set for validation, drawn by its own seed, "
        "and fitted the scaling to the rest. The winners and ERM were then trained on the whole "
        "training set."
    )
    search: list[doc.Block] = [
        surface(tuned),
        doc.Paragraph(f"Strategy {name}: {RECIPES[name]}. {reach(tuned)}"),
        doc.Figures(_curves(tuned)),
        doc.Details("All rounds", [_rounds(tuned), doc.Paragraph(rules, style="fine")]),
    ]
    return doc.Document(
        f"k and alpha for {Path(plan.base.data).name}",
        [
            headline(tuned),
            doc.Section("Final test", _test(tuned)),
            doc.Section("Search", search),
            doc.Section(
                "Protocol",
                [
                    doc.Paragraph(protocol),
                    doc.Details("All settings", [doc.Facts(_protocol(tuned))]),
                ],
            ),
            *provenance(sorted(tuned.rows, key=lambda row: row.id), command),
        ],
    )


def write_tune(tuned: Tuned, folder: Path, command: str) -> Path:
    """Write `tune.html` into `folder`, and return it."""
    replace_content(folder / "tune.html", html(tune_document(tuned, command)))
    return folder / "tune.html"


# The verdict


def comparisons(tuned: Tuned) -> tuple[FinalComparison, ...]:
    """k-mixup against mixup, k-mixup against ERM, and mixup against ERM, with Holm correction."""
    data = tuned.plan.base.data
    pairs = combinations(tuned.tests, 2)
    return compare_tests([(data, new.name, new, old.name, old) for new, old in pairs])


def headline(tuned: Tuned) -> doc.Headline:
    """The best of the final test, whether it is significantly better, and a line to copy."""
    best = best_of(tuned)
    if best is None:
        return doc.Headline("Every trial of the final test failed.", mood="bad")
    tested = [finalist for finalist in tuned.tests if finalist.mean is not None]
    scores = [row.scores for finalist in tested for row in finalist.done]
    constant = constant_sentence(scores, diverged=any_diverged(tuned.rows))
    if all_constant(scores):
        return doc.Headline(
            "Nothing was learned: all networks predict a constant.", [constant], mood="bad"
        )
    unit = " %" if best.measure is PERCENT else ""
    error = f"{best.measure.name} {with_error(best.mean, best.standard_error)}{unit}"
    # the same tests as in the table below
    names, sides = [finalist.name for finalist in tested], {}
    for found in comparisons(tuned):
        if found.new == best.name and found.old in names:
            sides[found.old] = found.verdict.side
        elif found.old == best.name and found.new in names:
            sides[found.new] = -found.verdict.side
    worse = [name for name, side in sides.items() if side < 0]
    alike = [name for name, side in sides.items() if side >= 0]
    if not sides:
        text = f"Only {best.name} finished the final test: test {error}."
    elif not worse:
        text = (
            f"No significant difference between {joined(names)}; lowest test {error}, {best.name}."
        )
    elif alike:
        text = (
            f"{best.name} is better than {worse[0]}, with no significant difference from "
            f"{alike[0]}: test {error}."
        )
    else:
        text = f"{best.name} is better than {joined(worse)}: test {error}."
    simplest = f"The simplest choice is as good: {NO_MIXING}." if "ERM" in alike else ""
    mood: stats.Mood = "good" if worse and not alike else "open"
    unfitted = unfitted_sentence(row for finalist in tested for row in finalist.rows)
    sentences = [s for s in (simplest, constant, unfitted) if s]
    return doc.Headline(text, sentences, line_of(best), mood)


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
    return f"KMixup(k={finalist.setting.k}, alpha={_alpha(finalist, finalist.setting):.3g})"


def method_words(finalist: Finalist) -> list[str]:
    """The same as options of `kmixup train`."""
    if (setting := finalist.setting) is None:
        return ["--method", "erm"]
    return ["--k", str(setting.k), "--alpha", f"{_alpha(finalist, setting):.3g}"]


def _alpha(finalist: Finalist, setting: Setting) -> float:
    return fmean(row.alpha for row in finalist.done) if finalist.done else setting.alpha


# The final test


def _test(tuned: Tuned) -> list[doc.Block]:
    measure, compared = tuned.measure, comparisons(tuned)
    errors = doc.ReportTable(
        [
            "method", "chosen on validation samples", f"test {measure.name} {measure.unit}",
            "trials", "trained with",
        ],
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
    )  # fmt: skip
    differences = doc.ReportTable(
        ["difference", f"{measure.points} [95 %]", "p (Holm)", "verdict"],
        [
            [
                f"{found.new} − {found.old}",
                NOTHING if found.difference is None else found.difference.text,
                NOTHING if found.difference is None else stats.p_text(found.p),
                found.verdict.text,
            ]
            for found in compared
        ],
        moods=[found.verdict.mood for found in compared],
        verdict=3,
    )
    note = (
        "The test set was used once, after both searches. Differences are paired by seed, with "
        "Student's 95 % interval; below 0 is better. Verdicts are corrected for three tests "
        "(Holm). All trials share one split: the interval covers initial weights and sample order, "
        "not other splits."
    )
    return [errors, differences, doc.Paragraph(note, style="fine")]


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
    xis = [row.xi for row in tested.done if row.xi is not None]
    alpha, xi = _alpha(tested, tested.setting), fmean(xis) if xis else None
    return f"α {strength(alpha)}, ξ {strength(xi)}"


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


def surface(tuned: Tuned) -> doc.HeatMap:
    """Validation errors by k and alpha, and of ERM."""
    search, measure = tuned.kmixup, tuned.measure
    places = {(tried.setting.k, tried.setting.alpha): tried for tried in search.table}
    alphas = sorted({alpha for _, alpha in places})

    def box(tried: Tried | None) -> doc.Box:
        if tried is None:
            return doc.Box("")
        mean, spread = (scaled(v, measure) for v in (tried.mean, tried.standard_error))
        digits = measure.digits(mean)
        small = [] if spread is None else [f"± {number(spread, digits)}"]
        small.append(f"({len(tried.ended)})")
        small += [f"{tried.failed} failed"] if tried.failed else []
        return doc.Box(number(mean, digits), [" ".join(small)], best=tried.setting == search.winner)

    rows = [("ERM", [box(Tried(Setting(1, 0.0), tuple(tuned.erm)))])] if tuned.erm else []
    rows += [
        (f"k = {k}", [box(places.get((k, alpha))) for alpha in alphas])
        for k in sorted({k for k, _ in places})
    ]
    return doc.HeatMap(
        f"k-mixup: validation {measure.name} {measure.unit}",
        [(f"α {alpha:g}", "") for alpha in alphas],
        rows,
        caption="± standard error (seeds). The winner is framed (*).",
    )


def scaled(error: float, measure: Measure) -> float | None:
    """An error in table units, None for NaN."""
    return measure.factor * error if math.isfinite(error) else None


def _curves(tuned: Tuned) -> list[doc.Figure]:
    """Validation error against k for every alpha, and of mixup against alpha."""
    measure = tuned.measure
    axis = f"{measure.name} {measure.unit}"
    by_alpha: dict[float, list[Tried]] = defaultdict(list)
    for tried in tuned.kmixup.table:
        by_alpha[tried.setting.alpha].append(tried)
    kmixup = [_curve(f"α {alpha:g}", by_alpha[alpha], measure) for alpha in sorted(by_alpha)]
    of_mixup = sorted(tuned.mixup.table, key=lambda tried: tried.setting.alpha)
    mixup = _curve("mixup", of_mixup, measure, k=False)
    of_k = against_k(kmixup, erm=scaled(fmean(tuned.erm), measure), ylabel=axis)
    title = f"validation {measure.name} against"
    return [
        doc.Figure(f"k-mixup, {title} k", of_k, legend=3),
        doc.Figure(f"mixup, {title} alpha", against_alpha([mixup], ylabel=axis), legend=3),
    ]


def _curve(label: str, points: Sequence[Tried], measure: Measure, *, k: bool = True) -> Curve:
    known = [tried for tried in points if tried.ended]
    return Curve(
        label,
        tuple(tried.setting.k if k else tried.setting.alpha for tried in known),
        tuple(measure.factor * tried.mean for tried in known),
        tuple(scaled(tried.standard_error, measure) or 0.0 for tried in known),
    )


def _rounds(tuned: Tuned) -> doc.ReportTable:
    """The rounds of both searches, and the lowest mean error of each."""
    measure, rows = tuned.measure, []
    for name, search in (("k-mixup", tuned.kmixup), ("mixup", tuned.mixup)):
        for part in search.rounds:
            given = f"{part.seeds} of " if part.seeds < part.planned else ""
            extent = f"{count(len(part.tried), 'setting')} × {given}{count(part.planned, 'seed')}"
            rows.append([name, part.title, extent, *_leader(part, measure)])
    lowest = f"lowest {measure.name}"
    return doc.ReportTable(["search", "round", "extent", lowest, measure.unit], rows)


def _leader(part: Round, measure: Measure) -> tuple[str, str]:
    whole = [tried for tried in part.tried if tried.errors and not tried.failed]
    if not whole:
        return NOTHING, NOTHING
    best = min(whole, key=lambda tried: (tried.mean, tried.setting.k, tried.setting.alpha))
    return name_of(best.setting), _error(best, measure)


def _error(tried: Tried, measure: Measure) -> str:
    return with_error(scaled(tried.mean, measure), scaled(tried.standard_error, measure))


def _protocol(tuned: Tuned) -> dict[str, object]:
    """All that a reader needs to repeat it."""
    plan = tuned.plan
    base = {key: value for key, value in plan.base.to_dict().items() if value not in (None, [])}
    # there is such a row, or nothing would have won
    held = next(row.data for row in done_of(tuned.rows) if row.trial.validation is not None)
    tested = [row.data.test for finalist in tuned.tests for row in finalist.done]
    return {
        **{key: value for key, value in base.items() if key not in ("method", "protocol")},
        **base["protocol"],
        "classes": held.classes or None,  # a regression has none
        "scaling": held.scaling,
        "training samples": held.train + held.test,
        "of them held out": held.test,
        "test samples": tested[0] if tested else None,
        "test seeds": f"{plan.tests}, from {plan.test_trials(None)[0].seed}",
    }
