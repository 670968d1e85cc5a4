"""Images with few training samples, where regularisation matters; the paper has no such tables.

Every network takes 3,000 steps or more, of 64 samples each, and is tested on the whole test
part, as it is, under noise and under attack. Trial t draws its own training samples, the same
for every cell. The protocol was fixed before anything was mixed: the rates are those of the data
sets, and a warm-up lets every start succeed.

The networks with batch norm are also tested with clean statistics. A few of them are trained
again with a clean pass before every step, which the paper's public script makes where k > 1.
"""

from __future__ import annotations

from dataclasses import replace

from kmixup.lab.paper.tables import CLEAN, ERROR, PaperColumn, PaperTable
from kmixup.lab.train.config import Protocol, Shifts, shifts_from

KS = (1, 4, 16, 64)
DIGIT_ALPHAS = (0.05, 0.2, 1.0, 4.0, 16.0)
PHOTO_ALPHAS = (0.2, 1.0, 4.0)
TITLE = {CLEAN: "with clean statistics", "noise": "under noise of", "fgsm": "under FGSM of"}


def _protocol(epochs: int, *, rate: float, tests: int, augment: bool = False) -> Protocol:
    return Protocol(
        epochs=epochs,
        rate=rate,
        batch_size=64,
        augment=augment,
        warmup=0.1,
        test_every=epochs // tests,
        layout="channels_last",
    )


def _tables(
    name: str,
    title: str,
    *,
    data: str,
    model: str,
    samples: int,
    alphas: tuple[float, ...],
    trials: int,
    protocol: Protocol,
    shifts: Shifts,
    plain: tuple[str, ...] = (ERROR,),
) -> tuple[PaperTable, ...]:
    """A table for the test error, in the ways of `plain`, and for every level of the shifts."""
    levels: list[tuple[str, float | None]] = [(measure, None) for measure in plain]
    levels += [(shift, eps) for shift, values in shifts for eps in values]
    return tuple(
        PaperTable(
            "-".join([name, *([] if measure == ERROR else [_test(measure, eps, short=True)])]),
            ", ".join([title, *([] if measure == ERROR else [_test(measure, eps)])]),
            "not in the paper",
            data=data,
            model=model,
            ks=KS,
            columns=tuple(PaperColumn(alpha, eps=eps) for alpha in alphas),
            errors=None,
            erm=None,
            confidence=None,
            trials=trials,
            measure=measure,
            samples=samples,
            protocol=protocol,
            shifts=shifts,
        )
        for measure, eps in levels
    )


def _test(measure: str, eps: float | None, *, short: bool = False) -> str:
    """
    >>> _test("noise", 8.0), _test("noise", 8.0, short=True), _test("clean", None)
    ('under noise of 8/255', 'noise-8', 'with clean statistics')
    """
    if eps is None:
        return measure if short else TITLE[measure]
    return f"{measure}-{eps:g}" if short else f"{TITLE[measure]} {eps:g}/255"


MNIST_SHIFTS = shifts_from({"noise": (32, 64), "fgsm": (8, 16)})
MNIST_1000 = _tables(
    "mnist-1000",
    "MNIST, 1,000 training images",
    data="mnist",
    model="lenet",
    samples=1000,
    alphas=DIGIT_ALPHAS,
    trials=20,
    protocol=_protocol(188, rate=0.05, tests=4),
    shifts=MNIST_SHIFTS,
)
MNIST_5000 = _tables(
    "mnist-5000",
    "MNIST, 5,000 training images",
    data="mnist",
    model="lenet",
    samples=5000,
    alphas=DIGIT_ALPHAS,
    trials=10,
    protocol=_protocol(38, rate=0.05, tests=2),
    shifts=MNIST_SHIFTS,
)
CIFAR10_5000 = _tables(
    "cifar10-5000",
    "CIFAR-10, 5,000 training images",
    data="cifar10",
    model="preact-resnet14",
    samples=5000,
    alphas=PHOTO_ALPHAS,
    trials=5,
    protocol=_protocol(38, rate=0.1, tests=2, augment=True),
    shifts=shifts_from({"noise": (8, 16), "fgsm": (1, 2)}),
    plain=(ERROR, CLEAN),
)
CLEAN_PASS = tuple(
    replace(
        table,
        name=f"clean-pass-{table.name}",
        title=f"{table.title}, a clean pass before every step",
        ks=(1, 16),
        columns=(PaperColumn(1.0),),
        protocol=replace(table.protocol, clean_pass="always"),
    )
    for table in CIFAR10_5000
    if table.measure in (ERROR, CLEAN) and table.protocol is not None
)
