"""Pictures of published rows: `python docs/evidence.py` draws them into docs/img.

`hero` shows random and matched pairs, and errors of mixup and k-mixup against alpha; `gains` the
differences between ERM, mixup and k-mixup on every data set; `low_data` all errors against alpha on
small training sets. Every picture carries its numbers as text, so that a test can
compare them with the rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from torch import Tensor

from kmixup import KMixup
from kmixup.lab.data.toy import DRAW
from kmixup.lab.experiments.rows import read
from kmixup.lab.files import replace_content
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.plotting import BLACK, BLUE, FAINT, ORANGE, panels, png, shade, styled
from kmixup.lab.report.cells import Cell, TableResult
from kmixup.lab.report.comparisons import best_against_best
from kmixup.lab.report.frame import results_of
from kmixup.lab.report.stats import PairedDifference, paired

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/img"
UCI = ("abalone", "arrhythmia", "cancer", "iris", "phishing")
# tables of results by the names that they have in the picture
DATA = {
    **{name.capitalize(): ("uci", name) for name in UCI},
    "MNIST, 1,000": ("mnist-1000", "mnist-1000"),
    "MNIST, 5,000": ("mnist-5000", "mnist-5000"),
    "CIFAR-10, 5,000": ("cifar10-5000", "cifar10-5000-clean"),
}
# panels for small training sets, by the suffix of the table's name
DIGITS = {
    "test error, %": "",
    "under noise of 64/255, %": "-noise-64",
    "under FGSM of 16/255, %": "-fgsm-16",
}
PHOTOS = {
    "test error as trained, %": "",
    "with clean batch norm, %": "-clean",
    "under noise of 16/255, %": "-noise-16",
    "under FGSM of 2/255, %": "-fgsm-2",
}
PAIRS = {"mixup: random pairs": 1, "k-mixup: matched pairs": 64}  # k by the title of a panel
HERO = {
    "MNIST, 1,000 images:\ntest error, %": "",
    "the same, test images\nwith noise of 64/255, %": "-noise-64",
}
ALPHA = 1.0
QUESTIONS = (
    "mixup − ERM,\nalpha = 1",
    "k = 16 − mixup,\nalpha = 1",
    "best k − best mixup,\nafter a search over alpha",
)


@cache
def results(preset: str) -> Mapping[str, TableResult]:
    """What the published rows say of every table of an experiment, by the table's name."""
    found = results_of(read(ROOT / "results" / preset), PRESETS[preset].tables)
    return {result.table.name: result for result in found}


def cells(result: TableResult) -> Iterator[Cell]:
    """ERM and every k and alpha, with the same alpha at every k."""
    yield result.erm[0]
    for grid in result.grids:
        if grid.rule == "same":
            yield from grid


def differences(preset: str, table: str) -> tuple[PairedDifference, ...]:
    """The answers to the questions on one data set."""
    result = results(preset)[table]
    at = {cell.k: cell for cell in cells(result) if cell.k == 0 or cell.alpha == ALPHA}
    helped = paired(at[1].errors, at[0].errors, at[0].partition)
    matched = paired(at[16].errors, at[1].errors, at[1].partition)
    (searched,) = best_against_best(result, "same")
    if helped is None or matched is None or searched.held_out is None:
        raise ValueError(f"{table} must have rows for ERM, mixup and k = 16, some are missing")
    return helped, matched, searched.held_out


def gains_figures() -> dict[str, object]:
    """The mean difference and the ends of its interval, by question and data set."""
    answers = {name: differences(*place) for name, place in DATA.items()}
    return {
        question: {
            name: [round(value, 6) for value in (answer[i].mean, answer[i].low, answer[i].high)]
            for name, answer in answers.items()
        }
        for i, question in enumerate(QUESTIONS)
    }


