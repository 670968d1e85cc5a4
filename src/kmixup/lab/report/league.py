"""The report of `kmixup league`: ranks, errors, and every method against mixup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from kmixup.lab.evaluate.scores import PERCENT
from kmixup.lab.experiments.league import MIXUP, Contest, Result, Score
from kmixup.lab.experiments.rows import failed_of
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, number, with_error
from kmixup.lab.report import stats
from kmixup.lab.report.document import (
    Block,
    Box,
    Details,
    Document,
    Facts,
    Figures,
    Headline,
    HeatMap,
    Paragraph,
    ReportTable,
    Section,
)
from kmixup.lab.report.frame import partition_of
from kmixup.lab.report.plots import critical_difference
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_markdown import markdown
from kmixup.lab.report.stats import PairedDifference, Ranking, Verdict
from kmixup.lab.report.sweep import provenance
from kmixup.lab.train.methods import METHODS

TITLE = "League: methods compared at an equal budget"


@dataclass(frozen=True)
class AgainstMixup:
    """A method against mixup on one data set.

    Attributes:
        data: the name of the data set.
        method: the title of the method.
        difference: of the errors, paired by trial.
        p: the p-value after Holm correction for all such tests of the league.
    """

    data: str
    method: str
    difference: PairedDifference
    p: float

    @property
    def verdict(self) -> Verdict:
        return stats.verdict(self.difference, self.method, MIXUP, p=self.p)


@dataclass(frozen=True)
class Standings:
    """The results of a league.

    Attributes:
        results: one for each data set.
        titles: of the methods in table order: by mean rank, then those without a rank.
        ranking: of the methods with all trials on all data sets; None with fewer than two.
        against: every method against mixup on every data set.
    """

    results: tuple[Result, ...]
    titles: tuple[str, ...]
    ranking: Ranking | None
    against: tuple[AgainstMixup, ...]

    @property
    def gaps(self) -> tuple[str, ...]:
        """Which methods are not ranked, and why, a sentence each."""
        sentences = []
        for title in self.titles:
            where = [
                f"{result.contest.name} ({_reached(result, title)})"
                for result in self.results
                if not _complete(result, title)
            ]
            if where:
                sentences.append(f"{title} is not ranked: incomplete on {', '.join(where)}.")
        return tuple(sentences)


def standings_of(results: Sequence[Result]) -> Standings:
    """Rank the methods, and compare them with mixup."""
    entrants = dict.fromkeys(score.entrant.title for result in results for score in result.scores)
    whole = [title for title in entrants if all(_complete(result, title) for result in results)]
    errors = [
        [fmean(score.errors.values()) for score in result.scores if score.entrant.title in whole]
        for result in results
    ]
    ranking = stats.rank(whole, errors) if len(whole) > 1 else None
    first = ranking.names if ranking is not None else tuple(whole)
    titles = (*first, *(title for title in entrants if title not in first))
    return Standings(tuple(results), titles, ranking, _against(results, titles))


def score_by(result: Result, title: str) -> Score | None:
    """The score of a method by its title, None if it does not take part."""
    return next((score for score in result.scores if score.entrant.title == title), None)


def _complete(result: Result, title: str) -> bool:
    score = score_by(result, title)
    return score is not None and score.complete


def _reached(result: Result, title: str) -> str:
    score = score_by(result, title)
    return "does not apply" if score is None else f"{len(score.errors)} of {score.trials} trials"


def _against(results: Sequence[Result], titles: Sequence[str]) -> tuple[AgainstMixup, ...]:
    differences: list[tuple[str, str, PairedDifference]] = []
    for result in results:
        mixup = result.score(MIXUP)
        if mixup is None:
            continue
        for title in titles:
            score = score_by(result, title)
            if score is None or not score.complete or score is mixup:
                continue
            difference = stats.paired(score.errors, mixup.errors, partition_of(result.tested))
            if difference is not None:
                differences.append((result.contest.name, title, difference))
    corrected = stats.holm([difference.p for *_, difference in differences])
    return tuple(
        AgainstMixup(*difference, p) for difference, p in zip(differences, corrected, strict=True)
    )


def league_document(standings: Standings, command: str) -> Document:
    """The report of a league."""
    rows = [row for result in standings.results for row in result.rows]
    blocks: list[Block] = [_headline(standings)]
    trials = dict.fromkeys(result.contest.trials for result in standings.results)
    extent = (
        f"{count(len(standings.titles), 'method')} on "
        f"{count(len(standings.results), 'data set')}, {' or '.join(map(str, trials))} paired "
        f"trials each; {count(len(rows), 'network')} trained, {len(failed_of(rows))} failed."
    )
    blocks.append(Paragraph(extent))
    if standings.ranking is not None:
        blocks.append(Section("Ranks", [Figures([critical_difference(standings.ranking)])]))
    blocks.append(Section("Errors", [_errors(standings)]))
    blocks.append(Section("Against mixup", list(_against_blocks(standings))))
    chosen = ReportTable(["data", "method", "setting (trials that it won)"], _chosen(standings))
    won = "Settings that won on validation samples"
    blocks.append(Section("Chosen settings", [Details(won, [chosen])]))
    blocks.append(Section("Protocol", list(_protocol(standings))))
    ordered = sorted(rows, key=lambda row: row.id)
    return Document(TITLE, [*blocks, *provenance(ordered, command)])


def write_league(standings: Standings, folder: Path, command: str) -> Path:
    """Write `league.html` and `report.md` into `folder`, and return the page."""
    document = league_document(standings, command)
    replace_content(folder / "report.md", markdown(document))
    replace_content(folder / "league.html", html(document))
    return folder / "league.html"


def _headline(standings: Standings) -> Headline:
    ranking = standings.ranking
    if ranking is None:
        text = "No two methods have finished all trials on all data sets."
        return Headline(text, standings.gaps, mood="open")
    methods, sets = len(ranking.names), count(ranking.data_sets, "data set")
    first = ranking.names[: ranking.ranks.count(ranking.ranks[0])]
    if len(first) == methods:
        text = f"All {methods} methods have the same mean rank on {sets}."
        return Headline(text, standings.gaps, mood="open")
    best = f"Best mean rank on {sets}: {' and '.join(first)}, {number(ranking.ranks[0])}."
    tested = friedman_sentence(ranking)
    # if the ranks don't differ significantly, say so before the order
    text, rest = (best, tested) if ranking.p is None or ranking.differ else (tested, best)
    mood: stats.Mood = "good" if ranking.differ else "open"
    return Headline(text, [rest, *standings.gaps], mood=mood)


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


def _errors(standings: Standings) -> HeatMap:
    """Methods in rows, data sets in columns, and the mean rank last."""
    columns = [_column(result, standings.titles) for result in standings.results]
    ranking = standings.ranking
    ranks = {} if ranking is None else dict(zip(ranking.names, ranking.ranks, strict=True))
    rows = [
        (title, [*(column[title] for column in columns), Box(number(ranks.get(title)))])
        for title in standings.titles
    ]
    head = [
        (result.contest.name, "" if result.measure is PERCENT else result.measure.name)
        for result in standings.results
    ]
    return HeatMap(
        "Test error in per cent, unless stated otherwise",
        [*head, ("mean rank", "")],
        rows,
        caption="Mean ± one standard error over trials. Each method was tuned inside each trial, "
        "on validation samples only, and tested once. The lowest error of a column is marked.",
        scale="sequential",
        by_column=True,
    )


def _column(result: Result, titles: Sequence[str]) -> dict[str, Box]:
    # a mean over part of the trials is not compared with those over all
    whole = [score.measured for score in result.scores if score.complete]
    least = min((round(f.value, stats.RANK_DIGITS) for f in whole if f), default=None)
    boxes = {}
    for title in titles:
        score = score_by(result, title)
        if score is None or score.measured is None:
            boxes[title] = Box(NOTHING)
            continue
        mean, error = score.measured.value, score.measured.error
        text, _, spread = with_error(mean, error if error == error else None).partition(" ")
        missing = score.trials - len(score.errors)
        small = [line for line in (spread, f"{missing} missing" if missing else "") if line]
        best = score.complete and round(mean, stats.RANK_DIGITS) == least
        boxes[title] = Box(text, small, mean, best)
    return boxes


def _against_blocks(standings: Standings) -> Iterator[Block]:
    yield Paragraph(against_sentence(standings))
    if not standings.against:
        return
    yield _differences(standings)
    rows = [
        (
            test.data, test.method, test.difference.text,
            test.difference.new_data_text or NOTHING, stats.p_text(test.p), test.verdict.text,
        )
        for test in standings.against
    ]  # fmt: skip
    header = ["data", "method", "− mixup [95 %]", "new data [95 %]", "p (Holm)", "verdict"]
    moods = [test.verdict.mood for test in standings.against]
    yield ReportTable(header, rows, moods=moods, verdict=5)
    yield Paragraph(
        "Differences are paired by trial; below 0 is better. Each 95 % interval is for the samples "
        "at hand; p-values are corrected for all tests of this table (Holm), and verdicts follow "
        "them. “New data” is the interval for other samples of the same kind, if trials split the "
        "same samples anew (Nadeau and Bengio).",
        style="fine",
    )


def against_sentence(standings: Standings) -> str:
    """Which methods differ significantly from mixup."""
    tests = standings.against
    if not tests:
        return (
            "No comparison with mixup: it takes mixup and another method, each with three or more "
            "trials that all finished."
        )
    parts = []
    for word, side in (("better", -1), ("worse", 1)):
        chosen = [f"{t.method} on {t.data}" for t in tests if t.verdict.side == side]
        if chosen:
            parts.append(f"{word} than mixup: {'; '.join(chosen)}")
    if rest := sum(test.verdict.side == 0 for test in tests):
        parts.append(f"no significant difference: {'all others' if parts else 'all'} ({rest})")
    return f"{count(len(tests), 'test')} with Holm correction: {', '.join(parts)}."


def _differences(standings: Standings) -> HeatMap:
    """Methods in rows, data sets in columns: the difference from mixup, framed if significant."""
    tests = {(test.data, test.method): test for test in standings.against}
    names = list(dict.fromkeys(data for data, _ in tests))

    def box(name: str, title: str) -> Box:
        test = tests.get((name, title))
        if test is None:
            return Box(NOTHING)
        mean, _, ends = test.difference.text.partition(" ")
        small = [ends, f"p {stats.p_text(test.p)}"]
        return Box(mean, small, test.difference.mean, test.verdict.side != 0)

    rows = [
        (title, [box(name, title) for name in names])
        for title in standings.titles
        if any(method == title for _, method in tests)
    ]
    return HeatMap(
        "Error − mixup's error [95 %], p with Holm correction",
        [(name, "") for name in names],
        rows,
        caption="Significant differences are framed.",
        scale="diverging",
        by_column=True,
        repeats=True,
    )


def _chosen(standings: Standings) -> list[tuple[str, str, str]]:
    """How often each setting won, for every method with something to choose."""
    return [
        (result.contest.name, score.entrant.title, chosen_text(score))
        for result in standings.results
        for score in result.scores
        if len(score.entrant.settings) > 1
    ]


def chosen_text(score: Score) -> str:
    """How often each setting won, e.g. "k = 4, α 1 (7); k = 16, α 0.2 (3)"."""
    entry = METHODS[score.entrant.settings[0].name]
    texts = []
    for method in score.entrant.settings:
        times = sum(chosen == method for chosen in score.chosen.values())
        if times:
            parts = [f"k = {method.k}"] if entry.has_k else []
            parts += [f"α {method.alpha:g}"] if entry.has_alpha else []
            texts.append(f"{', '.join(parts)} ({times})")
    return "; ".join(texts)


def _protocol(standings: Standings) -> Iterator[Block]:
    yield Paragraph(
        "All methods share the split, initial weights and sample order of a trial. A part of its "
        "training samples is held out. Every setting of a method is trained on the rest and scored "
        "on the held-out part; of equal settings the smaller k wins, then the smaller alpha. The "
        "winner is trained on all training samples of the trial and tested once.",
        style="fine",
    )
    for result in standings.results:
        yield Facts(_settings(result.contest), result.contest.name)


def _settings(contest: Contest) -> dict[str, object]:
    base = {key: value for key, value in contest.base.to_dict().items() if value not in (None, [])}
    of_protocol = {key: value for key, value in base["protocol"].items() if value is not None}
    return {
        "network": base["model"],
        **of_protocol,
        **{key: base[key] for key in ("samples", "scaling") if key in base},
        "trials": contest.trials,
        "held out to tune on": f"{100 * contest.validation:g} %",
    }
