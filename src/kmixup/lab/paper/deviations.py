"""How a run differs from the paper: what was shrunk this time, and what always differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kmixup.lab.data import ENTRIES
from kmixup.lab.paper.tables import PaperTable
from kmixup.lab.train.config import Protocol, Trial
from kmixup.lab.train.defaults import defaults_for


def protocol_of(table: PaperTable) -> Protocol:
    """The protocol of the networks behind a table."""
    protocol = table.protocol or defaults_for(table.data).protocol
    return protocol if table.epochs is None else replace(protocol, epochs=table.epochs)


def shrinkage(tables: Sequence[PaperTable], trials: Iterable[Trial]) -> tuple[str, ...]:
    """In which ways `trials` fall short of the tables, a few words each; empty for no way."""
    trials = list(dict.fromkeys(trials))
    return _merged(
        tables,
        [_shrunk(table, [trial for trial in trials if _is_of(trial, table)]) for table in tables],
    )


def standing(tables: Sequence[PaperTable]) -> tuple[str, ...]:
    """What differs from the paper or had to be chosen in its place, in every run."""
    return _merged(tables, [_chosen(table) for table in tables])


def _merged(tables: Sequence[PaperTable], notes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Each of the tables' notes once; a note that is not of all tables names its own."""
    tables_of: dict[str, list[PaperTable]] = {}
    for table, sentences in zip(tables, notes, strict=True):
        for sentence in sentences:
            tables_of.setdefault(sentence, []).append(table)
    return tuple(
        sentence if len(some) == len(tables) else f"{_names(some, tables)}: {sentence}"
        for sentence, some in tables_of.items()
    )


def _names(some: Sequence[PaperTable], tables: Sequence[PaperTable]) -> str:
    """Titles of some of the tables; a data set all of whose tables are among them has one name."""
    names = {}
    for table in some:
        of_data = [other for other in tables if other.data == table.data]
        whole = len(of_data) > 1 and all(other in some for other in of_data)
        names[ENTRIES[table.data].title if whole else table.title] = True
    return "; ".join(names)


def _is_of(trial: Trial, table: PaperTable) -> bool:
    """Whether a trial is of a table's networks, whether or not the table has its k and alpha."""
    networks = (table.data, table.model, table.samples)
    if (trial.data, trial.model, trial.samples) != networks:
        return False
    if not table.trains_as(trial.protocol):
        return False
    method = trial.method
    named = table.mixes_as(method)
    return not method.entry.mixes or (named and method.layers == table.layers)


def _shrunk(table: PaperTable, trials: Sequence[Trial]) -> list[str]:
    if not trials:
        return ["not run"]
    words = []
    mixed = [trial.method for trial in trials if trial.method.entry.mixes]
    ks = tuple(k for k in table.ks if any(method.k == k for method in mixed))
    alphas = tuple(a for a in table.alphas if any(method.alpha == a for method in mixed))
    cells = Counter(
        trial.method
        for trial in trials
        if not trial.method.entry.mixes or (trial.method.k in ks and trial.method.alpha in alphas)
    )
    if (fewest := min(cells.values(), default=0)) < table.trials:
        words.append(f"{fewest} of {table.trials} trials")
    epochs, of = min(trial.protocol.epochs for trial in trials), protocol_of(table).epochs
    if epochs < of:
        words.append(f"{epochs} of {of} epochs")
    for name, some, all_ in (("k", ks, table.ks), ("alpha", alphas, table.alphas)):
        if some != all_:
            listed = ", ".join(f"{value:g}" for value in some)
            words.append(f"{name} = {listed} only" if some else f"no {name} of the paper's")
    limits = {trial.limit for trial in trials if trial.limit is not None}
    if limits and min(limits) < (table.limit or ENTRIES[table.data].train):
        words.append(f"the first {min(limits):,} samples only")
    return words


def _chosen(table: PaperTable) -> list[str]:
    protocol, kind = protocol_of(table), ENTRIES[table.data].kind
    sentences = [f"Batches of {protocol.batch_size}, as the paper states no size."]
    if kind == "toy":
        sentences += [
            f"The rate {protocol.rate:g}, as the paper states none for the toys and at its "
            "general 0.1 they often diverge.",
            "Points drawn by our own recipe, as the paper has the toys in pictures and xi alone.",
        ]
    if kind == "table":
        sentences.append("Random splits with a third for the test, as the paper states none.")
    if table.scaling == "global":
        sentences.append(
            "One mean and one deviation for all columns, which the paper's xi imply and the "
            "paper does not state."
        )
    if table.data == "mnist":
        sentences.append(
            f"The rate {protocol.rate:g} in place of the paper's 0.1, at which one LeNet "
            "of three did not begin to learn."
        )
    if protocol.augment:
        sentences.append("Random crops and flips, as the paper states no augmentation.")
    elif kind == "image" and table.data != "mnist":
        sentences.append("No augmentation, as the paper states none.")
    if table.layers is not None:
        sentences.append("Pairs inside the batch, the only one that a hidden layer sees.")
        if "resnet" in table.model:
            sentences.append(
                'A "residual block" is read as a stage, as in the code that the paper points to.'
            )
    if table.epochs is not None:
        part = "all samples" if table.limit is None else f"the first {table.limit:,} samples"
        sentences.append(f"{table.epochs} epochs on {part}, a size for two cores.")
    if table.model == "wide-resnet101":
        sentences.append('"WideResNet-101" is read as the wide ResNet-101 of ImageNet.')
    return sentences