@styled
def gains(shown: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> Figure:
    """A row for each data set, a panel for each question: differences with their intervals."""
    figure, axes = panels(1, len(shown), size=(2.75, 2.5), sharey=True, sharex=True)
    for panel, (question, answers) in zip(axes[0], shown.items(), strict=True):
        panel.axvline(0, color=BLACK, linewidth=0.8)
        panel.grid(axis="x")
        for place, (mean, low, high) in enumerate(answers.values()):
            bars = [[mean - low], [high - mean]]
            panel.errorbar(mean, place, xerr=bars, marker="o", color=BLUE, capsize=2.5)
        panel.set_yticks(range(len(answers)), list(answers))
        panel.set_title(question)
        panel.set_xlabel("points of test error")
    axes[0][0].invert_yaxis()
    figure.supxlabel("better  ←        →  worse", fontsize=9)
    return figure


def hero_figures() -> dict[str, Any]:
    """Errors of ERM, mixup and the largest k; nothing for the two panels of pairs."""
    errors = low_data_figures("mnist-1000", HERO)
    kept = {
        title: {name: lines[name] for name in ("ERM", "mixup", "k = 64")}
        for title, lines in errors.items()
    }
    return {title: {} for title in PAIRS} | kept


@styled
def hero(shown: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]]) -> Figure:
    """Random and matched pairs of a toy, and the error against alpha."""
    figure, axes = panels(1, len(shown), size=(2.6, 2.6))
    points, classes = DRAW["swiss-roll"](128, torch.Generator().manual_seed(1))
    for panel, (title, lines) in zip(axes[0], shown.items(), strict=True):
        panel.set_title(title)
        if title in PAIRS:
            mix = KMixup(PAIRS[title], generator=torch.Generator().manual_seed(0))
            _draw_pairs(panel, points, classes, mix.draw(points).partner)
            continue
        _against_alpha(panel, lines)
        for bars, (name, values) in zip(panel.containers, list(lines.items())[1:], strict=True):
            panel.annotate(
                name, (16, values["16"][0]), xytext=(6, 0), textcoords="offset points",
                color=bars[0].get_color(), va="center", annotation_clip=False,
            )  # fmt: skip
    first, lines = axes[0][len(PAIRS)], shown[next(iter(HERO))]
    ((mean, _),) = lines["ERM"].values()
    first.annotate("no mixup", (0.05, mean), xytext=(0, -6), textcoords="offset points", va="top")
    return figure


def _draw_pairs(panel: Axes, points: Tensor, classes: Tensor, partner: Tensor) -> None:
    """Points in the colours of their classes, lines to their partners, and the mixed points."""
    pairs = torch.stack([points, points[partner]], 1)
    panel.add_collection(LineCollection(list(pairs.numpy()), colors=FAINT, linewidths=0.7))
    for label, colour in enumerate((ORANGE, BLUE)):
        panel.scatter(*points[classes == label].T.numpy(), s=12, color=colour)
    panel.scatter(*pairs.mean(1).T.numpy(), s=5, color=BLACK)
    panel.set_aspect("equal")
    panel.set_axis_off()


def low_data_figures(preset: str, tests: Mapping[str, str]) -> dict[str, Any]:
    """Mean and standard error by alpha, for ERM and every k, on every test."""
    shown = {}
    for title, test in tests.items():
        lines: dict[str, dict[str, list[float]]] = {}
        for cell in cells(results(preset)[preset + test]):
            if cell.mean is None or cell.standard_error is None:
                raise ValueError(f"{preset} must have several trials of k = {cell.k}, has not")
            point = [round(cell.mean, 4), round(cell.standard_error, 4)]
            label = f"k = {cell.k}" if cell.k > 1 else "mixup" if cell.k else "ERM"
            lines.setdefault(label, {})[f"{cell.alpha:g}"] = point
        shown[title] = lines
    return dict(shown)


@styled
def low_data(shown: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]]) -> Figure:
    """A panel for each test, a line for each k."""
    figure, axes = panels(1, len(shown), size=(2.75, 2.5))
    for panel, (title, lines) in zip(axes[0], shown.items(), strict=True):
        _against_alpha(panel, lines)
        panel.set_title(title)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def _against_alpha(panel: Axes, lines: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    curves = dict(lines)
    ((mean, error),) = curves.pop("ERM").values()
    panel.axhspan(mean - error, mean + error, color=FAINT, alpha=0.4, linewidth=0)
    panel.axhline(mean, color=BLACK, ls="dashed", linewidth=1.2, label="ERM")
    for i, (label, points) in enumerate(curves.items()):
        means, errors = zip(*points.values(), strict=True)
        panel.errorbar(
            list(map(float, points)), means, yerr=errors, label=label,
            color=shade(i, len(curves)), marker="osD^"[i], linewidth=1.4, capsize=2.5,
        )  # fmt: skip
    panel.set_xscale("log")
    panel.set_xticks(list(map(float, points)), list(points))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel("alpha")


PICTURES: Mapping[str, tuple[Callable[[], dict[str, Any]], Callable[..., Figure]]] = {
    "hero": (hero_figures, hero),
    "evidence-gains": (gains_figures, gains),
    "evidence-mnist-1000": (partial(low_data_figures, "mnist-1000", DIGITS), low_data),
    "evidence-mnist-5000": (partial(low_data_figures, "mnist-5000", DIGITS), low_data),
    "evidence-cifar10-5000": (partial(low_data_figures, "cifar10-5000", PHOTOS), low_data),
}


def main() -> None:
    """Draw all pictures."""
    for name, (figures, draw) in PICTURES.items():
        shown = figures()
        about = {"Title": f"kmixup: {name}", "Figures": json.dumps(shown)}
        path = IMAGES / f"{name}.png"
        replace_content(path, png(draw(shown), about, dpi=160))
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
