"""The headline of a search: the best of the final test, a line to copy, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from kmixup.lab.evaluate.scores import PERCENT
from kmixup.lab.evaluate.wording import constant_sentence
from kmixup.lab.experiments.tuning import Finalist, Tuned
from kmixup.lab.formatting import with_error
from kmixup.lab.report.verdict import paired

PLAIN = "plain training: alpha=0"


@dataclass(frozen=True)
class Headline:
    """What a reader takes home.

    Attributes:
        title: names the method with the least mean test error.
        line: what to copy, e.g. "KMixup(k=32, alpha=0.361)".
        certainty: which of the other methods cannot be told from it.
        search: what the validation samples said of mixing.
        constant: what an answer that looks at no input comes to in the final test.
    """

    title: str
    line: str
    certainty: str
    search: str
    constant: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.title, self.certainty, self.constant, self.search)))


def headline(tuned: Tuned) -> Headline:
    """The headline of a search whose final test was run; without any test it says so."""
    tested = [finalist for finalist in tuned.tests if finalist.mean is not None]
    best = best_of(tuned)
    if best is None:
        return Headline("No trial of the final test ended well.", "", "", _of_search(tuned))
    figure = with_error(best.mean, best.standard_error)
    unit = " %" if best.measure is PERCENT else ""
    title = f"Best of the final test: {best.name}, {best.measure.name} {figure}{unit}."
    constant = constant_sentence(row.scores for finalist in tested for row in finalist.done)
    return Headline(title, line_of(best), _certainty(best, tested), _of_search(tuned), constant)


def best_of(tuned: Tuned) -> Finalist | None:
    """The finalist with the least mean test error; None where no trial ended well."""
    tested = [finalist for finalist in tuned.tests if finalist.mean is not None]
    return min(tested, key=_rank, default=None)


def line_of(finalist: Finalist) -> str:
    """What to copy to train with a finalist's setting; alpha is the mean over its trials."""
    if finalist.setting is None:
        return PLAIN
    return f"KMixup(k={finalist.setting.k}, alpha={_alpha(finalist):.3g})"


def method_words(finalist: Finalist) -> list[str]:
    """The same in options of `kmixup train`."""
    if finalist.setting is None:
        return ["--method", "erm"]
    return ["--k", str(finalist.setting.k), "--alpha", f"{_alpha(finalist):.3g}"]


def _alpha(finalist: Finalist) -> float:
    done, setting = finalist.done, finalist.setting
    return fmean(row.alpha for row in done) if done or setting is None else setting.alpha


def _rank(finalist: Finalist) -> tuple[float, int]:
    """The mean test error; of equal ones the simpler method first."""
    simple = 0 if finalist.setting is None else finalist.setting.k
    return round(finalist.mean or 0.0, 9), simple


def _certainty(best: Finalist, tested: list[Finalist]) -> str:
    others = [finalist for finalist in tested if finalist is not best]
    alike = [other.name for other in others if not _apart(best, other)]
    if not alike:
        return f"It is better than {_and(others)} at 95 % confidence."
    if len(alike) == len(others):
        names = " and ".join([", ".join([best.name, *alike[:-1]]), alike[-1]])
        plain = "" if best.setting is None else f" The simplest does as well: {PLAIN}."
        return f"The test cannot tell {names} apart.{plain * ('ERM' in alike)}"
    text = f"The test cannot tell it from {' and '.join(alike)}."
    return f"{text} The simplest does as well: {PLAIN}." if "ERM" in alike else text


def _apart(best: Finalist, other: Finalist) -> bool:
    difference = paired(best.errors, other.errors)
    return difference is not None and difference.side != 0


def _and(finalists: list[Finalist]) -> str:
    return " and ".join(finalist.name for finalist in finalists)


def _of_search(tuned: Tuned) -> str:
    """Whether mixing was better than not mixing on the validation samples."""
    chosen = tuned.kmixup.best
    mixed = fmean(chosen.errors[: len(tuned.erm)])
    if any(error != error for error in tuned.erm):
        return "Without mixing a trial failed on the validation samples."
    plain = fmean(tuned.erm)
    if plain < mixed:
        return "On the validation samples no setting was better than not to mix."
    if plain == mixed:
        return "On the validation samples the best setting was as good as not to mix."
    return "On the validation samples the best setting was better than not to mix."
