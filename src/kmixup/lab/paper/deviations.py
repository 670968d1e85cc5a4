"""How a run differs from the paper: what was reduced this time, and what always differs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kmixup.lab.data import ENTRIES
from kmixup.lab.paper.tables import ErrorTable
from kmixup.lab.results import settings_of
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.trial import Protocol, Trial

LISTED = 4  # tables that are named by their titles; more are named by their data sets


def shrinkage(tables: Sequence[ErrorTable], trials: Iterable[Trial]) -> list[str]:
    """In which ways `trials` fall short of the tables, a few words each; empty for no way."""
    trials = list(dict.fromkeys(trials))
    return _merged(
        tables,
        [_shrunk(table, [trial for trial in trials if _is_of(trial, table)]) for table in tables],
    )


def deviations(tables: Sequence[ErrorTable]) -> list[str]:
    """What differs from the paper, or is not stated there, in every run."""
    return _merged(tables, [_chosen(table) for table in tables])


def _merged(tables: Sequence[ErrorTable], notes: Sequence[Sequence[str]]) -> list[str]:
    """Each of the tables' notes once; a note that does not hold for all tables names its own."""
    tables_of: dict[str, list[ErrorTable]] = {}
    for table, sentences in zip(tables, notes, strict=True):
        for sentence in sentences:
            tables_of.setdefault(sentence, []).append(table)
    merged = []
    for sentence, some in tables_of.items():
        names = [table.title for table in some]
        if len(some) > LISTED:
            names = list(dict.fromkeys(ENTRIES[table.data].title for table in some))
        merged.append(sentence if len(some) == len(tables) else f"{'; '.join(names)}: {sentence}")
    return merged


def _is_of(trial: Trial, table: ErrorTable) -> bool:
    """Whether a trial belongs to a table's networks, even if the table lacks its k or alpha."""
    if (trial.data, trial.model) != (table.data, table.model):
        return False
    if trial.limit is None and trial.samples != table.samples:  # a limit replaces the subset
        return False
    if not table.trains_as(settings_of(trial)):
        return False
    method = trial.method
    return not method.entry.mixes or (table.mixes_as(method) and method.layers == table.layers)


def _shrunk(table: ErrorTable, trials: Sequence[Trial]) -> list[str]:
    if not trials:
        return ["not run"]
    values = {"k": _run("k", table.ks, trials), "alpha": _run("alpha", table.alphas, trials)}
    full = (table.protocol or defaults_for(table.data).protocol).epochs
    epochs = min(trial.protocol.epochs for trial in trials)
    fewest = _fewest(trials, values)
    words = [f"{fewest} of {table.trials} trials"] if fewest < table.trials else []
    words += [f"{epochs} of {full} epochs"] if epochs < full else []
    for (name, some), wanted in zip(values.items(), (table.ks, table.alphas), strict=True):
        if len(some) < len(wanted):
            listed = ", ".join(f"{value:g}" for value in some)
            words.append(f"{name} = {listed} only" if some else f"no {name} from the paper")
    limit = min((trial.limit for trial in trials if trial.limit is not None), default=math.inf)
    if limit < ENTRIES[table.data].train:
        words.append(f"the first {limit:,} samples only")
    return words


def _run(name: str, wanted: Sequence[float], trials: Sequence[Trial]) -> list[float]:
    """The values of k or alpha that were run, of those that are wanted."""
    run = {getattr(trial.method, name) for trial in trials if trial.method.entry.mixes}
    return [value for value in wanted if value in run]


def _fewest(trials: Sequence[Trial], values: Mapping[str, Sequence[float]]) -> int:
    """The trials of the cell that has the fewest, of those with these k and alpha."""
    cells = Counter(trial.method for trial in trials)
    of_table = (
        n
        for method, n in cells.items()
        if not method.entry.mixes or all(getattr(method, name) in values[name] for name in values)
    )
    return min(of_table, default=0)


def _chosen(table: ErrorTable) -> list[str]:
    protocol = table.protocol or defaults_for(table.data).protocol
    kind = ENTRIES[table.data].kind
    sentences = [f"Batch size {protocol.batch_size}; the paper states none."]
    # for tables and speech the paper states other rates, which are ours too
    if kind in ("toy", "image") and protocol.rate != Protocol().rate:
        sentences.append(f"Learning rate {protocol.rate:g} instead of the paper's 0.1.")
    if kind == "toy":
        sentences.append(
            "Points drawn by our own recipe; the paper shows the toy data only as pictures and xi."
        )
    if kind == "table":
        sentences.append("Random splits with a third for the test; the paper states none.")
    if table.scaling == "global":
        sentences.append(
            "One mean and one standard deviation for all columns, which the paper's xi values "
            "imply but its text does not state."
        )
    if kind == "image":
        augmentation = "Random crops and flips" if protocol.augment else "No augmentation"
        sentences.append(f"{augmentation}; the paper states none.")
    if table.layers is not None:
        sentences.append(
            'Pairs within the batch, the only batch that a hidden layer sees. A "residual block" '
            "is a stage, as in the code that the paper points to."
        )
    if table.model == "wide-resnet101":
        sentences.append('We read "WideResNet-101" as the wide ResNet-101 for ImageNet.')
    return sentences
