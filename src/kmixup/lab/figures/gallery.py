"""Every figure by its name, with the settings of `kmixup figures`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from kmixup._checks import SettingError
from kmixup.lab.data import ENTRIES, Dataset, at_hand, load
from kmixup.lab.data.toy import DRAW as TOYS
from kmixup.lab.figures import clouds, convergence, couplings, surfaces, theory
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.trial import Protocol, Trial
from kmixup.matching import Nearest, Optimal, Pairing

T = TypeVar("T")
EPOCHS = 10  # of convergence
DIGITS = 10_000  # of MNIST
# As few points and steps as tell the classes of the toys apart. Test errors of ERM, mixup and
# 32-mixup, seed 0: 0.6, 19 and 2 % on One Ring, 0 % on Four Bars, 13, 36 and 12 % on Swiss Roll.
QUICK, QUICK_SIZE = Protocol(epochs=30, rate=0.05, batch_size=32), 512


@dataclass(frozen=True)
class Settings:
    """Options of `kmixup figures`.

    Attributes:
        out: Folder to draw into.
        target: Column of a table with the classes.
        seed: Seed of points, partners and networks.
        epochs: Number of epochs for surfaces (200 by default) and convergence (10).
        trials: Networks for each line of convergence.
        quick: Draw the smallest version that shows something.
    """

    out: Path = Path("out/figures")
    data: str | None = None
    target: str | None = None
    seed: int = 0
    epochs: int | None = None
    trials: int = 1
    quick: bool = False

    def pick(self, usual: T, quick: T) -> T:
        return quick if self.quick else usual

    def clouds(self) -> list[clouds.Cloud]:
        """Return the user's data, or the toys."""
        size = self.pick(clouds.SIZE, 128)
        if self.data is None:
            data = [load(name, size=size, seed=self.seed) for name in TOYS]
        else:
            data = [_with_classes(load(self.data, target=self.target, seed=self.seed))]
        return [clouds.cloud_of(part, size=size, seed=self.seed) for part in data]


def _with_classes(data: Dataset) -> Dataset:
    if data.task == "regression":
        raise SettingError(
            "target", f"must hold classes, {data.name} has numbers: use kmixup inspect instead"
        )
    return data


def _surfaces(s: Settings) -> Figure:
    protocol, size = s.pick((defaults_for("one-ring").protocol, None), (QUICK, QUICK_SIZE))
    if s.epochs is not None:
        protocol = replace(protocol, epochs=s.epochs)
    return surfaces.surfaces(
        [Trial(name, "mlp-toy", protocol=protocol, seed=s.seed, size=size) for name in TOYS]
    )


def _partners(s: Settings, pairing: type[Pairing]) -> Figure:
    samples = s.pick(10_000, 200)
    return couplings.partners(s.clouds(), pairing=pairing, samples=samples, seed=s.seed)


def _convergence(s: Settings) -> Figure:
    name, limit, size, why = s.data or "mnist", None, None, ""
    if s.data is None and s.quick:
        name, size = "one-ring", QUICK_SIZE
    elif s.data is None and at_hand("mnist", limit=DIGITS):
        limit = DIGITS
    elif s.data is None:
        name, why = "swiss-roll", " (MNIST is not downloaded)"
    data = _with_classes(load(name, limit=limit, target=s.target, seed=s.seed, size=size))
    usual = defaults_for(name, data)
    protocol = QUICK if size else replace(usual.protocol, epochs=EPOCHS)
    if s.epochs is not None:
        protocol = replace(protocol, epochs=s.epochs)
    trial = Trial(
        name, usual.model, protocol=protocol, seed=s.seed, limit=limit, size=size, target=s.target
    )
    # a user's own file may change under its name, so that runs of it cannot be kept
    folder = s.out / "runs" if name in ENTRIES else None
    courses = convergence.courses(trial, trials=s.trials, folder=folder)
    return convergence.convergence(courses, f"{data.title}, {usual.model}{why}")


def _over_k(s: Settings, figure: Callable[..., Figure], **quick: Any) -> Figure:
    return figure(**s.pick({}, quick), seed=s.seed)


def _expansion(s: Settings) -> Figure:
    ring = load("one-ring", size=s.pick(128, 40), seed=s.seed)
    samples, steps = s.pick((20_000, 200), (2_000, 20))
    return theory.remainder(ring.x_train, ring.y_train, samples=samples, steps=steps, seed=s.seed)


DRAW: dict[str, Callable[[Settings], Figure]] = {
    "surfaces": _surfaces,
    "couplings": lambda s: couplings.couplings(s.clouds(), seed=s.seed),
    "matching": lambda s: _partners(s, Optimal),
    "nearest": lambda s: _partners(s, Nearest),
    "steps": lambda s: couplings.steps(s.clouds()[-1], seed=s.seed),
    "injectivity": lambda s: theory.injectivity(),
    "convergence": _convergence,
    "counterexample": lambda s: theory.counterexample(),
    "endpoints": lambda s: _over_k(s, theory.endpoints, ks=(16, 32), samples=40),
    "clusters": lambda s: _over_k(s, theory.cross_fraction, ks=(1, 2, 4, 8, 16), samples=20),
    "distances": lambda s: _over_k(s, theory.matched_distance, ks=(4, 8, 16, 32, 64), samples=5),
    "expansion": _expansion,
}
