"""Tables and numbers in README and docs, generated from published rows.

`python docs/tables.py` rewrites everything between `<!-- numbers NAME ARGUMENTS -->` and
`<!-- /numbers -->` in the Markdown files; `--check` only compares, and a test runs that. NAME is a
function of this file that is marked with `@block` or `@inline`, and ARGUMENTS are passed to it.
Tables are called by their names in `kmixup.lab.paper`, e.g. `uci abalone`; k = 0 is ERM.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from statistics import fmean, stdev
from typing import TypeVar

import numpy as np
import pandas as pd
from published import ROOT, mnist_headline, regrets_of, results, rows

from kmixup.lab._files import replace_content
from kmixup.lab.experiments.compare import Compared, compared_in, make_contests
from kmixup.lab.experiments.rows import Done
from kmixup.lab.figures import NAMES
from kmixup.lab.formatting import signed
from kmixup.lab.paper.presets import PRESETS, small_experiments
from kmixup.lab.report.appendix import agreement, recipes
from kmixup.lab.report.comparisons import (
    best_against_best,
    compare_cells,
    comparisons,
    holm_corrected,
    printed_difference,
    printed_text,
)
from kmixup.lab.report.frame import Cell
from kmixup.lab.report.stats import (
    PairedDifference,
    Ranking,
    corrected,
    interval,
    p_text,
    paired,
    rank,
)
from kmixup.lab.train.config import Method
from kmixup.lab.train.methods import METHODS

Key = TypeVar("Key")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
MARKED = re.compile(r"<!-- numbers (.+?) -->(.*?)<!-- /numbers -->", re.S)
DEFAULT = "k = 16, alpha = 0.2"
FITTED = ("cifar10-fitted", "cifar10-fitted-clean")  # as trained, with recomputed statistics
LEAGUE = ("iris", "cancer", "arrhythmia", "abalone", "phishing", "mnist-1000")

FUNCTIONS: dict[str, Callable[..., str]] = {}
Lines = Iterable[Sequence[str]]
Trials = Mapping[int, float]  # errors in per cent by seed


def inline(function: Callable[..., str]) -> Callable[..., str]:
    """Make a function available to the pages, for text inside a line."""
    FUNCTIONS[function.__name__] = function
    return function


def block(function: Callable[..., Lines]) -> Callable[..., Lines]:
    """Make a function available to the pages, for a table; its first line is the header."""

    def table(*arguments: str) -> str:
        head, *body = ([*line] for line in function(*arguments))
        lines = [head, ["---"] * len(head)]
        for row in body:
            blank = [""] * (len(head) - len(row))
            lines.append([*row, *blank])
        return "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"

    FUNCTIONS[function.__name__] = table
    return function


# what the rows say


def cell(preset: str, table: str, k: int, alpha: float = 1.0, rule: str = "same") -> Cell:
    result = results(preset)[table]
    if k == 0:
        return result.erm[0]
    (grid,) = (grid for grid in result.grids if grid.rule == rule)
    return next(cell for cell in grid if (cell.k, cell.alpha) == (k, alpha))


def alphas(preset: str, table: str) -> list[float]:
    """The alphas at which the table has trials."""
    return sorted({cell.alpha for cell in results(preset)[table].grids[0] if cell.errors})


def ks(preset: str, table: str) -> list[int]:
    """The k at which the table has as many trials as for ERM."""
    result = results(preset)[table]
    trials = len(result.erm[0].errors)
    return sorted({cell.k for cell in result.grids[0] if len(cell.errors) == trials})


def error(cell: Cell) -> str:
    return _mean(cell.errors)


def with_paper(cell: Cell) -> str:
    return error(cell) if cell.paper is None else f"{error(cell)} ({cell.paper:.2f})"


def difference(new: Cell, old: Cell) -> PairedDifference:
    return _paired(new.errors, old.errors, new)


def _paired(new: Trials, old: Trials, cell: Cell | None = None) -> PairedDifference:
    found = paired(new, old) if cell is None else paired(new, old, cell.partition)
    if found is None:
        raise ValueError("a comparison must have three paired trials, it has fewer")
    return found


def bold(tests: Mapping[Key, PairedDifference]) -> dict[Key, str]:
    """The text of each test, bold if still significant after Holm correction for all of them."""
    p = corrected([*tests.values()])
    return {
        key: f"**{test.text}**" if value < 0.05 else test.text
        for (key, test), value in zip(tests.items(), p, strict=True)
    }


def _mean(trials: Trials) -> str:
    values = list(trials.values())
    return f"{fmean(values):.2f} ± {stdev(values) / len(values) ** 0.5:.2f}"


def _name(k: int) -> str:
    return f"k = {k}" if k else "ERM"


def _alphas(values: Iterable[float]) -> list[str]:
    return [f"α = {alpha:g}" for alpha in values]


# numbers inside sentences


@inline
def mean(preset: str, table: str, k: str, alpha: str = "1", rule: str = "same") -> str:
    """The mean error of a cell."""
    return f"{cell(preset, table, int(k), float(alpha), rule).mean:.2f}"


@inline
def mean_and_error(preset: str, table: str, k: str, alpha: str, rule: str = "same") -> str:
    return error(cell(preset, table, int(k), float(alpha), rule))


@inline
def paper(preset: str, table: str, k: str, alpha: str = "1") -> str:
    """The error that the paper prints."""
    return f"{cell(preset, table, int(k), float(alpha)).paper:.2f}"


@inline
def change(preset: str, table: str, k: str, alpha: str = "1", than: str = "1") -> str:
    """The error at one k minus that at another, with the same alpha."""
    new = cell(preset, table, int(k), float(alpha))
    return difference(new, cell(preset, table, int(than), float(alpha))).text


@inline
def new_data(table: str) -> str:
    """The interval for new data of k = 16 minus mixup at alpha = 1 of UCI."""
    return difference(cell("uci", table, 16), cell("uci", table, 1)).new_data_text or ""


@inline
def best(preset: str, table: str, new: str, old: str) -> str:
    """The best cell of one method minus that of another, on held-out trials."""
    (found,) = (
        comparison
        for comparison in comparisons(results(preset)[table])
        if (comparison.new, comparison.old, comparison.k) == (new, old, None)
        and comparison.rule in ("same", None)
    )
    return "" if found.difference is None else found.difference.text


@inline
def span(preset: str, table: str, k: str) -> str:
    """The lowest and the highest mean error over the alphas."""
    means = [cell(preset, table, int(k), alpha).mean or 0.0 for alpha in alphas(preset, table)]
    return f"{min(means):.2f}–{max(means):.2f}"


@inline
def networks(folder: str) -> str:
    """The number of published trials of a folder."""
    return f"{len(rows(folder)):,}"


@inline
def columns_erm() -> str:
    """The error of ERM on Cancer with every column standardised."""
    cancer = [row for row in rows("columns") if row.trial.data == "cancer"]
    return f"{100 * fmean(r.error for r in cancer if r.trial.method.name == 'erm'):.2f}"


# tables of the paper's experiments


@block
def toy() -> Lines:
    columns = (0.25, 1.0, 4.0, 16.0, 64.0)
    yield ["", "", *_alphas(columns)]
    for name, result in results("toy").items():
        for k, title, method in ((1, result.title, "mixup"), (16, "", "k = 16")):
            yield [title, method, *(with_paper(cell("toy", name, k, a)) for a in columns)]


@block
def uci_at_one() -> Lines:
    """k = 16 minus mixup at alpha = 1; bold if significant after Holm correction."""
    yield ["", "the same alpha", "calibrated alpha"]
    columns = [at_one_on_uci(rule) for rule in ("same", "xi")]
    for name, result in results("uci").items():
        yield [result.title, *(texts[name] for texts in columns)]


@block
def claims() -> Lines:
    yield ["", "best k > 1 − best k = 1", "for new data", "the paper", "verdict"]
    for result in results("uci").values():
        (found,) = best_against_best(result, "same")
        if found.difference is not None:
            ours = [found.difference.text, found.difference.new_data_text or ""]
            yield [result.title, *ours, printed_text(found), found.outcome]


@block
def appendix() -> Lines:
    simple = "alpha = 1 and the best k"
    yield ["", simple, "the paper", "the best alpha of mixup, then the best k", "the paper"]
    for result in results("uci").values():
        (grid,) = (grid for grid in result.grids if grid.rule == "same")
        texts = []
        for recipe in recipes(grid):
            texts += [recipe.difference.text if recipe.difference else "", signed(recipe.paper)]
        yield [result.title, *texts]


@block
def readings() -> Lines:
    """Which reading of alpha the cells with k > 1 agree with."""
    yield ["", "nearer in level", "nearer in shape"]
    names = {"same": "same", "xi": "calibrated", None: "not significant"}
    for result in (*results("toy").values(), *results("uci").values()):
        found = (agreement(result, shape=shape) for shape in (False, True))
        yield [result.title, *(names[one.nearer] for one in found)]


@block
def errors(preset: str, table: str) -> Lines:
    """Every k and alpha of a table, with the paper's numbers in brackets."""
    columns = alphas(preset, table)
    yield ["", *_alphas(columns)]
    yield ["ERM", with_paper(cell(preset, table, 0))]
    for k in ks(preset, table):
        yield [_name(k), *(with_paper(cell(preset, table, k, alpha)) for alpha in columns)]


