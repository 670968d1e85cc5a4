"""Decision surfaces of ERM, mixup and k-mixup on the toys, as a figure and as parts of a page.

One fleet of three networks is trained for each toy. Their outputs over the plane are cached in a
file, so that pictures can be drawn again without training.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

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
from kmixup.lab.plotting import MARKERS, SCALE, panels, png, styled
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.train.defaults import TOY
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.setup import DivergedError, computing_on, load_data

NAME = "surfaces.npz"
K, ALPHA = 16, 1.0
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
class Surface:
    """Output of one network over the plane."""

    belief: NDArray[np.uint8]  # probability of class 1 on a grid `(steps, steps)`, in 255ths
    edge: float  # the grid reaches from -edge to edge in both directions
    x: NDArray[np.float32]  # some of the training points, `(n, 2)`
    y: NDArray[np.int64]  # their classes, `(n,)`
    error: float  # test error in per cent, NaN if training diverged


def three_methods(base: Trial, *, k: int, alpha: float) -> list[Trial]:
    """Return a trial with ERM, with mixup and with k-mixup, in this order."""
    methods = (Method("erm"), Method("mixup", alpha=alpha), Method(k=k, alpha=alpha))
    return [replace(base, method=method) for method in methods]


def trials(
    *, k: int = 32, alpha: float = 1.0, epochs: int | None = None, size: int | None = None,
    seed: int = 0, protocol: Protocol = TOY,
) -> list[list[Trial]]:  # fmt: skip
    """Return ERM, mixup and k-mixup on every toy, by default as in `kmixup reproduce toy`."""
    if epochs is not None:
        protocol = replace(protocol, epochs=epochs)
    bases = (Trial(name, "mlp-toy", protocol=protocol, seed=seed, size=size) for name in DRAW)
    return [three_methods(base, k=k, alpha=alpha) for base in bases]


def toy_trials(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Return three trials for each toy that is among `trials`.

    They use the longest protocol that was run on the toy, and its lowest seed.
    """
    longest: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda t: (-t.protocol.epochs, t.seed, repr(t))):
        if trial.data in DRAW and trial.model.startswith("mlp-"):  # what a fleet can train
            longest.setdefault(trial.data, trial)
    chosen = []
    for data in filter(longest.__contains__, DRAW):
        base = longest[data]
        k = min(K, base.protocol.batch_size, base.limit or K, base.size or K)
        chosen.append(three_methods(base, k=k, alpha=ALPHA))
    return chosen


def surfaces_of(trials: Sequence[Sequence[Trial]], folder: Path) -> list[list[Surface]]:
    """Return the surface of every trial; each sequence of trials is trained as one fleet.

    Surfaces are cached in `folder`, and read from there if they belong to the same trials.
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
    with computing_on(1):  # bitwise reproducible, and fastest for networks this small
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
    arrays: dict[str, Any] = {"key": np.array(_key(trials))}
    for i, surface in enumerate(surface for fleet in surfaces for surface in fleet):
        arrays |= {f"{name}-{i}": np.asarray(value) for name, value in vars(surface).items()}
    replace_file(path, lambda stream: np.savez_compressed(stream, **arrays))


def _read(path: Path, trials: Sequence[Sequence[Trial]]) -> list[list[Surface]] | None:
    """Return the cached surfaces, None if they are missing, damaged or of other trials."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            if str(stored["key"]) != _key(trials):
                return None
            numbers = iter(range(sum(map(len, trials))))
            return [[_stored(stored, next(numbers)) for _ in fleet] for fleet in trials]
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        return None


def _stored(arrays: Mapping[str, NDArray[Any]], i: int) -> Surface:
    values: dict[str, Any] = {entry.name: arrays[f"{entry.name}-{i}"] for entry in fields(Surface)}
    return Surface(**values | {name: float(values[name]) for name in ("edge", "error")})


@styled
def surfaces(trials: Sequence[Sequence[Trial]], drawn: Sequence[Sequence[Surface]]) -> Figure:
    """Draw one row of panels for each toy: the three `trials`, and their surfaces `drawn`."""
    figure, grid = panels(len(trials), len(trials[0]), size=(2.3, 2.35))
    for row, toy, beliefs in zip(grid, trials, drawn, strict=True):
        names = ("ERM", "1-mixup", f"{toy[-1].method.k}-mixup")
        for axes, name, surface in zip(row, names, beliefs, strict=True):
            image = _surface(axes, surface)
            error = "diverged" if np.isnan(surface.error) else f"{surface.error:.1f} % error"
            axes.set_title(f"{name}: {error}")
        row[0].set_ylabel(TITLES.get(toy[0].data, toy[0].data))
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


def _surface(axes: Axes, surface: Surface) -> AxesImage:
    reach = (-surface.edge, surface.edge)
    extent = (*reach, *reach)
    image = axes.imshow(
        surface.belief, origin="lower", extent=extent, cmap=SCALE, vmin=0, vmax=255,
        interpolation="bilinear",
    )  # fmt: skip
    axes.contour(surface.belief, levels=[127.5], extent=extent, colors="black", linewidths=0.8)
    thin = slice(None, None, 3)
    for label in (0, 1):  # white points are visible on dark and light
        points = surface.x[thin][surface.y[thin] == label].astype(np.float64)
        axes.scatter(
            *xy(points), s=12, marker=MARKERS[label], c="white", edgecolors="black",
            linewidths=0.6, zorder=3,
        )  # fmt: skip
    bare(axes)
    axes.set(xlim=reach, ylim=reach)
    return image


def pictures(runs: Iterable[Trial], folder: Path) -> dict[str, tuple[Picture, ...]]:
    """Return a picture of each method for every toy among the trials `runs`, by the toy's name.

    Three small networks are trained for each, unless `folder` has their surfaces already.
    """
    trials = toy_trials(runs)
    if not trials:
        return {}
    drawn = {}
    for toy, surfaces in zip(trials, surfaces_of(trials, folder), strict=True):
        method = toy[-1].method
        alpha = f"α = {method.alpha:g}"
        titles = ("ERM", f"mixup, {alpha}", f"k-mixup, k = {method.k}, {alpha}")
        drawn[toy[0].data] = tuple(map(_picture, titles, surfaces))
    return drawn


def _picture(title: str, surface: Surface) -> Picture:
    diverged = np.isnan(surface.error)
    caption = "training diverged" if diverged else f"{surface.error:.2f} % test error"
    return Picture(title, caption, png(_drawn(surface), dpi=PICTURE_DPI, smooth=True))


@styled
def _drawn(surface: Surface) -> Figure:
    reach = (-surface.edge, surface.edge)
    figure = Figure(figsize=(3, 3))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(
        surface.belief, origin="lower", extent=(*reach, *reach), cmap=CLASSES, vmin=0, vmax=255
    )
    for label, colour in enumerate(POINTS):
        points = surface.x[surface.y == label].astype(np.float64)
        axes.scatter(
            *xy(points), s=9, marker=MARKERS[label], c=colour, edgecolors="black", linewidths=0.4
        )
    axes.set(xlim=reach, ylim=reach)
    axes.set_axis_off()
    return figure
