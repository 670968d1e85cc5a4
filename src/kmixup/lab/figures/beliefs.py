"""Networks for decision surfaces: ERM, mixup and k-mixup on a toy, trained once and kept.

One fleet of three is trained for each toy. What its networks believe over the plane is kept
in a file, so that pictures can be drawn again in no time.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kmixup.lab.data.toy import DRAW
from kmixup.lab.files import replace_file
from kmixup.lab.train.config import Method, Trial
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.setup import DivergedError, computing_on, load_data

NAME = "surfaces.npz"
K, ALPHA = 16, 1.0
STEPS = 160  # points of the grid along an axis
SHOWN = 150  # training points in a picture, of each class


@dataclass(frozen=True, eq=False)
class Surface:
    """What one network believes over the plane.

    Attributes:
        belief: the probability of class 1 on a grid `(steps, steps)`, in 255ths.
        edge: the grid reaches from -edge to edge in both directions.
        x: some of the training points, `(n, 2)`.
        y: their classes, `(n,)`.
        error: error on the test part in per cent, NaN where training diverged.
    """

    belief: NDArray[np.uint8]
    edge: float
    x: NDArray[np.float32]
    y: NDArray[np.int64]
    error: float


def three_methods(base: Trial, *, k: int, alpha: float) -> list[Trial]:
    """A trial with ERM, with mixup and with k-mixup, in this order."""
    methods = (Method("erm"), Method("mixup", alpha=alpha), Method(k=k, alpha=alpha))
    return [replace(base, method=method) for method in methods]


def toy_trials(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Three trials for each toy that is among `trials`.

    Their protocol is the longest that was run on the toy, their seed the least of those.
    """
    mlps: dict[str, list[Trial]] = {data: [] for data in DRAW}
    for trial in trials:
        if trial.data in mlps and trial.model.startswith("mlp-"):  # what a fleet can train
            mlps[trial.data].append(trial)
    longest = [
        min(run, key=lambda trial: (-trial.protocol.epochs, trial.seed, repr(trial)))
        for run in mlps.values()
        if run
    ]
    return [
        three_methods(
            base,
            k=min(K, base.protocol.batch_size, base.limit or K, base.size or K),
            alpha=ALPHA,
        )
        for base in longest
    ]


def surfaces_of(trials: Sequence[Sequence[Trial]], folder: Path) -> list[list[Surface]]:
    """The surface of every trial; each sequence of trials is one fleet.

    They are kept in `folder`, and taken from there if they are of the same trials.
    """
    path = folder / NAME
    surfaces = _read(path, trials)
    if surfaces is None:
        surfaces = [_train(fleet) for fleet in trials]
        _write(path, trials, surfaces)
    return surfaces


def _train(fleet: Sequence[Trial]) -> list[Surface]:
    data = load_data(fleet[0])
    edge = float(data.x_train.abs().max()) * 1.08
    axis = torch.linspace(-edge, edge, STEPS)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), 2).view(-1, 2)
    shown = torch.cat([(data.y_train == label).nonzero().flatten()[:SHOWN] for label in (0, 1)])
    x, y = data.x_train[shown].numpy(), data.y_train[shown].numpy()
    with computing_on(1):  # the same bits every time, and networks this small run fastest so
        members = train_fleet(fleet, data=[data] * len(fleet))
    surfaces = []
    for member in members:
        if isinstance(member, DivergedError):
            belief, error = torch.full((STEPS, STEPS), 0.5), float("nan")
        else:
            with torch.no_grad():
                logits = member.net(data.normalise(grid))
            belief = logits.softmax(1)[:, 1].view(STEPS, STEPS)
            error = 100 * member.record["result"]["error"]
        surfaces.append(Surface((255 * belief).round().byte().numpy(), edge, x, y, error))
    return surfaces


def _key(trials: Sequence[Sequence[Trial]]) -> str:
    return f"{STEPS} {SHOWN} " + " ".join(trial.id for fleet in trials for trial in fleet)


def _write(
    path: Path, trials: Sequence[Sequence[Trial]], surfaces: Sequence[Sequence[Surface]]
) -> None:
    flat = [surface for fleet in surfaces for surface in fleet]
    arrays: dict[str, Any] = {
        f"{name}-{i}": np.asarray(value)
        for i, surface in enumerate(flat)
        for name, value in vars(surface).items()
    }
    arrays["key"] = np.array(_key(trials))
    replace_file(path, lambda stream: np.savez_compressed(stream, **arrays))


def _read(path: Path, trials: Sequence[Sequence[Trial]]) -> list[list[Surface]] | None:
    """The stored surfaces if they are of these trials."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            if str(stored["key"]) != _key(trials):
                return None
            flat = iter(
                Surface(
                    stored[f"belief-{i}"],
                    float(stored[f"edge-{i}"]),
                    stored[f"x-{i}"],
                    stored[f"y-{i}"],
                    float(stored[f"error-{i}"]),
                )
                for i in range(sum(map(len, trials)))
            )
            return [[next(flat) for _ in fleet] for fleet in trials]
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        return None  # a cache that cannot be read is made anew