@block
def family() -> Lines:
    """Every method with random and with matched pairs."""
    cells: dict[tuple[str, str, int, float], dict[int, float]] = {}
    for row in rows("family"):
        method = row.trial.method
        key = (row.trial.data, method.name, method.k, method.alpha)
        cells.setdefault(key, {})[row.trial.seed] = 100 * row.error
    places = (("four-bars", 16.0), ("mnist", 1.0))
    yield ["", "Four Bars, α = 16, k = 1", "k = 16", "MNIST, α = 1, k = 1", "k = 16"]
    for name, entry in METHODS.items():
        names = {1: "mixup", 16: "kmixup"} if name == "mixup" else dict.fromkeys((1, 16), name)
        found = [
            cells.get((data, names[k], k, alpha if entry.mixes else 0.0), {})
            for data, alpha in places
            for k in (1, 16)
        ]
        if name != "kmixup" and any(found):
            yield [entry.title, *(_mean(trials) if len(trials) == 3 else "–" for trials in found)]


@inline
def of_family(method: str, k: str, than: str = "mixup 1") -> str:
    """The error on MNIST of one method at one k minus that of another."""
    trials: dict[str, dict[int, float]] = {}
    for row in rows("family"):
        if row.trial.data == "mnist":
            key = f"{row.trial.method.name} {row.trial.method.k}"
            trials.setdefault(key, {})[row.trial.seed] = 100 * row.error
    return _paired(trials[f"{method} {k}"], trials[than.replace("-", " ")]).text


