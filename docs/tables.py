"""Tables and numbers in README and docs, generated from published rows.

`python docs/tables.py` rewrites everything between `<!-- numbers NAME ARGUMENTS -->` and
`<!-- /numbers -->` in the Markdown files; `--check` only compares, and a test runs that. NAME is a
function of this file that is marked with `@block` or `@inline`, and ARGUMENTS are passed to it.
Tables are called by their names in `kmixup.lab.paper`, e.g. `uci abalone`; k = 0 is ERM.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

from analyses import agreement, recipes

from kmixup.lab.experiments.league import Result, make_contests, result_of
from kmixup.lab.experiments.rows import Done, done_of, read
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import number, signed
from kmixup.lab.paper.presets import PRESETS, small_experiments
from kmixup.lab.report.cells import Cell, TableResult
from kmixup.lab.report.comparisons import best_against_best, comparisons
from kmixup.lab.report.frame import results_of
from kmixup.lab.report.stats import PairedDifference, corrected, corrected_side, paired, rank
from kmixup.lab.report.sweep import printed_text
from kmixup.lab.train.methods import METHODS

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
MARKED = re.compile(r"<!-- numbers (.+?) -->(.*?)<!-- /numbers -->", re.S)
KS = (1, 4, 16, 64)  # of the tables with small training sets
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


@cache
def rows(folder: str) -> list[Done]:
    return done_of(read(ROOT / "results" / folder))


@cache
def results(preset: str) -> Mapping[str, TableResult]:
    """The results of every table of an experiment, by the table's name."""
    found = results_of(rows(preset), PRESETS[preset].tables)
    return {result.table.name: result for result in found}


def cell(preset: str, table: str, k: int, alpha: float = 1.0, rule: str = "same") -> Cell:
    result = results(preset)[table]
    if k == 0:
        return result.erm[0]
    (grid,) = (grid for grid in result.grids if grid.rule == rule)
    return next(cell for cell in grid if (cell.k, cell.alpha) == (k, alpha))


def alphas(preset: str, table: str) -> list[float]:
    """The alphas at which the table has trials."""
    return sorted({cell.alpha for cell in results(preset)[table].grids[0] if cell.errors})


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
def change_and_error(preset: str, table: str, rule: str = "same") -> str:
    """k = 16 minus mixup at alpha = 1, with its standard error."""
    new, old = (cell(preset, table, k, 1.0, rule).errors for k in (16, 1))
    gaps = [new[seed] - old[seed] for seed in sorted(new)]
    return f"{signed(fmean(gaps))} ± {stdev(gaps) / len(gaps) ** 0.5:.2f}"


@inline
def calibrated(table: str) -> str:
    """k = 16 with calibrated alpha minus mixup at alpha = 1 of UCI."""
    new, old = (cell("uci", table, k, 1.0, "xi") for k in (16, 1))
    return signed(difference(new, old).mean)


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
    return "" if found.held_out is None else found.held_out.text


@inline
def span(preset: str, table: str, k: str) -> str:
    """The lowest and the highest mean error over the alphas."""
    means = [cell(preset, table, int(k), alpha).mean or 0.0 for alpha in alphas(preset, table)]
    return f"{min(means):.2f} to {max(means):.2f}"


@inline
def networks(folder: str) -> str:
    """The number of published trials of a folder."""
    return f"{len(rows(folder)):,}"


@inline
def columns_erm() -> str:
    """The error of ERM on Cancer with every column standardised."""
    cancer = [row for row in rows("columns") if row.trial.data == "cancer"]
    return f"{100 * fmean(r.error for r in cancer if r.trial.method.name == 'erm'):.2f}"


@inline
def first_loss() -> str:
    """The largest training loss after one epoch of MNIST at the paper's learning rate."""
    losses = [r.curve.loss[0] for r in rows("settings/mnist") if r.trial.protocol.rate == 0.1]
    return f"{max(losses):.2f}"


