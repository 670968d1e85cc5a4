"""Tables of images with few training samples, as the pages state them: they follow from the rows.

`…_lines` functions make the lines that must be on a page, in this order.
"""

from functools import cache, partial
from pathlib import Path
from statistics import fmean, stdev

import pytest
from scipy import stats

from kmixup.lab.experiments.rows import read
from kmixup.lab.formatting import signed
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.comparisons import comparisons
from kmixup.lab.report.frame import results_of
from kmixup.lab.report.stats import holm

ROOT = Path(__file__).parents[1]
README, PAGE = ((ROOT / name).read_text() for name in ("README.md", "docs/results.md"))
KS = (1, 4, 16, 64)
# levels of the shifts in the tables, by experiment
SHIFTS = {
    "mnist-1000": (("noise", 32.0), ("noise", 64.0), ("fgsm", 8.0), ("fgsm", 16.0)),
    "mnist-5000": (("noise", 32.0), ("noise", 64.0), ("fgsm", 8.0), ("fgsm", 16.0)),
    "cifar10-5000": (("noise", 8.0), ("noise", 16.0), ("fgsm", 1.0), ("fgsm", 2.0)),
}
METHODS = {0: "ERM", 1: "mixup", 16: "k-mixup, k = 16"}


@cache
def rows(name):
    return tuple(read(ROOT / "results" / name))


def errors(name, measure=lambda row: row.error):
    """Errors in per cent by k (0 for ERM) and alpha, and then by seed; without clean passes."""
    cells = {}
    for row in rows(name):
        if row.trial.protocol.clean_pass is not None:
            continue
        method = row.trial.method
        k = method.k if method.entry.mixes else 0
        cells.setdefault((k, method.alpha), {})[row.trial.seed] = 100 * measure(row)
    return cells


def clean(row):
    return row.clean.error


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


def alphas(cells):
    return sorted({alpha for k, alpha in cells if k})


def grid_lines(cells):
    columns = alphas(cells)
    yield f"| ERM | {mean_text(cells[0, 0.0])} |{' |' * (len(columns) - 1)}"
    for k in KS:
        yield f"| k = {k} | {' | '.join(mean_text(cells[k, alpha]) for alpha in columns)} |"


def matched_tests(cells):
    """k > 1 against mixup at the same alpha, corrected for all these tests."""
    places = [(k, alpha) for k in KS[1:] for alpha in alphas(cells)]
    tests = [paired(cells[place], cells[1, place[1]]) for place in places]
    corrected = holm([p for *_, p in tests])
    return {place: (*test[:3], p) for place, test, p in zip(places, tests, corrected, strict=True)}


def matched_lines(cells):
    """Those that stay after the correction are bold."""
    tests = matched_tests(cells)
    for k in KS[1:]:
        texts = []
        for alpha in alphas(cells):
            *difference, p = tests[k, alpha]
            text = difference_text(*difference)
            texts.append(f"**{text}**" if p < 0.05 else text)
        yield f"| k = {k} | {' | '.join(texts)} |"


def shift_lines(name, alpha=1.0):
    shifted = [errors(name, under(*shift)) for shift in SHIFTS[name]]
    for k in (0, *KS):
        texts = [mean_text(cells[k, alpha if k else 0.0]) for cells in shifted]
        yield f"| {f'k = {k}' if k else 'ERM'} | {' | '.join(texts)} |"


def batchnorm_errors():
    """Errors at alpha = 1, as trained and with clean statistics, by k, and then by seed."""
    return tuple(
        {k: cell for (k, alpha), cell in cells.items() if alpha in (0.0, 1.0)}
        for cells in (errors("cifar10-5000"), errors("cifar10-5000", clean))
    )


def strength_lines():
    """What clean statistics change, by k and alpha."""
    trained, cleaned = errors("cifar10-5000"), errors("cifar10-5000", clean)
    for k in KS:
        changes = [
            difference_text(*paired(cleaned[k, alpha], trained[k, alpha])[:3])
            for alpha in alphas(trained)
        ]
        yield f"| {f'k-mixup, k = {k}' if k > 1 else 'mixup'} | {' | '.join(changes)} |"


