"""Small tables and rows to report on, without any training."""

import re
from dataclasses import replace

from page_checker import Checker
from sweeping import done_row, failed_row

from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.paper.tables import ErrorColumn, ErrorTable
from kmixup.lab.report import frame
from kmixup.lab.report import sweep as report
from kmixup.lab.results import frame_of, lines_of
from kmixup.lab.trial import Method, Protocol, Trial, shifts_from

PROTOCOL = Protocol(epochs=3, rate=0.05)
BASE = Trial("iris", "mlp-iris", Method("erm"), PROTOCOL)
VERSIONS = {"kmixup": "0", "python": "3"}
MACHINE = {"platform": "a machine", "cores": 2}


def table(**changes):
    """Two k and two alphas of Iris."""
    plain = ErrorTable(
        "iris",
        "Iris",
        "Table 4",
        "iris",
        "mlp-iris",
        ks=(1, 16),
        columns=(ErrorColumn(0.1, 0.2), ErrorColumn(1.0, 0.5)),
        errors=((6.0, 7.0), (3.0, 4.0)),
        erm=5.0,
        confidence=0.3,
        trials=20,
    )
    return replace(plain, **changes)


def row(method, error, seed=0, *, alpha=None, xi=0.5, base=BASE, **tests):
    """A row with a test error in per cent; `noise={8: 10.0}` adds errors under noise."""
    levels = {name: tuple(errors) for name, errors in tests.items()}
    trial = replace(base, method=method, seed=seed, shifts=shifts_from(levels))
    return done_row(
        trial,
        error / 100,
        alpha=method.alpha if alpha is None else alpha,
        xi=xi,
        shifts={
            name: {float(eps): Scores(value / 100, 1.0, 0.1) for eps, value in errors.items()}
            for name, errors in tests.items()
        },
        versions=VERSIONS,
        machine=MACHINE,
        finished=f"2026-01-01T00:00:{seed % 60:02}+00:00",
    )


def failed(method, seed=0, *, base=BASE, error="DivergedError: the loss became NaN"):
    trial = replace(base, method=method, seed=seed)
    return failed_row(trial, error, versions=VERSIONS, machine=MACHINE)


def method(k, alpha, rule="same"):
    return Method("kmixup", k=k, alpha=alpha, alpha_rule=rule)


def sweep(draw, *, of=None, trials=6, rules=("same", "xi"), base=BASE):
    """Rows of a whole table; `draw(k, alpha, rule, seed)` gives the errors, k = 0 for ERM."""
    of = of or table()
    rows = []
    for seed in range(trials):
        rows.append(row(Method("erm"), draw(0, 0.0, "same", seed), seed, xi=0.0, base=base))
        for k in of.ks:
            for alpha in of.alphas:
                for rule in rules if k > 1 else ("same",):
                    error = draw(k, alpha, rule, seed)
                    rows.append(row(method(k, alpha, rule), error, seed, base=base))
    return rows


def check_self_contained(page):
    """A page is well-formed, and refers to nothing outside of itself."""
    checked = Checker(page)
    assert len(checked.ids) == len(set(checked.ids))
    links = {link for link in checked.links if not link.startswith("data:image/png;base64,")}
    assert {link.lstrip("#") for link in links} <= set(checked.ids)
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    for forbidden in ("<script", "@import", "<link", "<iframe"):
        assert forbidden not in page
    assert 'name="viewport"' in page


def text_of(page):
    """The text of a page, without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


# what reports do with the frame of some rows


def results_of(rows, tables):
    return frame.results_of(frame_of(rows), tables)


def tables_of(rows):
    return frame.tables_of(frame_of(rows))


def unplaced(rows, results):
    return frame.unplaced(frame_of(rows), results)


def partition_of(rows):
    return frame.partition_of(lines_of(frame_of(rows)))


def sweep_document(rows, results, preface):
    return report.sweep_document(frame_of(rows), results, preface)
