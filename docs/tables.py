"""Tables and numbers in README and docs, generated from published rows.

`python docs/tables.py` rewrites everything between `<!-- numbers NAME ARGUMENTS -->` and
`<!-- /numbers -->` in the Markdown files; `--check` only compares, and a test runs that. NAME is
one of `NUMBERS`, or a function that yields the lines of a table, the header first. An arm is the
lines of one method on one test, one for each trial. Tables are called by their names in
`kmixup.lab.paper`, e.g. `uci abalone`; k = 0 is ERM.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import TypeVar

import numpy as np
import pandas as pd

from kmixup._measured import Measured
from kmixup.lab import read
from kmixup.lab._files import replace_content
from kmixup.lab.formatting import number, signed
from kmixup.lab.methods import METHODS
from kmixup.lab.paper.presets import PRESETS, TABLES
from kmixup.lab.report.appendix import agreement, recipes
from kmixup.lab.report.comparisons import (
    best_against_best,
    comparisons,
    holm_corrected,
    printed_text,
)
from kmixup.lab.report.frame import TableResult, partition_of, results_of
from kmixup.lab.report.meta_analysis import regrets
from kmixup.lab.report.stats import (
    Comparison,
    PairedDifference,
    corrected,
    interval,
    p_text,
    paired,
    rank,
)
from kmixup.lab.results import lines_of

Key = TypeVar("Key")
Lines = Iterable[Sequence[str]]
ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
MARKED = re.compile(r"<!-- numbers (.+?) -->(.*?)<!-- /numbers -->", re.S)
ERM = "ERM"
FITTED = ("cifar10-fitted", "cifar10-fitted-clean")  # as trained, with recomputed statistics
LEAGUE = ("iris", "cancer", "arrhythmia", "abalone", "phishing", "mnist-1000")
DATA = {  # folder and table of the data in pictures
    **{n.capitalize(): ("uci", n) for n in ("abalone", "arrhythmia", "cancer", "iris", "phishing")},
    "MNIST, 1,000": ("mnist-1000", "mnist-1000"),
    "MNIST, 5,000": ("mnist-5000", "mnist-5000"),
    "CIFAR-10, 5,000": FITTED,
}


@cache
def frame(folders: str) -> pd.DataFrame:
    """The results in a folder, or in several whose names are separated by spaces."""
    found = pd.concat([read(ROOT / "results" / name) for name in folders.split()])
    return found.drop_duplicates(["id", "test", "level", "metric"], ignore_index=True)


@cache
def results(preset: str) -> Mapping[str, TableResult]:
    """The results of every table of an experiment."""
    found = results_of(frame(preset), PRESETS[preset].tables)
    return {result.table.name: result for result in found}


@cache
def tested(folders: str, table: str) -> pd.DataFrame:
    """The lines of a table, with errors in per cent; a name such as `mnist-noise-64` has a test."""
    found = lines_of(frame(folders))
    named = re.search(r"-(clean|noise|fgsm)(?:-([\d.]+))?$", table)
    test, level = named.groups() if named else ("test", None)
    found = found[(found.test == test) & (level is None or found.level == float(level))]
    found = found[found.data == table] if table in {*found.data} else found
    return found.assign(error=100 * found.error)


def arm(folders: str, table: str, k: float, alpha: float = 1, rule: str = "same") -> pd.DataFrame:
    """The trials of k-mixup, of mixup for k = 1, or of ERM for k = 0."""
    found, k, alpha = tested(folders, table), int(k), float(alpha)
    name, rule, alpha = [("erm", "same", 0.0), ("mixup", "same", alpha), ("kmixup", rule, alpha)][
        min(k, 2)
    ]
    found = found[(found.method == name) & (found.alpha_rule == rule)]
    return found[(found.k == max(k, 1)) & (found.alpha == alpha)]


def settings(folder: str, table: str) -> tuple[list[int], list[float]]:
    """The k with as many trials as ERM, and all alphas."""
    found = tested(folder, table)
    mixed = found[(found.method != "erm") & (found.alpha_rule == "same")]
    trials = mixed.groupby(["k", "alpha"]).size().groupby("k").max()
    least = (found.method == "erm").sum()
    return trials[trials >= least].index.tolist(), sorted(mixed.alpha.unique().tolist())


def difference(new: pd.DataFrame, old: pd.DataFrame) -> PairedDifference:
    ours, theirs = (dict(zip(arm.seed, arm.error, strict=True)) for arm in (new, old))
    if (found := paired(ours, theirs, partition_of(new))) is None:
        raise ValueError("a comparison must have three paired trials, it has fewer")
    return found


def bold(tests: Mapping[Key, PairedDifference]) -> dict[Key, str]:
    """The text of each test, bold if still significant after Holm correction for all of them."""
    pairs = zip(tests.items(), corrected(tests.values()), strict=True)
    return {key: f"**{test.text}**" if p < 0.05 else test.text for (key, test), p in pairs}


def printed(table: str, k: float, alpha: float = 1) -> float | None:
    """The error that the paper prints, if any."""
    of = TABLES[table]
    columns = (column for column in of.columns if column.alpha == float(alpha))
    return of.erm if int(k) == 0 else next((of.error_at(int(k), at) for at in columns), None)


def error(arm: pd.DataFrame, paper: float | None = None) -> str:
    text = f"{fmean(arm.error):.2f} ± {Measured.of([*arm.error]).error:.2f}"
    return text if paper is None else f"{text} ({paper:.2f})"


def best(folder: str, table: str, new: str, old: str) -> str:
    """The best cell of one method minus that of another, on held-out trials."""
    found = [
        one.difference
        for one in comparisons(results(folder)[table])
        if (one.new, one.old, one.k) == (new, old, None) and one.rule != "xi"
    ]
    return found[0].text if found[0] else ""


def span(means: Iterable[float], to: str = "–") -> str:
    lowest, *_, highest = sorted(means)
    return f"{lowest:.2f}{to}{highest:.2f}"


def heads(alphas: Iterable[float]) -> list[str]:
    return [f"α = {alpha:g}" for alpha in alphas]


# the paper's experiments


def toy() -> Lines:
    columns = (0.25, 1.0, 4.0, 16.0, 64.0)
    yield ["", "", *heads(columns)]
    for table in PRESETS["toy"].tables:
        for k, title, method in ((1, table.title, "mixup"), (16, "", "k = 16")):
            places = [(table.name, k, alpha) for alpha in columns]
            yield [title, method, *(error(arm("toy", *at), printed(*at)) for at in places)]


def errors(folder: str, table: str) -> Lines:
    """Every k and alpha of a table, with the paper's numbers in brackets."""
    ks, alphas = settings(folder, table)
    yield ["", *heads(alphas)]
    yield [ERM, error(arm(folder, table, 0), printed(table, 0))]
    for k in ks:
        places = [(table, k, alpha) for alpha in alphas]
        yield [f"k = {k}", *(error(arm(folder, *at), printed(*at)) for at in places)]


