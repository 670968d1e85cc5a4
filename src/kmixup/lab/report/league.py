"""The report of `kmixup league`: ranks, errors, and every method against mixup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from kmixup.lab.evaluate.scores import PERCENT
from kmixup.lab.experiments.league import MIXUP, Contest, Result, Score
from kmixup.lab.experiments.rows import failed_of, unfitted_sentence
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, joined, number, with_error
from kmixup.lab.report import document as doc
from kmixup.lab.report import stats
from kmixup.lab.report.comparisons import FinalComparison, compare_tests
from kmixup.lab.report.plots import critical_difference
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_markdown import markdown
from kmixup.lab.report.stats import Outcome, Ranking
from kmixup.lab.report.sweep import provenance
from kmixup.lab.train.methods import method_entry

TITLE = "League: methods compared at an equal budget"


@dataclass(frozen=True)
class Standings:
    """The results of a league."""

    results: tuple[Result, ...]  # one for each data set
    titles: tuple[str, ...]  # of the methods: by mean rank, then those without a rank
    ranking: Ranking | None  # of methods with all trials on all data; None with fewer than two
    against: tuple[FinalComparison, ...]  # every method against mixup on every data set

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
    pairs = [
        (result.contest.name, title, score, MIXUP, mixup)
        for result in results
        if (mixup := result.score(MIXUP)) is not None and len(mixup.errors) >= stats.LEAST_PAIRS
        for title in titles
        if (score := score_by(result, title)) is not None and score.complete and score != mixup
    ]
    return Standings(tuple(results), titles, ranking, compare_tests(pairs))


def score_by(result: Result, title: str) -> Score | None:
    """The score of a method by its title, None if it does not take part."""
    return next((score for score in result.scores if score.entrant.title == title), None)


def _complete(result: Result, title: str) -> bool:
    score = score_by(result, title)
    return score is not None and score.complete


def _reached(result: Result, title: str) -> str:
    score = score_by(result, title)
    return "does not apply" if score is None else f"{len(score.errors)} of {score.trials} trials"


def league_document(standings: Standings, command: str) -> doc.Document:
    """The report of a league."""
    rows = [row for result in standings.results for row in result.rows]
    trials = dict.fromkeys(result.contest.trials for result in standings.results)
    extent = (
        f"{count(len(standings.titles), 'method')} on "
        f"{count(len(standings.results), 'data set')}, {' or '.join(map(str, trials))} paired "
        f"trials each; {count(len(rows), 'network')} trained, {len(failed_of(rows))} failed. "
    )
    extent += unfitted_sentence(row for result in standings.results for row in result.tested)
    blocks: list[doc.Block] = [_headline(standings), doc.Paragraph(extent.rstrip())]
    blocks.append(doc.Section("Errors", list(_errors(standings))))
    if standings.ranking is not None:
        ranks = doc.Figures([critical_difference(standings.ranking)])
        blocks.append(doc.Section("Ranks", [ranks]))
    chosen = doc.ReportTable(["data", "method", "setting (trials that it won)"], _chosen(standings))
    blocks.append(
        doc.Section(
            "Protocol",
            [
                doc.Paragraph(
                    "All methods share the split, initial weights and sample order of a trial. "
                    "Every setting of a method is scored on held-out training samples; of equal "
                    "settings the smaller k wins, then the smaller alpha. The winner is trained on "
                    "all training samples of the trial and tested once."
                ),
                doc.Details("Settings that won on validation samples", [chosen]),
                doc.Details(
                    "All settings",
                    [doc.Facts(_settings(r.contest), r.contest.name) for r in standings.results],
                ),
            ],
        )
    )
    ordered = sorted(rows, key=lambda row: row.id)
    return doc.Document(TITLE, [*blocks, *provenance(ordered, command)])


def write_league(standings: Standings, folder: Path, command: str) -> Path:
    """Write `league.html` and `report.md` into `folder`, and return the page."""
    document = league_document(standings, command)
    replace_content(folder / "report.md", markdown(document))
    replace_content(folder / "league.html", html(document))
    return folder / "league.html"


def _headline(standings: Standings) -> doc.Headline:
    ranking, against = standings.ranking, against_sentence(standings)
    if ranking is None:
        text = "No two methods have finished all trials on all data sets."
        return doc.Headline(text, standings.gaps, mood="open")
    if standings.against and all(test.constant for test in standings.against):
        text = "Nothing was learned: all networks predict a constant."
        return doc.Headline(text, standings.gaps, mood="bad")
    methods, sets = len(ranking.names), count(ranking.data_sets, "data set")
    first = ranking.names[: ranking.ranks.count(ranking.ranks[0])]
    if len(first) == methods:
        text = f"All {methods} methods have the same mean rank on {sets}."
        return doc.Headline(text, [against, *standings.gaps], mood="open")
    best = f"Best mean rank on {sets}: {joined(first)}, {number(ranking.ranks[0])}."
    tested = friedman_sentence(ranking)
    # if the ranks don't differ significantly, say so before the order
    text, rest = (best, tested) if ranking.p is None or ranking.differ else (tested, best)
    mood: stats.Mood = "good" if ranking.differ else "open"
    return doc.Headline(text, [rest, against, *standings.gaps], mood=mood)


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


def against_sentence(standings: Standings) -> str:
    """Which methods differ significantly from mixup."""
    tests = standings.against
    if not tests:
        return (
            "No comparison with mixup: it takes mixup and another method, each with three or more "
            "trials that all finished."
        )
    parts = []
    for outcome in (Outcome.BETTER, Outcome.WORSE):
        chosen = [f"{t.new} on {t.data}" for t in tests if t.verdict.outcome is outcome]
        if chosen:
            parts.append(f"{outcome}: {', '.join(chosen)}")
    rest = Counter(test.verdict.outcome for test in tests)
    parts += [
        f"{o} in {rest[o]}" for o in (Outcome.NOT_SIGNIFICANT, Outcome.NOTHING_LEARNED) if rest[o]
    ]
    return f"Against mixup, {count(len(tests), 'test')} with Holm correction: {'; '.join(parts)}."


def _errors(standings: Standings) -> Iterator[doc.Block]:
    """Methods in rows, data sets in columns, and the mean rank last; then all comparisons."""
    columns = [_column(result, standings) for result in standings.results]
    ranking = standings.ranking
    ranks = {} if ranking is None else dict(zip(ranking.names, ranking.ranks, strict=True))
    head = [
        (result.contest.name, "" if result.measure is PERCENT else result.measure.name)
        for result in standings.results
    ]
    yield doc.HeatMap(
        "Test error in per cent, unless stated otherwise",
        [*head, ("mean rank", "")],
        [
            (title, [*(column[title] for column in columns), doc.Box(number(ranks.get(title)))])
            for title in standings.titles
        ],
        caption="Mean ± one standard error over trials; each method was tuned inside each trial on "
        "validation samples, and tested once. The lowest error of a column is framed (*). Blue "
        "(↓) is significantly lower than mixup, orange (↑) higher, after Holm correction.",
    )
    if not standings.against:
        return
    rows = [
        (
            test.data,
            test.new,
            NOTHING if test.difference is None else test.difference.text,
            (test.difference and test.difference.new_data_text) or NOTHING,
            stats.p_text(test.p),
            test.verdict.text,
        )
        for test in standings.against
    ]
    header = ["data", "method", "− mixup [95 %]", "new data [95 %]", "p (Holm)", "verdict"]
    moods = [test.verdict.mood for test in standings.against]
    note = (
        "Differences are paired by trial; below 0 is better. Each 95 % interval is for the samples "
        "at hand; p-values are corrected for all tests of this table (Holm), and verdicts follow "
        "them. “New data” is the interval for other samples of the same kind, if trials split the "
        "same samples anew (Nadeau and Bengio)."
    )
    table = doc.ReportTable(header, rows, moods=moods, verdict=5)
    yield doc.Details("Every method against mixup", [table, doc.Paragraph(note, style="fine")])


def _column(result: Result, standings: Standings) -> dict[str, doc.Box]:
    # a mean over part of the trials is not compared with those over all
    whole = [score.measured for score in result.scores if score.complete]
    least = min((round(f.value, stats.RANK_DIGITS) for f in whole if f), default=None)
    sides = {
        test.new: test.verdict.side
        for test in standings.against
        if test.data == result.contest.name
    }
    boxes = {}
    for title in standings.titles:
        score = score_by(result, title)
        if score is None or score.mean is None:
            boxes[title] = doc.Box(NOTHING)
            continue
        text, _, spread = with_error(score.mean, score.standard_error).partition(" ")
        missing = score.trials - len(score.errors)
        small = [line for line in (spread, f"{missing} missing" if missing else "") if line]
        best = score.complete and round(score.mean, stats.RANK_DIGITS) == least
        boxes[title] = doc.Box(text, small, sides.get(title, 0), best)
    return boxes


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
    entry = method_entry(score.entrant.settings[0].name)
    times = Counter(score.chosen.values())
    texts = []
    for method in score.entrant.settings:
        parts = [f"k = {method.k}"] if entry.has_k else []
        parts += [f"α {method.alpha:g}"] if entry.has_alpha else []
        if times[method]:
            texts.append(f"{', '.join(parts)} ({times[method]})")
    return "; ".join(texts)


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
