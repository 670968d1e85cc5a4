"""The page beyond the paper states what its rows say.

`lines` makes the lines that must be in a table of the page, in this order.
"""

import re
from functools import cache
from pathlib import Path
from statistics import fmean, stdev

import pytest
from scipy.stats import ttest_1samp

from kmixup.lab.experiments.rows import read
from kmixup.lab.formatting import with_interval
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.stats import holm

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/beyond.md").read_text()
TRIALS = 5
BASELINES = ("erm", "mixup", "plain")
WORDS = {
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
VARIANTS = [name for _, name in WORDS if name not in BASELINES]
# the folder of the rows and the error that a table shows, by its heading on the page
TABLES = {
    "MNIST with 1,000 images": ("beyond-mnist-1000", lambda row: row.error),
    "MNIST with 5,000 images": ("beyond-mnist-5000", lambda row: row.error),
    "CIFAR-10 with 5,000 images": ("beyond-cifar10-5000", lambda row: row.error),
    "CIFAR-10 with 5,000 images, clean statistics": (
        "beyond-cifar10-5000", lambda row: row.clean.error,
    ),
}  # fmt: skip


def variant(method):
    if method.name != "kmixup":
        return method.name
    if method.memory is not None:
        return f"memory={method.memory}"
    if method.labels is not None:
        return f"labels={method.labels:g}"
    return method.match_on or "plain"


@cache
def errors(title):
    """Test errors in per cent by batch size and variant, and then by seed."""
    folder, error = TABLES[title]
    cells = {place: {} for place in WORDS}
    for row in read(ROOT / "results" / folder):
        place = (row.trial.protocol.batch_size, variant(row.trial.method))
        cells[place][row.trial.seed] = 100 * error(row)
    return cells


def gaps(title):
    """Differences of every variant from plain k-mixup in batches of the same size, by trial."""
    cells = errors(title)
    return {
        (batch, name): [trials[seed] - cells[batch, "plain"][seed] for seed in range(TRIALS)]
        for (batch, name), trials in cells.items()
        if name not in BASELINES
    }


def lines(title):
    differences = gaps(title)
    for (batch, name), trials in errors(title).items():
        values = list(trials.values())
        error = f"{fmean(values):.2f} ± {stdev(values) / TRIALS**0.5:.2f}"
        line = f"| {batch} | {WORDS[batch, name]} | {error} |"
        if name in BASELINES:
            yield f"{line} | |"
            continue
        low, high = ttest_1samp(differences[batch, name], 0.0).confidence_interval(0.95)
        verdict = "undecided" if low < 0 < high else "better" if high < 0 else "worse"
        interval = with_interval(fmean(differences[batch, name]), low, high)
        yield f"{line} {interval} | {verdict} |"


def section(title):
    """The part of the page below a heading."""
    return re.split(r"^#+ ", PAGE.partition(f"# {title}\n")[2], maxsplit=1, flags=re.M)[0]


def corrected(title):
    """The sides of the variants that differ from plain k-mixup after Holm's correction."""
    tests = {name: ttest_1samp(trials, 0.0) for (_, name), trials in gaps(title).items()}
    assert len(tests) == 6
    values = holm([test.pvalue for test in tests.values()])
    return {
        name: "worse" if test.statistic > 0 else "better"
        for (name, test), p in zip(tests.items(), values, strict=True)
        if p < 0.05
    }


@pytest.mark.parametrize("title", TABLES)
def test_every_line_of_a_table_follows_from_the_rows(title):
    assert all(sorted(trials) == list(range(TRIALS)) for trials in errors(title).values())
    table = [line for line in section(title).splitlines() if line.startswith(("| 16 |", "| 64 |"))]
    assert table == list(lines(title))


@pytest.mark.parametrize("title", TABLES)
def test_rows_are_those_of_the_experiment(title):
    folder, _ = TABLES[title]
    wanted = {trial.id for trial in PRESETS[folder].trials()}
    assert {row.id for row in read(ROOT / "results" / folder)} == wanted


def test_what_stays_after_the_correction_follows_from_the_rows():
    assert corrected("MNIST with 1,000 images") == {"ema:5": "worse"}
    assert corrected("MNIST with 5,000 images") == {}
    assert corrected("CIFAR-10 with 5,000 images") == {"labels=1": "better"}
    assert corrected("CIFAR-10 with 5,000 images, clean statistics") == {}


def test_labels_on_photographs_in_words_follow_from_the_rows():
    titles = [title for title in TABLES if title.startswith("CIFAR")]
    gains = [-fmean(gaps(title)[64, "labels=1"]) for title in titles]
    assert f"errs {gains[0]:.2f} points less as trained" in PAGE
    assert f"and {gains[1]:.2f} less with clean statistics" in PAGE
    texts = []
    for cells in map(errors, titles):
        trials = [cells[64, "labels=1"][seed] - cells[64, "erm"][seed] for seed in range(TRIALS)]
        low, high = ttest_1samp(trials, 0.0).confidence_interval(0.95)
        texts.append(with_interval(fmean(trials), low, high))
    assert f"is {texts[0]} as trained and {texts[1]} with clean statistics." in PAGE


@pytest.mark.parametrize(
    ("title", "within"),
    [
        (
            "MNIST with 1,000 images",
            {"labels=1": 0.5, "labels=-0.2": 0.5, "pca:50": 0.5, "memory=512": 0.25},
        ),
        ("MNIST with 5,000 images", dict.fromkeys(VARIANTS, 0.25)),
    ],
)
def test_bounds_in_words_follow_from_the_rows(title, within):
    intervals = {
        name: ttest_1samp(trials, 0.0).confidence_interval(0.95)
        for (_, name), trials in gaps(title).items()
    }
    for name, most in within.items():
        low, high = intervals[name]
        assert -most < low < high < most