# tables of the paper's experiments


@block
def toy() -> Lines:
    columns = (0.25, 1.0, 4.0, 16.0, 64.0)
    yield ["", "", *_alphas(columns)]
    for name, result in results("toy").items():
        for k, title, method in ((1, result.title, "mixup"), (16, "", "k = 16")):
            yield [title, method, *(with_paper(cell("toy", name, k, a)) for a in columns)]


@block
def uci() -> Lines:
    yield ["", "", *map(_name, (0, 1, 2, 4, 8, 16))]
    for name, result in results("uci").items():
        for alpha in alphas("uci", name):
            first = alpha == alphas("uci", name)[0]
            erm = with_paper(cell("uci", name, 0)) if first else ""
            texts = [with_paper(cell("uci", name, k, alpha)) for k in (1, 2, 4, 8, 16)]
            yield [result.title if first else "", f"α = {alpha:g}", erm, *texts]


@block
def claims() -> Lines:
    yield ["", "best k > 1 − best k = 1", "for new data", "the paper", "verdict"]
    for result in results("uci").values():
        (found,) = best_against_best(result, "same")
        if found.held_out is not None:
            ours = [found.held_out.text, found.held_out.new_data_text or ""]
            yield [result.title, *ours, printed_text(found), found.verdict.outcome]


@block
def appendix() -> Lines:
    simple = "alpha = 1 and the best k"
    yield ["", simple, "the paper", "the best alpha of mixup, then the best k", "the paper"]
    for result in results("uci").values():
        (grid,) = (grid for grid in result.grids if grid.rule == "same")
        texts = []
        for recipe in recipes(grid):
            texts += [recipe.held_out.text if recipe.held_out else "", signed(recipe.paper)]
        yield [result.title, *texts]


@block
def readings() -> Lines:
    yield ["", "level, same", "level, calibrated", "nearer", "shape, same", "shape, calibrated",
           "nearer"]  # fmt: skip
    names = {"same": "the same alpha", "xi": "calibrated"}
    for result in (*results("toy").values(), *results("uci").values()):
        line = [result.title]
        for found in (agreement(result), agreement(result, shape=True)):
            line += [number(found.distances[rule]) for rule in names]
            line.append("not significant" if found.nearer is None else names[found.nearer])
        yield line


@block
def errors(preset: str, table: str) -> Lines:
    """Every k and alpha of a table, with the paper's numbers in brackets."""
    columns = alphas(preset, table)
    yield ["", *_alphas(columns)]
    yield ["ERM", with_paper(cell(preset, table, 0))]
    for k in KS:
        yield [_name(k), *(with_paper(cell(preset, table, k, alpha)) for alpha in columns)]


@block
def attacks() -> Lines:
    """MNIST under FGSM at alpha = 10."""
    (table,) = PRESETS["fgsm-mnist"].tables
    yield ["", *(f"ε = {column.eps:g}" for column in table.columns)]
    for k in (0, *KS):
        texts = []
        for column in table.columns:
            trials = {
                row.trial.seed: 100 * row.shifts["fgsm"][column.eps or 0.0].error
                for row in rows("mnist")
                if row.trial.method.alpha == (10.0 if k else 0.0)
                and row.trial.method.k in (k, k or 1)
            }
            printed = f" ({table.error_at(k, column):.2f})" if k in table.ks else ""
            texts.append(_mean(trials) + printed)
        yield [_name(k), *texts]


