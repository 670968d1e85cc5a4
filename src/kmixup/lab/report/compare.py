"""The report of `kmixup compare`: errors, every method against mixup and ERM, and ranks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import pandas as pd
from matplotlib.axes import Axes

from kmixup.lab.evaluate.baseline import is_constant
from kmixup.lab.evaluate.scores import PERCENT
from kmixup.lab.experiments.compare import BASELINES, Compared, Score
from kmixup.lab.experiments.rows import done_of, failed_of
from kmixup.lab.formatting import NOTHING, count, joined, number, with_error
from kmixup.lab.plotting import BLUE
from kmixup.lab.report import document as doc
from kmixup.lab.report import stats
from kmixup.lab.report.comparisons import compare_trials, comparison_table, holm_corrected
from kmixup.lab.report.frame import partition_of
from kmixup.lab.report.meta_analysis import Pooled, log_ratios, pool
from kmixup.lab.report.plots import dots
from kmixup.lab.report.stats import Comparison, Outcome, Ranking
from kmixup.lab.report.sweep import provenance, settings_of, unfitted_sentence
from kmixup.lab.results import frame_of, lines_of

RULES = (
    "All methods share the split, initial weights and sample order of a trial, and try equally "
    "many settings on held-out training samples. The best setting is trained on all training "
    "samples of the trial and tested once."
)
CAPTION = (
    "Mean ± one standard error over trials. The lowest value of a column is framed (*). Blue (↓) "
    "is significantly lower than {base}, orange (↑) higher, after Holm correction."
)
REFERENCES = " scikit-learn's models are for reference: tuned on the same samples, and not tested."
Place = tuple[str, str]  # a data set and a method's title
Pair = tuple[str, str, str]  # a data set, a method's title and that of its baseline


@dataclass(frozen=True)
class Standings:
    """The results of a comparison."""

    results: tuple[Compared, ...]  # one for each data set
    scores: Mapping[Place, Score]  # of methods and references
    titles: tuple[str, ...]  # of the methods: by mean rank, then those without a rank
    references: tuple[str, ...]  # titles of the reference models
    ranking: Ranking | None  # of methods with all trials on all data; None with fewer than two
    baselines: tuple[str, ...]  # titles of the methods that others are compared with
    tests: Mapping[Pair, Comparison]  # every method against every baseline on every data set

    @property
    def base(self) -> str:
        """The baseline that tables are shaded by."""
        return self.baselines[0]


def standings_of(results: Sequence[Compared]) -> Standings:
    """Rank the methods, and compare them with mixup and ERM, or with the first if neither is in."""
    scores = {(r.contest.name, s.title): s for r in results for s in (*r.scores, *r.references)}
    named = {s.name: s.title for result in results for s in result.scores}
    baselines = tuple(named[name] for name in BASELINES if name in named)
    baselines = baselines or tuple(named.values())[:1]
    ranking = _ranking(list(named.values()), results)
    ranked = () if ranking is None else ranking.names
    titles = (*ranked, *(title for title in named.values() if title not in ranked))
    tests = {pair: test for result in results for pair, test in _tests(result, titles, baselines)}
    references = tuple(dict.fromkeys(s.title for result in results for s in result.references))
    return Standings(
        tuple(results), scores, titles, references, ranking, baselines, holm_corrected(tests)
    )


def _ranking(titles: Sequence[str], results: Sequence[Compared]) -> Ranking | None:
    """Rank the methods that have all trials on all data; None with fewer than two."""
    means: dict[str, list[float]] = {}
    for title in titles:
        scores = [result.score(title) for result in results]
        whole = [fmean(score.errors.values()) for score in scores if score is not None]
        if len(whole) == len(results):
            means[title] = whole
    return stats.rank([*means], list(zip(*means.values(), strict=True))) if len(means) > 1 else None


def _tests(
    result: Compared, titles: Sequence[str], baselines: Sequence[str]
) -> Iterator[tuple[Pair, Comparison]]:
    """Every method against every baseline, each pair once."""
    for i, old in enumerate(baselines):
        base = result.score(old)
        for title in titles:
            score = result.score(title)
            if score is None or base is None or title in baselines[i:]:
                continue
            partition = partition_of(lines_of(frame_of(score.rows)))
            constant = all(is_constant(row.scores) for row in (*score.done, *base.done))
            found = compare_trials(
                title, score.errors, old, base.errors, partition, constant=constant
            )
            if found.difference is not None:
                yield (result.contest.name, title, old), found


def compare_document(standings: Standings, command: str) -> doc.Document:
    results = standings.results
    rows = [row for result in results for row in result.rows]
    trials = dict.fromkeys(result.contest.trials for result in results)
    extent = (
        f"{count(len(standings.titles), 'method')} on {count(len(results), 'data set')}, "
        f"{' or '.join(map(str, trials))} paired trials each; {count(len(rows), 'network')} "
        f"trained, {len(failed_of(rows))} failed. "
    )
    tested = frame_of(row for result in results for row in result.tested)
    extent += unfitted_sentence(tested)
    blocks: list[doc.Block] = [
        _headline(standings),
        *(_plot(standings, result) for result in results),
        doc.Paragraph(extent.rstrip()),
        doc.Section("Errors", list(_errors(standings))),
    ]
    if standings.ranking is not None and len(results) > 1:
        over_all = [_mean_ranks(standings.ranking), *_relative(standings)]
        blocks.append(doc.Section("All data sets", over_all))
    won = [
        (*place, _chosen_text(score))
        for place, score in standings.scores.items()
        if score.settings > 1
    ]
    settings = [
        doc.Facts(
            settings_of(contest.base)
            | {"trials": contest.trials, "held out to tune on": f"{100 * contest.validation:g} %"},
            contest.name,
        )
        for contest in (result.contest for result in results)
    ]
    header = ["data", "method", "setting (trials that it won)"]
    protocol: list[doc.Block] = [
        doc.Paragraph(RULES),
        doc.Details("Settings that won on validation samples", [doc.ReportTable(header, won)]),
        doc.Details("All settings", settings),
    ]
    blocks += [doc.Section("Protocol", protocol), *provenance(frame_of(rows), command)]
    return doc.Document("Methods compared, each tuned in the same way", blocks)


# The verdict


def _headline(standings: Standings) -> doc.Headline:
    ranking, tests = standings.ranking, standings.tests
    ranked = () if ranking is None else ranking.names
    rest = []
    if unranked := [title for title in standings.titles if title not in ranked]:
        rest.append(f"Not ranked, trials are missing: {joined(unranked)}.")
    if ranking is None:
        text = "Too few trials: no two methods have finished on all data sets."
        return doc.Headline(text, rest, mood="open")
    if tests and all(test.constant for test in tests.values()):
        text = "Nothing was learned: all networks predict a constant."
        return doc.Headline(text, mood="bad")
    verdict = _verdict(standings)
    if len(standings.results) == 1:
        return doc.Headline(verdict, rest, mood=stats.mood_of(tests.values()))
    first = ranking.names[: ranking.ranks.count(ranking.ranks[0])]
    best = (
        f"Best mean rank on {count(ranking.data_sets, 'data set')}: {joined(first)}, "
        f"{number(ranking.ranks[0])}."
    )
    tested = friedman_sentence(ranking)
    # if the ranks don't differ significantly, say so before the order
    text, more = (best, tested) if ranking.p is None or ranking.differ else (tested, best)
    mood: doc.Mood = "good" if ranking.differ else "open"
    return doc.Headline(text, [more, verdict, *rest], mood=mood)


def friedman_sentence(ranking: Ranking) -> str:
    if ranking.p is None:
        return "The order is not tested: that takes three methods and two data sets."
    p = stats.p_text(ranking.p)
    shown = f"Friedman's test, p {p if p.startswith('<') else f'= {p}'}"
    differ = "differ" if ranking.differ else "do not differ"
    return f"The methods' ranks {differ} significantly ({shown})."


def _verdict(standings: Standings) -> str:
    """Which methods differ significantly from mixup and ERM, and what is not excluded."""
    tests, several = standings.tests, len(standings.results) > 1
    if not tests:
        return f"Too few trials to test differences: that takes {stats.LEAST_PAIRS}."
    parts = []
    for outcome in (Outcome.BETTER, Outcome.WORSE):
        found = [
            f"{new} than {old}{f' on {data}' if several else ''}"
            for (data, new, old), test in tests.items()
            if test.outcome is outcome
        ]
        if found:
            parts.append(f"{outcome}: {', '.join(found)}")
    if rest := [(pair, test) for pair, test in tests.items() if not test.side]:
        text = stats.tally([test for _, test in rest])
        if not several:
            points = standings.results[0].measure.points
            text = f"{Outcome.NOT_SIGNIFICANT} between " + "; ".join(
                f"{new} and {old} (largest gain not excluded: {test.largest_gain_text} {points})"
                for (_, new, old), test in rest
            )
        parts.append(text)
    bases, tested = joined(standings.baselines), count(len(tests), "test")
    return f"Against {bases}, {tested} with Holm correction: {'; '.join(parts)}."


# Plots and tables


def _plot(standings: Standings, result: Compared) -> doc.Figure:
    """Mean and standard error of every method and reference on one data set."""
    name = result.contest.name
    places = [(name, title) for title in (*standings.titles, *standings.references)]
    means = {
        title: (score.mean, score.standard_error)
        for _, title in places
        if (score := standings.scores.get((name, title))) and score.mean is not None
    }
    label = f"test {result.measure.name} {result.measure.unit}"
    return dots(name, label, means, standings.references)


def _mean_ranks(ranking: Ranking) -> doc.Figure:
    """Mean ranks, the best on top; methods whose bars don't overlap differ significantly."""
    half = (ranking.critical or 0.0) / 2

    def draw(axes: Axes) -> None:
        axes.errorbar(ranking.ranks, ranking.names, xerr=half, fmt="o", color=BLUE, capsize=3)
        axes.invert_yaxis()
        axes.set_xlabel("mean rank")

    note = "1 is the lowest error on every data set."
    if ranking.critical is not None:
        note += (
            " Methods whose bars do not overlap differ significantly (Nemenyi's critical "
            f"difference, {ranking.critical:.2f})."
        )
    return doc.Figure("Mean ranks", draw, note, size=(4.6, 1.2 + 0.3 * len(ranking.names)))