# the paper's best settings on MNIST, after its 200 epochs


@block
def mnist_200() -> Lines:
    """Errors on clean images, with the paper's numbers in brackets, and under FGSM."""
    levels = (4.0, 16.0)
    yield ["", "clean", *(f"FGSM, {eps:g}" for eps in levels)]
    for name, clean in mnist_headline().items():
        attacked = (error(mnist_headline(eps)[name]) for eps in levels)
        yield [name, with_paper(clean), *attacked]


@inline
def mnist_200_mean(*words: str) -> str:
    return f"{mnist_headline()[' '.join(words)].mean:.2f}"


@inline
def mnist_200_range(*words: str) -> str:
    """The lowest and the highest error of a setting's networks."""
    errors = mnist_headline()[" ".join(words)].errors.values()
    return f"{min(errors):.2f} to {max(errors):.2f}"


@inline
def mnist_200_training(*words: str) -> str:
    """The mean training error of a setting, in per cent."""
    done = mnist_headline()[" ".join(words)].done
    return f"{100 * fmean(done.training_error):.2f}"


@inline
def mnist_200_trials() -> str:
    """The number of trials of each setting."""
    return str(min(len(cell.errors) for cell in mnist_headline().values()))


@block
def mnist_200_tests() -> Lines:
    """The settings against one another, with verdicts after Holm correction."""
    tests = {}
    for (old, base), (new, tested) in combinations(mnist_headline().items(), 2):
        paper, noise = printed_difference([tested], [base])
        test = compare_cells(new, tested, old, base)
        tests[f"{new} − {old}"] = replace(test, paper=paper, noise=noise)
    yield ["", "ours", "p (Holm)", "the paper", "verdict"]
    for name, test in holm_corrected(tests).items():
        if test.difference is not None and test.p is not None:
            ours = [test.difference.text, p_text(test.p)]
            yield [name, *ours, printed_text(test), test.outcome]


