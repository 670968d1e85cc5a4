"""What networks believe over the plane after training without mixing, with mixup and k-mixup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from kmixup.lab.data.toy import DRAW
from kmixup.lab.figures.clouds import TITLES
from kmixup.lab.figures.style import MARKERS, SCALE, bare, panels, styled, xy
from kmixup.lab.protocol import Method, Trial, paper_protocol
from kmixup.lab.report.surfaces import Surface


def trials(
    *, k: int = 32, alpha: float = 1.0, epochs: int | None = None, size: int | None = None,
    seed: int = 0,
) -> list[list[Trial]]:  # fmt: skip
    """ERM, mixup and k-mixup on every toy, under the protocol of `kmixup reproduce toy`."""
    protocol = paper_protocol("", "toy")
    if epochs is not None:
        protocol = replace(protocol, epochs=epochs)
    methods = (Method("erm"), Method("mixup", alpha=alpha), Method(k=k, alpha=alpha))
    return [
        [Trial(name, "mlp-toy", method, protocol, seed, size=size) for method in methods]
        for name in DRAW
    ]


def trained(trials: Sequence[Sequence[Trial]], folder: Path) -> list[Surface]:
    """The surface of every trial, from `folder` where it was drawn before."""
    from kmixup.lab.report.surfaces import surfaces_of

    return surfaces_of(trials, folder)


@styled
def surfaces(trials: Sequence[Sequence[Trial]], found: Sequence[Surface]) -> Figure:
    """A row for every sequence of `trials`, whose surfaces are `found` in the same order."""
    figure, grid = panels(len(trials), len(trials[0]), size=(2.3, 2.35))
    each = iter(found)
    for row, line in zip(grid, trials, strict=True):
        for axes, trial in zip(row, line, strict=True):
            surface = next(each)
            image = _surface(axes, surface)
            error = "diverged" if np.isnan(surface.error) else f"{surface.error:.1f} % error"
            axes.set_title(f"{_name(trial.method)}: {error}")
        row[0].set_ylabel(TITLES.get(line[0].data, line[0].data))
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
    for one in (0, 1):  # white, to be seen on dark and light
        mine = surface.x[thin][surface.y[thin] == one].astype(np.float64)
        axes.scatter(
            *xy(mine), s=12, marker=MARKERS[one], c="white", edgecolors="black", linewidths=0.6,
            zorder=3,
        )  # fmt: skip
    bare(axes)
    axes.set(xlim=reach, ylim=reach)
    return image


def _name(method: Method) -> str:
    return "ERM" if method.name == "erm" else f"{method.k}-mixup"
