"""What is published follows from the rows that are published with it."""

import hashlib
from pathlib import Path
from statistics import fmean, stdev

import pytest
from scipy import stats

from kmixup.lab.experiments.rows import PUBLISHED, read
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.train.methods import METHODS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
TABLES = {
    "toy": PRESETS["toy"].tables,
    "uci": PRESETS["uci"].tables,
    "mnist": PRESETS["mnist"].tables,
    "fgsm-mnist": PRESETS["fgsm-mnist"].tables,
    "mnist-1000": PRESETS["mnist-1000"].tables,
    "mnist-5000": PRESETS["mnist-5000"].tables,
    "cifar10-5000": PRESETS["cifar10-5000"].tables,
    "beyond-mnist-1000": PRESETS["beyond-mnist-1000"].tables,
}


def errors(name):
    """Test errors in per cent by data set, k, alpha and rule."""
    cells = {}
    for row in read(RESULTS / name):
        method = row.trial.method
        cell = (row.trial.data, method.k, method.alpha, method.alpha_rule)
        cells.setdefault(cell, []).append(100 * row.error)
    return cells


def test_published_rows_have_their_checksums():
    sums = [line.split() for line in (RESULTS / "SHA256SUMS").read_text().splitlines()]
    published = {path.relative_to(RESULTS).as_posix() for path in RESULTS.rglob(PUBLISHED)}
    assert {name for _, name in sums} == published
    for checksum, name in sums:
        assert hashlib.sha256((RESULTS / name).read_bytes()).hexdigest() == checksum


@pytest.mark.parametrize(
    ("page", "name", "ks"),
    [
        ("docs/index.md", "toy", (1, 16)),
        ("docs/results.md", "toy", (1, 16)),
        ("docs/results.md", "uci", (1, 2, 4, 8, 16)),
    ],
)
def test_the_tables_on_the_pages_follow_from_the_rows(page, name, ks):
    text, cells = (ROOT / page).read_text(), errors(name)
    for table in TABLES[name]:
        for k in ks:
            for column in table.columns:
                trials = cells[table.data, k, column.alpha, "same"]
                assert len(trials) == table.trials
                error = f"{fmean(trials):.2f} ± {stdev(trials) / len(trials) ** 0.5:.2f}"
                assert f"{error} ({table.error_at(k, column):.2f})" in text


def test_the_tables_of_mnist_on_the_page_follow_from_the_rows():
    text, cells, attacked = (ROOT / "docs/results.md").read_text(), errors("mnist"), {}
    for row in read(RESULTS / "mnist"):
        method = row.trial.method
        for eps, scores in row.shifts["fgsm"].items():
            attacked.setdefault((method.k, method.alpha, eps), []).append(100 * scores.error)
    (table,), (attack,) = PRESETS["mnist"].tables, PRESETS["fgsm-mnist"].tables
    shown = {
        (k, column.alpha): (cells["mnist", k, column.alpha, "same"], table.error_at(k, column))
        for k in (1, 4, 16, 64)
        for column in table.columns
        if column.alpha in (0.2, 1, 10, 100)
    } | {
        (k, column.eps): (attacked[k, 10.0, column.eps], attack.error_at(k, column))
        for k in (1, 4, 16)
        for column in attack.columns
    }
    for trials, paper in shown.values():
        error = f"{fmean(trials):.2f} ± {stdev(trials) / len(trials) ** 0.5:.2f}"
        assert len(trials) == 3
        assert f"{error} ({paper:.2f})" in text


def family_lines():
    """A line for each method and k that all three trials of a column have, from the rows."""
    figures = {}
    for row in read(RESULTS / "family"):
        method = row.trial.method
        figures.setdefault((row.trial.data, method.name, method.k, method.alpha), []).append(
            100 * row.error
        )
    columns = (("four-bars", 1.0), ("four-bars", 16.0), ("mnist", 1.0))
    for name, entry in METHODS.items():
        for k in (1, 16) if entry.has_k and entry.baseline is None else (entry.fixed.get("k", 16),):
            cells = []
            for data, alpha in columns:
                errors = figures.get((data, name, k, alpha if entry.mixes else 0.0), ())
                mean, complete = fmean(errors or [0]), len(errors) == 3
                spread = stdev(errors) / 3**0.5 if complete else None
                cells.append(f"{mean:.2f} ± {spread:.2f}" if complete else "–")
            title = f"{entry.title}, k = {k}" if entry.has_k else entry.title
            if set(cells) != {"–"}:
                yield f"| {title} | {' | '.join(cells)} |"


def test_the_table_of_the_family_follows_from_the_rows():
    page = (ROOT / "docs/results.md").read_text()
    lines = list(family_lines())
    assert lines
    assert [line for line in page.splitlines() if line in lines] == lines


def test_the_differences_of_the_family_follow_from_the_rows():
    page = (ROOT / "docs/results.md").read_text()
    cells = {}
    for row in read(RESULTS / "family"):
        if row.trial.data == "mnist":
            method = row.trial.method
            cells.setdefault((method.name, method.k), {})[row.trial.seed] = 100 * row.error

    def interval(cell, base):
        gaps = [cells[cell][seed] - cells[base][seed] for seed in range(3)]
        mean, half = fmean(gaps), stats.t.ppf(0.975, 2) * stdev(gaps) / 3**0.5
        return mean, mean - half, mean + half

    def text(cell, base):
        mean, low, high = interval(cell, base)
        return f"{mean:.2f} [{low:.2f}, {high:.2f}]".replace("-", "−")

    assert text(("stackmix", 16), ("stackmix", 1)) in page
    assert f"errs {text(('guided', 1), ('mixup', 1))} more than mixup" in page
    for name, words in (("automix", "AutoMix errs"), ("puzzlemix", "PuzzleMix")):
        mean, low, high = interval((name, 1), ("mixup", 1))
        assert f"{words} {-mean:.2f} [{-high:.2f}, {-low:.2f}] less" in page
    lowest = sorted((fmean(cell.values()), name) for (name, _), cell in cells.items())
    assert [name for _, name in lowest if name != "stackmix"][:4] == [
        "automix", "automix", "puzzlemix", "puzzlemix",
    ]  # fmt: skip
    assert "AutoMix and PuzzleMix, which look at the images, have the lowest errors beside" in page
    mixup = fmean(cells["mixup", 1].values())
    means = {name: fmean(cells[name, 16].values()) for name in ("guided", "comixup")}
    assert means["guided"] > mixup > means["comixup"] > 4
    others = {name for name, k in cells if k == 16 and (name, 1) in cells} - {"stackmix"}
    assert len(others | {"kmixup"}) == 11
    for name in others:
        _, low, high = interval((name, 16), (name, 1))
        assert low < 0 < high
    _, low, high = interval(("kmixup", 16), ("mixup", 1))
    assert low < 0 < high
