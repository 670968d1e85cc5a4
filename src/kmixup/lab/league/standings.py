"""League results: ranks and comparisons with mixup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from kmixup.lab.experiments.league import MIXUP, Result, Score
from kmixup.lab.formatting import NOTHING, number
from kmixup.lab.league.ranking import Ranking, rank
from kmixup.lab.report.grids import partition_of
from kmixup.lab.report.several import corrected_side, holm
from kmixup.lab.report.verdict import Mood, PairedDifference, paired
from kmixup.lab.train.methods import METHODS


@dataclass(frozen=True)
class AgainstMixup:
    """A method against mixup on one data set.

    Attributes:
        data: the name of the data set.
        method: the title of the method.
        difference: of the errors, paired by trial.
        p: the p-value, corrected for all such tests of the league.
    """

    data: str
    method: str
    difference: PairedDifference
    p: float

    @property
    def side(self) -> int:
        """-1 if the method is better beyond chance, 1 if it is worse, else 0."""
        return corrected_side(self.difference, self.p)

    @property
    def mood(self) -> Mood:
        return {-1: Mood.GOOD, 0: Mood.OPEN, 1: Mood.BAD}[self.side]

    @property
    def text(self) -> str:
        """The verdict in words."""
        return {-1: "better than mixup", 0: "undecided", 1: "worse than mixup"}[self.side]

    @property
    def p_text(self) -> str:
        """
        >>> AgainstMixup("iris", "ERM", PairedDifference(1.0, 0.5, 1.5, 10), 0.0004).p_text
        '< 0.001'
        """
        return "< 0.001" if self.p < 0.001 else number(self.p, 3)


@dataclass(frozen=True)
class Standings:
    """What came of a league.

    Attributes:
        results: one for each data set.
        titles: of the methods in the order of tables: by mean rank, then those without a rank.
        ranking: of the methods that are complete on all data sets; None where there are none.
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
                sentences.append(f"{title} is not ranked, it lacks {', '.join(where)}.")
        return tuple(sentences)


def standings_of(results: Sequence[Result]) -> Standings:
    """Rank the methods, and compare them with mixup."""
    entrants = {
        score.entrant.title: score.entrant.name for result in results for score in result.scores
    }
    whole = [title for title in entrants if all(_complete(result, title) for result in results)]
    errors = [
        [fmean(score.errors.values()) for score in result.scores if score.entrant.title in whole]
        for result in results
    ]
    ranking = rank(whole, errors) if len(whole) > 1 else None
    first = ranking.names if ranking is not None else tuple(whole)
    titles = (*first, *(title for title in entrants if title not in first))
    return Standings(tuple(results), titles, ranking, _against(results, titles))


def score_by(result: Result, title: str) -> Score | None:
    """The score of a method by its title, None where it does not take part."""
    return next((score for score in result.scores if score.entrant.title == title), None)


def _complete(result: Result, title: str) -> bool:
    score = score_by(result, title)
    return score is not None and score.complete


def _reached(result: Result, title: str) -> str:
    score = score_by(result, title)
    if score is None:
        return "where it does not apply"
    return f"{len(score.errors)} of {score.trials} trials"


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
            difference = paired(score.errors, mixup.errors, partition_of(result.tested))
            if difference is not None:
                differences.append((result.contest.name, title, difference))
    corrected = holm([difference.p for *_, difference in differences])
    return tuple(
        AgainstMixup(*difference, p) for difference, p in zip(differences, corrected, strict=True)
    )


def chosen_text(score: Score) -> str:
    """How often each setting won, e.g. "k = 4, α 1 (7); k = 16, α 0.2 (3)"."""
    entry = METHODS[score.entrant.settings[0].name]
    if len(score.entrant.settings) == 1:
        return NOTHING
    words = []
    for method in score.entrant.settings:
        times = sum(chosen == method for chosen in score.chosen.values())
        parts = [f"k = {method.k}"] * entry.has_k + [f"α {method.alpha:g}"] * entry.has_alpha
        words += [f"{', '.join(parts)} ({times})"] * bool(times)
    return "; ".join(words)