@cache
def matched_texts(
    folder: str, tables: tuple[str, ...], k: int | None = None, rule: str = "same"
) -> Mapping[tuple[str, int, float], str]:
    """One k or all k > 1 minus mixup at the same alpha, with Holm correction for all."""
    tests = {}
    for table in tables:
        ks, alphas = settings(folder, table)
        for at in product([k] if k else ks[1:], alphas):
            tests[table, *at] = difference(
                arm(folder, table, *at, rule), arm(folder, table, 1, at[1])
            )
    return bold(tests)


UCI = tuple(table.name for table in PRESETS["uci"].tables)


def uci_at_one() -> Lines:
    """k = 16 minus mixup at alpha = 1; bold if significant after Holm correction."""
    yield ["", "the same alpha", "calibrated alpha"]
    columns = [matched_texts("uci", UCI, 16, rule) for rule in ("same", "xi")]
    for name in UCI:
        yield [TABLES[name].title, *(texts[name, 16, 1.0] for texts in columns)]


def claims() -> Lines:
    yield ["", "best k > 1 − best k = 1", "for new data", "the paper", "verdict"]
    for result in results("uci").values():
        (found,) = best_against_best(result, "same")
        if found.difference is not None:
            ours = [found.difference.text, found.difference.new_data_text or ""]
            yield [result.title, *ours, printed_text(found), found.outcome]


def appendix() -> Lines:
    simple = "alpha = 1 and the best k"
    yield ["", simple, "the paper", "the best alpha of mixup, then the best k", "the paper"]
    for result in results("uci").values():
        texts = [result.title]
        for recipe in recipes(result.grids[0]):
            texts += [recipe.difference.text if recipe.difference else "", signed(recipe.paper)]
        yield texts