# small training sets


@block
def expect() -> Lines:
    """k-mixup against mixup on every data set: at alpha = 1, and after a search."""
    head = ["", "trials", "k = 16 − mixup, alpha = 1", "best k − best mixup"]
    yield [*head, "largest gain not excluded"]
    places = [("uci", name, result.title) for name, result in results("uci").items()]
    places += [
        ("mnist-1000", "mnist-1000", "MNIST, 1,000 images"),
        ("mnist-5000", "mnist-5000", "MNIST, 5,000 images"),
        (*FITTED, "CIFAR-10, 5,000 images"),
    ]
    for preset, table, title in places:
        if preset == "uci":
            text = at_one_on_uci()[table]
        else:
            text = bold(matched_tests(preset, table))[16, 1.0]
        (searched,) = best_against_best(results(preset)[table], "same")
        found = searched.difference
        best = ["", ""] if found is None else [found.text, f"{max(0.0, -found.low):.2f}"]
        yield [title, str(len(cell(preset, table, 16).errors)), text, *best]


def at_one_on_uci(rule: str = "same") -> Mapping[str, str]:
    """k = 16 minus mixup at alpha = 1, with Holm correction for all tables and alphas of UCI."""
    texts = bold(
        {
            (table, alpha): difference(*(cell("uci", table, k, alpha, rule) for k in (16, 1)))
            for table in results("uci")
            for alpha in alphas("uci", table)
        }
    )
    return {table: texts[table, 1.0] for table in results("uci")}


def matched_tests(preset: str, table: str) -> Mapping[tuple[int, float], PairedDifference]:
    """k > 1 against mixup at the same alpha."""
    return {
        (k, alpha): difference(cell(preset, table, k, alpha), cell(preset, table, 1, alpha))
        for k in ks(preset, table)[1:]
        for alpha in alphas(preset, table)
    }


@block
def matched(preset: str, table: str) -> Lines:
    """k > 1 minus mixup at the same alpha; bold if significant after Holm correction."""
    texts, columns = bold(matched_tests(preset, table)), alphas(preset, table)
    yield ["", *_alphas(columns)]
    for k in ks(preset, table)[1:]:
        yield [_name(k), *(texts[k, alpha] for alpha in columns)]


@block
def shifts(preset: str) -> Lines:
    """Errors under shift at alpha = 1."""
    words = {"noise": "noise", "fgsm": "FGSM"}
    tables = [name for name in results(preset) if name.split("-")[-2] in words]
    heads = [name.split("-")[-2:] for name in tables]
    yield ["", *(f"{words[shift]}, {level}" for shift, level in heads)]
    for k in (0, *ks(preset, preset)):
        yield [_name(k), *(error(cell(preset, name, k)) for name in tables)]


@block
def best_under(preset: str, *tests: str) -> Lines:
    """The best settings on each test, compared on held-out trials."""
    yield ["", "clean", *(test.replace("fgsm", "FGSM").replace("-", ", ") for test in tests)]
    tables = [preset, *(f"{preset}-{test}" for test in tests)]
    for new, old in (("mixup", "ERM"), ("k-mixup", "ERM"), ("k-mixup", "mixup")):
        yield [f"{new} − {old}", *(best(preset, table, new, old) for table in tables)]


@block
def probabilities(preset: str, alpha: str, *tables: str) -> Lines:
    """Log-loss and calibration error (in per cent) as trained, at one alpha and at 1."""
    columns = ((0, 0.0), (1, float(alpha)), (16, float(alpha)), (1, 1.0), (16, 1.0))
    mild = f", α = {alpha}"
    yield ["", "ERM", f"mixup{mild}", f"k = 16{mild}", "mixup, α = 1", "k = 16, α = 1"]
    for name in tables:
        title = f"{results(preset)[name].title}: " if len(tables) > 1 else ""
        cells = [cell(preset, name, *column) for column in columns]
        yield [f"{title}log-loss", *(f"{each.mean_of('nll'):.3f}" for each in cells)]
        calibration = (f"{100 * (each.mean_of('ece') or 0.0):.1f}" for each in cells)
        yield [f"{title}calibration error, %", *calibration]