@block
def family() -> Lines:
    cells: dict[tuple[str, str, int, float], dict[int, float]] = {}
    for row in rows("family"):
        method = row.trial.method
        key = (row.trial.data, method.name, method.k, method.alpha)
        cells.setdefault(key, {})[row.trial.seed] = 100 * row.error
    columns = {
        "Four Bars, α = 1": ("four-bars", 1.0),
        "Four Bars, α = 16": ("four-bars", 16.0),
        "MNIST-1000, α = 1": ("mnist", 1.0),
    }
    yield ["", *columns]
    for name, entry in METHODS.items():
        for k in (1, 16) if entry.has_k and entry.baseline is None else (entry.fixed.get("k", 16),):
            found = [
                cells.get((data, name, k, alpha if entry.mixes else 0.0), {})
                for data, alpha in columns.values()
            ]
            if any(found):
                title = f"{entry.title}, k = {k}" if entry.has_k else entry.title
                yield [title, *(_mean(trials) if len(trials) == 3 else "–" for trials in found)]


@inline
def of_family(method: str, k: str, than: str = "mixup 1") -> str:
    """The error on MNIST of one method at one k minus that of another."""
    trials: dict[str, dict[int, float]] = {}
    for row in rows("family"):
        if row.trial.data == "mnist":
            key = f"{row.trial.method.name} {row.trial.method.k}"
            trials.setdefault(key, {})[row.trial.seed] = 100 * row.error
    return _paired(trials[f"{method} {k}"], trials[than.replace("-", " ")]).text


# small training sets


@block
def expect() -> Lines:
    """What to expect on every data set: at alpha = 1, and after a search."""
    yield ["", "ERM", "mixup", "k = 16", "k = 16 − mixup", "error of k = 16",
           "best k − best mixup"]  # fmt: skip
    sides = {-1: "**lower**", 0: "not significant", 1: "**higher**"}
    uci = uci_sides()
    places = [("uci", name, result.title) for name, result in results("uci").items()]
    places += [
        ("mnist-1000", "mnist-1000", "MNIST, 1,000 images"),
        ("mnist-5000", "mnist-5000", "MNIST, 5,000 images"),
        ("cifar10-5000", "cifar10-5000-clean", "CIFAR-10, 5,000 images"),
    ]
    for preset, table, title in places:
        cells = [cell(preset, table, k) for k in (0, 1, 16)]
        side = uci[table] if preset == "uci" else matched_side(preset, table, 16, 1.0)
        texts = [error(found) for found in cells]
        texts += [difference(cells[2], cells[1]).text, sides[side]]
        (searched,) = best_against_best(results(preset)[table], "same")
        yield [title, *texts, searched.held_out.text if searched.held_out else ""]


def uci_sides() -> Mapping[str, int]:
    """k = 16 against mixup at alpha = 1, with Holm correction for all tables and alphas of UCI."""
    tests = {
        (table, alpha): difference(cell("uci", table, 16, alpha), cell("uci", table, 1, alpha))
        for table in results("uci")
        for alpha in alphas("uci", table)
    }
    p = corrected([*tests.values()])
    sides = dict(zip(tests, map(corrected_side, tests.values(), p), strict=True))
    return {table: sides[table, 1.0] for table in results("uci")}


def matched_tests(
    preset: str, table: str
) -> Mapping[tuple[int, float], tuple[PairedDifference, float]]:
    """k > 1 against mixup at the same alpha, with p-values corrected for all these tests."""
    tests = {
        (k, alpha): difference(cell(preset, table, k, alpha), cell(preset, table, 1, alpha))
        for k in KS[1:]
        for alpha in alphas(preset, table)
    }
    p = corrected([*tests.values()])
    return dict(zip(tests, zip(tests.values(), p, strict=True), strict=True))


def matched_side(preset: str, table: str, k: int, alpha: float) -> int:
    return corrected_side(*matched_tests(preset, table)[k, alpha])


@block
def matched(preset: str, table: str) -> Lines:
    """k > 1 minus mixup at the same alpha; bold if significant after Holm correction."""
    tests, columns = matched_tests(preset, table), alphas(preset, table)
    yield ["", *_alphas(columns)]
    for k in KS[1:]:
        found = [tests[k, alpha] for alpha in columns]
        yield [_name(k), *(f"**{test.text}**" if p < 0.05 else test.text for test, p in found)]


