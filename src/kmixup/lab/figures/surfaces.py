"""Decision surfaces of ERM, mixup and k-mixup on the toys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import nn

from kmixup.lab.data import Dataset
from kmixup.lab.figures.clouds import TITLES, bare, xy
from kmixup.lab.plotting import MARKERS, SCALE, panels, styled
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.setup import DivergedError, computing_on, load_data
from kmixup.lab.trial import Method, Trial

METHODS = {
    "ERM": Method("erm"),
    "1-mixup": Method("kmixup", 1, alpha=1.0),
    "32-mixup": Method("kmixup", 32, alpha=1.0),
}
STEPS = 160  # points of the grid along an axis
SHOWN = slice(0, 150, 3)  # training points of each class in a panel


@styled
def surfaces(trials: Sequence[Trial]) -> Figure:
    """Draw a row of panels for each toy: `trials` with all `METHODS`, trained as one fleet."""
    figure, grid = panels(len(trials), len(METHODS), size=(2.3, 2.35))
    for row, trial in zip(grid, trials, strict=True):
        data = load_data(trial)
        fleet = [replace(trial, method=method) for method in METHODS.values()]
        with computing_on(1):  # bitwise reproducible, and fastest for networks this small
            members = train_fleet(fleet, data=[data] * len(fleet))
        for axes, name, member in zip(row, METHODS, members, strict=True):
            if isinstance(member, DivergedError):
                raise member
            image = _surface(axes, member.net, data)
            axes.set_title(f"{name}: {100 * member.record['result']['error']:.1f} % error")
        row[0].set_ylabel(TITLES[trial.data])
    bar = figure.colorbar(image, ax=grid, shrink=0.5, aspect=30, ticks=[0, 0.5, 1])
    bar.ax.set_yticklabels(["0", "½", "1"])
    bar.set_label("probability of the class of triangles")
    figure.set_label(
        f"Outputs of a network with two hidden layers after {trials[0].protocol.epochs} epochs of "
        "ERM, 1-mixup and 32-mixup (α = 1) on three toys, one network each, with errors on fresh "
        "test points. Lines are where both classes are equally likely; training points are "
        "thinned out."
    )
    return figure


def _surface(axes: Axes, net: nn.Module, data: Dataset) -> AxesImage:
    edge = 1.08 * float(data.x_train.abs().max())
    axis = torch.linspace(-edge, edge, STEPS)
    plane = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), 2).view(-1, 2)
    with torch.no_grad():
        belief = net(data.normalise(plane)).softmax(1)[:, 1].view(STEPS, STEPS).numpy()
    extent = (-edge, edge, -edge, edge)
    image = axes.imshow(
        belief, origin="lower", extent=extent, cmap=SCALE, vmin=0, vmax=1,
        interpolation="bilinear",
    )  # fmt: skip
    axes.contour(belief, levels=[0.5], extent=extent, colors="black", linewidths=0.8)
    for label in (0, 1):  # white points are visible on dark and light
        axes.scatter(
            *xy(data.x_train[data.y_train == label][SHOWN].numpy()), s=12, marker=MARKERS[label],
            c="white", edgecolors="black", linewidths=0.6, zorder=3,
        )  # fmt: skip
    bare(axes)
    axes.set(xlim=(-edge, edge), ylim=(-edge, edge))
    return image