# CIFAR-10 with a network that fits its images


def fitted_cells(table: str) -> Iterator[tuple[str, Cell]]:
    """ERM and every k and alpha, by name."""
    yield "ERM", cell("cifar10-fitted", table, 0)
    for k in ks("cifar10-fitted", table):
        for alpha in alphas("cifar10-fitted", table):
            name = "mixup" if k == 1 else _name(k)
            yield f"{name}, α = {alpha:g}", cell("cifar10-fitted", table, k, alpha)


@block
def fitted() -> Lines:
    """Errors on clean images, as trained and with recomputed statistics, and under shift."""
    tables = (*FITTED, "cifar10-fitted-noise-16", "cifar10-fitted-fgsm-2")
    yield ["", "as trained", "recomputed", "noise, 16", "FGSM, 2"]
    for columns in zip(*map(fitted_cells, tables), strict=True):
        yield [columns[0][0], *(error(cell) for _, cell in columns)]


@block
def fitted_tests(table: str = FITTED[1]) -> Lines:
    """Every setting against ERM and mixup; bold if significant after Holm correction."""
    cells = dict(fitted_cells(table))
    erm = cells.pop("ERM")
    tests = {(name, "ERM"): difference(cell, erm) for name, cell in cells.items()}
    for name, new in cells.items():
        if new.k > 1:
            old = cell("cifar10-fitted", table, 1, new.alpha)
            tests[name, "mixup"] = difference(new, old)
    texts = bold(tests)
    yield ["", "− ERM", "− mixup at the same α"]
    for name in cells:
        yield [name, texts[name, "ERM"], texts.get((name, "mixup"), "")]


@inline
def fitted_trials() -> str:
    """The number of trials of each cell."""
    return str(min(len(cell.errors) for _, cell in fitted_cells(FITTED[0])))


def searched(epochs: str, rate: str) -> list[Done]:
    """Rows of the search for the settings of `cifar10-fitted`, with ERM only."""
    return [
        row
        for row in rows("settings/cifar10")
        if (row.trial.protocol.epochs, row.trial.protocol.rate) == (int(epochs), float(rate))
    ]


@inline
def training_error(epochs: str, rate: str) -> str:
    return f"{100 * fmean((row.training or {})['error'] for row in searched(epochs, rate)):.1f}"


@inline
def validation_error(epochs: str, rate: str) -> str:
    return f"{100 * fmean(row.error for row in searched(epochs, rate)):.1f}"


@inline
def recomputed(k: str) -> str:
    """By how much recomputed batch-norm statistics lower the error at alpha = 1."""
    trained, clean = (cell("cifar10-fitted", table, int(k)) for table in FITTED)
    return f"{-difference(clean, trained).mean:.1f}"


@block
def clean_statistics() -> Lines:
    yield ["", "as trained", "recomputed", "recomputed − as trained"]
    for (name, trained), (_, clean) in zip(*map(fitted_cells, FITTED), strict=True):
        yield [name, error(trained), error(clean), difference(clean, trained).text]


# the default


@cache
def default_regrets(*alphas: float) -> pd.DataFrame:
    return regrets_of(alphas)


@block
def default_setting() -> Lines:
    """The regret of each setting, the best on average first."""
    found = default_regrets(0.2, 1.0)
    means = found.mean(axis=1).sort_values()
    yield ["", "mean", *found.columns]
    for name in means.index:
        yield [str(name), f"{means[name]:.1f}", *(f"{value:.1f}" for value in found.loc[name])]


@inline
def mean_regret(*words: str) -> str:
    """The mean regret of a setting, e.g. `mixup, alpha = 1`."""
    return f"{default_regrets(0.2, 1.0).loc[' '.join(words)].mean():.1f}"