def _errors(standings: Standings) -> Iterator[doc.Block]:
    """Methods in rows, data sets in columns, and the mean rank last; then all comparisons."""
    results, ranking, scores = standings.results, standings.ranking, standings.scores
    several = len(results) > 1
    ranks = {} if ranking is None else dict(zip(ranking.names, ranking.ranks, strict=True))
    least: dict[str, float] = {}  # without means over part of the trials
    for (data, _), score in scores.items():
        if score.complete and score.mean is not None:
            mean = round(score.mean, stats.RANK_DIGITS)
            least[data] = min(mean, least.get(data, mean))

    def box(data: str, title: str) -> doc.Box:
        score = scores.get((data, title))
        if score is None or score.mean is None:
            return doc.Box(NOTHING)
        text, _, spread = with_error(score.mean, score.standard_error).partition(" ")
        missing = score.expected - len(score.errors)
        small = list(filter(None, [spread, f"{missing} missing" if missing else ""]))
        best = score.complete and round(score.mean, stats.RANK_DIGITS) == least[data]
        side = 0
        if (test := standings.tests.get((data, title, standings.base))) is not None:
            side = test.side
        elif (test := standings.tests.get((data, standings.base, title))) is not None:
            side = -test.side
        return doc.Box(text, small, side, best)

    names = [result.contest.name for result in results]
    units = ["" if result.measure is PERCENT else result.measure.name for result in results]
    head = list(zip(names, units, strict=True))
    rows = [
        (title, [box(data, title) for data in names])
        for title in (*standings.titles, *standings.references)
    ]
    if several:
        head.append(("mean rank", ""))
        rows = [(title, [*boxes, doc.Box(number(ranks.get(title)))]) for title, boxes in rows]
    caption = CAPTION.format(base=standings.base) + REFERENCES * bool(standings.references)
    yield doc.HeatMap("Test error in per cent, unless stated otherwise", head, rows, caption)
    if standings.tests:
        tests = [
            (f"{f'{data}: ' if several else ''}{new} − {old}", [test])
            for (data, new, old), test in standings.tests.items()
        ]
        yield comparison_table(tests, "difference, paired by trial")


