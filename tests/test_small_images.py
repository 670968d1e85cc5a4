"""Tables of images with few training samples, as the pages state them: they follow from the rows.

`…_lines` functions make the lines that must be on a page, in this order.
"""

from functools import cache
from pathlib import Path
from statistics import fmean, stdev

from scipy import stats

from kmixup.lab.formatting import signed
from kmixup.lab.paper import PRESETS
from kmixup.lab.report.account import account_of
from kmixup.lab.report.several import holm
from kmixup.lab.sweep.store import read

ROOT = Path(__file__).parents[1]
KS = (1, 4, 16, 64)
ALPHAS = (0.05, 0.2, 1.0, 4.0, 16.0)
TRIALS = 20
METHODS = {0: "ERM", 1: "mixup", 16: "k-mixup, k = 16"}
SHIFTS = (("noise", 32.0), ("noise", 64.0), ("fgsm", 8.0), ("fgsm", 16.0))


@cache
def rows(name):
    return tuple(read(ROOT / "results" / name))


def errors(name, measure=lambda row: row.error):
    """Errors in per cent by k (0 for ERM) and alpha, and then by seed."""
    cells = {}
    for row in rows(name):
        method = row.trial.method
        k = method.k if method.entry.mixes else 0
        cells.setdefault((k, method.alpha), {})[row.trial.seed] = 100 * measure(row)
    return cells


def under(shift, eps):
    return lambda row: row.shifts[shift][eps].error


def mean_text(cell):
    values = list(cell.values())
    return f"{fmean(values):.2f} ± {stdev(values) / len(values) ** 0.5:.2f}"


def paired(new, old):
    """Mean, ends of Student's interval at 95 %, and p-value of the differences by seed."""
    assert new.keys() == old.keys()
    gaps = [new[seed] - old[seed] for seed in sorted(new)]
    test = stats.ttest_1samp(gaps, 0.0)
    low, high = test.confidence_interval(0.95)
    return fmean(gaps), low, high, test.pvalue


def difference_text(mean, low, high):
    return f"{signed(mean)} [{signed(low)}, {signed(high)}]"


def grid_lines(cells):
    yield f"| ERM | {mean_text(cells[0, 0.0])} |{' |' * (len(ALPHAS) - 1)}"
    for k in KS:
        yield f"| k = {k} | {' | '.join(mean_text(cells[k, alpha]) for alpha in ALPHAS)} |"


def matched_tests(cells):
    """k > 1 against mixup at the same alpha, corrected for all 15 tests."""
    places = [(k, alpha) for k in KS[1:] for alpha in ALPHAS]
    tests = [paired(cells[place], cells[1, place[1]]) for place in places]
    corrected = holm([p for *_, p in tests])
    return {place: (*test[:3], p) for place, test, p in zip(places, tests, corrected, strict=True)}


def matched_lines(cells):
    """Those that stay after the correction are bold."""
    tests = matched_tests(cells)
    for k in KS[1:]:
        texts = []
        for alpha in ALPHAS:
            *difference, p = tests[k, alpha]
            text = difference_text(*difference)
            texts.append(f"**{text}**" if p < 0.05 else text)
        yield f"| k = {k} | {' | '.join(texts)} |"


def shift_lines(name, alpha=1.0):
    shifted = [errors(name, under(*shift)) for shift in SHIFTS]
    for k in (0, *KS):
        texts = [mean_text(cells[k, alpha if k else 0.0]) for cells in shifted]
        yield f"| {f'k = {k}' if k else 'ERM'} | {' | '.join(texts)} |"


def clean_lines():
    """Networks with batch norm as trained, with clean statistics, and what these change."""
    trained, clean = batchnorm_errors()
    for k, name in METHODS.items():
        *change, _ = paired(clean[k], trained[k])
        texts = [mean_text(trained[k]), mean_text(clean[k]), difference_text(*change)]
        yield f"| {name} | {' | '.join(texts)} |"
    texts = [difference_text(*paired(cells[16], cells[1])[:3]) for cells in (trained, clean)]
    yield f"| k = 16 less mixup | {' | '.join(texts)} | |"


def batchnorm_errors():
    """Errors as trained and with clean statistics, by k, and then by seed."""
    trained, clean = {}, {}
    for row in rows("cifar10-5000"):
        method = row.trial.method
        if row.trial.protocol.clean_pass is None and method.alpha in (0.0, 1.0):
            k = method.k if method.entry.mixes else 0
            trained.setdefault(k, {})[row.trial.seed] = 100 * row.error
            clean.setdefault(k, {})[row.trial.seed] = 100 * row.clean.error
    return trained, clean


def test_the_rows_of_mnist_1000_are_whole_trials_of_the_table():
    wanted = [trial for trial in PRESETS["mnist-1000"].trials() if trial.seed < TRIALS]
    assert {row.id for row in rows("mnist-1000")} == {trial.id for trial in wanted}


def test_the_tables_of_mnist_1000_follow_from_the_rows():
    page = (ROOT / "docs/results.md").read_text().splitlines()
    cells = errors("mnist-1000")
    for lines in (grid_lines(cells), matched_lines(cells), shift_lines("mnist-1000")):
        expected = list(lines)
        assert [line for line in page if line in expected] == expected


