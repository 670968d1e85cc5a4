"""The report of `kmixup tune`: the final test first, then the search."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from statistics import fmean

from kmixup.lab.evaluate.baseline import all_constant, constant_sentence
from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.experiments.rows import done_of, unfitted_sentence
from kmixup.lab.experiments.search import Round, Setting, Tried
from kmixup.lab.experiments.tuning import Finalist, Tuned
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, joined, number, strength, with_error
from kmixup.lab.report import document as doc
from kmixup.lab.report.comparisons import compare_trials, comparison_table, holm_corrected
from kmixup.lab.report.render_html import html
from kmixup.lab.report.stats import Comparison
from kmixup.lab.report.sweep import XI, provenance

RECIPES = {
    "simple": "alpha as given, and a search over k (the paper's simplest recipe)",
    "two-step": "mixup's best alpha, then a search over k at the same xi (the paper's second "
    "recipe)",
    "grid": "every k with every alpha (the paper's full search)",
    "tpe": "every k at one alpha, then the settings that Optuna's TPE proposes",
}
NO_MIXING = "ERM (alpha=0)"
TEST_NOTE = (
    "The test set was used once, after both searches. Differences are paired by seed, with "
    "Student's 95 % interval; below 0 is better. Verdicts are corrected for three tests (Holm). "
    "All trials share one split: the interval covers initial weights and sample order, not other "
    "splits."
)
ROUNDS_NOTE = (
    "Settings are compared by their mean validation error over the same seeds. Of equal settings "
    "the smaller k wins, then the smaller alpha; a setting with a failed trial cannot win. "
    f"{XI}"
)


def tune_document(tuned: Tuned, command: str) -> doc.Document:
    plan, measure, name = tuned.plan, tuned.measure, tuned.plan.strategy.name
    protocol = (
        "Training and test set were split once, by the seed. Every trial of the searches held out "
        f"{100 * plan.validation:g} % of the training set for validation, drawn by its own seed, "
        "and fitted the scaling to the rest. The winners and ERM were then trained on the whole "
        "training set."
    )
    header = ["method", "chosen on validation samples", f"test {measure.name} {measure.unit}",
              "trials", "trained with"]  # fmt: skip
    errors = [
        [of.name, name_of(of.setting), with_error(of.mean, of.standard_error), str(len(of.errors)),
         trained_with(of)]
        for of in tuned.tests
    ]  # fmt: skip
    compared = [(f"{found.new} − {found.old}", [found]) for found in comparisons(tuned)]
    test: list[doc.Block] = [
        doc.ReportTable(header, errors),
        comparison_table(compared, f"difference, {measure.points}"),
        doc.Paragraph(TEST_NOTE, style="fine"),
    ]
    search: list[doc.Block] = [
        surface(tuned),
        doc.Paragraph(f"Strategy {name}: {RECIPES[name]}. {reach(tuned)}"),
        doc.Details("All rounds", [_rounds(tuned), doc.Paragraph(ROUNDS_NOTE, "fine")]),
    ]
    settings = doc.Details("All settings", [doc.Facts(_protocol(tuned))])
    blocks: list[doc.Block] = [
        headline(tuned),
        doc.Section("Final test", test),
        doc.Section("Search", search),
        doc.Section("Protocol", [doc.Paragraph(protocol), settings]),
        *provenance(sorted(tuned.rows, key=lambda row: row.id), command),
    ]
    return doc.Document(f"k and alpha for {Path(plan.base.data).name}", blocks)


def write_tune(tuned: Tuned, folder: Path, command: str) -> Path:
    """Write `tune.html` into `folder`, and return it."""
    replace_content(folder / "tune.html", html(tune_document(tuned, command)))
    return folder / "tune.html"


# The final test


def comparisons(tuned: Tuned) -> tuple[Comparison, ...]:
    """k-mixup against mixup, k-mixup against ERM, and mixup against ERM, with Holm correction."""
    pairs = combinations(tuned.tests, 2)
    tests = [compare_trials(new.name, new, old.name, old) for new, old in pairs]
    return tuple(holm_corrected(dict(enumerate(tests))).values())


def headline(tuned: Tuned) -> doc.Headline:
    """The best of the final test, whether it is significantly better, and a line to copy."""
    best = best_of(tuned)
    if best is None:
        return doc.Headline("Every trial of the final test failed.", mood="bad")
    tested = [finalist for finalist in tuned.tests if finalist.mean is not None]
    scores = [row.scores for finalist in tested for row in finalist.done]
    constant = constant_sentence(scores)
    if all_constant(scores):
        text = "Nothing was learned: all networks predict a constant."
        return doc.Headline(text, [constant], mood="bad")
    unit = " %" if best.measure is PERCENT else ""
    error = f"test {best.measure.name} {with_error(best.mean, best.standard_error)}{unit}"
    # the same tests as in the table below
    better = {(found.new, found.old): found.side for found in comparisons(tuned)}
    better |= {(old, new): -side for (new, old), side in better.items()}
    others = [finalist.name for finalist in tested if finalist is not best]
    worse = [name for name in others if better[best.name, name] < 0]
    alike = [name for name in others if name not in worse]
    if not others:
        text = f"Only {best.name} finished the final test: {error}."
    elif not worse:
        names = joined([finalist.name for finalist in tested])
        text = f"No significant difference between {names}; lowest {error}, {best.name}."
    else:
        rest = f", with no significant difference from {alike[0]}" if alike else ""
        text = f"{best.name} is better than {joined(worse)}{rest}: {error}."
    simplest = f"The simplest choice is as good: {NO_MIXING}." if "ERM" in alike else ""
    unfitted = unfitted_sentence(row for finalist in tested for row in finalist.rows)
    sentences = list(filter(None, (simplest, constant, unfitted)))
    return doc.Headline(text, sentences, line_of(best), "good" if worse and not alike else "open")


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
    """The options of `kmixup train` for the same."""
    if (setting := finalist.setting) is None:
        return ["--method", "erm"]
    return ["--k", str(setting.k), "--alpha", f"{_alpha(finalist, setting):.3g}"]


def _alpha(finalist: Finalist, setting: Setting) -> float:
    return fmean(row.alpha for row in finalist.done) if finalist.done else setting.alpha


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
    if tested.setting is None or not tested.done:
        return NOTHING
    xis = [row.xi for row in tested.done if row.xi is not None]
    alpha, xi = _alpha(tested, tested.setting), fmean(xis) if xis else None
    return f"α {strength(alpha)}, ξ {strength(xi)}"


# The search


def reach(tuned: Tuned) -> str:
    ran = f"It ran {count(tuned.kmixup.trials, 'trial')} of k-mixup and as many of mixup"
    if tuned.budget is None:
        return f"{ran}, the whole strategy."
    return f"{ran}, from a budget of {count(tuned.budget, 'trial')} for each."


def surface(tuned: Tuned) -> doc.HeatMap:
    """Validation errors by k and alpha, and of ERM."""
    search, measure = tuned.kmixup, tuned.measure
    places = {(tried.setting.k, tried.setting.alpha): tried for tried in search.table}
    ks, alphas = (sorted(set(values)) for values in zip(*places, strict=True))

    def box(tried: Tried | None) -> doc.Box:
        if tried is None:
            return doc.Box("")
        mean, spread = (scaled(v, measure) for v in (tried.mean, tried.standard_error))
        digits = measure.digits(mean)
        small = [] if spread is None else [f"± {number(spread, digits)}"]
        small.append(f"({len(tried.ended)})")
        small += [f"{tried.failed} failed"] if tried.failed else []
        return doc.Box(number(mean, digits), [" ".join(small)], best=tried.setting == search.winner)

    rows = [("ERM", [box(Tried(Setting(1, 0.0), tuple(tuned.erm)))])]
    rows += [(f"k = {k}", [box(places.get((k, alpha))) for alpha in alphas]) for k in ks]
    return doc.HeatMap(
        f"k-mixup: validation {measure.name} {measure.unit}",
        [(f"α {alpha:g}", "") for alpha in alphas],
        rows,
        caption="± standard error (seeds). The winner is framed (*).",
    )


def scaled(error: float, measure: Measure) -> float | None:
    """An error in table units, None for NaN."""
    return measure.factor * error if math.isfinite(error) else None


def _rounds(tuned: Tuned) -> doc.ReportTable:
    measure, rows = tuned.measure, []
    for name, search in (("k-mixup", tuned.kmixup), ("mixup", tuned.mixup)):
        for part in search.rounds:
            extent = f"{count(len(part.tried), 'setting')} × {count(search.seeds, 'seed')}"
            rows.append([name, part.title, extent, *_leader(part, measure)])
    lowest = f"lowest {measure.name}"
    return doc.ReportTable(["search", "round", "extent", lowest, measure.unit], rows)


def _leader(part: Round, measure: Measure) -> tuple[str, str]:
    whole = [tried for tried in part.tried if tried.errors and not tried.failed]
    if not whole:
        return NOTHING, NOTHING
    best = min(whole, key=lambda tried: (tried.mean, tried.setting.k, tried.setting.alpha))
    error = with_error(*(scaled(value, measure) for value in (best.mean, best.standard_error)))
    return name_of(best.setting), error


def _protocol(tuned: Tuned) -> dict[str, object]:
    plan = tuned.plan
    base = plan.base.to_dict()
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