def pooled(standings: Standings) -> dict[Place, Pooled]:
    """The mean relative change over data sets of each method from each baseline, by their titles.

    Without pairs that have not finished on two data sets, or never differ, or data sets whose
    scores are of different kinds.
    """
    measures = {result.measure for result in standings.results}
    if len(measures) > 1:
        return {}
    (measure,) = measures
    changes = {}
    for new, old in dict.fromkeys((new, old) for _, new, old in standings.tests):
        lines = []
        for result in standings.results:
            both = [result.score(title) for title in (new, old)]
            if None in both:
                continue
            name, partition = result.contest.name, partition_of(lines_of(frame_of(result.tested)))
            series = [
                pd.Series({(name, t): e / measure.factor for t, e in one.errors.items()})
                for one in both
                if one is not None
            ]
            n = done_of(result.tested)[0].data.test if measure is PERCENT else None
            found = log_ratios(series[0], series[1], n, ratio=partition.ratio or 0.0)
            if float(found["variance"].iloc[0]) > 0:
                lines.append(found)
        if len(lines) > 1:
            over = pd.concat(lines)
            changes[new, old] = pool(over["effect"], over["variance"])
    return changes


def _relative(standings: Standings) -> Iterator[doc.Block]:
    rows = [
        [f"{new} against {old}", of.text, f"{100 * of.largest_gain:.1f} %", str(of.clusters)]
        for (new, old), of in pooled(standings).items()
    ]
    if rows:
        header = ["relative change", "mean [95 %]", "largest gain not excluded", "data sets"]
        yield doc.ReportTable(header, rows, numeric=True)


def _chosen_text(score: Score) -> str:
    """How often each setting won, e.g. "k = 4, α 1 (7); k = 16, α 0.2 (3)"."""
    times = Counter(score.chosen.values())
    numbers = {text: [float(value) for value in re.findall(r"[\d.]+", text)] for text in times}
    return "; ".join(f"{text} ({times[text]})" for text in sorted(times, key=numbers.__getitem__))
