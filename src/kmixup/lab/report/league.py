"""The report of `kmixup league`: ranks, errors, and every method against mixup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes

from kmixup.lab._files import replace_content
from kmixup.lab.evaluate.scores import PERCENT
from kmixup.lab.experiments.league import MIXUP, Result, Score
from kmixup.lab.experiments.rows import failed_of, unfitted_sentence
from kmixup.lab.formatting import NOTHING, count, joined, number, with_error
from kmixup.lab.plotting import BLUE
from kmixup.lab.report import document as doc
from kmixup.lab.report import stats
from kmixup.lab.report.comparisons import compare_trials, comparison_table, holm_corrected
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_text import markdown
from kmixup.lab.report.stats import Comparison, Outcome, Ranking
from kmixup.lab.report.sweep import provenance, settings_of

RULES = (
    "All methods share the split, initial weights and sample order of a trial, and try equally "
    "many settings on held-out training samples. The best setting is trained on all training "
    "samples of the trial and tested once."
)
CAPTION = (
    "Mean ± one standard error over trials. The lowest error of a column is framed (*). Blue (↓) "
    "is significantly lower than mixup, orange (↑) higher, after Holm correction."
)
Place = tuple[str, str]  # a data set and a method's title


@dataclass(frozen=True)
class Standings:
    """The results of a league."""

    results: tuple[Result, ...]  # one for each data set
    scores: Mapping[Place, Score]
    titles: tuple[str, ...]  # of the methods: by mean rank, then those without a rank
    ranking: Ranking | None  # of methods with all trials on all data; None with fewer than two
    against: Mapping[Place, Comparison]  # every method against mixup on every data set


def standings_of(results: Sequence[Result]) -> Standings:
    """Rank the methods, and compare them with mixup."""
    scores = {(r.contest.name, score.entrant.title): score for r in results for score in r.scores}
    complete = {place: score for place, score in scores.items() if score.complete}
    entrants = list(dict.fromkeys(title for _, title in scores))
    data = [result.contest.name for result in results]
    whole = [title for title in entrants if all((name, title) in complete for name in data)]
    ranking = None
    if len(whole) > 1:
        errors = [[fmean(complete[name, t].errors.values()) for t in whole] for name in data]
        ranking = stats.rank(whole, errors)
        whole = list(ranking.names)
    titles = (*whole, *(title for title in entrants if title not in whole))
    against = {}
    for result in results:
        mixup, name = result.score(MIXUP), result.contest.name
        if mixup is not None and len(mixup.errors) >= stats.LEAST_PAIRS:
            for title in titles:
                score = complete.get((name, title))
                if score is not None and score != mixup:
                    against[name, title] = compare_trials(title, score, MIXUP, mixup)
    return Standings(tuple(results), scores, titles, ranking, holm_corrected(against))


def league_document(standings: Standings, command: str) -> doc.Document:
    """The report of a league."""
    results = standings.results
    rows = [row for result in results for row in result.rows]
    trials = dict.fromkeys(result.contest.trials for result in results)
    extent = (
        f"{count(len(standings.titles), 'method')} on {count(len(results), 'data set')}, "
        f"{' or '.join(map(str, trials))} paired trials each; {count(len(rows), 'network')} "
        f"trained, {len(failed_of(rows))} failed. "
    )
    extent += unfitted_sentence(row for result in results for row in result.tested)
    blocks: list[doc.Block] = [
        _headline(standings),
        doc.Paragraph(extent.rstrip()),
        doc.Section("Errors", list(_errors(standings))),
    ]
    if standings.ranking is not None:
        blocks.append(doc.Section("Ranks", [_mean_ranks(standings.ranking)]))
    chosen = [
        (*place, _chosen_text(score))
        for place, score in standings.scores.items()
        if len(score.entrant.settings) > 1
    ]
    won = doc.ReportTable(["data", "method", "setting (trials that it won)"], chosen)
    settings = [
        doc.Facts(
            settings_of(contest.base)
            | {"trials": contest.trials, "held out to tune on": f"{100 * contest.validation:g} %"},
            contest.name,
        )
        for contest in (result.contest for result in results)
    ]
    protocol: list[doc.Block] = [
        doc.Paragraph(RULES),
        doc.Details("Settings that won on validation samples", [won]),
        doc.Details("All settings", settings),
    ]
    ordered = sorted(rows, key=lambda row: row.id)
    blocks += [doc.Section("Protocol", protocol), *provenance(ordered, command)]
    return doc.Document("League: methods compared at an equal budget", blocks)


def write_league(document: doc.Document, folder: Path) -> Path:
    """Write `league.html` and `report.md` into `folder`, and return the page."""
    replace_content(folder / "report.md", markdown(document))
    replace_content(folder / "league.html", html(document))
    return folder / "league.html"


def _headline(standings: Standings) -> doc.Headline:
    ranking, tests = standings.ranking, standings.against
    sentences = [_against_sentence(tests)] if tests else []
    ranked = () if ranking is None else ranking.names
    if unranked := [title for title in standings.titles if title not in ranked]:
        sentences.append(f"Not ranked, trials are missing: {joined(unranked)}.")
    if ranking is None:
        text = "Too few trials: no two methods have finished on all data sets."
        return doc.Headline(text, sentences, mood="open")
    if tests and all(test.constant for test in tests.values()):
        text = "Nothing was learned: all networks predict a constant."
        return doc.Headline(text, mood="bad")
    first = ranking.names[: ranking.ranks.count(ranking.ranks[0])]
    best = (
        f"Best mean rank on {count(ranking.data_sets, 'data set')}: {joined(first)}, "
        f"{number(ranking.ranks[0])}."
    )
    tested = friedman_sentence(ranking)
    # if the ranks don't differ significantly, say so before the order
    text, rest = (best, tested) if ranking.p is None or ranking.differ else (tested, best)
    return doc.Headline(text, [rest, *sentences], mood="good" if ranking.differ else "open")


def friedman_sentence(ranking: Ranking) -> str:
    """What Friedman's test says."""
    if ranking.p is None:
        return "The order is not tested: that takes three methods and two data sets."
    p = stats.p_text(ranking.p)
    shown = f"Friedman's test, p {p if p.startswith('<') else f'= {p}'}"
    differ = "differ" if ranking.differ else "do not differ"
    return f"The methods' ranks {differ} significantly ({shown})."