def readings() -> Lines:
    """Which reading of alpha the cells with k > 1 agree with."""
    yield ["", "nearer in level", "nearer in shape"]
    names = {"same": "same", "xi": "calibrated", None: "not significant"}
    for result in (*results("toy").values(), *results("uci").values()):
        yield [result.title, *(names[agreement(result, shape=at).nearer] for at in (False, True))]


def of_family(data: str, name: str, k: int, alpha: float = 1.0) -> pd.DataFrame:
    found = tested("family", data)
    return found[(found.method == name) & (found.k == k) & (found.alpha == alpha)]


def family() -> Lines:
    """Every method with random and with matched pairs."""
    places = [(data, k, a) for data, a in (("four-bars", 16.0), ("mnist", 1.0)) for k in (1, 16)]
    yield ["", "Four Bars, α = 16, k = 1", "k = 16", "MNIST, α = 1, k = 1", "k = 16"]
    for name, entry in METHODS.items():
        names = {1: "mixup", 16: "kmixup"} if name == "mixup" else {1: name, 16: name}
        arms = [of_family(data, names[k], k, a if entry.mixes else 0.0) for data, k, a in places]
        if name != "kmixup" and any(map(len, arms)):
            yield [entry.title, *(error(arm) if len(arm) == 3 else "–" for arm in arms)]


# the paper's best settings on MNIST, after its 200 epochs
BEST = {ERM: (0, 0.0), "mixup, α = 0.2": (1, 0.2), "k = 64, α = 10": (64, 10.0)}


def of_best(*words: str) -> pd.DataFrame:
    return arm("mnist-200", "mnist", *BEST[" ".join(words)])


def mnist_200() -> Lines:
    """Errors on clean images, with the paper's numbers in brackets, and under FGSM."""
    yield ["", "clean", "FGSM, 4", "FGSM, 16"]
    for name, at in BEST.items():
        attacked = (error(arm("mnist-200", f"mnist-fgsm-{eps}", *at)) for eps in (4, 16))
        yield [name, error(of_best(name), printed("mnist", *at)), *attacked]


def mnist_200_tests() -> Lines:
    """The settings against one another, with verdicts after Holm correction."""
    noise, tests = math.sqrt(2) * (TABLES["mnist"].confidence or 0.0), {}
    for old, new in combinations(BEST, 2):
        ours = difference(of_best(new), of_best(old))
        before, after = (printed("mnist", *BEST[name]) or 0.0 for name in (old, new))
        test = Comparison(new=new, old=old, difference=ours, paper=after - before, noise=noise)
        tests[f"{new} − {old}"] = test
    yield ["", "ours", "p (Holm)", "the paper", "verdict"]
    for name, test in holm_corrected(tests).items():
        if test.difference is not None and test.p is not None:
            yield [name, test.difference.text, p_text(test.p), printed_text(test), test.outcome]


# small training sets


def expect() -> Lines:
    """k-mixup against mixup on every data set: at alpha = 1, and after a search."""
    head = ["", "trials", "k = 16 − mixup, alpha = 1", "best k − best mixup"]
    yield [*head, "largest gain not excluded"]
    places = [("uci", name, TABLES[name].title) for name in UCI]
    places += [(f"mnist-{n}", f"mnist-{n}", f"MNIST, {n:,} images") for n in (1000, 5000)]
    for folder, table, title in [*places, (*FITTED, "CIFAR-10, 5,000 images")]:
        family = (UCI, 16) if folder == "uci" else ((table,), None)
        texts = [matched_texts(folder, *family)[table, 16, 1.0]]
        (searched,) = best_against_best(results(folder)[table], "same")
        if (found := searched.difference) is not None:
            texts += [found.text, f"{max(0.0, -found.low):.2f}"]
        yield [title, str(len(arm(folder, table, 16))), *texts]


def matched(folder: str, table: str) -> Lines:
    """k > 1 minus mixup at the same alpha; bold if significant after Holm correction."""
    texts, (ks, alphas) = matched_texts(folder, (table,)), settings(folder, table)
    yield ["", *heads(alphas)]
    yield from ([f"k = {k}", *(texts[table, k, alpha] for alpha in alphas)] for k in ks[1:])


