"""How a run differs from the paper: what was reduced this time, and what always differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kmixup.lab.data import ENTRIES
from kmixup.lab.paper.tables import PaperTable
from kmixup.lab.train.config import Trial
from kmixup.lab.train.defaults import defaults_for

LISTED = 2  # tables of a data set that are named by their titles


def shrinkage(tables: Sequence[PaperTable], trials: Iterable[Trial]) -> tuple[str, ...]:
    """In which ways `trials` fall short of the tables, a few words each; empty for no way."""
    trials = list(dict.fromkeys(trials))
    return _merged(
        tables,
        [_shrunk(table, [trial for trial in trials if _is_of(trial, table)]) for table in tables],
    )


def standing(tables: Sequence[PaperTable]) -> tuple[str, ...]:
    """What differs from the paper, or is not stated there, in every run."""
    return _merged(tables, [_chosen(table) for table in tables])


def _merged(tables: Sequence[PaperTable], notes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Each of the tables' notes once; a note that does not hold for all tables names its own."""
    tables_of: dict[str, list[PaperTable]] = {}
    for table, sentences in zip(tables, notes, strict=True):
        for sentence in sentences:
            tables_of.setdefault(sentence, []).append(table)
    return tuple(
        sentence if len(some) == len(tables) else f"{_names(some, tables)}: {sentence}"
        for sentence, some in tables_of.items()
    )


def _names(some: Sequence[PaperTable], tables: Sequence[PaperTable]) -> str:
    """Titles of some of the tables; a data set with three tables or more is named once."""
    names = []
    for data in dict.fromkeys(table.data for table in some):
        mine, every = ([t for t in group if t.data == data] for group in (some, tables))
        if len(mine) > 1 and len(mine) == len(every):
            names.append(ENTRIES[data].title)
        elif len(mine) > LISTED:
            names.append(f"{ENTRIES[data].title} ({len(mine)} of {len(every)} tables)")
        else:
            names += [table.title for table in mine]
    return "; ".join(names)


def _is_of(trial: Trial, table: PaperTable) -> bool:
    """Whether a trial belongs to a table's networks, even if the table lacks its k or alpha."""
    networks = (table.data, table.model, table.samples)
    if (trial.data, trial.model, trial.samples) != networks:
        return False
    if not table.trains_as(trial.protocol):
        return False
    method = trial.method
    return not method.entry.mixes or (table.mixes_as(method) and method.layers == table.layers)


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
    full = table.protocol or defaults_for(table.data).protocol
    epochs = min(trial.protocol.epochs for trial in trials)
    if epochs < full.epochs:
        words.append(f"{epochs} of {full.epochs} epochs")
    for name, some, all_ in (("k", ks, table.ks), ("alpha", alphas, table.alphas)):
        if some != all_:
            listed = ", ".join(f"{value:g}" for value in some)
            words.append(f"{name} = {listed} only" if some else f"no {name} from the paper")
    limits = [trial.limit for trial in trials if trial.limit is not None]
    if limits and min(limits) < ENTRIES[table.data].train:
        words.append(f"the first {min(limits):,} samples only")
    return words


def _chosen(table: PaperTable) -> list[str]:
    protocol = table.protocol or defaults_for(table.data).protocol
    kind = ENTRIES[table.data].kind
    sentences = [f"Batch size {protocol.batch_size}; the paper states none."]
    if kind == "toy":
        sentences += [
            f"Learning rate {protocol.rate:g}; the paper states none for the toy data, and "
            "training often diverges at its general 0.1.",
            "Points drawn by our own recipe; the paper shows the toy data only as pictures and xi.",
        ]
    if kind == "table":
        sentences.append("Random splits with a third for the test; the paper states none.")
    if table.scaling == "global":
        sentences.append(
            "One mean and one standard deviation for all columns, which the paper's xi values "
            "imply but its text does not state."
        )
    if table.data == "mnist":
        sentences.append(
            f"Learning rate {protocol.rate:g} instead of the paper's 0.1, at which one LeNet of "
            "three did not start to learn."
        )
    if protocol.augment:
        sentences.append("Random crops and flips; the paper states no augmentation.")
    elif kind == "image" and table.data != "mnist":
        sentences.append("No augmentation; the paper states none.")
    if table.layers is not None:
        sentences.append("Pairs within the batch, the only batch that a hidden layer sees.")
        if "resnet" in table.model:
            sentences.append(
                'We read "residual block" as a stage, as in the code that the paper points to.'
            )
    if table.model == "wide-resnet101":
        sentences.append('We read "WideResNet-101" as the wide ResNet-101 for ImageNet.')
    return sentences
