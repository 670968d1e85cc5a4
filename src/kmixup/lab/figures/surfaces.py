"""Decision surfaces: what networks believe over the plane, as a figure and as parts of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from kmixup.lab.data.toy import DRAW
from kmixup.lab.figures.beliefs import Surface, surfaces_of, three_methods, toy_trials
from kmixup.lab.figures.clouds import TITLES
from kmixup.lab.figures.plane import bare, xy
from kmixup.lab.pages.html import Picture
from kmixup.lab.pages.style import MARKERS, SCALE, panels, styled
from kmixup.lab.pages.svg import data_uri, png
from kmixup.lab.train.config import Protocol, Trial
from kmixup.lab.train.defaults import TOY

# of a picture: orange for class 0, white where a network is undecided, blue for class 1
CLASSES = LinearSegmentedColormap.from_list("classes", ["#d95f0e", "#f7f7f7", "#2166ac"])
POINTS = ("#fdd0a2", "#c6dbef")  # the same in lighter colours, for training points
PICTURE_DPI = 120


def trials(
    *, k: int = 32, alpha: float = 1.0, epochs: int | None = None, size: int | None = None,
    seed: int = 0, protocol: Protocol = TOY,
) -> list[list[Trial]]:  # fmt: skip
    """ERM, mixup and k-mixup on every toy, by default as in `kmixup reproduce toy`."""
    if epochs is not None:
        protocol = replace(protocol, epochs=epochs)
    return [
        three_methods(
            Trial(name, "mlp-toy", protocol=protocol, seed=seed, size=size), k=k, alpha=alpha
        )
        for name in DRAW
    ]


@styled
def surfaces(trials: Sequence[Sequence[Trial]], drawn: Sequence[Sequence[Surface]]) -> Figure:
    """One row of panels for each toy: the three `trials`, and their surfaces `drawn`."""
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
    for label in (0, 1):  # white, to be seen on dark and light
        points = surface.x[thin][surface.y[thin] == label].astype(np.float64)
        axes.scatter(
            *xy(points), s=12, marker=MARKERS[label], c="white", edgecolors="black",
            linewidths=0.6, zorder=3,
        )  # fmt: skip
    bare(axes)
    axes.set(xlim=reach, ylim=reach)
    return image


def pictures(runs: Iterable[Trial], folder: Path) -> dict[str, tuple[Picture, ...]]:
    """A picture of each method for every toy among the trials `runs`, by the name of the toy.

    Three small networks are trained for each, unless `folder` has their surfaces already.
    """
    trials = toy_trials(runs)
    if not trials:
        return {}
    return {
        toy[0].data: tuple(map(_picture, _titles(toy), beliefs))
        for toy, beliefs in zip(trials, surfaces_of(trials, folder), strict=True)
    }


def _titles(toy: Sequence[Trial]) -> tuple[str, str, str]:
    method = toy[-1].method
    alpha = f"α = {method.alpha:g}"
    return "ERM", f"mixup, {alpha}", f"k-mixup, k = {method.k}, {alpha}"


def _picture(title: str, surface: Surface) -> Picture:
    diverged = np.isnan(surface.error)
    caption = "training diverged" if diverged else f"{surface.error:.2f} % test error"
    return Picture(title, caption, data_uri(png(_drawn(surface), dpi=PICTURE_DPI, smooth=True)))


@styled
def _drawn(surface: Surface) -> Figure:
    reach = (-surface.edge, surface.edge)
    figure = Figure(figsize=(3, 3))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(
        surface.belief, origin="lower", extent=(*reach, *reach), cmap=CLASSES, vmin=0, vmax=255
    )
    for label, colour in enumerate(POINTS):
        across, along = surface.x[surface.y == label].T
        axes.scatter(
            across, along, s=9, marker=MARKERS[label], c=colour, edgecolors="black",
            linewidths=0.4,
        )  # fmt: skip
    axes.set(xlim=reach, ylim=reach)
    axes.set_axis_off()
    return figure
