"""The paper's Table 1 beside rows."""

from dataclasses import replace
from io import StringIO

from report_rows import failed, method, row
from rich.console import Console

from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.render_text import show
from kmixup.lab.report.sweep import master_document
from kmixup.lab.trial import Method, Trial

MNIST = PRESETS["master"].summaries[0]
BASE = Trial("mnist", "lenet", Method("erm"))


def shown(rows):
    console = Console(width=120, record=True, file=StringIO())
    show(master_document([MNIST], rows), console)
    return console.export_text()


def test_either_reading_of_alpha_has_a_line():
    rows = [
        row(method(k, 1.0, rule), error, seed, base=BASE)
        for seed in (0, 1)
        for k, rule, error in ((1, "same", 3.0), (4, "same", 2.0), (16, "xi", 1.0))
    ]
    lines = [" ".join(line.split()) for line in shown(rows).splitlines() if "  ours" in line]
    assert lines == [
        "ours not run 3.00 ± 0.00 2.00 ± 0.00 not run",
        "ours, alpha calibrated to keep ξ not run 3.00 ± 0.00 1.00 ± 0.00 1.00 ± 0.00",
    ]


def test_of_several_runs_the_most_complete_is_shown_and_named():
    short = replace(BASE, protocol=replace(BASE.protocol, epochs=4))
    rows = [row(method(k, 10.0), 9.0, seed, base=short) for k in (1, 4) for seed in range(9)]
    rows += [row(Method("erm"), 8.0, base=replace(BASE, limit=100))]
    rows += [row(method(k, 10.0), 0.5 + k, seed, base=BASE) for k in (1, 4) for seed in (0, 1)]
    text = shown(rows)
    (line,) = (" ".join(line.split()) for line in text.splitlines() if "  ours" in line)
    assert line == "ours not run 1.50 ± 0.00 4.50 ± 0.00 not run"
    assert "ours: reduced to 2 of 20 trials; k = 1, 4 only; alpha = 10 only." in text


def test_rows_of_other_networks_and_failed_trials_are_no_figures_of_ours():
    rows = [row(method(4, 1.0), 2.0, base=replace(BASE, model="mlp-toy")), failed(Method("erm"))]
    rows.append(failed(method(4, 1.0), base=BASE))
    assert "ours" not in shown(rows)


def test_figures_of_the_papers_protocol_are_not_called_reduced():
    rows = [row(Method("erm"), 3.0, seed, base=BASE) for seed in range(20)]
    rows += [
        row(method(k, alpha), 2.0, seed, base=BASE)
        for seed in range(20)
        for k in MNIST.table.ks
        for alpha in MNIST.table.alphas
    ]
    assert "reduced" not in shown(rows)
    assert "ours: reduced to 19 of 20 trials." in shown(rows[1:])