def shifts(folder: str) -> Lines:
    """Errors under shift at alpha = 1."""
    tables = [table.name for table in PRESETS[folder].tables[1:]]
    yield ["", *(", ".join(name.replace("fgsm", "FGSM").split("-")[-2:]) for name in tables)]
    for k in (0, *settings(folder, folder)[0]):
        row = (error(arm(folder, table, k)) for table in tables)
        yield [f"k = {k}" if k else ERM, *row]


def best_under(folder: str, *tests: str) -> Lines:
    """The best settings on each test, compared on held-out trials."""
    yield ["", "clean", *(test.replace("fgsm", "FGSM").replace("-", ", ") for test in tests)]
    tables = [folder, *(f"{folder}-{test}" for test in tests)]
    for new, old in (("mixup", ERM), ("k-mixup", ERM), ("k-mixup", "mixup")):
        yield [f"{new} − {old}", *(best(folder, table, new, old) for table in tables)]


def probabilities(folder: str, alpha: str, *tables: str) -> Lines:
    """Log-loss and calibration error (in per cent) as trained, at one alpha and at 1."""
    columns = ((0, "0"), (1, alpha), (16, alpha), (1, "1"), (16, "1"))
    names = (f"{'mixup' if k == 1 else 'k = 16'}, α = {at}" for k, at in columns[1:])
    yield ["", ERM, *names]
    for name in tables:
        title = f"{TABLES[name].title}: " if len(tables) > 1 else ""
        arms = [arm(folder, name, k, float(at)) for k, at in columns]
        yield [f"{title}log-loss", *(f"{one.nll.mean():.3f}" for one in arms)]
        yield [f"{title}calibration error, %", *(f"{100 * one.ece.mean():.1f}" for one in arms)]


# CIFAR-10 with a network that fits its images


def fitted_arms(table: str = FITTED[0]) -> dict[str, pd.DataFrame]:
    """ERM and every k and alpha, by name."""
    arms = {ERM: arm(FITTED[0], table, 0)}
    for k, at in product(*settings(FITTED[0], table)):
        arms[f"{'mixup' if k == 1 else f'k = {k}'}, α = {at:g}"] = arm(FITTED[0], table, k, at)
    return arms


def fitted() -> Lines:
    """Errors on clean images, as trained and with recomputed statistics, and under shift."""
    columns = [*map(fitted_arms, (*FITTED, f"{FITTED[0]}-noise-16", f"{FITTED[0]}-fgsm-2"))]
    yield ["", "as trained", "recomputed", "noise, 16", "FGSM, 2"]
    yield from ([name, *(error(column[name]) for column in columns)] for name in columns[0])


def fitted_tests() -> Lines:
    """Every setting against ERM and mixup; bold if significant after Holm correction."""
    arms = fitted_arms(FITTED[1])
    erm, tests = arms.pop(ERM), {}
    for name, new in arms.items():
        tests[name, ERM] = difference(new, erm)
        if not name.startswith("mixup"):
            tests[name, "mixup"] = difference(new, arms[f"mixup, {name.partition(', ')[2]}"])
    texts = bold(tests)
    yield ["", "− ERM", "− mixup at the same α"]
    yield from ([name, texts[name, ERM], texts.get((name, "mixup"), "")] for name in arms)


def clean_statistics() -> Lines:
    yield ["", "as trained", "recomputed", "recomputed − as trained"]
    trained, clean = map(fitted_arms, FITTED)
    for name, old in trained.items():
        yield [name, error(old), error(clean[name]), difference(clean[name], old).text]


def searched(epochs: str, rate: str) -> pd.DataFrame:
    """The search for the settings of `cifar10-fitted`, with ERM only."""
    found = lines_of(frame("settings/cifar10")).query("test == 'validation'")
    return 100 * found[(found.epochs == int(epochs)) & (found.rate == float(rate))]


# the default


@cache
def regrets_of(*alphas: float) -> pd.DataFrame:
    """The regret of each setting on the data sets that have all of these alphas."""
    errors = {}
    for name, (folder, table) in DATA.items():
        place = ("uci default" if folder == "uci" else folder, table)  # alpha = 0.2 is apart
        errors[name] = {ERM: arm(*place, 0).error.mean()}
        for k, alpha in product((1, 16), alphas):
            method = f"{'mixup' if k == 1 else 'k = 16'}, alpha = {alpha:g}"
            errors[name][method] = arm(*place, k, alpha).error.mean()
    held_out = "chosen on the other data sets"
    return regrets(pd.DataFrame(errors).dropna(axis="columns"), ERM, held_out)


