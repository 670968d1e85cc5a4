"""Couplings and mixed points in the plane that shows most of the data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from kmixup.lab.figures.clouds import SIZE, Cloud
from kmixup.lab.figures.couplings import PAIRS, coupling, vicinal
from kmixup.lab.pages.style import BLACK, COLOURS, FAINT, panels, styled
from kmixup.lab.pages.svg import data_uri, png
from kmixup.lab.xray.examining import Xray

SIGNS = "●▲■◆▼✚★"  # what the markers of figures look like in text
MIXED = 512  # points


@dataclass(frozen=True)
class Couplings:
    """Couplings and mixed points for a page.

    Attributes:
        source: the picture as a data URI.
        note: how the points were projected, empty if they were not.
        classes: sign, colour and name of each class, for a legend.
    """

    source: str
    note: str
    classes: tuple[tuple[str, str, str], ...]


def picture(xray: Xray) -> Couplings:
    """Matched pairs above, mixed points below, for every k that is compared."""
    cloud = _cloud(xray)
    classes = tuple(
        (SIGNS[i % len(SIGNS)], COLOURS[i % len(COLOURS)], xray.data.classes[int(name)])
        for i, name in enumerate(cloud.classes)
    )
    return Couplings(data_uri(png(_drawn(xray, cloud))), cloud.note, classes)


def _cloud(xray: Xray) -> Cloud:
    """Some of the samples; the names of their classes are indices, as text."""
    generator = torch.Generator().manual_seed(xray.seed)
    some = torch.randperm(len(xray.points), generator=generator)[:SIZE]
    return Cloud.of("", xray.points[some].double().numpy(), xray.labels[some].numpy())


@styled
def _drawn(xray: Xray, cloud: Cloud) -> Figure:
    alpha = xray.inspection.alpha
    figure, grid = panels(2, len(xray.compared), size=(3.0, 3.1))
    for k, (upper, lower) in zip(xray.compared, grid.T, strict=True):
        block = cloud.block(min(k, PAIRS))
        coupling(upper, cloud, block, xray.seed)
        vicinal(lower, cloud, block, alpha, MIXED, xray.seed)
        upper.set_title(f"pairs, k = {block}")
        lower.set_title(f"mixed points, k = {block}, alpha = {alpha:.3g}")
    lines = [Line2D([], [], color=FAINT, label="same class")]
    if xray.labelled:
        lines.append(Line2D([], [], color=BLACK, ls="dashed", label="different classes"))
    figure.legend(handles=lines, loc="outside lower center", ncols=2)
    return figure