def _against_sentence(tests: Mapping[Place, Comparison]) -> str:
    """Which methods differ significantly from mixup."""
    parts = []
    for outcome in (Outcome.BETTER, Outcome.WORSE):
        places = [f"{new} on {data}" for (data, new), t in tests.items() if t.outcome is outcome]
        if places:
            parts.append(f"{outcome}: {', '.join(places)}")
    if rest := [test for test in tests.values() if not test.side]:
        parts.append(stats.tally(rest))
    return f"Against mixup, {count(len(tests), 'test')} with Holm correction: {'; '.join(parts)}."


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
        missing = score.trials - len(score.errors)
        small = list(filter(None, [spread, f"{missing} missing" if missing else ""]))
        best = score.complete and round(score.mean, stats.RANK_DIGITS) == least[data]
        test = standings.against.get((data, title))
        return doc.Box(text, small, 0 if test is None else test.side, best)

    names = [result.contest.name for result in results]
    units = ["" if result.measure is PERCENT else result.measure.name for result in results]
    yield doc.HeatMap(
        "Test error in per cent, unless stated otherwise",
        [*zip(names, units, strict=True), ("mean rank", "")],
        [
            (title, [*(box(data, title) for data in names), doc.Box(number(ranks.get(title)))])
            for title in standings.titles
        ],
        CAPTION,
    )
    if standings.against:
        tests = [(f"{data}, {new}", [test]) for (data, new), test in standings.against.items()]
        table = comparison_table(tests, "data and method − mixup")
        yield doc.Details("Every method against mixup, paired by trial", [table])


def _chosen_text(score: Score) -> str:
    """How often each setting won, e.g. "k = 4, α 1 (7); k = 16, α 0.2 (3)"."""
    times = Counter(score.chosen.values())
    texts = []
    for method in score.entrant.settings:
        parts = [f"k = {method.k}"] if method.entry.has_k else []
        parts += [f"α {method.alpha:g}"] if method.entry.has_alpha else []
        if times[method]:
            texts.append(f"{', '.join(parts)} ({times[method]})")
    return "; ".join(texts)
