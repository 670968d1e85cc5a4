"""Decision surfaces of ERM, mixup and k-mixup on the toys, as a figure and as parts of a page.

Three networks are trained for each toy, as one fleet. Their outputs over the plane are cached.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from kmixup.lab.data.toy import DRAW
from kmixup.lab.figures.clouds import TITLES, bare, xy
from kmixup.lab.files import replace_file
from kmixup.lab.plotting import MARKERS, SCALE, Array, panels, png, styled
from kmixup.lab.train.config import Method, Trial
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.setup import DivergedError, computing_on, load_data

NAME = "surfaces.npz"
K = 16  # on pages, if there are enough points
STEPS = 160  # points of the grid along an axis
SHOWN = 150  # training points in a picture, of each class
# on pages: orange for class 0, white at probability 1/2, blue for class 1
CLASSES = LinearSegmentedColormap.from_list("classes", ["#d95f0e", "#f7f7f7", "#2166ac"])
POINTS = ("#fdd0a2", "#c6dbef")  # the same in lighter colours, for training points
PICTURE_DPI = 120


@dataclass(frozen=True)
class Picture:
    """A decision surface for a report, as a PNG file."""

    title: str  # the method
    caption: str  # its test error
    png: bytes


@dataclass(frozen=True, eq=False)
class Surfaces:
    """Outputs of three networks over the plane of a toy."""

    belief: NDArray[np.uint8]  # probability of class 1 on a grid `(3, steps, steps)`, in 255ths
    error: NDArray[np.float64]  # test errors in per cent `(3,)`, NaN if training diverged
    edge: NDArray[np.float64]  # the grid reaches from -edge to edge in both directions, `()`
    x: NDArray[np.float32]  # some of the training points, `(n, 2)`
    y: NDArray[np.int64]  # their classes, `(n,)`

    @property
    def reach(self) -> tuple[float, float]:
        return -float(self.edge), float(self.edge)

    def points(self, label: int, every: int = 1) -> Array:
        """Return those of every so many training points that have a label, `(n, 2)`."""
        return np.asarray(self.x[::every][self.y[::every] == label], np.float64)


def three_methods(base: Trial, k: int) -> list[Trial]:
    """Return a trial with ERM, with mixup and with k-mixup, in this order, at alpha = 1."""
    mixup, kmixup = (Method("kmixup", size, alpha=1.0) for size in (1, k))
    return [replace(base, method=method) for method in (Method("erm"), mixup, kmixup)]


def toy_trials(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Return three trials for each toy, with its longest protocol in `trials` and lowest seed."""
    longest: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda t: (-t.protocol.epochs, t.seed, repr(t))):
        if trial.data in DRAW and trial.model.startswith("mlp-"):  # what a fleet can train
            longest.setdefault(trial.data, trial)
    chosen = []
    for data in filter(longest.__contains__, DRAW):
        base = longest[data]
        k = min(K, base.protocol.batch_size, base.limit or K, base.size or K)
        chosen.append(three_methods(base, k))
    return chosen


def surfaces_of(trials: Sequence[Sequence[Trial]], folder: Path) -> list[Surfaces]:
    """Return the surfaces of every toy, whose trials are trained as one fleet.

    They are cached in `folder`, and read from there if they belong to the same trials.
    """
    path = folder / NAME
    key = f"{STEPS} {SHOWN} " + " ".join(trial.id for fleet in trials for trial in fleet)
    names = [entry.name for entry in fields(Surfaces)]
    with (
        suppress(ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile),  # as if missing
        path.open("rb") as stream,
        np.load(stream, allow_pickle=False) as stored,
    ):
        if str(stored["key"]) == key:
            return [
                Surfaces(*(stored[f"{name}-{i}"] for name in names)) for i in range(len(trials))
            ]
    toys = [_train(fleet) for fleet in trials]
    arrays = {f"{name}-{i}": getattr(toy, name) for i, toy in enumerate(toys) for name in names}
    replace_file(path, lambda stream: np.savez_compressed(stream, key=np.array(key), **arrays))
    return toys