def compared(measure, challenger, baseline):
    """Best cells against best cells, on trials that did not choose."""
    findings = account_of(rows("mnist-1000"), PRESETS["mnist-1000"].tables).findings
    (finding,) = (finding for finding in findings if finding.outcome.table.name == measure)
    (comparison,) = (
        comparison
        for comparison in finding.comparisons
        if (comparison.challenger, comparison.baseline, comparison.k)
        == (challenger, baseline, None)
    )
    return comparison


def test_mnist_1000_in_words_follows_from_the_rows():
    page = (ROOT / "docs/results.md").read_text()
    cells = errors("mnist-1000")
    mixup = compared("mnist-1000", "mixup", "ERM")
    matched = compared("mnist-1000", "k-mixup", "mixup")
    assert (mixup.honest.side, matched.honest.side) == (-1, 0)
    assert mixup.chosen[0].alpha == min(ALPHAS)
    small = {cell: test for cell, test in matched_tests(cells).items() if cell[1] < 1}
    assert [cell for cell, (*_, p) in small.items() if p < 0.05] == [(64, 0.05)]
    *difference, _ = small[64, 0.05]
    assert f"at alpha = 0.05, k = 64 errs more than mixup, {difference_text(*difference)}" in page
    assert (
        f"The best mixup errs on {mixup.chosen[0].mean:.2f} % of the images, plain training on "
        f"{mixup.chosen[1].mean:.2f} %: {mixup.honest.text} on trials that did not choose."
    ) in page
    assert f"The best k > 1 less the best mixup is {matched.honest.text}." in page
    means = {k: [fmean(cells[k, alpha].values()) for alpha in ALPHAS] for k in (1, 64)}
    ends = [(f"{min(values):.2f}", f"{max(values):.2f}") for values in means.values()]
    assert (
        f"mixup moves from {ends[0][0]} to {ends[0][1]}, and k = 64 from {ends[1][0]} to "
        f"{ends[1][1]}"
    ) in page


def test_mnist_1000_under_shift_in_words_follows_from_the_rows():
    page = (ROOT / "docs/results.md").read_text()
    shifted = {shift: errors("mnist-1000", under(*shift)) for shift in SHIFTS}
    for cells in shifted.values():
        means = [fmean(cells[k, 1.0].values()) for k in KS]
        assert means == sorted(means, reverse=True)
        assert all(paired(cells[k, 1.0], cells[1, 1.0])[2] < 0 for k in KS[1:])
        plain, *mixed = (
            fmean(cells[cell].values()) for cell in [(0, 0.0), *((k, 0.05) for k in KS)]
        )
        assert max(abs(mean - plain) for mean in mixed) < 2
    for shift, words in ((("noise", 64.0), "noise of 64"), (("fgsm", 16.0), "FGSM of 16")):
        cells = shifted[shift]
        text = difference_text(*paired(cells[64, 1.0], cells[1, 1.0])[:3])
        assert f"{text} under {words}" in page
    attacked = [compared("mnist-1000-fgsm-16", name, "ERM") for name in ("mixup", "k-mixup")]
    noisy = [compared("mnist-1000-noise-64", "k-mixup", name) for name in ("ERM", "mixup")]
    assert (
        f"Under FGSM of 16 the best mixup less ERM is {attacked[0].honest.text}, and the best "
        f"k-mixup less ERM {attacked[1].honest.text}"
    ) in page
    assert (
        f"Under noise of 64 the best k-mixup less ERM is {noisy[0].honest.text}, and less the best "
        f"mixup {noisy[1].honest.text}."
    ) in page


def test_the_line_of_readme_follows_from_the_rows():
    cells = errors("mnist-1000")
    *difference, p = matched_tests(cells)[16, 1.0]
    assert p > 0.05
    line = [mean_text(cells[0, 0.0]), mean_text(cells[1, 1.0]), mean_text(cells[16, 1.0])]
    searched = compared("mnist-1000", "k-mixup", "mixup").honest.text
    readme = (ROOT / "README.md").read_text()
    assert (
        f"| MNIST, 1,000 images | {' | '.join(line)} | {difference_text(*difference)} | undecided "
        f"| {searched} |"
    ) in readme
    assert f"plain training ({compared('mnist-1000', 'mixup', 'ERM').honest.text})" in readme


def test_the_gain_of_clean_statistics_follows_from_the_rows():
    wanted = {trial.id for trial in PRESETS["cifar10-5000"].trials()}
    assert {row.id for row in rows("cifar10-5000")} <= wanted
    trained, _ = batchnorm_errors()
    assert all(sorted(trained[k]) == [0, 1, 2, 3, 4] for k in METHODS)
    page = (ROOT / "docs/batchnorm.md").read_text()
    expected = list(clean_lines())
    assert [line for line in page.splitlines() if line in expected] == expected


def test_the_harm_of_mixing_photographs_follows_from_the_rows():
    page = (ROOT / "docs/batchnorm.md").read_text()
    mixup, matched = (
        [difference_text(*paired(cells[k], cells[0])[:3]) for cells in batchnorm_errors()]
        for k in (1, 16)
    )
    assert (
        f"mixup less ERM is {mixup[0]} as trained and {mixup[1]} with clean statistics, which is "
        f"undecided; k = 16 less ERM is {matched[0]} and {matched[1]}."
    ) in page
