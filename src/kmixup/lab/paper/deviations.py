"""How a run departs from the paper: what was shrunk this time, and what always differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kmixup.lab.data import ENTRIES
from kmixup.lab.paper.tables import Table
from kmixup.lab.protocol import Protocol, Trial, paper_protocol


def protocol_of(table: Table) -> Protocol:
    """The protocol of the networks behind a table."""
    protocol = paper_protocol(table.data, ENTRIES[table.data].kind)
    return protocol if table.epochs is None else replace(protocol, epochs=table.epochs)


def shrinkage(tables: Sequence[Table], trials: Iterable[Trial]) -> tuple[str, ...]:
    """In which ways `trials` fall short of the tables, a few words each; none: in no way."""
    trials = list(dict.fromkeys(trials))
    return _merged(
        tables, [_shrunk(table, [t for t in trials if _is_of(t, table)]) for table in tables]
    )


def standing(tables: Sequence[Table]) -> tuple[str, ...]:
    """What differs from the paper or had to be chosen in its place, in every run."""
    return _merged(tables, [_chosen(table) for table in tables])


def _merged(tables: Sequence[Table], said: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Every sentence once, with the tables that it is of where it is not of all."""
    found: dict[str, list[Table]] = {}
    for table, sentences in zip(tables, said, strict=True):
        for sentence in sentences:
            found.setdefault(sentence, []).append(table)
    return tuple(
        sentence if len(those) == len(tables) else f"{_names(those, tables)}: {sentence}"
        for sentence, those in found.items()
    )


def _names(those: Sequence[Table], tables: Sequence[Table]) -> str:
    """Titles of some tables; all that there are of one data set go by its name."""
    names = {}
    for table in those:
        of_data = [one for one in tables if one.data == table.data]
        whole = len(of_data) > 1 and all(one in those for one in of_data)
        names[ENTRIES[table.data].title if whole else table.title] = True
    return "; ".join(names)


def _is_of(trial: Trial, table: Table) -> bool:
    """Whether a trial is of a table's networks, be its k and alpha in the table or not."""
    if (trial.data, trial.model) != (table.data, table.model):
        return False
    name, layers = trial.method.name, trial.method.layers
    return name == "erm" or (name in (table.baseline, table.method) and layers == table.layers)


def _shrunk(table: Table, trials: Sequence[Trial]) -> list[str]:
    if not trials:
        return ["not run"]
    found = []
    mixed = [trial.method for trial in trials if trial.method.name != "erm"]
    ks = tuple(k for k in table.ks if any(method.k == k for method in mixed))
    alphas = tuple(a for a in table.alphas if any(method.alpha == a for method in mixed))
    cells = Counter(
        trial.method
        for trial in trials
        if trial.method.name == "erm" or (trial.method.k in ks and trial.method.alpha in alphas)
    )
    if (fewest := min(cells.values(), default=0)) < table.trials:
        found.append(f"{fewest} of {table.trials} trials")
    epochs, of = min(trial.protocol.epochs for trial in trials), protocol_of(table).epochs
    if epochs < of:
        found.append(f"{epochs} of {of} epochs")
    for name, some, all_ in (("k", ks, table.ks), ("alpha", alphas, table.alphas)):
        if some != all_:
            listed = ", ".join(f"{value:g}" for value in some)
            found.append(f"{name} = {listed} only" if some else f"no {name} of the paper's")
    limits = {trial.limit for trial in trials if trial.limit is not None}
    if limits and min(limits) < (table.limit or ENTRIES[table.data].train):
        found.append(f"the first {min(limits):,} samples only")
    return found


def _chosen(table: Table) -> list[str]:
    protocol, kind = protocol_of(table), ENTRIES[table.data].kind
    found = [f"Batches of {protocol.batch_size}, as the paper states no size."]
    if kind == "toy":
        found += [
            f"The rate {protocol.rate:g}, as the paper states none for the toys and at its "
            "general 0.1 they often diverge.",
            "Points drawn by our own recipe, as the paper has the toys in pictures and xi alone.",
        ]
    if kind == "table":
        found.append("Random splits with a third for the test, as the paper states none.")
    if table.data == "cancer":
        found.append("Standardised features, as the paper's xi fit no usual scaling.")
    if table.data == "mnist":
        found.append(
            f"The rate {protocol.rate:g} in place of the paper's 0.1, at which LeNet does not "
            "always begin to learn."
        )
    if protocol.augment:
        found.append("Random crops and flips, as the paper states no augmentation.")
    if table.method == "manifold":
        found.append("Pairs inside the batch, the only one that a hidden layer sees.")
    if table.method == "manifold" and "resnet" in table.model:
        found.append(
            'A "residual block" is read as a stage, as in the code that the paper points to.'
        )
    if table.epochs is not None:
        part = "all samples" if table.limit is None else f"the first {table.limit:,} samples"
        found.append(f"{table.epochs} epochs on {part}, a size for two cores.")
    if table.model == "wide-resnet101":
        found.append('"WideResNet-101" is read as the wide ResNet-101 of ImageNet.')
    return found