def clean_lines():
    """Networks with batch norm as trained, with clean statistics, and what these change."""
    trained, cleaned = batchnorm_errors()
    for k, name in METHODS.items():
        *change, _ = paired(cleaned[k], trained[k])
        texts = [mean_text(trained[k]), mean_text(cleaned[k]), difference_text(*change)]
        yield f"| {name} | {' | '.join(texts)} |"
    texts = [difference_text(*paired(cells[16], cells[1])[:3]) for cells in (trained, cleaned)]
    yield f"| k = 16 less mixup | {' | '.join(texts)} | |"


@pytest.mark.parametrize("name", SHIFTS)
def test_the_rows_are_whole_trials_of_the_experiment_without_a_clean_pass(name):
    published = [row.trial for row in rows(name) if row.trial.protocol.clean_pass is None]
    assert {row.id for row in rows(name)} <= {trial.id for trial in PRESETS[name].trials()}
    trials = 1 + max(trial.seed for trial in published)
    wanted = [t for t in PRESETS[name].trials(trials=trials) if t.protocol.clean_pass is None]
    assert sorted(trial.id for trial in published) == sorted(trial.id for trial in wanted)
    assert f"{len(wanted)} networks of {trials} trials" in PAGE


@pytest.mark.parametrize("name", SHIFTS)
def test_the_tables_follow_from_the_rows(name):
    page = PAGE.splitlines()
    tables = [errors(name), *([errors(name, clean)] if name == "cifar10-5000" else [])]
    for lines in (*map(grid_lines, tables), *map(matched_lines, tables), shift_lines(name)):
        expected = list(lines)
        assert [line for line in page if line in expected] == expected


@cache
def findings(name):
    found = results_of(rows(name), PRESETS[name].tables)
    return {result.table.name: result for result in found}


def compared(name, challenger, baseline, test=""):
    """Best cells against best cells, on trials that did not choose."""
    (comparison,) = (
        comparison
        for comparison in comparisons(findings(name)[name + test])
        if (comparison.new, comparison.old, comparison.k) == (challenger, baseline, None)
    )
    return comparison


def honest(*names):
    """The difference of best cells with its interval; the arguments are those of `compared`."""
    return compared(*names).held_out


def range_text(cells, k):
    """The least and the greatest mean error of a k over the alphas."""
    means = [fmean(cells[k, alpha].values()) for alpha in alphas(cells)]
    return f"{min(means):.2f} to {max(means):.2f}"


def test_mnist_1000_in_words_follows_from_the_rows():
    cells = errors("mnist-1000")
    mixup = compared("mnist-1000", "mixup", "ERM")
    matched = compared("mnist-1000", "k-mixup", "mixup")
    assert (mixup.held_out.side, matched.held_out.side) == (-1, 0)
    assert mixup.chosen[0].alpha == min(alphas(cells))
    small = {cell: test for cell, test in matched_tests(cells).items() if cell[1] < 1}
    assert [cell for cell, (*_, p) in small.items() if p < 0.05] == [(64, 0.05)]
    *difference, _ = small[64, 0.05]
    assert f"at alpha = 0.05, k = 64 errs more than mixup, {difference_text(*difference)}" in PAGE
    assert (
        f"The best mixup errs on {mixup.chosen[0].mean:.2f} % of the images, plain training on "
        f"{mixup.chosen[1].mean:.2f} %: {mixup.held_out.text} on trials that did not choose."
    ) in PAGE
    assert f"The best k > 1 less the best mixup is {matched.held_out.text}." in PAGE
    assert (
        f"mixup moves from {range_text(cells, 1)}, and k = 64 from {range_text(cells, 64)}" in PAGE
    )


