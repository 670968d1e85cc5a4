"""What came of a league, in sentences and tables that every form of the report shares."""

from __future__ import annotations

from collections.abc import Sequence

from kmixup.lab.evaluate.scores import PERCENT
from kmixup.lab.experiments.league import Contest, Result, Score
from kmixup.lab.formatting import NOTHING, TextTable, count, number, with_error
from kmixup.lab.league.ranking import DIGITS, LEAST_DATA, LEAST_METHODS, Ranking
from kmixup.lab.league.standings import AgainstMixup, Standings, chosen_text, score_by
from kmixup.lab.pages.heat import Box, HeatMap, diverging, sequential

READING = (
    "Mean test error ± one standard error over trials, in per cent unless told otherwise. A method "
    "was tuned inside each trial, on validation samples alone, and tested once. The least error of "
    "a column over all trials is {marked}."
)
CAUTION = (
    "Differences are of trials in pairs, below 0 is better. Their intervals of 95 % are for the "
    "samples at hand, each by itself; the p-values are corrected for all tests of this table "
    "(Holm), and verdicts follow them."
)
NEW_DATA = (
    "Under “new data” is the interval for other samples of the same kind, where trials split the "
    "same samples anew (Nadeau and Bengio)."
)
SCALE = "1 is the least error on every data set."
BARS = (
    "Black bars join methods whose mean ranks are less than the critical difference apart "
    "(Nemenyi, 95 %): the league cannot tell them from one another."
)


def headline(standings: Standings) -> tuple[str, ...]:
    """The first sentences of a report."""
    ranking = standings.ranking
    if ranking is None:
        return ("No two methods have ended well in all trials of all data sets.",)
    methods, sets = len(ranking.names), count(ranking.data_sets, "data set")
    first = ranking.names[: ranking.ranks.count(ranking.ranks[0])]
    if len(first) == methods:
        return (f"All {methods} methods have the same mean rank, on {sets}.",)
    best = f"{' and '.join(first)}, {number(ranking.ranks[0])} of {methods}"
    said = (f"Best mean rank: {best}, on {sets}.", friedman_sentence(ranking))
    # that chance may be behind the order comes before the order
    return said if ranking.p is None or ranking.differ else said[::-1]


def friedman_sentence(ranking: Ranking) -> str:
    """What Friedman's and Nemenyi's tests say."""
    if ranking.p is None:
        return (
            f"A test of the ranks takes {LEAST_METHODS} methods and {LEAST_DATA} data sets: "
            "this is an order, no more."
        )
    p = f"Friedman's test, p {'< 0.001' if ranking.p < 0.001 else f'= {number(ranking.p, 3)}'}"
    if not ranking.differ:
        return f"Whether the ranks differ beyond chance cannot be told ({p})."
    apart = ranking.ranks[-1] - ranking.ranks[0] >= (ranking.critical or 0.0)
    told = "first and last are" if apart else "no two methods are"
    return f"The ranks differ beyond chance ({p}); {told} a critical difference apart."


def diagram_note(ranking: Ranking) -> str:
    """How to read the diagram."""
    return SCALE if ranking.critical is None else f"{SCALE} {BARS}"


def errors(standings: Standings) -> HeatMap:
    """Methods in rows, data sets in columns, and the mean rank last."""
    columns = [_column(result, standings.titles) for result in standings.results]
    ranking = standings.ranking
    ranks = {} if ranking is None else dict(zip(ranking.names, ranking.ranks, strict=True))
    rows = tuple(
        (title, (*(column[title] for column in columns), Box(number(ranks.get(title)))))
        for title in standings.titles
    )
    head = [(result.contest.name, _unit(result)) for result in standings.results]
    return HeatMap("Test errors", (*head, ("mean rank", "")), rows)


def _unit(result: Result) -> str:
    return "" if result.measure is PERCENT else result.measure.name


