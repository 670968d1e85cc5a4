"""Pictures on the pages, as SVG for light and dark themes.

`python docs/evidence.py` draws the pictures of published rows into docs/img. Each has its numbers
as text, so that a test can compare them with the rows. `python docs/evidence.py NAME …` draws
pictures by name, among them the figures of `kmixup figures` that are line art.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from published import DATA, ERM, ROOT, mnist_headline, regrets_of, results
from torch import Tensor

from kmixup import KMixup
from kmixup.lab._files import replace_content
from kmixup.lab.data.toy import DRAW
from kmixup.lab.figures import gallery
from kmixup.lab.plotting import BLACK, BLUE, RED, UNDATED, in_style, panels, shade, styled
from kmixup.lab.report.comparisons import best_against_best
from kmixup.lab.report.frame import Cell, TableResult
from kmixup.lab.report.stats import PairedDifference, paired

IMAGES = ROOT / "docs/img"
GREY = "#8c8c8c"  # seen on white and on black
PAIRS = {"mixup: random pairs": 1, "k-mixup: matched pairs": 64}  # k by the title of a panel
HERO = {
    "MNIST, 1,000 images:\ntest error, %": "mnist-1000",
    "the same, test images\nwith noise of 64/255, %": "mnist-1000-noise-64",
}
ALPHA = 1.0
QUESTIONS = (
    "mixup − ERM,\nalpha = 1",
    "k = 16 − mixup,\nalpha = 1",
    "best k − best mixup,\nafter a search over alpha",
)
REGRET = "error − best error,\n% of ERM's error"
HEADLINE = "MNIST, 200 epochs:\ntest error of each network, %"
LINE_ART = ("clusters", "convergence", "counterexample", "distances", "endpoints", "expansion",
            "injectivity", "steps")  # fmt: skip
# colours of matplotlib by those that suit light and dark pages
THEME = {"#000000": "currentColor", "#dddddd": "#80808055", "#f2f2f2": "#8080801f",
         "'DejaVu Sans'": "system-ui, sans-serif"}  # fmt: skip
STYLE = """<style>
:root { color: #1f1f1f; fill: currentColor; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { color: #dfe1e6 } }
</style>
"""


def cells(result: TableResult) -> Iterator[Cell]:
    """ERM and every k and alpha, with the same alpha at every k."""
    yield result.erm[0]
    for grid in result.grids:
        if grid.rule == "same":
            yield from grid


def differences(preset: str, table: str) -> tuple[PairedDifference | None, ...]:
    """The answers to the questions on one data set; None where it has too few trials."""
    result = results(preset)[table]
    at = {cell.k: cell for cell in cells(result) if cell.k == 0 or cell.alpha == ALPHA}
    helped = paired(at[1].errors, at[0].errors, at[0].partition)
    matched = paired(at[16].errors, at[1].errors, at[1].partition)
    (searched,) = best_against_best(result, "same")
    return helped, matched, searched.difference


def gains_figures(question: str) -> dict[str, Any]:
    """The mean difference and the ends of its interval, by data set."""
    i = QUESTIONS.index(question)
    answers = {name: differences(*place)[i] for name, place in DATA.items()}
    shown = {
        name: [round(value, 6) for value in (answer.mean, answer.low, answer.high)]
        for name, answer in answers.items()
        if answer is not None
    }
    return {question: shown}


@styled
def gains(shown: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> Figure:
    """A row for each data set: the difference with its interval."""
    figure, ((panel,),) = panels(1, 1, size=(3.3, 2.7))
    ((question, answers),) = shown.items()
    panel.axvline(0, color=BLACK, linewidth=0.8)
    panel.grid(axis="x")
    for place, (mean, low, high) in enumerate(answers.values()):
        bars = [[mean - low], [high - mean]]
        panel.errorbar(mean, place, xerr=bars, marker="o", color=shade(2, 4), capsize=2.5)
    panel.set_yticks(range(len(answers)), list(answers))
    panel.set_title(question)
    panel.set_xlim(-6.5, 6.5)
    panel.set_xlabel("← better (percentage points) worse →", fontsize="small")
    panel.invert_yaxis()
    return figure


def regret_figures() -> dict[str, Any]:
    """The regret of each setting by data set, the best on average first."""
    found = regrets_of().rename(index={ERM: "ERM (no mixup)"})
    ordered = found.loc[found.mean(axis=1).sort_values().index]
    return {REGRET: {name: line.round(3).to_dict() for name, line in ordered.iterrows()}}


def headline_figures() -> dict[str, Any]:
    """The error of each network on MNIST after 200 epochs, by seed."""
    errors = {
        "ERM (no mixup)" if name == "ERM" else name: {
            str(seed): error for seed, error in cell.errors.items()
        }
        for name, cell in mnist_headline().items()
    }
    return {HEADLINE: errors}


@styled
def dots(
    shown: Mapping[str, Mapping[str, Mapping[str, float]]], *, height: float, digits: int
) -> Figure:
    """A row for each setting: its mean and range, and a dot for each value."""
    figure, ((panel,),) = panels(1, 1, size=(4.2, height))
    ((title, settings),) = shown.items()
    colour = shade(2, 4)
    for place, named in enumerate(settings.values()):
        values = list(named.values())
        mean = fmean(values)
        ends = [[mean - min(values)], [max(values) - mean]]
        panel.errorbar(mean, place, xerr=ends, marker="D", color=colour, linewidth=0.8)
        panel.plot(values, [place] * len(values), "o", color=GREY, markersize=3)
        panel.annotate(
            f"{mean:.{digits}f}", (mean, place), xytext=(0, 5), textcoords="offset points",
            ha="center", color=colour,
        )  # fmt: skip
    panel.set_yticks(range(len(settings)), list(settings))
    panel.set_title(title)
    panel.grid(axis="x")
    panel.set_ylim(len(settings) - 0.6, -0.7)
    return figure


def pairs_figures() -> dict[str, Any]:
    """The panels of pairs, which show no numbers."""
    return {title: {} for title in PAIRS}


@styled
def pairs(shown: Mapping[str, Any]) -> Figure:
    """Random and matched pairs of a toy, and their averages."""
    figure, axes = panels(1, len(shown), size=(2.6, 2.6))
    points, classes = DRAW["swiss-roll"](128, torch.Generator().manual_seed(1))
    for panel, title in zip(axes[0], shown, strict=True):
        mix = KMixup(PAIRS[title], generator=torch.Generator().manual_seed(0))
        _draw_pairs(panel, points, classes, mix.mix(points).partner)
        panel.set_title(title)
    return figure


def _draw_pairs(panel: Axes, points: Tensor, classes: Tensor, partner: Tensor) -> None:
    """Points in the colours of their classes, lines to their partners, and the mixed points."""
    ends = torch.stack([points, points[partner]], 1)
    panel.add_collection(LineCollection(list(ends.numpy()), colors=GREY, linewidths=0.5))
    for label, colour in enumerate((RED, BLUE)):
        x, y = points[classes == label].T.numpy()
        panel.scatter(x, y, s=12, color=colour)
    x, y = ends.mean(1).T.numpy()
    panel.scatter(x, y, s=5, color=BLACK)
    panel.set_aspect("equal")
    panel.set_axis_off()


def curves_figures(
    preset: str, tables: Mapping[str, str], only: Iterable[str] = ()
) -> dict[str, Any]:
    """Mean and standard error by alpha, for ERM and every k, of each table by its title."""
    shown: dict[str, dict[str, dict[str, list[float]]]] = {}
    for title, table in tables.items():
        for cell in cells(results(preset)[table]):
            if cell.mean is None or cell.standard_error is None:
                raise ValueError(f"{preset} must have several trials of k = {cell.k}, has not")
            point = [round(cell.mean, 4), round(cell.standard_error, 4)]
            label = f"k = {cell.k}" if cell.k > 1 else "mixup" if cell.k else "ERM"
            if not only or label in only:
                lines = shown.setdefault(title, {})
                lines.setdefault(label, {})[f"{cell.alpha:g}"] = point
    return dict(shown)


@styled
def curves(shown: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]]) -> Figure:
    """A panel for each table, a line for each k."""
    figure, axes = panels(1, len(shown), size=(2.6 if len(shown) > 1 else 3.3, 2.6))
    for panel, (title, lines) in zip(axes[0], shown.items(), strict=True):
        _against_alpha(panel, lines)
        panel.set_title(title)
    return figure


def _against_alpha(panel: Axes, lines: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Errors against alpha; each line has its name at its right end."""
    ks = dict(lines)
    ((mean, error),) = ks.pop("ERM").values()
    panel.axhspan(mean - error, mean + error, color=GREY, alpha=0.3, linewidth=0)
    panel.axhline(mean, color=BLACK, ls="dashed", linewidth=1.2)
    ends: list[tuple[float, str, Any]] = [(mean, "ERM", BLACK)]
    for i, (label, points) in enumerate(ks.items()):
        means, errors = np.array([*points.values()]).T
        colour = shade(i, len(ks))
        panel.errorbar(
            list(map(float, points)), means, yerr=errors, color=colour, marker="osD^"[i],
            linewidth=1.4, capsize=2.5,
        )  # fmt: skip
        ends.append((means[-1], label, colour))
    panel.set_xscale("log")
    alphas = list(next(iter(ks.values())))
    panel.set_xticks(list(map(float, alphas)), alphas)
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel("alpha")
    low, high = panel.get_ylim()
    ends.sort(key=lambda end: end[0])
    heights = [(height - low) / (high - low) for height, _, _ in ends]
    for place, (_, label, colour) in zip(_apart(heights), ends, strict=True):
        panel.annotate(
            label, (1, place), xycoords="axes fraction", xytext=(4, 0), va="center", color=colour,
            textcoords="offset points", annotation_clip=False,
        )  # fmt: skip


def _apart(heights: Sequence[float], gap: float = 0.08) -> list[float]:
    """Rising heights, moved apart where they are closer than `gap`."""
    up = accumulate(heights, lambda last, height: max(height, last + gap))
    down = accumulate(reversed(heights), lambda last, height: min(height, last - gap))
    return [(high + low) / 2 for high, low in zip(up, reversed(list(down)), strict=True)]


def curve(preset: str, table: str, title: str) -> tuple[Callable[[], dict[str, Any]], Any]:
    """The picture of one table."""
    return partial(curves_figures, preset, {title: table}), curves


PICTURES: Mapping[str, tuple[Callable[[], dict[str, Any]], Callable[..., Figure]]] = {
    "hero-pairs": (pairs_figures, pairs),
    "hero-errors": (
        partial(curves_figures, "mnist-1000", HERO, ("ERM", "mixup", "k = 64")),
        curves,
    ),
    **{
        f"gains-{name}": (partial(gains_figures, question), gains)
        for name, question in zip(("mixup", "k16", "best"), QUESTIONS, strict=True)
    },
    "default": (regret_figures, partial(dots, height=3.4, digits=1)),
    "mnist-200": (headline_figures, partial(dots, height=2.0, digits=2)),
    "mnist-1000": curve("mnist-1000", "mnist-1000", "1,000 images: test error, %"),
    "mnist-5000": curve("mnist-5000", "mnist-5000", "5,000 images: test error, %"),
    "mnist-1000-noise": curve("mnist-1000", "mnist-1000-noise-64", "noise of 64/255: error, %"),
    "mnist-1000-fgsm": curve("mnist-1000", "mnist-1000-fgsm-16", "FGSM of 16/255: error, %"),
}


def themed(figure: Figure, name: str, description: str) -> str:
    """A figure as SVG without a background, in the colours of the page around it."""
    stream = io.StringIO()
    about = {"Title": f"kmixup: {name}", "Description": description, **UNDATED}
    with in_style(**{"svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata=about)
    head, end, drawing = stream.getvalue().partition("</metadata>\n")
    for old, new in THEME.items():
        drawing = drawing.replace(old, new)
    drawing = re.sub(r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}", drawing)
    return head + end + STYLE + drawing


def main() -> None:
    """Draw the pictures that the command line names, or all of published rows."""
    for name in sys.argv[1:] or PICTURES:
        if name in PICTURES:
            figures, draw = PICTURES[name]
            shown = figures()
            path, figure, description = IMAGES / f"{name}.svg", draw(shown), json.dumps(shown)
        else:
            with TemporaryDirectory() as folder:
                figure = gallery.DRAW[name](gallery.Settings(Path(folder)))
            path, description = IMAGES / f"figure-{name}.svg", str(figure.get_label())
        replace_content(path, themed(figure, name, description))
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
