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
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from kmixup import KMixup
from kmixup._measured import Measured
from kmixup.lab._files import replace_content
from kmixup.lab.data.toy import DRAW
from kmixup.lab.figures import gallery
from kmixup.lab.plotting import BLACK, BLUE, RED, UNDATED, in_style, panels, styled
from kmixup.lab.report import plots
from kmixup.lab.report.comparisons import best_against_best
from kmixup.lab.report.stats import PairedDifference
from tables import BEST, DATA, ROOT, arm, difference, of_best, regrets_of, results, settings

Numbers = Mapping[str, Mapping[str, Any]]  # by the title of a panel, and a name in it
IMAGES = ROOT / "docs/img"
GREY = "#8c8c8c"  # seen on white and on black
HERO = {
    "MNIST, 1,000 images:\ntest error, %": "mnist-1000",
    "the same, test images\nwith noise of 64/255, %": "mnist-1000-noise-64",
}
GAINS: Mapping[str, Callable[[str, str], PairedDifference | None]] = {
    "mixup − ERM,\nalpha = 1": lambda at, table: difference(arm(at, table, 1), arm(at, table, 0)),
    "k = 16 − mixup,\nalpha = 1": lambda at, table: difference(
        arm(at, table, 16), arm(at, table, 1)
    ),
    "best k − best mixup,\nafter a search over alpha": lambda folder, table: (
        best_against_best(results(folder)[table], "same")[0].difference
    ),
}
# colours of matplotlib by those that suit light and dark pages
THEME = {"#000000": "currentColor", "#dddddd": "#80808055", "#f2f2f2": "#8080801f",
         "'DejaVu Sans'": "system-ui, sans-serif"}  # fmt: skip
STYLE = """<style>
:root { color: #1f1f1f; fill: currentColor; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { color: #dfe1e6 } }
</style>
"""


def gains_of(question: str) -> Numbers:
    """The mean difference and the ends of its interval, by data set."""
    found = {name: GAINS[question](*place) for name, place in DATA.items()}
    known = {name: (one.mean, one.low, one.high) for name, one in found.items() if one is not None}
    return {question: {name: [round(at, 6) for at in values] for name, values in known.items()}}


def regrets() -> Numbers:
    """The regret of each setting by data set, the best on average first."""
    found = regrets_of(0.2, 1.0).rename(index={"ERM": "ERM (no mixup)"}).round(3)
    ordered = found.loc[found.mean(axis=1).sort_values().index]
    return {
        "error − best error,\n% of ERM's error": {
            str(name): line.to_dict() for name, line in ordered.iterrows()
        }
    }


def networks() -> Numbers:
    """The error of each network on MNIST after 200 epochs, by seed."""
    title, found = "MNIST, 200 epochs:\ntest error of each network, %", {}
    for name in BEST:
        by_seed = of_best(name).sort_values("seed").set_index("seed").error
        found[name.replace("ERM", "ERM (no mixup)")] = {
            str(at): by_seed[at] for at in by_seed.index
        }
    return {title: found}


def curves_of(folder: str, tables: Mapping[str, str], only: Iterable[str] = ()) -> Numbers:
    """Mean and standard error by alpha, for ERM and every k, of each table by its title."""
    shown: dict[str, dict[str, dict[str, list[float]]]] = {title: {} for title in tables}
    for title, table in tables.items():
        for k, alpha in [(0, 0.0), *product(*settings(folder, table))]:
            name = f"k = {k}" if k > 1 else "mixup" if k else "ERM"
            errors = arm(folder, table, k, alpha).error
            if not only or name in only:
                point = [round(fmean(errors), 4), round(Measured.of([*errors]).error, 4)]
                shown[title].setdefault(name, {})[f"{alpha:g}"] = point
    return shown


@styled
def curves(shown: Numbers) -> Figure:
    """A panel for each table: errors against alpha, a line for each k."""
    figure, axes = panels(1, len(shown), size=(2.6 if len(shown) > 1 else 3.3, 2.9))
    for panel, (title, given) in zip(axes[0], shown.items(), strict=True):
        lines = {name: {float(at): line[at] for at in line} for name, line in given.items()}
        (erm,) = lines.pop("ERM").values()
        plots.curves(title, "alpha", erm, lines).draw(panel)
        alphas = [*next(iter(lines.values()))]
        panel.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_title(title)
    names = panel.get_legend_handles_labels()
    figure.legend(*names, loc="outside lower center", ncols=3)
    return figure