def _column(result: Result, titles: Sequence[str]) -> dict[str, Box]:
    scores = {title: score_by(result, title) for title in titles}
    means = {title: _mean(score) for title, score in scores.items()}
    tint = sequential(means.values())
    # a mean over a part of the trials is not compared with those over all
    whole = [score.measured for score in scores.values() if score is not None and score.complete]
    least = min((round(figure.value, DIGITS) for figure in whole if figure), default=None)

    def box(title: str) -> Box:
        score, mean = scores[title], means[title]
        if score is None or mean is None or score.measured is None:
            return Box(NOTHING)
        error = score.measured.error
        known = error if error == error else None
        text, _, spread = with_error(mean, known).partition(" ")
        missing = score.trials - len(score.errors)
        small = [spread, f"{missing} missing" if missing else ""]
        best = score.complete and round(mean, DIGITS) == least
        return Box(text, " ".join(filter(None, small)), tint(mean), best)

    return {title: box(title) for title in titles}


def _mean(score: Score | None) -> float | None:
    return None if score is None or score.measured is None else score.measured.value


def differences(standings: Standings) -> HeatMap:
    """Methods in rows, data sets in columns: the difference from mixup, framed beyond chance."""
    tests = {(test.data, test.method): test for test in standings.against}
    names = list(dict.fromkeys(data for data, _ in tests))
    tints = {
        name: diverging(test.difference.mean for test in standings.against if test.data == name)
        for name in names
    }

    def box(name: str, title: str) -> Box:
        test = tests.get((name, title))
        if test is None:
            return Box(NOTHING)
        mean, _, ends = test.difference.text.partition(" ")
        small = f"{ends}, p {test.p_text}"
        return Box(mean, small, tints[name](test.difference.mean), test.side != 0)

    rows = tuple(
        (title, tuple(box(name, title) for name in names))
        for title in standings.titles
        if any(method == title for _, method in tests)
    )
    return HeatMap(
        "Error less that of mixup [95 %], p by Holm", tuple((n, "") for n in names), rows
    )


def against_row(test: AgainstMixup) -> tuple[str, ...]:
    """A line of the table of comparisons with mixup."""
    difference = test.difference
    new_data = difference.new_data_text or NOTHING
    return (test.data, test.method, difference.text, new_data, test.p_text, test.text)


AGAINST_HEAD = ("data", "method", "less mixup [95 %]", "new data", "p (Holm)", "verdict")


def against_sentence(standings: Standings) -> str:
    """Which methods differ from mixup beyond chance."""
    tests = standings.against
    if not tests:
        return (
            "Nothing is compared with mixup: it takes mixup and another method, each with three or "
            "more trials that have all ended well."
        )
    parts = [
        f"{word} than mixup: {'; '.join(f'{test.method} on {test.data}' for test in chosen)}"
        for word, side in (("better", -1), ("worse", 1))
        if (chosen := [test for test in tests if test.side == side])
    ]
    rest = sum(test.side == 0 for test in tests)
    parts += [f"undecided: {'all others' if parts else 'all'} ({rest})"] * bool(rest)
    return f"Of {count(len(tests), 'test')}, corrected for their number: {', '.join(parts)}."


CHOSEN_HEAD = ("data", "method", "setting (trials in which it won)")


def chosen_rows(standings: Standings) -> list[tuple[str, ...]]:
    """Which settings won, for every method with something to choose."""
    return [
        (result.contest.name, score.entrant.title, chosen_text(score))
        for result in standings.results
        for score in result.scores
        if len(score.entrant.settings) > 1
    ]


def table(standings: Standings, *, between: str) -> TextTable:
    """The errors without colours."""
    return errors(standings).table(between=between, between_heads=between, best="* ")


def protocol(contest: Contest) -> dict[str, object]:
    """What all methods share on a data set."""
    base = {key: value for key, value in contest.base.to_dict().items() if value not in (None, [])}
    of_protocol = {key: value for key, value in base["protocol"].items() if value is not None}
    return {
        "network": base["model"],
        **of_protocol,
        **{key: base[key] for key in ("samples", "scaling") if key in base},
        "trials": contest.trials,
        "held out to tune on": f"{100 * contest.validation:g} %",
    }
