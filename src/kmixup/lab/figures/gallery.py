"""Every figure by its name, with the settings of `kmixup figures`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from matplotlib.figure import Figure

from kmixup.lab.data import Dataset, at_hand, load
from kmixup.lab.figures import (
    clouds,
    convergence,
    couplings,
    distributions,
    rates,
    remainder,
    schematics,
    surfaces,
)
from kmixup.lab.figures.style import save
from kmixup.lab.prepare import usual_for
from kmixup.lab.protocol import Trial, paper_protocol
from kmixup.pairing import Nearest, Optimal, Pairing

T = TypeVar("T")
EPOCHS = 10  # of convergence
DIGITS = 10_000  # of MNIST, where nobody asked for all


@dataclass(frozen=True)
class Settings:
    """What the user chose.

    `data`: a data set in place of the toys, or of MNIST; `limit` and `target` are of reading
    it. `epochs`: of what is trained, by default 200 for surfaces and 10 for convergence.
    `trials`: networks of each line of the latter. `quick`: few points, samples and epochs.
    `folder`: where surfaces and runs are kept.
    """

    folder: Path
    data: str | None = None
    limit: int | None = None
    target: str | None = None
    seed: int = 0
    epochs: int | None = None
    trials: int = 1
    quick: bool = False

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
        return [clouds.cloud_of(self.load(self.data), size=size, seed=self.seed)]

    def load(self, name: str) -> Dataset:
        return load(name, limit=self.limit, target=self.target, seed=self.seed)


def draw(name: str, settings: Settings) -> list[Path]:
    """Draw one figure, and write it into the folder as SVG and PNG with its caption."""
    return save(DRAW[name](settings), settings.folder, name)


def _surfaces(s: Settings) -> Figure:
    epochs = s.pick(None, 2) if s.epochs is None else s.epochs
    trials = surfaces.trials(epochs=epochs, size=s.pick(None, 64), seed=s.seed)
    return surfaces.surfaces(trials, surfaces.trained(trials, s.folder))


def _couplings(s: Settings) -> Figure:
    return couplings.couplings(s.clouds(), seed=s.seed)


def _partners(pairing: type[Pairing]) -> Callable[[Settings], Figure]:
    def figure(s: Settings) -> Figure:
        return distributions.partners(
            s.clouds(), pairing=pairing, samples=s.pick(10_000, 200), seed=s.seed
        )

    return figure


def _convergence(s: Settings) -> Figure:
    name, limit, size, why = s.data or "mnist", s.limit, None, ""
    if s.data is None and s.quick:
        name, size = "swiss-roll", 64
    elif s.data is None:
        limit = DIGITS if limit is None else limit
        if not at_hand("mnist", limit=limit):
            name, why = "swiss-roll", " (MNIST is not at hand)"
    data = load(name, limit=limit, target=s.target, seed=s.seed, size=size)
    kind, model = usual_for(name, data)
    epochs = s.pick(EPOCHS, 2) if s.epochs is None else s.epochs
    protocol = replace(paper_protocol(name, kind), epochs=epochs)
    trial = Trial(
        name, model, protocol=protocol, seed=s.seed, limit=limit, size=size, target=s.target
    )
    found = convergence.courses(trial, trials=s.trials, folder=s.folder / "runs")
    return convergence.convergence(found, f"{data.title}, {model}{why}")


def _clusters(s: Settings) -> Figure:
    usual = (1, 2, 4, 8, 16, 32, 64, 128)
    ks, samples = s.pick((usual, 400), (usual[:5], 20))
    return rates.cross_fraction(ks, samples=samples, seed=s.seed)


def _distances(s: Settings) -> Figure:
    usual = (4, 8, 16, 32, 64, 128, 256)
    ks, samples = s.pick((usual, 150), (usual[:5], 5))
    return rates.matched_distance(ks, samples=samples, seed=s.seed)


def _expansion(s: Settings) -> Figure:
    ring = load("one-ring", size=s.pick(128, 40), seed=s.seed)
    return remainder.remainder(
        ring.x_train, ring.y_train, samples=s.pick(20_000, 2_000), steps=s.pick(200, 20),
        seed=s.seed,
    )  # fmt: skip


DRAW: dict[str, Callable[[Settings], Figure]] = {
    "surfaces": _surfaces,
    "couplings": _couplings,
    "matching": _partners(Optimal),
    "nearest": _partners(Nearest),
    "injectivity": lambda s: schematics.injectivity(),
    "convergence": _convergence,
    "counterexample": lambda s: schematics.counterexample(),
    "clusters": _clusters,
    "distances": _distances,
    "expansion": _expansion,
}
