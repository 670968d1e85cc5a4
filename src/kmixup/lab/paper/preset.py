"""A preset: tables of the paper, what they claim, and the trials that re-run them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kmixup.lab.paper.claims import BEST_CELLS, Claim
from kmixup.lab.paper.deviations import shrinkage, standing
from kmixup.lab.paper.master import Summary
from kmixup.lab.paper.shifts import shifts_of
from kmixup.lab.paper.tables import CLEAN, PaperTable
from kmixup.lab.train.config import AlphaRule, Trial
from kmixup.lab.train.methods import METHODS

BOTH: tuple[AlphaRule, ...] = ("same", "xi")


@dataclass(frozen=True)
class Quick:
    """The smallest version of a preset that still shows something.

    Attributes:
        trials: networks of each cell.
        epochs: length of training.
        k: rows of the tables.
        alpha: columns of the tables, None for all of them.
        limit: number of samples of each part, None for all of them.
    """

    trials: int = 1
    epochs: int = 2
    k: tuple[int, ...] = (1, 16)
    alpha: tuple[float, ...] | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Preset:
    """One of the paper's experiments, ready to run.

    Attributes:
        name: its name in `kmixup reproduce`.
        tables: the tables to re-run.
        claim: what the paper says of its tables, in a sentence.
        comparison: the claim in a form that a grid of errors can answer.
        rules: the readings of alpha at k > 1 that are run.
        quick: its smallest version.
        summaries: lines of the master table that sum up the tables; empty for all other
            experiments.
    """

    name: str
    tables: tuple[PaperTable, ...]
    claim: str
    comparison: Claim = BEST_CELLS
    rules: tuple[AlphaRule, ...] = BOTH
    quick: Quick = Quick()
    summaries: tuple[Summary, ...] = ()

    @property
    def printed(self) -> bool:
        """Whether the paper has figures to compare with."""
        return any(table.errors is not None for table in self.tables)

    @property
    def networks(self) -> int:
        """Networks behind the tables, ERM included, for one reading of alpha."""
        cells: dict[tuple[object, ...], int] = {}
        for table in self.tables:
            network = (table.data, table.model, table.samples, table.protocol)
            of_table: list[tuple[object, ...]] = [(*network, "erm")]
            of_table += [
                (
                    *network, table.method if k > 1 else table.baseline, table.layers, k, alpha,
                    *(table.variant.values() if k > 1 else ()),
                )
                for k in table.ks
                for alpha in table.alphas
            ]  # fmt: skip
            for cell in of_table:
                cells[cell] = max(table.trials, cells.get(cell, 0))
        return sum(cells.values())

    def trials(
        self,
        *,
        trials: int | None = None,
        epochs: int | None = None,
        k: Sequence[int] | None = None,
        alpha: Sequence[float] | None = None,
        alpha_rule: Sequence[AlphaRule] | None = None,
        limit: int | None = None,
        quick: bool = False,
    ) -> list[Trial]:
        """Every trial of the cells and of ERM once.

        Args:
            trials: networks of each cell, by default as many as in the paper.
            epochs: by default the paper's, or the table's own.
            k, alpha: rows and columns, by default those of each table; the paper has no
                figures for others.
            alpha_rule: readings of alpha at k > 1, by default all that the preset has.
            limit: use only so many samples of each part, the first ones.
            quick: use the values of the preset's smallest version for what is not given.
        """
        # imported here, as it imports all that trains, which reports do not need
        from kmixup.lab.sweep.grid import expand

        if quick:
            trials = self.quick.trials if trials is None else trials
            epochs = self.quick.epochs if epochs is None else epochs
            k = self.quick.k if k is None else k
            alpha = self.quick.alpha if alpha is None else alpha
            limit = self.quick.limit if limit is None else limit
        chosen: list[Trial] = []
        for table in self.tables:
            ks = table.ks if k is None else tuple(k)
            plain = ("erm", table.baseline) if 1 in ks else ("erm",)
            has_xi = METHODS[table.method].has_xi and not table.labels and not table.match_on
            asked = self.rules if alpha_rule is None else alpha_rule
            known = self.rules if has_xi else ("same",)
            rules = tuple(rule for rule in asked if rule in known) or ("same",)
            length = table.epochs if epochs is None else epochs
            shifts: dict[str, Any] = shifts_of(table)
            for method, rows, readings, variant in (
                (plain, (1,), ("same",), {}),
                ((table.method,), tuple(k for k in ks if k != 1), rules, table.variant),
            ):
                if not rows:
                    continue
                chosen += expand(
                    data=table.data,
                    model=table.model,
                    method=method,
                    k=rows,
                    alpha=table.alphas if alpha is None else tuple(alpha),
                    alpha_rule=tuple(readings),
                    layers=table.layers,
                    trials=table.trials if trials is None else trials,
                    pairing=table.pairing,
                    limit=table.limit if limit is None else limit,
                    samples=table.samples if limit is None else None,
                    scaling=table.scaling,
                    clean_statistics=self._asks_for_clean_statistics(table) or None,
                    protocol={**_settings(table), **({} if length is None else {"epochs": length})},
                    **variant,
                    **shifts,
                )
        return list(dict.fromkeys(chosen))

    def _asks_for_clean_statistics(self, table: PaperTable) -> bool:
        """Whether the networks of a table are tested with clean statistics too."""
        return any(
            other.measure == CLEAN and (other.data, other.model) == (table.data, table.model)
            for other in self.tables
        )

    def shrinkage(self, trials: Iterable[Trial]) -> tuple[str, ...]:
        """In which ways `trials` fall short of the paper's protocol, in a few words each."""
        return shrinkage(self.tables, trials)

    @property
    def deviations(self) -> tuple[str, ...]:
        """What differs from the paper or had to be chosen in its place, in every run."""
        return standing(self.tables)


def _settings(table: PaperTable) -> dict[str, Any]:
    """Settings of the protocol that a table has of its own."""
    return {} if table.protocol is None else dict(vars(table.protocol))