@block
def shifts(preset: str) -> Lines:
    """Errors under shift at alpha = 1."""
    words = {"noise": "noise", "fgsm": "FGSM"}
    tables = [name for name in results(preset) if name.split("-")[-2] in words]
    heads = [name.split("-")[-2:] for name in tables]
    yield ["", *(f"{words[shift]}, {level}" for shift, level in heads)]
    for k in (0, *KS):
        yield [_name(k), *(error(cell(preset, name, k)) for name in tables)]


@block
def clean_statistics() -> Lines:
    yield ["", "as trained", "clean statistics", "clean − as trained"]
    tables = ("cifar10-5000", "cifar10-5000-clean")
    for k, name in ((0, "ERM"), (1, "mixup"), (16, "k-mixup, k = 16")):
        trained, clean = (cell("cifar10-5000", table, k) for table in tables)
        yield [name, error(trained), error(clean), difference(clean, trained).text]
    yield ["k = 16 − mixup", *(change("cifar10-5000", table, "16") for table in tables)]


@block
def clean_by_alpha() -> Lines:
    """What clean statistics change, by k and alpha."""
    preset, clean = "cifar10-5000", "cifar10-5000-clean"
    columns = alphas(preset, preset)
    yield ["", *_alphas(columns)]
    for k in KS:
        texts = [
            difference(cell(preset, clean, k, alpha), cell(preset, preset, k, alpha)).text
            for alpha in columns
        ]
        yield [f"k-mixup, k = {k}" if k > 1 else "mixup", *texts]


# variants of the match

VARIANTS = {
    (64, "erm"): "ERM",
    (64, "mixup"): "mixup",
    (64, "plain"): "k-mixup, k = 16",
    (64, "labels=1"): "labels, c = 1",
    (64, "labels=-0.2"): "labels, c = −0.2",
    (64, "pca:50"): "principal components",
    (64, "network:5"): "the network’s features",
    (64, "ema:5"): "features of the moving average",
    (16, "erm"): "ERM",
    (16, "mixup"): "mixup",
    (16, "plain"): "k-mixup, k = 16",
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
def beyond(folder: str, statistics: str = "trained") -> Lines:
    """Variants of the match against plain k-mixup in batches of the same size."""
    yield ["batch", "pairs", "test error, %", "difference from k = 16", "verdict"]
    cells = variants(folder, clean=statistics == "clean")
    verdicts = {-1: "better", 0: "not significant", 1: "worse"}
    for (batch, name), title in VARIANTS.items():
        line = [str(batch), title, _mean(cells[batch, name])]
        if name not in ("erm", "mixup", "plain"):
            found = _paired(cells[batch, name], cells[batch, "plain"])
            line += [found.text, verdicts[found.side]]
        yield line


@inline
def labels(statistics: str, than: str) -> str:
    """k-mixup with labels in the cost minus another method, on CIFAR-10 with 5,000 images."""
    cells = variants("beyond-cifar10-5000", clean=statistics == "clean")
    return _paired(cells[64, "labels=1"], cells[64, than]).text


# the league


@cache
def league_results() -> tuple[Result, ...]:
    by_id = {row.id: row for row in rows("league")}
    methods = ["erm", "mixup", "kmixup"]
    contests = make_contests(LEAGUE, methods=methods, experiments=small_experiments())
    return tuple(result_of(contest, by_id) for contest in contests)


@block
def league() -> Lines:
    yield ["data", "ERM", "mixup", "k-mixup"]
    for result in league_results():
        yield [result.contest.name, *(_mean(score.errors) for score in result.scores)]


@inline
def ranks() -> str:
    """The mean ranks of the league's methods."""
    titles = [score.entrant.title for score in league_results()[0].scores]
    means = [[fmean(score.errors.values()) for score in r.scores] for r in league_results()]
    ranking = rank(titles, means)
    return ", ".join(map("{} {:.2f}".format, ranking.names, ranking.ranks))


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
