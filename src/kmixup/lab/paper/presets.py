"""The experiments of `kmixup reproduce`, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from kmixup.lab.paper.deviations import shrinkage, standing
from kmixup.lab.paper.loader import DATA, TABLES
from kmixup.lab.paper.tables import BEST_CELLS, CLEAN, Claim, PaperTable, Summary
from kmixup.lab.train.config import AlphaRule, Trial
from kmixup.lab.train.methods import METHODS

BOTH: tuple[AlphaRule, ...] = ("same", "xi")


@dataclass(frozen=True)
class Quick:
    """The smallest version of a preset that still shows something.

    Attributes:
        trials: networks of each cell; a verdict needs 4.
        epochs: length of training.
        k: rows of the tables.
        alpha: columns of the tables, None for all of them.
        limit: number of samples of each part, None for all of them.
    """

    trials: int = 4
    epochs: int = 2
    k: tuple[int, ...] = (1, 16)
    alpha: tuple[float, ...] | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Preset:
    """An experiment, ready to run.

    Attributes:
        name: its name in `kmixup reproduce`.
        tables: the tables to re-run.
        claim: what the paper claims about its tables, in a sentence.
        comparison: the claim in a form that a grid of errors can test.
        rules: the readings of alpha at k > 1 that are run.
        quick: its smallest version.
        summaries: lines of the paper's Table 1 that sum up the tables; empty for all other
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
        """Whether the paper has numbers to compare with."""
        return any(table.errors is not None for table in self.tables)

    @property
    def networks(self) -> int:
        """Number of networks that are trained by default, ERM included."""
        cells: dict[tuple[object, ...], int] = {}
        for table in self.tables:
            network = (table.data, table.model, table.samples, table.protocol)
            of_table: list[tuple[object, ...]] = [(*network, "erm")]
            for k, alpha in product(table.ks, table.alphas):
                if k == 1:
                    of_table.append((*network, table.baseline, table.layers, alpha))
                    continue
                cell = (*network, table.method, table.layers, k, alpha, *table.variant.values())
                of_table += [(*cell, rule) for rule in self._rules(table)]
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
        """Return every trial of the cells and of ERM once.

        Args:
            trials: networks of each cell, by default as many as in the paper.
            epochs: by default the paper's, or the table's own.
            k, alpha: rows and columns, by default those of each table; the paper has no
                numbers for others.
            alpha_rule: readings of alpha at k > 1, by default all that the preset has.
            limit: use only the first `limit` samples of each part.
            quick: use the values of the preset's smallest version for what is not given.
        """
        # imported here because it imports all training code, which reports don't need
        from kmixup.lab.experiments.grid import expand

        if quick:
            trials = self.quick.trials if trials is None else trials
            epochs = self.quick.epochs if epochs is None else epochs
            k = self.quick.k if k is None else k
            alpha = self.quick.alpha if alpha is None else alpha
            limit = self.quick.limit if limit is None else limit
        chosen: list[Trial] = []
        for table in self.tables:
            ks = table.ks if k is None else tuple(k)
            asked = self.rules if alpha_rule is None else alpha_rule
            known = self._rules(table)
            protocol = {} if table.protocol is None else dict(vars(table.protocol))
            if epochs is not None:
                protocol["epochs"] = epochs
            common: dict[str, Any] = {
                "data": table.data,
                "model": table.model,
                "alpha": table.alphas if alpha is None else tuple(alpha),
                "layers": table.layers,
                "trials": table.trials if trials is None else trials,
                "pairing": table.pairing,
                "limit": limit,
                "samples": table.samples if limit is None else None,
                "scaling": table.scaling,
                "clean_statistics": self._needs_clean_statistics(table) or None,
                "protocol": protocol,
                **dict(table.shifts),
            }
            baselines = ("erm", table.baseline) if 1 in ks else ("erm",)
            chosen += expand(method=baselines, k=(1,), alpha_rule=("same",), **common)
            if rows := tuple(k for k in ks if k != 1):
                chosen += expand(
                    method=(table.method,),
                    k=rows,
                    alpha_rule=tuple(rule for rule in asked if rule in known) or ("same",),
                    **table.variant,
                    **common,
                )
        return list(dict.fromkeys(chosen))

    def _rules(self, table: PaperTable) -> tuple[AlphaRule, ...]:
        """Return the readings of alpha at k > 1 that a table has."""
        has_xi = METHODS[table.method].has_xi and not table.labels and not table.match_on
        return self.rules if has_xi else ("same",)

    def _needs_clean_statistics(self, table: PaperTable) -> bool:
        """Whether a table's networks are also tested with clean batch-norm statistics."""
        return any(
            other.measure == CLEAN and (other.data, other.model) == (table.data, table.model)
            for other in self.tables
        )

    def shrinkage(self, trials: Iterable[Trial]) -> tuple[str, ...]:
        """In which ways `trials` fall short of the paper's protocol, in a few words each."""
        return shrinkage(self.tables, trials)

    @property
    def deviations(self) -> tuple[str, ...]:
        """What differs from the paper, or is not stated there, in every run."""
        return standing(self.tables)


def _preset(name: str, entry: dict[str, Any]) -> Preset:
    names = [
        table for pattern in entry["tables"] for table in TABLES if fnmatchcase(table, pattern)
    ]
    quick: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.get("quick", {}).items()
    }
    summaries = (
        Summary(TABLES[table], **line | {"notes": tuple(line.get("notes", ()))})
        for table, line in entry.get("summaries", {}).items()
    )
    return Preset(
        name,
        tuple(TABLES[table] for table in dict.fromkeys(names)),
        entry["claim"],
        Claim(**entry.get("comparison", {})),
        tuple(entry.get("rules", BOTH)),
        Quick(**quick),
        tuple(summaries),
    )


PRESETS = {name: _preset(name, entry) for name, entry in DATA["presets"].items()}


def preset_of(table: PaperTable) -> Preset:
    """Return the experiment that re-runs a table, not a summary of it.

    >>> preset_of(TABLES["cifar10-wide-resnet"]).name
    'cifar10-large'
    """
    return next(
        preset for preset in PRESETS.values() if table in preset.tables and not preset.summaries
    )


SMALL = ("mnist-1000", "mnist-5000", "cifar10-5000")  # experiments with small training sets


def small_experiments() -> dict[str, Trial]:
    """Return one trial of ERM for each experiment with a small training set, without shifts."""
    return {name: replace(PRESETS[name].trials(trials=1)[0], shifts=()) for name in SMALL}