@inline
def regret_change(*words: str) -> str:
    """The mean regret of the default minus that of a setting, over data sets."""
    found = default_regrets(0.2, 1.0)
    default, other = (found.loc[name].to_numpy(float) for name in (DEFAULT, " ".join(words)))
    return interval((default - other).tolist()).text


@inline
def bootstrapped(*words: str) -> str:
    """How often a setting has the lowest mean regret on data sets drawn with replacement."""
    found = default_regrets(0.05, 0.2).iloc[:-1]
    drawn = np.random.default_rng(0).integers(found.shape[1], size=(10_000, found.shape[1]))
    best = found.to_numpy()[:, drawn].mean(axis=2).argmin(0)
    return f"{100 * (best == found.index.get_loc(' '.join(words))).mean():.0f}"


@inline
def small_regret(*words: str) -> str:
    """The same among the settings with an alpha of 0.05 or 0.2, where data sets have both."""
    return f"{default_regrets(0.05, 0.2).loc[' '.join(words)].mean():.1f}"


# variants of the match

VARIANTS = {
    (64, "labels=1"): "labels, c = 1",
    (64, "labels=-0.2"): "labels, c = −0.2",
    (64, "pca:50"): "principal components",
    (64, "network:5"): "the network’s features",
    (64, "ema:5"): "features of the moving average",
    (16, "memory=512"): "k = 64 with a memory of 512",
}


@cache
def variants(folder: str, *, clean: bool) -> Mapping[tuple[int, str], Trials]:
    """Errors by batch size and variant of the match."""
    cells: dict[tuple[int, str], dict[int, float]] = {}
    for row in rows(folder):
        scores = row.clean if clean and row.clean is not None else row.scores
        key = (row.trial.protocol.batch_size, _variant(row))
        cells.setdefault(key, {})[row.trial.seed] = 100 * scores.error
    return cells


def _variant(row: Done) -> str:
    method = row.trial.method
    if method.name != "kmixup":
        return method.name
    if method.memory is not None:
        return f"memory={method.memory}"
    if method.labels is not None:
        return f"labels={method.labels:g}"
    return method.match_on or "plain"


@block
def beyond() -> Lines:
    """Variants minus k-mixup in batches of the same size; bold if significant after Holm."""
    places = {
        "MNIST, 1,000": ("beyond-mnist-1000", False),
        "MNIST, 5,000": ("beyond-mnist-5000", False),
        "CIFAR-10, as trained": ("beyond-cifar10-5000", False),
        "CIFAR-10, recomputed statistics": ("beyond-cifar10-5000", True),
    }
    columns = []
    for folder, clean in places.values():
        cells = variants(folder, clean=clean)
        tests = {key: _paired(cells[key], cells[key[0], "plain"]) for key in VARIANTS}
        columns.append(bold(tests).values())
    yield ["", *places]
    for title, *texts in zip(VARIANTS.values(), *columns, strict=True):
        yield [title, *texts]


@inline
def labels(statistics: str, than: str) -> str:
    """k-mixup with labels in the cost minus another method, on CIFAR-10 with 5,000 images."""
    cells = variants("beyond-cifar10-5000", clean=statistics == "clean")
    return _paired(cells[64, "labels=1"], cells[64, than]).text


# the league


@cache
def league_results() -> tuple[Compared, ...]:
    by_id = {row.id: row for row in rows("league")}
    methods = ["erm", "mixup", "kmixup"]
    contests = make_contests(LEAGUE, methods=methods, experiments=small_experiments())
    return tuple(compared_in(contest, by_id) for contest in contests)


@cache
def league_k16(data: str) -> Trials:
    """Test errors of k = 16 where each trial chooses among mixup's six alphas."""
    name, samples = ("mnist", 1000) if data == "mnist-1000" else (data, None)
    mine = [
        row
        for row in rows("league")
        if (row.trial.data, row.trial.samples, row.trial.method.k) == (name, samples, 16)
    ]
    chosen: dict[int, Method] = {}  # the smaller of equally good alphas
    for row in sorted(mine, key=lambda row: (row.error, row.trial.method.alpha)):
        if row.trial.validation is not None:
            chosen.setdefault(row.trial.seed, row.trial.method)
    tested = [row for row in mine if row.trial.validation is None]
    wins = [row for row in tested if row.trial.method == chosen[row.trial.seed]]
    return {row.trial.seed: 100 * row.error for row in wins}


