"""The report of `kmixup league`: ranks, errors, and every method against mixup."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes

from kmixup.lab.evaluate.scores import PERCENT
from kmixup.lab.experiments.league import MIXUP, Contest, Result, Score
from kmixup.lab.experiments.rows import failed_of, unfitted_sentence
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, joined, number, with_error
from kmixup.lab.plotting import BLACK, BLUE, FAINT, RED
from kmixup.lab.report import document as doc
from kmixup.lab.report import stats
from kmixup.lab.report.comparisons import compare_trials, comparison_table, holm_corrected
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_text import markdown
from kmixup.lab.report.stats import Comparison, Outcome, Ranking
from kmixup.lab.report.sweep import provenance

TITLE = "League: methods compared at an equal budget"
RULES = (
    "All methods share the split, initial weights and sample order of a trial. Every setting of a "
    "method is scored on held-out training samples; of equal settings the smaller k wins, then the "
    "smaller alpha. The winner is trained on all training samples of the trial and tested once."
)
CAPTION = (
    "Mean ± one standard error over trials; each method was tuned inside each trial on validation "
    "samples, and tested once. The lowest error of a column is framed (*). Blue (↓) is "
    "significantly lower than mixup, orange (↑) higher, after Holm correction."
)
AGAINST = (
    "Differences are paired by trial; below 0 is better. Each 95 % interval is for the samples at "
    "hand; p-values are corrected for all tests of this table (Holm), and verdicts follow them. "
    "“New data” is the interval for other samples of the same kind, if trials split the same "
    "samples anew (Nadeau and Bengio)."
)
Place = tuple[str, str]  # a data set and a method's title
# of the diagram of ranks: inches of a line, and lines between the scale and the critical difference
# above it, and between two bars
LINE, HEAD, GAP = 0.26, 1.2, 0.55


@dataclass(frozen=True)
class Standings:
    """The results of a league."""

    results: tuple[Result, ...]  # one for each data set
    scores: Mapping[Place, Score]
    titles: tuple[str, ...]  # of the methods: by mean rank, then those without a rank
    ranking: Ranking | None  # of methods with all trials on all data; None with fewer than two
    against: Mapping[Place, Comparison]  # every method against mixup on every data set

    @property
    def gaps(self) -> tuple[str, ...]:
        """Which methods are not ranked, and why, a sentence each."""
        sentences = []
        for title in self.titles:
            where = []
            for name in (result.contest.name for result in self.results):
                if (score := self.scores.get((name, title))) is None:
                    where.append(f"{name} (does not apply)")
                elif not score.complete:
                    where.append(f"{name} ({len(score.errors)} of {score.trials} trials)")
            if where:
                sentences.append(f"{title} is not ranked: incomplete on {', '.join(where)}.")
        return tuple(sentences)


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
        blocks.append(doc.Section("Ranks", [_critical_difference(standings.ranking)]))
    chosen = [
        (*place, _chosen_text(score))
        for place, score in standings.scores.items()
        if len(score.entrant.settings) > 1
    ]
    won = doc.ReportTable(["data", "method", "setting (trials that it won)"], chosen)
    settings = [doc.Facts(_settings(result.contest), result.contest.name) for result in results]
    protocol: list[doc.Block] = [
        doc.Paragraph(RULES),
        doc.Details("Settings that won on validation samples", [won]),
        doc.Details("All settings", settings),
    ]
    ordered = sorted(rows, key=lambda row: row.id)
    blocks += [doc.Section("Protocol", protocol), *provenance(ordered, command)]
    return doc.Document(TITLE, blocks)


def write_league(standings: Standings, folder: Path, command: str) -> Path:
    """Write `league.html` and `report.md` into `folder`, and return the page."""
    document = league_document(standings, command)
    replace_content(folder / "report.md", markdown(document))
    replace_content(folder / "league.html", html(document))
    return folder / "league.html"


def _headline(standings: Standings) -> doc.Headline:
    ranking, against, gaps = standings.ranking, _against_sentence(standings.against), standings.gaps
    if ranking is None:
        text = "No two methods have finished all trials on all data sets."
        return doc.Headline(text, gaps, mood="open")
    if standings.against and all(test.constant for test in standings.against.values()):
        text = "Nothing was learned: all networks predict a constant."
        return doc.Headline(text, gaps, mood="bad")
    sets = count(ranking.data_sets, "data set")
    first = ranking.names[: ranking.ranks.count(ranking.ranks[0])]
    if len(first) == len(ranking.names):
        text = f"All {len(first)} methods have the same mean rank on {sets}."
        return doc.Headline(text, [against, *gaps], mood="open")
    best = f"Best mean rank on {sets}: {joined(first)}, {number(ranking.ranks[0])}."
    tested = friedman_sentence(ranking)
    # if the ranks don't differ significantly, say so before the order
    text, rest = (best, tested) if ranking.p is None or ranking.differ else (tested, best)
    return doc.Headline(text, [rest, against, *gaps], mood="good" if ranking.differ else "open")


def friedman_sentence(ranking: Ranking) -> str:
    """What Friedman's and Nemenyi's tests say."""
    if ranking.p is None:
        return (
            f"A test of ranks takes {stats.LEAST_METHODS} methods and {stats.LEAST_DATA} data "
            "sets; this order is not tested."
        )
    p = stats.p_text(ranking.p)
    shown = f"Friedman's test, p {p if p.startswith('<') else f'= {p}'}"
    if not ranking.differ:
        return f"The methods' ranks do not differ significantly ({shown})."
    apart = ranking.ranks[-1] - ranking.ranks[0] >= (ranking.critical or 0.0)
    which = "the first and the last method" if apart else "no two methods"
    return f"The methods' ranks differ significantly ({shown}); {which} differ by Nemenyi's test."


def _against_sentence(tests: Mapping[Place, Comparison]) -> str:
    """Which methods differ significantly from mixup."""
    if not tests:
        return (
            "No comparison with mixup: it takes mixup and another method, each with three or more "
            "trials that all finished."
        )
    parts = []
    for outcome in (Outcome.BETTER, Outcome.WORSE):
        places = [f"{new} on {data}" for (data, new), t in tests.items() if t.outcome is outcome]
        if places:
            parts.append(f"{outcome}: {', '.join(places)}")
    if rest := [test for test in tests.values() if not test.side]:
        parts.append(stats.tally(rest))
    return f"Against mixup, {count(len(tests), 'test')} with Holm correction: {'; '.join(parts)}."


def _critical_difference(ranking: Ranking) -> doc.Figure:
    """Mean ranks on a scale, best to the left; bars join methods without significant difference."""
    n, bars = len(ranking.names), ranking.groups
    start = GAP * (len(bars) + 1)  # of the first method
    right = max(float(n), 1 + (ranking.critical or 0.0))

    def draw(axes: Axes) -> None:
        axes.grid(False)
        for i, rank in enumerate(ranking.ranks):
            y = start + i
            axes.plot([0.8, rank, rank], [y, y, 0], color=FAINT, linewidth=0.9, zorder=1)
            axes.plot(rank, y, "o", color=BLUE, zorder=3)
            axes.annotate(
                f"{rank:.2f}", (rank, y), xytext=(5, 0), textcoords="offset points", va="center",
                fontsize=8,
            )  # fmt: skip
        for i, (first, last) in enumerate(bars):
            ends = [ranking.ranks[first] - 0.07, ranking.ranks[last] + 0.07]
            axes.plot(ends, [GAP * (i + 1)] * 2, color=BLACK, linewidth=3.5, zorder=2)
        if ranking.critical is not None:
            ends = [1.0, 1 + ranking.critical]
            axes.plot(ends, [-HEAD] * 2, color=RED, linewidth=1.6, marker="|", clip_on=False)
            axes.text(
                sum(ends) / 2, -HEAD - 0.2, f"critical difference {ranking.critical:.2f}",
                ha="center", va="bottom", fontsize=8.5, color=RED,
            )  # fmt: skip
        axes.set(xlim=(0.8, right + 0.5), ylim=(start + n - 0.4, -HEAD - 1.2))
        axes.set_xticks(range(1, math.ceil(right) + 1))
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.spines["top"].set(visible=True, position=("data", 0), bounds=(1, math.ceil(right)))
        axes.tick_params(axis="x", top=True, bottom=False, labeltop=True, labelbottom=False, pad=1)
        axes.set_yticks([start + i for i in range(n)], list(ranking.names))
        axes.tick_params(axis="y", length=0)

    note = "1 is the lowest error on every data set."
    if ranking.critical is not None:
        note += (
            " Black bars join methods whose mean ranks are less than the critical difference apart "
            "(Nemenyi, 95 %): no significant difference."
        )
    return doc.Figure("Mean ranks", draw, note, size=(4.6, LINE * (start + n + HEAD + 2)))


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
        yield doc.Details("Every method against mixup", [table, doc.Paragraph(AGAINST, "fine")])


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


def _settings(contest: Contest) -> dict[str, object]:
    base = contest.base
    return {
        "network": base.model,
        **base.to_dict()["protocol"],
        "samples": base.samples,
        "scaling": base.scaling,
        "trials": contest.trials,
        "held out to tune on": f"{100 * contest.validation:g} %",
    }
