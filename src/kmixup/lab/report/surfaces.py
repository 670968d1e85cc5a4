"""What networks believe over the plane: decision surfaces for the toy data.

The one part of a report that trains: rows hold figures, not networks. One fleet of three,
ERM, mixup and k-mixup, is trained for each data set under the protocol of its rows, and
what it believes is kept in a file, so that the page can be drawn again in no time.
"""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from kmixup.lab.checkpoint import replace_file
from kmixup.lab.data.toy import DRAW
from kmixup.lab.fleet import train_fleet
from kmixup.lab.prepare import DivergedError, computing_on, load_data
from kmixup.lab.protocol import Method, Trial
from kmixup.lab.report.grids import Row

NAME = "surfaces.npz"
K, ALPHA = 16, 1.0
STEPS = 160  # points of the grid along an axis
COLOURS = 96
SHOWN = 150  # training points in a picture, of each class
ORANGE, WHITE, BLUE = "#d95f0e", "#f7f7f7", "#2166ac"


@dataclass(frozen=True, eq=False)
class Surface:
    """The probability of class 1 on a grid `(steps, steps)` in 255ths, and some of the data.

    `edge`: the picture reaches from -edge to edge; `error` is of the test part, in per cent,
    NaN where training diverged.
    """

    belief: NDArray[np.uint8]
    edge: float
    x: NDArray[np.float32]
    y: NDArray[np.int64]
    error: float


@dataclass(frozen=True, eq=False)
class Picture:
    """A surface as an image to be put into a page."""

    title: str
    caption: str
    source: str


def pictures(rows: Sequence[Row], folder: Path) -> dict[str, tuple[Picture, ...]]:
    """A picture of every method for every toy in the rows, by the name of the data.

    Networks are trained only where `folder` has no surfaces of the same trials.
    """
    trials = trials_of(rows)
    if not trials:
        return {}
    drawn = iter(surfaces_of(trials, folder))
    return {toy[0].data: tuple(_picture(trial, next(drawn)) for trial in toy) for toy in trials}


def surfaces_of(trials: Sequence[Sequence[Trial]], folder: Path) -> list[Surface]:
    """The surface of every trial, one after the other; each sequence is one fleet.

    They are kept in `folder` and taken from there where they are of the same trials.
    """
    path = folder / NAME
    surfaces = _read(path, trials)
    if surfaces is None:
        surfaces = [surface for toy in trials for surface in _surfaces(toy)]
        _write(path, trials, surfaces)
    return surfaces


def trials_of(rows: Sequence[Row]) -> list[list[Trial]]:
    """Three trials for each toy, under the longest protocol and with the least seed of its rows."""
    found = []
    for data in DRAW:
        mine = [Trial.from_dict(row["trial"]) for row in rows if row["trial"]["data"] == data]
        mlps = [trial for trial in mine if trial.model.startswith("mlp-")]  # what a fleet can train
        if mlps:
            one = min(mlps, key=lambda trial: (-trial.protocol.epochs, trial.seed, repr(trial)))
            k = min(K, one.protocol.batch_size, one.limit or K, one.size or K)
            methods = (Method("erm"), Method("mixup", alpha=ALPHA), Method(k=k, alpha=ALPHA))
            found.append([replace(one, method=method) for method in methods])
    return found


def _surfaces(trials: Sequence[Trial]) -> list[Surface]:
    data = load_data(trials[0])
    edge = float(data.x_train.abs().max()) * 1.08
    axis = torch.linspace(-edge, edge, STEPS)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), 2).view(-1, 2)
    some = torch.cat([(data.y_train == one).nonzero().flatten()[:SHOWN] for one in (0, 1)])
    x, y = data.x_train[some].numpy(), data.y_train[some].numpy()
    with computing_on(1):  # the same bits every time, and networks this small run fastest so
        members = train_fleet(trials, data=[data] * len(trials))
    found = []
    for member in members:
        if isinstance(member, DivergedError):
            belief, error = torch.full((STEPS, STEPS), 0.5), float("nan")
        else:
            with torch.no_grad():
                logits = member.net(data.normalise(grid))
            belief = logits.softmax(1)[:, 1].view(STEPS, STEPS)
            error = 100 * member.record["result"]["error"]
        found.append(Surface((255 * belief).round().byte().numpy(), edge, x, y, error))
    return found


def _picture(trial: Trial, surface: Surface) -> Picture:
    method = trial.method
    title = {"erm": "ERM", "mixup": f"mixup, α = {method.alpha:g}"}.get(
        method.name, f"k-mixup, k = {method.k}, α = {method.alpha:g}"
    )
    broke = np.isnan(surface.error)
    caption = "training diverged" if broke else f"{surface.error:.2f} % test error"
    return Picture(title, caption, _png(surface))


def _png(surface: Surface) -> str:
    """The image as a data URI."""
    colours = LinearSegmentedColormap.from_list("classes", [ORANGE, WHITE, BLUE])
    reach = (-surface.edge, surface.edge)
    figure = Figure(figsize=(3, 3), dpi=120)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(
        surface.belief, origin="lower", extent=(*reach, *reach), cmap=colours, vmin=0, vmax=255
    )
    for one, marker, colour in ((0, "o", "#fdd0a2"), (1, "^", "#c6dbef")):
        across, along = surface.x[surface.y == one].T
        axes.scatter(
            across, along, s=9, marker=marker, c=colour, edgecolors="black", linewidths=0.4
        )
    axes.set(xlim=reach, ylim=reach)
    axes.set_axis_off()
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png")
    # a page has nine of these: in a palette they take a third of the room and look the same
    Image.open(full).convert("RGB").quantize(COLOURS).save(small, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(small.getvalue()).decode()


def _key(trials: Sequence[Sequence[Trial]]) -> str:
    return f"{STEPS} {SHOWN} " + " ".join(trial.id for toy in trials for trial in toy)


def _write(path: Path, trials: Sequence[Sequence[Trial]], surfaces: Sequence[Surface]) -> None:
    arrays: dict[str, Any] = {
        f"{name}-{i}": np.asarray(value)
        for i, surface in enumerate(surfaces)
        for name, value in vars(surface).items()
    }
    arrays["key"] = np.array(_key(trials))
    replace_file(path, lambda stream: np.savez_compressed(stream, **arrays))


def _read(path: Path, trials: Sequence[Sequence[Trial]]) -> list[Surface] | None:
    """The stored surfaces if they are of these trials."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            if str(stored["key"]) != _key(trials):
                return None
            return [
                Surface(
                    stored[f"belief-{i}"],
                    float(stored[f"edge-{i}"]),
                    stored[f"x-{i}"],
                    stored[f"y-{i}"],
                    float(stored[f"error-{i}"]),
                )
                for i in range(sum(map(len, trials)))
            ]
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        return None  # a cache that cannot be read is made anew