def _train(fleet: Sequence[Trial]) -> Surfaces:
    data = load_data(fleet[0])
    edge = float(data.x_train.abs().max()) * 1.08
    axis = torch.linspace(-edge, edge, STEPS)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), 2).view(-1, 2)
    shown = torch.cat([(data.y_train == label).nonzero().flatten()[:SHOWN] for label in (0, 1)])
    with computing_on(1):  # bitwise reproducible, and fastest for networks this small
        members = train_fleet(fleet, data=[data] * len(fleet))
    belief, error = torch.full((len(fleet), STEPS, STEPS), 0.5), np.full(len(fleet), np.nan)
    for i, member in enumerate(members):
        if not isinstance(member, DivergedError):
            with torch.no_grad():
                logits = member.net(data.normalise(grid))
            belief[i] = logits.softmax(1)[:, 1].view(STEPS, STEPS)
            error[i] = 100 * member.record["result"]["error"]
    return Surfaces(
        (255 * belief).round().byte().numpy(),
        error,
        np.array(edge),
        data.x_train[shown].numpy(),
        data.y_train[shown].numpy(),
    )


@styled
def surfaces(trials: Sequence[Sequence[Trial]], toys: Sequence[Surfaces]) -> Figure:
    """Draw one row of panels for each toy: the surfaces of its three `trials`."""
    figure, grid = panels(len(trials), 3, size=(2.3, 2.35))
    for row, fleet, toy in zip(grid, trials, toys, strict=True):
        names = ("ERM", "1-mixup", f"{fleet[-1].method.k}-mixup")
        for i, (axes, name) in enumerate(zip(row, names, strict=True)):
            image = _surface(axes, toy, i)
            error = "diverged" if np.isnan(toy.error[i]) else f"{toy.error[i]:.1f} % error"
            axes.set_title(f"{name}: {error}")
        row[0].set_ylabel(TITLES.get(fleet[0].data, fleet[0].data))
    bar = figure.colorbar(image, ax=grid, shrink=0.5, aspect=30, ticks=[0, 127.5, 255])
    bar.ax.set_yticklabels(["0", "½", "1"])
    bar.set_label("probability of the class of triangles")
    first = trials[0][-1]
    figure.set_label(
        f"Outputs of a network with two hidden layers after {first.protocol.epochs} epochs of "
        f"ERM, 1-mixup and {first.method.k}-mixup (α = {first.method.alpha:g}) on three toys, "
        "one network each, with errors on fresh test points. Lines are where both classes are "
        "equally likely; training points are thinned out."
    )
    return figure


def _surface(axes: Axes, toy: Surfaces, i: int) -> AxesImage:
    extent = (*toy.reach, *toy.reach)
    image = axes.imshow(
        toy.belief[i], origin="lower", extent=extent, cmap=SCALE, vmin=0, vmax=255,
        interpolation="bilinear",
    )  # fmt: skip
    axes.contour(toy.belief[i], levels=[127.5], extent=extent, colors="black", linewidths=0.8)
    for label in (0, 1):  # white points are visible on dark and light
        axes.scatter(
            *xy(toy.points(label, every=3)), s=12, marker=MARKERS[label], c="white",
            edgecolors="black", linewidths=0.6, zorder=3,
        )  # fmt: skip
    bare(axes)
    axes.set(xlim=toy.reach, ylim=toy.reach)
    return image


def pictures(runs: Iterable[Trial], folder: Path) -> dict[str, tuple[Picture, ...]]:
    """Return a picture of each method for every toy among the trials `runs`, by the toy's name.

    Three small networks are trained for each, unless `folder` has their surfaces already.
    """
    trials = toy_trials(runs)
    if not trials:
        return {}
    drawn = {}
    for fleet, toy in zip(trials, surfaces_of(trials, folder), strict=True):
        titles = ("ERM", "mixup, α = 1", f"k-mixup, k = {fleet[-1].method.k}, α = 1")
        drawn[fleet[0].data] = tuple(_picture(title, toy, i) for i, title in enumerate(titles))
    return drawn


def _picture(title: str, toy: Surfaces, i: int) -> Picture:
    diverged = np.isnan(toy.error[i])
    caption = "training diverged" if diverged else f"{toy.error[i]:.2f} % test error"
    return Picture(title, caption, png(_drawn(toy, i), dpi=PICTURE_DPI, smooth=True))


@styled
def _drawn(toy: Surfaces, i: int) -> Figure:
    figure = Figure(figsize=(3, 3))
    axes = figure.add_axes((0, 0, 1, 1))
    extent = (*toy.reach, *toy.reach)
    axes.imshow(toy.belief[i], origin="lower", extent=extent, cmap=CLASSES, vmin=0, vmax=255)
    for label, colour in enumerate(POINTS):
        axes.scatter(
            *xy(toy.points(label)), s=9, marker=MARKERS[label], c=colour, edgecolors="black",
            linewidths=0.4,
        )  # fmt: skip
    axes.set(xlim=toy.reach, ylim=toy.reach)
    axes.set_axis_off()
    return figure
