"""The report of `kmixup tune`: the chosen setting first, then the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kmixup.lab.evaluate.baseline import constant_sentence
from kmixup.lab.experiments.rows import done_of, failed_of
from kmixup.lab.experiments.search import ERM, Tried
from kmixup.lab.experiments.tuning import Tuned
from kmixup.lab.formatting import count, number
from kmixup.lab.report import document as doc
from kmixup.lab.report.plots import curves
from kmixup.lab.report.sweep import provenance, settings_of, unfitted_sentence
from kmixup.lab.results import frame_of

RULE = (
    "The chosen setting is the smallest within one standard error of the lowest mean: ERM before "
    "mixup before k-mixup, small k and alpha before large. The standard error is that of the "
    "paired differences of trials."
)
SEARCH_NOTE = (
    "± standard error (seeds). The chosen setting is framed (*); one with a failed trial cannot "
    "be chosen."
)
CHOOSING = "This chooses, and does not show that mixing helps: test that with kmixup compare."


def tune_document(tuned: Tuned, command: str, again: Sequence[str] = ()) -> doc.Document:
    """The report of a search; `again` are commands that go on from it."""
    plan, search = tuned.plan, tuned.search
    protocol = (
        "Training and test set were split once, by the seed. Every trial held out "
        f"{100 * plan.validation:g} % of the training set, drawn by its own seed, for validation. "
        "The test set was not read."
    )
    extent = f"Strategy {plan.strategy.name}: {count(search.trials, 'trial')} with ERM. {RULE}"
    blocks: list[doc.Block] = [
        headline(tuned),
        _plot(tuned),
        doc.Paragraph(extent),
        surface(tuned),
        *(doc.Code(line) for line in again),
        doc.Section(
            "Protocol",
            [doc.Paragraph(protocol), doc.Details("All settings", [doc.Facts(_protocol(tuned))])],
        ),
        *provenance(frame_of(tuned.rows), command),
    ]
    return doc.Document(f"k and alpha for {Path(plan.base.data).name}", blocks)


def headline(tuned: Tuned) -> doc.Headline:
    """The chosen setting, and the one with the lowest validation score if it is another."""
    best, winner, measure = tuned.search.best, tuned.search.winner, tuned.measure
    chosen = next(tried for tried in tuned.search.table if tried.setting == winner)

    def score(tried: Tried) -> str:
        return f"validation {measure.name} {measure.text(tried.mean)}"

    text = f"Chosen: {winner.label}, {score(chosen)}."
    if best.setting != winner:
        text = (
            f"Chosen: {winner.label}, {score(chosen)}: within one standard error of the best, "
            f"{best.setting.label} with {measure.text(best.mean)}."
        )
    failed = len(failed_of(tuned.rows))
    scores = (row.scores for row in done_of(tuned.rows))
    sentences = [
        CHOOSING,
        f"{count(failed, 'trial')} failed." if failed else "",
        constant_sentence(scores),
        unfitted_sentence(frame_of(tuned.rows)),
    ]
    return doc.Headline(text, list(filter(None, sentences)))


def _places(tuned: Tuned) -> Mapping[tuple[int, float], Tried]:
    return {(t.setting.k, t.setting.alpha): t for t in tuned.search.table if t.setting != ERM}


def _plot(tuned: Tuned) -> doc.Figure:
    """Validation score by alpha, a line for each k, and ERM."""
    places, measure = _places(tuned), tuned.measure
    ks = sorted({k for k, _ in places})
    (erm,) = (tried for tried in tuned.search.table if tried.setting == ERM)

    def mean(tried: Tried) -> tuple[float, float | None]:
        error = tried.standard_error if len(tried.ended) > 1 else 0.0
        return measure.factor * tried.mean, measure.factor * error

    lines = {
        f"k = {k}" if k > 1 else "mixup": {
            alpha: mean(tried)
            for (size, alpha), tried in sorted(places.items())
            if size == k and tried.ended
        }
        for k in ks
    }
    title = f"Validation {measure.name} {measure.unit}"
    return curves(
        title,
        "alpha",
        mean(erm) if erm.ended else None,
        {n: line for n, line in lines.items() if line},
    )


def surface(tuned: Tuned) -> doc.HeatMap:
    """Validation scores by k and alpha, and of ERM."""
    places, measure = _places(tuned), tuned.measure
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
        chosen = tried.setting == tuned.search.winner
        return doc.Box(number(mean, digits), [" ".join(small)], best=chosen)

    rows = [("ERM", [box(tried) for tried in tuned.search.table if tried.setting == ERM])]
    rows += [(f"k = {k}", [box(places.get((k, alpha))) for alpha in alphas]) for k in ks]
    heads = [(f"α {alpha:g}", "") for alpha in alphas]
    title = f"Validation {measure.name} {measure.unit}"
    return doc.HeatMap(title, heads, rows, SEARCH_NOTE)


def _protocol(tuned: Tuned) -> dict[str, object]:
    # there is such a row, or nothing would have been chosen
    held = done_of(tuned.rows)[0].data
    return {
        **settings_of(tuned.plan.base),
        "scaling": held.scaling,
        "training samples": held.train + held.test,
        "of them held out": held.test,
    }