@block
def league() -> Lines:
    yield ["data", "ERM", "mixup", "k-mixup", "k = 16, mixup's alphas"]
    for result in league_results():
        name = result.contest.name
        yield [name, *(_mean(score.errors) for score in result.scores), _mean(league_k16(name))]


@inline
def league_k16_ranks() -> str:
    """The p-value of Friedman's test and the mean ranks, with k = 16 in place of k-mixup."""
    means = []
    for result in league_results():
        erm, mixup, _ = (fmean(score.errors.values()) for score in result.scores)
        means.append([erm, mixup, fmean(league_k16(result.contest.name).values())])
    found = rank(["ERM", "mixup", "k = 16"], means)
    return f"p = {found.p:.2f}, " + ", ".join(map("{} {:.2f}".format, found.names, found.ranks))


def ranking() -> Ranking:
    titles = [score.title for score in league_results()[0].scores]
    means = [[fmean(score.errors.values()) for score in r.scores] for r in league_results()]
    return rank(titles, means)


@inline
def ranks() -> str:
    """The mean ranks of the league's methods."""
    found = ranking()
    return ", ".join(map("{} {:.2f}".format, found.names, found.ranks))


@inline
def friedman() -> str:
    """The p-value of Friedman's test on the league's errors."""
    return f"{ranking().p:.2f}"


@inline
def league_change(data: str, new: str, old: str) -> str:
    """The error of one method of the league minus that of another."""
    (result,) = (result for result in league_results() if result.contest.name == data)
    errors = {score.title: score.errors for score in result.scores}
    return _paired(errors[new], errors[old]).text


@inline
def false_positives() -> str:
    """The lowest and the highest rate of false positives of comparisons."""
    rates = 100 * pd.read_csv(ROOT / "results/false-positives/rates.csv")["rate"]
    return f"{rates.min():.1f}–{rates.max():.1f} %"


# benchmarks


@block
def own_data() -> Lines:
    """The error of each table in the benchmark of your own data, with default class weights."""
    lines = (ROOT / "benchmarks/own_data.txt").read_text().splitlines()
    head, _, *body = ([part.strip() for part in line.strip("|").split("|")] for line in lines)
    yield ["table", *head[3:]]
    for name, _, _constant, *errors in body:
        if name and not name.endswith("balanced weights"):
            yield [name, *errors]


# what stands on a page in full so that it can be read without the site


@inline
def notes() -> str:
    """What `kmixup.lab.paper` notes beside the tables of the paper, as a Markdown table."""
    notes: dict[str, dict[str, None]] = {}  # of each table, without repetitions
    for preset in PRESETS.values():
        for table in preset.tables:
            for note in table.notes:
                notes.setdefault(table.title, {})[note] = None
    rows = [f"| {title} | {'<br>'.join(found)} |" for title, found in notes.items()]
    return "\n\n" + "\n".join(["| table | note |", "|---|---|", *rows]) + "\n\n"


@inline
def gallery() -> str:
    """The figures of `kmixup figures`, each with its caption and command."""
    parts = []
    for name, caption in NAMES.items():
        (path,) = (ROOT / "docs/img").glob(f"figure-{name}.*")
        parts.append(f"![{caption}](../img/{path.name})")
        parts.append(f"*{caption[0].upper()}{caption[1:]}.*")
        parts.append(f"```\nkmixup figures {name}\n```")
    return "\n\n" + "\n\n".join(parts) + "\n\n"


def generated(text: str) -> str:
    """A page with everything between markers made anew."""

    def fill(match: re.Match[str]) -> str:
        name, *arguments = match[1].split()
        return f"<!-- numbers {match[1]} -->{FUNCTIONS[name](*arguments)}<!-- /numbers -->"

    return MARKED.sub(fill, text)


def main() -> int:
    stale = []
    for path in PAGES:
        text = path.read_text()
        if (new := generated(text)) != text:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                replace_content(path, new)
    print("\n".join(stale))
    return int("--check" in sys.argv and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
