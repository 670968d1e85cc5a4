"""Tables 6 and 7: test errors under Gaussian noise and under attack."""

from __future__ import annotations

from kmixup.lab.paper.images import RESNET
from kmixup.lab.paper.tables import PaperColumn, PaperTable, PrintedErrors, columns, transposed


def _noise(eps: float, erm: float, printed: PrintedErrors, *notes: str) -> PaperTable:
    return PaperTable(
        f"noise-{eps:g}",
        f"CIFAR-10 under noise of {eps:g}/255",
        f"Table 6, ε = {eps:g}",
        data="cifar10",
        model=RESNET,
        ks=(1, 4, 16),
        columns=columns((2, 5, 10), eps=eps),
        errors=transposed(printed),
        erm=erm,
        confidence=0.6,
        trials=30,
        measure="noise",
        notes=notes,
    )


NOISE = (
    _noise(8, 15.72, ((11.10, 11.65, 11.00), (11.39, 11.19, 11.28), (11.88, 11.28, 11.53))),
    _noise(10, 22.21, ((15.47, 16.06, 14.34), (15.78, 14.69, 14.20), (15.43, 14.56, 14.37))),
    _noise(12, 29.55, ((21.69, 21.75, 18.75), (21.19, 19.06, 17.71), (20.56, 18.45, 17.69))),
    _noise(
        14,
        37.93,
        ((29.69, 28.34, 23.86), (27.43, 23.72, 21.62), (25.90, 22.62, 21.61)),
        'The text has k = 16 below k = 1 "by as much as 4.29 %": that is between the best '
        "cells, 25.90 - 21.61; at alpha 2 it is 5.83.",
    ),
)

_ATTACKS = (0.5, 1, 2, 4, 8, 16)

FGSM_CIFAR10 = PaperTable(
    "fgsm-cifar10",
    "CIFAR-10 under FGSM",
    "Table 7 (a)",
    data="cifar10",
    model=RESNET,
    ks=(1, 2, 4, 8, 16),
    columns=tuple(PaperColumn(0.5, eps=eps) for eps in _ATTACKS),
    errors=(
        (20.63, 26.25, 31.07, 36.72, 48.55, 74.78),
        (20.40, 25.70, 29.89, 34.34, 43.78, 72.22),
        (20.73, 26.29, 30.59, 34.94, 43.94, 71.20),
        (20.58, 26.06, 30.31, 34.50, 43.51, 70.18),
        (20.21, 25.50, 29.57, 33.80, 43.32, 68.66),
    ),
    erm=None,
    confidence=0.6,
    trials=30,
    measure="fgsm",
)

FGSM_MNIST = PaperTable(
    "fgsm-mnist",
    "MNIST under FGSM",
    "Table 7 (b)",
    data="mnist",
    model="lenet",
    ks=(1, 2, 4, 8, 16, 32),
    columns=tuple(PaperColumn(10, eps=eps) for eps in _ATTACKS),
    errors=(
        (1.23, 1.66, 2.37, 3.88, 7.70, 18.10),
        (1.12, 1.50, 2.11, 3.58, 7.44, 19.81),
        (1.07, 1.37, 1.94, 3.25, 7.30, 22.02),
        (1.08, 1.40, 1.88, 3.12, 6.92, 21.00),
        (0.88, 1.11, 1.50, 2.42, 5.28, 16.44),
        (0.85, 1.07, 1.39, 2.27, 4.91, 14.95),
    ),
    erm=None,
    confidence=0.1,
    trials=30,
    measure="fgsm",
    notes=(
        "The paper states 30 trials for CIFAR-10; for MNIST they are taken to be as many.",
        "At ε = 16 the rows k = 2, 4 and 8 are above k = 1; the claim is of large k.",
    ),
)

SHIFTED = (*NOISE, FGSM_CIFAR10, FGSM_MNIST)


def shifts_of(table: PaperTable) -> dict[str, tuple[float, ...]]:
    """Levels of every shift under which the paper tests a table's networks in any table.

    A trial's levels are part of its id. So every trial of a network gets all levels, also
    where its own table needs none: the cells that two tables share are then the same trials,
    trained once. Testing costs little beside training.
    """
    if table.shifts:
        return dict(table.shifts)
    levels: dict[str, dict[float, None]] = {}
    for shifted in SHIFTED:
        if (shifted.data, shifted.model) == (table.data, table.model):
            sizes = (column.eps for column in shifted.columns if column.eps is not None)
            levels.setdefault(shifted.measure, {}).update(dict.fromkeys(sizes))
    return {measure: tuple(sizes) for measure, sizes in levels.items()}
