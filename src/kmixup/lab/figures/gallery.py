"""Every figure by its name, with the settings of `kmixup figures`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from kmixup.lab.data import ENTRIES, at_hand, load
from kmixup.lab.figures import clouds, convergence, couplings, rates, schematics, surfaces
from kmixup.lab.plotting import save
from kmixup.lab.train.config import Protocol, Trial
from kmixup.lab.train.defaults import TOY, defaults_for
from kmixup.matching import Nearest, Optimal, Pairing

T = TypeVar("T")
EPOCHS = 10  # of convergence
DIGITS = 10_000  # of MNIST, where nobody asked for all
# As few points and steps as tell the classes of the toys apart. Test errors of ERM, mixup and
# 32-mixup, seed 0: 0.6, 19 and 2 % on One Ring, 0 % on Four Bars, 13, 36 and 12 % on Swiss Roll.
QUICK, QUICK_SIZE = Protocol(epochs=30, rate=0.05, batch_size=32), 512


@dataclass(frozen=True)
class Settings:
    """What the user chose."""

    folder: Path  # where figures are written and trained networks are cached
    data: str | None = None  # instead of the toys or MNIST
    limit: int | None = None  # number of samples to read
    target: str | None = None  # column of the classes, if the data are a table
    seed: int = 0  # of points, partners and networks
    epochs: int | None = None  # by default 200 for surfaces and 10 for convergence
    trials: int = 1  # networks for each line of convergence
    quick: bool = False  # draw with few points, samples and epochs

    def __post_init__(self) -> None:
        for name, value, least in (("seed", self.seed, 0), ("trials", self.trials, 1)):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")

    def pick(self, usual: T, quick: T) -> T:
        return quick if self.quick else usual

    def clouds(self) -> list[clouds.Cloud]:
        """The user's data, or the toys."""
        size = self.pick(clouds.SIZE, 128)
        if self.data is None:
            return clouds.toys(size=size, seed=self.seed)
        data = load(self.data, limit=self.limit, target=self.target, seed=self.seed)
        return [clouds.cloud_of(data, size=size, seed=self.seed)]


def draw(name: str, settings: Settings) -> list[Path]:
    """Draw one figure, and write it into the folder as SVG and PNG with its caption."""
    return save(DRAW[name](settings), settings.folder, name)


def _surfaces(s: Settings) -> Figure:
    trials = surfaces.trials(
        epochs=s.epochs,
        size=s.pick(None, QUICK_SIZE),
        seed=s.seed,
        protocol=s.pick(TOY, QUICK),
    )
    return surfaces.surfaces(trials, surfaces.surfaces_of(trials, s.folder))


def _partners(s: Settings, pairing: type[Pairing]) -> Figure:
    samples = s.pick(10_000, 200)
    return couplings.partners(s.clouds(), pairing=pairing, samples=samples, seed=s.seed)


def _convergence(s: Settings) -> Figure:
    name, limit, size, why = s.data or "mnist", s.limit, None, ""
    if s.data is None and s.quick:
        name, size = "one-ring", QUICK_SIZE
    elif s.data is None:
        limit = DIGITS if limit is None else limit
        if not at_hand("mnist", limit=limit):
            name, why = "swiss-roll", " (MNIST is not at hand)"
    data = load(name, limit=limit, target=s.target, seed=s.seed, size=size)
    usual = defaults_for(name, data)
    protocol = replace(usual.protocol, epochs=s.pick(EPOCHS, 2))
    if s.data is None and s.quick:
        protocol = QUICK
    if s.epochs is not None:
        protocol = replace(protocol, epochs=s.epochs)
    trial = Trial(
        name, usual.model, protocol=protocol, seed=s.seed, limit=limit, size=size, target=s.target
    )
    # a user's own file may change under its name, so that runs of it cannot be kept
    folder = s.folder / "runs" if name in ENTRIES else None
    courses = convergence.courses(trial, trials=s.trials, folder=folder)
    return convergence.convergence(courses, f"{data.title}, {usual.model}{why}")


def _over_k(s: Settings, figure: Callable[..., Figure], **quick: Any) -> Figure:
    return figure(**s.pick({}, quick), seed=s.seed)


def _expansion(s: Settings) -> Figure:
    ring = load("one-ring", size=s.pick(128, 40), seed=s.seed)
    return rates.remainder(
        ring.x_train, ring.y_train, samples=s.pick(20_000, 2_000), steps=s.pick(200, 20),
        seed=s.seed,
    )  # fmt: skip


DRAW: dict[str, Callable[[Settings], Figure]] = {
    "surfaces": _surfaces,
    "couplings": lambda s: couplings.couplings(s.clouds(), seed=s.seed),
    "matching": lambda s: _partners(s, Optimal),
    "nearest": lambda s: _partners(s, Nearest),
    "steps": lambda s: couplings.steps(s.clouds()[-1], seed=s.seed),
    "injectivity": lambda s: schematics.injectivity(),
    "convergence": _convergence,
    "counterexample": lambda s: schematics.counterexample(),
    "endpoints": lambda s: _over_k(s, schematics.endpoints, ks=(16, 32), samples=40),
    "clusters": lambda s: _over_k(s, rates.cross_fraction, ks=(1, 2, 4, 8, 16), samples=20),
    "distances": lambda s: _over_k(s, rates.matched_distance, ks=(4, 8, 16, 32, 64), samples=5),
    "expansion": _expansion,
}
