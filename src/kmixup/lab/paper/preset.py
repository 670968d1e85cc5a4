"""A preset: tables of the paper, what they claim, and the trials that re-run them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kmixup.lab.paper.claims import BEST_CELLS, Comparison
from kmixup.lab.paper.deviations import protocol_of, shrinkage, standing
from kmixup.lab.paper.shifts import FGSM_CIFAR10, FGSM_MNIST, NOISE
from kmixup.lab.paper.tables import Table
from kmixup.lab.protocol import AlphaRule, Trial

BOTH: tuple[AlphaRule, ...] = ("same", "xi")


@dataclass(frozen=True)
class Quick:
    """The smallest version of a preset that still shows something."""

    trials: int = 1
    epochs: int = 2
    k: tuple[int, ...] = (1, 16)
    alpha: tuple[float, ...] | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Preset:
    """One of the paper's experiments, ready to run.

    `claim`: what the paper says of its tables, and `comparison`, the same for a grid to
    answer. `calibrates`: alpha at k > 1 has two readings.
    `measured`: what the run cost us, empty where we have not run it.
    """

    name: str
    tables: tuple[Table, ...]
    claim: str
    comparison: Comparison = BEST_CELLS
    calibrates: bool = True
    measured: str = ""
    quick: Quick = Quick()

    @property
    def printed(self) -> bool:
        """Whether the paper has figures to compare with."""
        return any(table.errors is not None for table in self.tables)

    @property
    def networks(self) -> int:
        """Networks behind the tables, ERM included, for one reading of alpha."""
        cells: dict[tuple[object, ...], int] = {}
        for table in self.tables:
            network = (table.data, table.model)
            of_table: list[tuple[object, ...]] = [(*network, "erm")]
            of_table += [
                (*network, table.method if k > 1 else table.baseline, table.layers, k, alpha)
                for k in table.ks
                for alpha in table.alphas
            ]
            for cell in of_table:
                cells[cell] = max(table.trials, cells.get(cell, 0))
        return sum(cells.values())

    @property
    def cost(self) -> str:
        """How much there is to train, and how long it took."""
        epochs = sorted({protocol_of(table).epochs for table in self.tables})
        size = (
            f"{self.networks:,} networks of {' or '.join(map(str, epochs))} epochs "
            "for one reading of alpha"
        )
        return f"{size}; {self.measured or 'not run by us'}"

    @property
    def description(self) -> str:
        """The claim and the cost."""
        return f"{self.claim} Cost: {self.cost}."

    def trials(
        self,
        *,
        trials: int | None = None,
        epochs: int | None = None,
        k: Sequence[int] | None = None,
        alpha: Sequence[float] | None = None,
        alpha_rule: Sequence[AlphaRule] = BOTH,
        limit: int | None = None,
        quick: bool = False,
    ) -> list[Trial]:
        """The trials of all cells and of ERM, each once.

        Args:
            trials: networks of each cell, by default as many as in the paper.
            epochs: by default the paper's, or the table's own.
            k, alpha: rows and columns, by default those of each table; others than the
                paper's have no figure to compare with.
            alpha_rule: readings of alpha at k > 1, where the preset has both.
            limit: use only the first samples, this many of each part.
            quick: the preset's smallest version, in what is not given otherwise.
        """
        # here: it brings in all that trains, which reports have no use for
        from kmixup.lab.sweep import expand

        if quick:
            trials = self.quick.trials if trials is None else trials
            epochs = self.quick.epochs if epochs is None else epochs
            k = self.quick.k if k is None else k
            alpha = self.quick.alpha if alpha is None else alpha
            limit = self.quick.limit if limit is None else limit
        found: list[Trial] = []
        for table in self.tables:
            ks = table.ks if k is None else tuple(k)
            plain = ("erm", table.baseline) if 1 in ks else ("erm",)
            rules = alpha_rule if self.calibrates and table.method == "kmixup" else ("same",)
            length = table.epochs if epochs is None else epochs
            for method, rows, readings in (
                (plain, (1,), ("same",)),
                ((table.method,), tuple(k for k in ks if k != 1), rules),
            ):
                if not rows:
                    continue
                found += expand(
                    data=table.data,
                    model=table.model,
                    method=method,
                    k=rows,
                    alpha=table.alphas if alpha is None else tuple(alpha),
                    alpha_rule=tuple(readings),
                    layers=table.layers,
                    trials=table.trials if trials is None else trials,
                    limit=table.limit if limit is None else limit,
                    noise=levels(table, NOISE),
                    fgsm=levels(table, (FGSM_CIFAR10, FGSM_MNIST)),
                    protocol={} if length is None else {"epochs": length},
                )
        return list(dict.fromkeys(found))

    def shrinkage(self, trials: Iterable[Trial]) -> tuple[str, ...]:
        """In which ways `trials` fall short of the paper's protocol, a few words each."""
        return shrinkage(self.tables, trials)

    @property
    def deviations(self) -> tuple[str, ...]:
        """What differs from the paper or had to be chosen in its place, in every run."""
        return standing(self.tables)


def levels(table: Table, shifts: Sequence[Table]) -> tuple[float, ...]:
    """The noise or the attacks under which the paper tests a table's networks anywhere.

    Every trial of a network asks for all of them, also where its own table needs none. A
    trial's levels are part of what it is: so the cells that two tables share are the same
    trials, trained once, and testing costs little beside training.
    """
    found = [
        column.eps
        for shift in shifts
        if (shift.data, shift.model) == (table.data, table.model)
        for column in shift.columns
        if column.eps is not None
    ]
    return tuple(dict.fromkeys(found))