@pytest.mark.parametrize("name", ["mnist-1000", "mnist-5000"])
def test_larger_k_on_digits_under_shift_in_words_follows_from_the_rows(name):
    shifted = {shift: errors(name, under(*shift)) for shift in SHIFTS[name]}
    for cells in shifted.values():
        means = [fmean(cells[k, 1.0].values()) for k in KS]
        assert means == sorted(means, reverse=True)
        assert all(paired(cells[k, 1.0], cells[1, 1.0])[2] < 0 for k in KS[1:])
    for shift, words in ((("noise", 64.0), "noise of 64"), (("fgsm", 16.0), "FGSM of 16")):
        cells = shifted[shift]
        text = difference_text(*paired(cells[64, 1.0], cells[1, 1.0])[:3])
        assert f"{text} under {words}" in PAGE


def test_mnist_1000_under_shift_in_words_follows_from_the_rows():
    for shift in SHIFTS["mnist-1000"]:
        cells = errors("mnist-1000", under(*shift))
        plain, *mixed = (
            fmean(cells[cell].values()) for cell in [(0, 0.0), *((k, 0.05) for k in KS)]
        )
        assert max(abs(mean - plain) for mean in mixed) < 2
    attacked = [compared("mnist-1000", name, "ERM", "-fgsm-16") for name in ("mixup", "k-mixup")]
    noisy = [compared("mnist-1000", "k-mixup", name, "-noise-64") for name in ("ERM", "mixup")]
    assert (
        f"Under FGSM of 16 the best mixup less ERM is {attacked[0].held_out.text}, and the best "
        f"k-mixup less ERM {attacked[1].held_out.text}"
    ) in PAGE
    assert (
        f"Under noise of 64 the best k-mixup less ERM is {noisy[0].held_out.text}, and less the "
        f"best mixup {noisy[1].held_out.text}."
    ) in PAGE


def test_mnist_5000_in_words_follows_from_the_rows():
    cells, best = errors("mnist-5000"), partial(honest, "mnist-5000")
    assert best("mixup", "ERM").side == best("k-mixup", "ERM").side == -1
    assert best("k-mixup", "mixup").side == 0
    assert (
        f"The best mixup less ERM is {best('mixup', 'ERM').text} on trials that did not choose, "
        f"and the best k-mixup less ERM {best('k-mixup', 'ERM').text}."
    ) in PAGE
    assert f"The best k > 1 less the best mixup is {best('k-mixup', 'mixup').text}." in PAGE
    assert (
        f"mixup goes from {range_text(cells, 1)}, and k = 64 from {range_text(cells, 64)}." in PAGE
    )
    noisy, attacked = (best("k-mixup", "ERM", test) for test in ("-noise-64", "-fgsm-16"))
    assert noisy.side == attacked.side == 0
    assert (
        f"under noise of 64 the best k-mixup less ERM is {noisy.text}, and under FGSM of 16 it is "
        f"{attacked.text}."
    ) in PAGE


