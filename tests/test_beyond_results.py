"""The page beyond the paper states what its rows say."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev

from scipy.stats import t as student
from scipy.stats import ttest_1samp

from kmixup.lab.paper import PRESETS
from kmixup.lab.report.several import holm
from kmixup.lab.sweep.store import read

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/beyond.md").read_text()
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


def variant(method):
    if method.name != "kmixup":
        return method.name
    if method.memory is not None:
        return f"memory={method.memory}"
    if method.labels is not None:
        return f"labels={method.labels:g}"
    return method.match_on or "plain"


def errors():
    """Test errors in per cent by batch size and variant, and then by seed."""
    cells = defaultdict(dict)
    for row in read(ROOT / "results/beyond-mnist-1000"):
        cell = (row.trial.protocol.batch_size, variant(row.trial.method))
        cells[cell][row.trial.seed] = 100 * row.error
    return cells


def signed(value):
    return f"{value:+.2f}".replace("-", "−")


def test_every_line_of_the_page_follows_from_the_rows():
    cells = errors()
    lines = [line for line in PAGE.splitlines() if line.startswith(("| 16 |", "| 64 |"))]
    assert len(lines) == len(cells)
    for (batch, name), trials in cells.items():
        assert sorted(trials) == list(range(5))
        values = list(trials.values())
        error = f"{fmean(values):.2f} ± {stdev(values) / 5**0.5:.2f}"
        line = f"| {batch} | {WORDS[batch, name]} | {error} |"
        (on_page,) = [written for written in lines if written.startswith(line)]
        if name in ("erm", "mixup", "plain"):
            assert on_page == f"{line} | |"
            continue
        gaps = [trials[seed] - cells[batch, "plain"][seed] for seed in range(5)]
        mean, half = fmean(gaps), student.ppf(0.975, 4) * stdev(gaps) / 5**0.5
        low, high = mean - half, mean + half
        verdict = "undecided" if low < 0 < high else "better" if high < 0 else "worse"
        interval = f"{signed(mean)} [{signed(low)}, {signed(high)}]"
        assert on_page == f"{line} {interval} | {verdict} |"


def test_what_stays_after_the_correction_follows_from_the_rows():
    cells, tests = errors(), {}
    for (batch, name), trials in cells.items():
        if name not in ("erm", "mixup", "plain"):
            gaps = [trials[seed] - cells[batch, "plain"][seed] for seed in range(5)]
            tests[name] = ttest_1samp(gaps, 0.0)
    corrected = dict(zip(tests, holm([test.pvalue for test in tests.values()]), strict=True))
    assert len(tests) == 6
    assert [name for name, p in corrected.items() if p < 0.05] == ["ema:5"]
    assert tests["ema:5"].statistic > 0
    for name, most in {
        "labels=1": 0.5,
        "labels=-0.2": 0.5,
        "pca:50": 0.5,
        "memory=512": 0.25,
    }.items():
        low, high = tests[name].confidence_interval(0.95)
        assert -most < low < high < most


def test_rows_are_of_the_experiment():
    wanted = {trial.id for trial in PRESETS["beyond-mnist-1000"].trials()}
    assert {row.id for row in read(ROOT / "results/beyond-mnist-1000")} <= wanted


def test_the_page_says_what_has_not_been_trained():
    missing = {
        WORDS[cell] for cell in WORDS if cell not in errors() and cell[1] not in ("erm", "mixup")
    }
    for words in missing:
        assert words in PAGE.partition("Not trained as yet")[2], words
