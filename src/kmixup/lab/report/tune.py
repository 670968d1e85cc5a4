"""The report of `kmixup tune`: the final test first, then the search."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from statistics import fmean

from kmixup.lab._files import replace_content
from kmixup.lab.evaluate.baseline import all_constant, constant_sentence
from kmixup.lab.evaluate.scores import PERCENT
from kmixup.lab.experiments.rows import done_of, unfitted_sentence
from kmixup.lab.experiments.search import Setting, Tried
from kmixup.lab.experiments.tuning import Finalist, Tuned
from kmixup.lab.formatting import NOTHING, count, joined, number, with_error
from kmixup.lab.report import document as doc
from kmixup.lab.report.comparisons import compare_trials, comparison_table, holm_corrected
from kmixup.lab.report.render_html import html
from kmixup.lab.report.stats import Comparison
from kmixup.lab.report.sweep import provenance, settings_of

NO_MIXING = "ERM (alpha=0)"
TEST_NOTE = (
    "The test set was used once, after both searches. Differences are paired by seed; below 0 is "
    "better. Verdicts are corrected for three tests (Holm). All trials share one split: intervals "
    "cover initial weights and sample order, not other splits."
)
SEARCH_NOTE = (
    "± standard error (seeds). The winner is framed (*); a setting with a failed trial cannot win."
)


def tune_document(tuned: Tuned, command: str) -> doc.Document:
    plan, measure = tuned.plan, tuned.measure
    protocol = (
        "Training and test set were split once, by the seed. Every trial of the searches held out "
        f"{100 * plan.validation:g} % of the training set, drawn by its own seed, for validation. "
        "The winners and ERM were then trained on the whole training set."
    )
    header = ["method", "chosen on validation samples", f"test {measure.name} {measure.unit}",
              "trials"]  # fmt: skip
    errors = []
    for of in tuned.tests:
        chosen = NOTHING if of.setting is None else of.setting.label
        error = with_error(of.mean, of.standard_error)
        errors.append([of.name, chosen, error, str(len(of.errors))])
    compared = [(f"{found.new} − {found.old}", [found]) for found in comparisons(tuned)]
    test: list[doc.Block] = [
        doc.ReportTable(header, errors),
        comparison_table(compared, f"difference, {measure.points}"),
        doc.Paragraph(TEST_NOTE, style="fine"),
    ]
    extent = f"{count(tuned.kmixup.trials, 'trial')} of k-mixup, {tuned.mixup.trials:,} of mixup"
    search: list[doc.Block] = [
        doc.Paragraph(f"Strategy {plan.strategy.name}: {extent}."),
        surface(tuned),
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


def write_tune(document: doc.Document, folder: Path) -> Path:
    """Write `tune.html` into `folder`, and return it."""
    replace_content(folder / "tune.html", html(document))
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
    compared = comparisons(tuned)
    better = {(found.new, found.old): found.side for found in compared}
    better |= {(old, new): -side for (new, old), side in better.items()}
    others = [finalist.name for finalist in tested if finalist is not best]
    worse = [name for name in others if better[best.name, name] < 0]
    ahead = [name for name in others if better[best.name, name] > 0]  # but with failed trials
    alike = [name for name in others if name not in (*worse, *ahead)]
    if ahead:
        text = (
            f"{best.name} has {error}; {joined(ahead)} scored significantly better, but with "
            "failed trials."
        )
    elif worse:
        rest = f", with no significant difference from {alike[0]}" if alike else ""
        text = f"{best.name} is better than {joined(worse)}{rest}: {error}."
    else:
        few = all(found.difference is None for found in compared)
        verdict = "Too few trials to compare" if few else "No significant difference"
        text = f"{verdict} in the final test; {best.name} has {error}."
    measured = {found.old for found in compared if found.new == best.name and found.difference}
    simplest = ""
    if "ERM" in alike and "ERM" in measured:
        simplest = f"ERM is simpler, and not significantly worse: {NO_MIXING}."
    failures = [
        (finalist.name, len(finalist.rows) - len(finalist.done)) for finalist in tuned.tests
    ]
    failed = "; ".join(f"{name}: {count(n, 'trial')} failed" for name, n in failures if n)
    unfitted = unfitted_sentence(row for finalist in tested for row in finalist.rows)
    sentences = list(filter(None, (failed and f"{failed}.", simplest, constant, unfitted)))
    mood: doc.Mood = "good" if worse and not (alike or ahead) else "open"
    return doc.Headline(text, sentences, line_of(best), mood)


def best_of(tuned: Tuned) -> Finalist | None:
    """The finalist with the lowest mean test error, the simpler of equal ones.

    One with a failed trial is chosen only if all have one.
    """

    def key(finalist: Finalist) -> tuple[float, int]:
        simple = 0 if finalist.setting is None else finalist.setting.k
        return round(finalist.mean or 0.0, 9), simple

    tested = [finalist for finalist in tuned.tests if finalist.mean is not None]
    whole = [finalist for finalist in tested if len(finalist.done) == len(finalist.rows)]
    return min(whole or tested, key=key, default=None)


def line_of(finalist: Finalist) -> str:
    """The code that mixes like a finalist; alpha is the mean over its trials."""
    if finalist.setting is None:
        return NO_MIXING
    return f"KMixup(k={finalist.setting.k}, alpha={_alpha(finalist):.3g})"


def method_words(finalist: Finalist) -> list[str]:
    """The options of `kmixup train` for the same."""
    if finalist.setting is None:
        return ["--method", "erm"]
    return ["--k", str(finalist.setting.k), "--alpha", f"{_alpha(finalist):.3g}"]


def _alpha(finalist: Finalist) -> float:
    return fmean(row.alpha for row in finalist.done)


# The search


def surface(tuned: Tuned) -> doc.HeatMap:
    """Validation errors by k and alpha, and of ERM."""
    search, measure = tuned.kmixup, tuned.measure
    places = {(tried.setting.k, tried.setting.alpha): tried for tried in search.table}
    ks, alphas = (sorted(set(values)) for values in zip(*places, strict=True))

    def box(tried: Tried | None) -> doc.Box:
        if tried is None:
            return doc.Box("")
        mean = measure.factor * tried.mean if tried.ended else None
        digits = measure.digits(mean)
        small = [f"({len(tried.ended)})"]
        if len(tried.ended) > 1:
            small.insert(0, f"± {number(measure.factor * tried.standard_error, digits)}")
        if tried.failed:
            small.append(f"{tried.failed} failed")
        return doc.Box(number(mean, digits), [" ".join(small)], best=tried.setting == search.winner)

    rows = [("ERM", [box(Tried(Setting(1, 0.0), tuple(tuned.erm)))])]
    rows += [(f"k = {k}", [box(places.get((k, alpha))) for alpha in alphas]) for k in ks]
    heads = [(f"α {alpha:g}", "") for alpha in alphas]
    title = f"k-mixup: validation {measure.name} {measure.unit}"
    return doc.HeatMap(title, heads, rows, SEARCH_NOTE)


def _protocol(tuned: Tuned) -> dict[str, object]:
    plan = tuned.plan
    # there is such a row, or nothing would have won
    held = next(row.data for row in done_of(tuned.rows) if row.trial.validation is not None)
    return {
        **settings_of(plan.base),
        "scaling": held.scaling,
        "training samples": held.train + held.test,
        "of them held out": held.test,
        "test seeds": f"{plan.tests}, from {plan.test_trials(None)[0].seed}",
    }