@styled
def dots(shown: Numbers, *, height: float, differences: bool = False) -> Figure:
    """A row for each name: a difference and its interval, or a mean and a dot for each value."""
    figure, ((panel,),) = panels(1, 1, size=(3.3 if differences else 4.2, height))
    ((title, given),) = shown.items()
    if differences:
        means = {name: (mean, high - mean) for name, (mean, _, high) in given.items()}
        axis = "← better\u00a0\u00a0\u00a0\u00a0worse →\n(percentage points)"  # SVG joins spaces
        plots.dots(title, axis, means).draw(panel)
        panel.axvline(0, color=BLACK, linewidth=0.8)
        panel.set_xlim(-6.5, 6.5)
    else:
        plots.dots(title, "", {at: (fmean(given[at].values()), None) for at in given}).draw(panel)
        for place, values in enumerate(given.values()):
            panel.plot([*values.values()], [place] * len(values), "o", color=GREY, markersize=3)
    panel.set_title(title)
    panel.grid(axis="x")
    return figure


@styled
def pairs(shown: Numbers) -> Figure:
    """Random and matched pairs of a toy, and their averages."""
    figure, axes = panels(1, len(shown), size=(2.6, 2.6))
    points, classes = DRAW["swiss-roll"](128, torch.Generator().manual_seed(1))
    for panel, title, k in zip(axes[0], shown, (1, 64), strict=True):
        partner = KMixup(k, generator=torch.Generator().manual_seed(0)).mix(points).partner
        ends = torch.stack([points, points[partner]], 1)
        panel.add_collection(LineCollection(list(ends.numpy()), colors=GREY, linewidths=0.5))
        parts = ((points[classes == 0], 12, RED), (points[classes == 1], 12, BLUE))
        for at, size, colour in (*parts, (ends.mean(1), 5, BLACK)):
            panel.scatter(*at.T.numpy(), s=size, color=colour)
        panel.set_aspect("equal")
        panel.set_axis_off()
        panel.set_title(title)
    return figure


def curve(table: str, title: str) -> tuple[Callable[[], Numbers], Callable[[Numbers], Figure]]:
    """The picture of one table."""
    return partial(curves_of, "-".join(table.split("-")[:2]), {title: table}), curves


PICTURES: Mapping[str, tuple[Callable[[], Numbers], Callable[[Numbers], Figure]]] = {
    "hero-pairs": (lambda: {"mixup: random pairs": {}, "k-mixup: matched pairs": {}}, pairs),
    "hero-errors": (partial(curves_of, "mnist-1000", HERO, ("ERM", "mixup", "k = 64")), curves),
    **{
        f"gains-{name}": (partial(gains_of, of), partial(dots, height=2.7, differences=True))
        for name, of in zip(("mixup", "k16", "best"), GAINS, strict=True)
    },
    "default": (regrets, partial(dots, height=3.0)),
    "mnist-200": (networks, partial(dots, height=1.8)),
    "mnist-1000": curve("mnist-1000", "1,000 images: test error, %"),
    "mnist-5000": curve("mnist-5000", "5,000 images: test error, %"),
    "mnist-1000-noise": curve("mnist-1000-noise-64", "noise of 64/255: error, %"),
    "mnist-1000-fgsm": curve("mnist-1000-fgsm-16", "FGSM of 16/255: error, %"),
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


if __name__ == "__main__":  # draw the pictures that the command line names, or all of rows
    for name in sys.argv[1:] or PICTURES:
        if name in PICTURES:
            numbers_of, draw = PICTURES[name]
            shown = numbers_of()
            path, figure, description = IMAGES / f"{name}.svg", draw(shown), json.dumps(shown)
        else:
            with TemporaryDirectory() as folder:
                figure = gallery.DRAW[name](gallery.Settings(Path(folder)))
            path, description = IMAGES / f"figure-{name}.svg", str(figure.get_label())
        replace_content(path, themed(figure, name, description))
        print(path.relative_to(ROOT))