def test_cifar10_5000_in_words_follows_from_the_rows():
    name, tables = "cifar10-5000", [errors("cifar10-5000"), errors("cifar10-5000", clean)]
    best = partial(honest, name)
    for baseline in ("ERM", "mixup"):
        assert best("k-mixup", baseline).side == best("k-mixup", baseline, "-clean").side == 0
    assert best("mixup", "ERM").side == best("mixup", "ERM", "-clean").side == 0
    assert {compared(name, "mixup", "ERM", test).chosen[0].alpha for test in ("", "-clean")} == {
        min(alphas(tables[0]))
    }
    assert (
        f"The best mixup less ERM is {best('mixup', 'ERM').text} as trained and "
        f"{best('mixup', 'ERM', '-clean').text} with clean statistics; the best k-mixup less ERM "
        f"is {best('k-mixup', 'ERM').text} and {best('k-mixup', 'ERM', '-clean').text}."
    ) in PAGE
    assert (
        f"The best k > 1 less the best mixup is {best('k-mixup', 'mixup').text} as trained and "
        f"{best('k-mixup', 'mixup', '-clean').text} with clean statistics."
    ) in PAGE
    assert all(p > 0.05 for cells in tables for *_, p in matched_tests(cells).values())
    strong = [paired(cells[1, 4.0], cells[0, 0.0])[:3] for cells in tables]
    large = [paired(cells[64, 1.0], cells[1, 1.0])[:3] for cells in tables]
    assert (
        f"at alpha = 4 mixup less ERM is {difference_text(*strong[0])} as trained and "
        f"{difference_text(*strong[1])} with clean statistics"
    ) in PAGE
    assert all(
        paired(cells[k, 4.0], cells[0, 0.0])[1] > 0 for cells in tables for k in KS
    )  # whatever k is
    assert f"k = 64 less mixup is {' and '.join(difference_text(*d) for d in large)}." in PAGE
    attack = [best(*pair, "-fgsm-2") for pair in (("mixup", "ERM"), ("k-mixup", "ERM"))]
    assert all(difference.side == -1 for difference in attack)
    between = best("k-mixup", "mixup", "-fgsm-2")
    assert between.side == best("mixup", "ERM", "-noise-16").side == 0
    assert (
        f"Under FGSM of 2 the best mixup less ERM is {attack[0].text}, and the best k-mixup less "
        f"ERM {attack[1].text}; the best k-mixup less the best mixup is {between.text}, which is "
        f"undecided. Under noise of 16 the best mixup less ERM is "
        f"{best('mixup', 'ERM', '-noise-16').text}."
    ) in PAGE


@pytest.mark.parametrize(
    ("title", "name", "test"),
    [
        ("MNIST, 1,000 images", "mnist-1000", ""),
        ("MNIST, 5,000 images", "mnist-5000", ""),
        ("CIFAR-10, 5,000 images", "cifar10-5000", "-clean"),
    ],
)
def test_a_line_of_readme_follows_from_the_rows(title, name, test):
    cells = errors(name, clean) if test else errors(name)
    mean, low, high, p = matched_tests(cells)[16, 1.0]
    side = "undecided" if p > 0.05 else "**lower**" if mean < 0 else "**higher**"
    figures = [mean_text(cells[0, 0.0]), mean_text(cells[1, 1.0]), mean_text(cells[16, 1.0])]
    figures += [difference_text(mean, low, high), side]
    figures += [compared(name, "k-mixup", "mixup", test).held_out.text]
    assert f"| {title} | {' | '.join(figures)} |" in README


def test_the_numbers_of_trials_in_readme_are_those_of_the_rows():
    trials = {name: len(errors(name)[0, 0.0]) for name in SHIFTS}
    assert (
        f"of {trials['mnist-1000']} trials; with 5,000 images, of {trials['mnist-5000']} on MNIST "
        f"and {trials['cifar10-5000']} on CIFAR-10."
    ) in README


def test_the_gains_of_mixing_in_readme_follow_from_the_rows():
    helped = [compared(name, "mixup", "ERM").held_out for name in ("mnist-1000", "mnist-5000")]
    assert (
        f"the best mixup beats plain training ({helped[0].text} with 1,000, {helped[1].text} with "
        "5,000)"
    ) in README
    assert all(difference.side == -1 for difference in helped)
    assert compared("cifar10-5000", "mixup", "ERM", "-clean").held_out.side == 0


def test_the_best_alpha_is_small_as_the_guide_says():
    page = (ROOT / "docs/guide/choosing.md").read_text()
    assert "the best alpha was small, 0.05 or 0.2, for mixup and for every k" in page
    for cells in (*map(errors, SHIFTS), errors("cifar10-5000", clean)):
        for k in KS:
            means = {alpha: fmean(cells[k, alpha].values()) for alpha in alphas(cells)}
            assert min(means, key=means.get) in (0.05, 0.2)


def test_the_gain_of_clean_statistics_follows_from_the_rows():
    trained, _ = batchnorm_errors()
    assert all(sorted(trained[k]) == [0, 1, 2, 3, 4] for k in METHODS)
    page = (ROOT / "docs/batchnorm.md").read_text().splitlines()
    for expected in (list(clean_lines()), list(strength_lines())):
        assert [line for line in page if line in expected] == expected


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