def regret(words: Sequence[str], *alphas: float) -> pd.Series[float]:
    return regrets_of(*alphas).T[" ".join(words)]


def default_setting() -> Lines:
    """The regret of each setting, the best on average first."""
    found = regrets_of(0.2, 1.0)
    means = found.mean(axis=1).sort_values()
    yield ["", "mean", *found.columns]
    for name in means.index:
        yield [str(name), f"{means[name]:.1f}", *(f"{value:.1f}" for value in found.loc[name])]


def bootstrapped(*words: str) -> str:
    """How often a setting has the lowest mean regret on data sets drawn with replacement."""
    found = regrets_of(0.05, 0.2).iloc[:-1]
    drawn = np.random.default_rng(0).integers(found.shape[1], size=(10_000, found.shape[1]))
    best = found.to_numpy()[:, drawn].mean(axis=2).argmin(0)
    return f"{100 * (best == found.index.get_loc(' '.join(words))).mean():.0f}"


# variants of the match
VARIANTS: Mapping[str, tuple[int, Mapping[str, object]]] = {
    "labels, c = 1": (64, {"labels": 1.0}),
    "labels, c = −0.2": (64, {"labels": -0.2}),
    "principal components": (64, {"match_on": "pca:50"}),
    "the network’s features": (64, {"match_on": "network:5"}),
    "features of the moving average": (64, {"match_on": "ema:5"}),
    "k = 64 with a memory of 512": (16, {"memory": 512}),
}
CIFAR = "beyond-cifar10-5000"


def variant(
    folder: str, test: str, batch: int, of: Mapping[str, object], method: str = "kmixup"
) -> pd.DataFrame:
    """A method in batches of a size, matched as `of` says and otherwise as usual."""
    found = tested(folder, test)
    found = found[(found.method == method) & (found.batch_size == batch)]
    for name in ("labels", "match_on", "memory"):
        found = found[found[name] == of[name] if name in of else found[name].isna()]
    return found


def beyond() -> Lines:
    """Variants minus k-mixup in batches of the same size; bold if significant after Holm."""
    places = {
        "MNIST, 1,000": ("beyond-mnist-1000", ""),
        "MNIST, 5,000": ("beyond-mnist-5000", ""),
        "CIFAR-10, as trained": (CIFAR, ""),
        "CIFAR-10, recomputed statistics": (CIFAR, "-clean"),
    }
    columns = []
    for place in places.values():
        tests = {
            title: difference(variant(*place, batch, of), variant(*place, batch, {}))
            for title, (batch, of) in VARIANTS.items()
        }
        columns.append(bold(tests))
    yield ["", *places]
    yield from ([title, *(column[title] for column in columns)] for title in VARIANTS)


def labels(statistics: str, than: str) -> str:
    """k-mixup with labels in the cost minus another method, on CIFAR-10 with 5,000 images."""
    place = (CIFAR, "-clean" if statistics == "clean" else "", 64)
    return difference(variant(*place, {"labels": 1.0}), variant(*place, {}, than)).text


# the league


@cache
def league_arms(data: str) -> Mapping[str, pd.DataFrame]:
    """The test of each method in the setting that a trial chose on validation samples."""
    found = lines_of(frame("league"))
    found = found[found.data == data.removesuffix("-1000")]
    kmixup = found.method == "kmixup"
    families = {
        ERM: found.method == "erm",
        "mixup": found.method == "mixup",
        "k-mixup": kmixup & found.alpha.isin([0.2, 1.0, 4.0]),
        "k = 16": kmixup & (found.k == 16),
    }
    arms = {}
    for name, of in families.items():
        tuned = found[of & (found.test == "validation")].sort_values(["error", "k", "alpha"])
        chosen = tuned.drop_duplicates("seed")[["seed", "k", "alpha"]]
        test = found[of & (found.test == "test")]
        test = test.assign(error=100 * test.error)
        arms[name] = test if chosen.empty else test.merge(chosen)
    return arms


def league() -> Lines:
    yield ["data", ERM, "mixup", "k-mixup", "k = 16, mixup's alphas"]
    yield from ([name, *map(error, league_arms(name).values())] for name in LEAGUE)


