"""Ranks of methods over data sets, and which of their differences are beyond chance.

Friedman's test asks whether the methods have different ranks at all. Two methods differ by
Nemenyi's test if their mean ranks are a critical difference apart (Demšar 2006, "Statistical
comparisons of classifiers over multiple data sets").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from kmixup.lab.report.verdict import LEVEL

DIGITS = 9  # errors that agree so far share a rank
LEAST_METHODS, LEAST_DATA = 3, 2  # of Friedman's test


@dataclass(frozen=True)
class Ranking:
    """Methods by their mean rank, the best first.

    Attributes:
        names: of the methods.
        ranks: their mean ranks; 1 is the least error on every data set.
        data_sets: over how many data sets.
        p: of Friedman's test that no method is better than another; None where there are too
            few methods or data sets for it.
        critical: Nemenyi's critical difference of two mean ranks; None likewise.
    """

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    data_sets: int
    p: float | None
    critical: float | None

    @property
    def differ(self) -> bool:
        """Whether the ranks differ beyond chance."""
        return self.p is not None and self.p <= 1 - LEVEL

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """Runs of methods that cannot be told apart: the first and the last of each.

        Runs of one method, and runs inside others, are left out.
        """
        if self.critical is None:
            return ()
        runs: list[tuple[int, int]] = []
        for first, rank in enumerate(self.ranks):
            within = [i for i, other in enumerate(self.ranks) if other - rank < self.critical]
            last = max(within)
            if last > first and (not runs or last > runs[-1][1]):
                runs.append((first, last))
        return tuple(runs)


def rank(names: Sequence[str], errors: ArrayLike) -> Ranking:
    """Rank methods by their errors `(data sets, methods)`; equal errors share their ranks.

    >>> ranking = rank(["a", "b", "c"], [[3.0, 1.0, 2.0], [5.0, 4.0, 4.0]])
    >>> ranking.names, ranking.ranks
    (('b', 'c', 'a'), (1.25, 1.75, 3.0))
    """
    table = np.round(np.asarray(errors, dtype=np.float64), DIGITS)
    if table.shape != (len(table), len(names)) or not len(table):
        raise ValueError(
            f"errors must have a row for each data set and {len(names)} columns, one for each "
            f"method, got the shape {table.shape}"
        )
    data_sets, methods = table.shape
    means = rankdata(table, axis=1).mean(0)
    order = np.argsort(means, kind="stable")
    p = critical = None
    if methods >= LEAST_METHODS and data_sets >= LEAST_DATA:
        p, critical = friedman(table), critical_difference(methods, data_sets)
    return Ranking(
        tuple(names[i] for i in order), tuple(map(float, means[order])), data_sets, p, critical
    )


def friedman(errors: ArrayLike) -> float:
    """The p-value of Friedman's test on errors `(data sets, methods)`; 1 where all are equal."""
    table = np.asarray(errors, dtype=np.float64)
    if (table == table[:, :1]).all():
        return 1.0
    return float(friedmanchisquare(*table.T).pvalue)


def critical_difference(methods: int, data_sets: int, level: float = LEVEL) -> float:
    """Nemenyi's critical difference of mean ranks.

    >>> round(critical_difference(4, 14), 2)  # Demšar 2006, section 3.2.4
    1.25
    """
    quantile = float(studentized_range.ppf(level, methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * data_sets))