def ranks(text: str, matched: str = "k-mixup") -> str:
    """The mean ranks, and the p-value of Friedman's test."""
    names = (ERM, "mixup", matched)
    found = rank(
        names, [[fmean(league_arms(data)[name].error) for name in names] for data in LEAGUE]
    )
    ordered = ", ".join(map("{} {:.2f}".format, found.names, found.ranks))
    return text.format(ranks=ordered, p=found.p)


# numbers inside sentences; most take a folder, a table, k, alpha and the alpha rule
NUMBERS: Mapping[str, Callable[..., str]] = {
    "mean": lambda *at: f"{fmean(arm(*at).error):.2f}",
    "mean_and_error": lambda *at: error(arm(*at)),
    "paper": lambda folder, *at: number(printed(*at)),
    "span": lambda folder, table, k: span(
        fmean(arm(folder, table, k, alpha).error) for alpha in settings(folder, table)[1]
    ),
    # minus mixup, at alpha = 1; and the interval for new data
    "change": lambda at, table, k: difference(arm(at, table, k), arm(at, table, 1)).text,
    "new_data": lambda at: difference(arm("uci", at, 16), arm("uci", at, 1)).new_data_text or "",
    "best": best,
    "networks": lambda folder: f"{frame(folder).id.nunique():,}",
    "columns_erm": lambda: f"{fmean(arm('columns', 'cancer', 0).error):.2f}",
    "of_family": lambda method, k, than="mixup-1": (
        difference(
            of_family("mnist", method, int(k)), of_family("mnist", than.split("-")[0], 1)
        ).text
    ),
    "mnist_200_mean": lambda *words: f"{fmean(of_best(*words).error):.2f}",
    "mnist_200_range": lambda *words: span(of_best(*words).error, " to "),
    "mnist_200_training": lambda *words: f"{100 * of_best(*words).training_error.mean():.2f}",
    "mnist_200_trials": lambda: str(min(len(of_best(name)) for name in BEST)),
    "fitted_trials": lambda: str(min(map(len, fitted_arms().values()))),
    "training_error": lambda *at: f"{searched(*at).training_error.mean():.1f}",
    "validation_error": lambda *at: f"{fmean(searched(*at).error):.1f}",
    # by how much recomputed batch-norm statistics lower the error at alpha = 1
    "recomputed": lambda k: (
        f"{-difference(arm(*FITTED, k), arm(FITTED[0], FITTED[0], k)).mean:.1f}"
    ),
    "mean_regret": lambda *words: f"{regret(words, 0.2, 1.0).mean():.1f}",
    "small_regret": lambda *words: f"{regret(words, 0.05, 0.2).mean():.1f}",
    "regret_change": lambda *words: (
        interval([*regret(["k = 16, alpha = 0.2"], 0.2, 1.0) - regret(words, 0.2, 1.0)]).text
    ),
    "bootstrapped": bootstrapped,
    "labels": labels,
    "league_k16_ranks": lambda: ranks("p = {p:.2f}, {ranks}", "k = 16"),
    "ranks": lambda: ranks("{ranks}"),
    "friedman": lambda: ranks("{p:.2f}"),
    "league_change": lambda data, *at: difference(*(league_arms(data)[name] for name in at)).text,
    # of comparisons, in the simulation
    "false_positives": lambda: "{:.1f}–{:.1f} %".format(
        *(100 * pd.read_csv(ROOT / "results/false-positives/rates.csv").rate).agg(["min", "max"])
    ),
}


def filled(marked: re.Match[str]) -> str:
    """What stands between two markers."""
    name, *arguments = marked[1].split()
    if name in NUMBERS:
        text = NUMBERS[name](*arguments)
    else:
        head, *body = globals()[name](*arguments)
        blanks = ([*row, *[""] * (len(head) - len(row))] for row in body)
        rows = (f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *blanks])
        text = "\n\n" + "\n".join(rows) + "\n\n"
    return f"<!-- numbers {marked[1]} -->{text}<!-- /numbers -->"


def stale() -> Iterator[Path]:
    """Yield the pages that are not what the rows say, and write them unless `--check` is given."""
    for path in PAGES:
        text = path.read_text()
        if (new := MARKED.sub(filled, text)) != text:
            if "--check" not in sys.argv:
                replace_content(path, new)
            yield path.relative_to(ROOT)


if __name__ == "__main__":
    found = [*stale()]
    print(*found, sep="\n")
    sys.exit(bool(found) and "--check" in sys.argv)
