"""Figures and findings in words, the same on the terminal, in Markdown and on the page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from kmixup.lab.paper.tables import Column, Table
from kmixup.lab.protocol import AlphaRule, Trial
from kmixup.lab.report.account import Account, Finding
from kmixup.lab.report.agreement import Agreement, Fit
from kmixup.lab.report.grids import Cell, Grid, Outcome, Row
from kmixup.lab.report.verdict import HEURISTIC, Comparison, by_column
from kmixup.lab.words import count, duration

RULE: dict[AlphaRule, str] = {
    "same": "the same alpha at every k",
    "xi": "alpha calibrated to keep xi",
}
MEASURE = {
    "error": "test error",
    "noise": "test error under Gaussian noise",
    "fgsm": "test error under FGSM attack",
}


def number(value: float | None, digits: int = 2) -> str:
    """A figure, or a dash where there is none.

    >>> number(3.14159), number(-0.001), number(None)
    ('3.14', '0.00', '–')
    """
    if value is None:
        return "–"
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 2) -> str:
    """A difference with its sign.

    >>> signed(-0.5), signed(0.25), signed(-0.001)
    ('−0.50', '+0.25', '0.00')
    """
    above = value is not None and round(value, digits) > 0
    return f"+{number(value, digits)}" if above else number(value, digits)


def strength(value: float | None) -> str:
    """An alpha or a xi in three digits.

    >>> strength(2.3134), strength(0.05), strength(1234.5), strength(None), strength(math.inf)
    ('2.31', '0.05', '1234', '–', '∞')
    """
    if value is None or math.isinf(value):
        return "–" if value is None else "∞"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def setting(value: object) -> str:
    """A setting as a reader would write it.

    >>> setting(200), setting([0.5, 0.75]), setting(True)
    ('200', '0.5, 0.75', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def title(rule: AlphaRule) -> str:
    """The alpha rule as a heading."""
    return RULE[rule][0].upper() + RULE[rule][1:]


def mood(verdicts: Iterable[str]) -> str:
    """How verdicts turned out together: good, bad or open.

    >>> mood(["reproduced"]), mood(["reproduced", "undecided"]), mood(["not reproduced: worse"])
    ('good', 'open', 'bad')
    """
    first = {verdict.split(":")[0] for verdict in verdicts}
    if "not reproduced" in first:
        return "bad"
    return "good" if first == {"reproduced"} else "open"


def extent(account: Account) -> str:
    """How much was run."""
    text = (
        f"{count(account.done, 'trial')} ended well, {len(account.failed)} failed; "
        f"{duration(account.seconds)} of training in total."
    )
    further = unplaced_sentence(account.unplaced)
    return text if further is None else f"{text} {further}"


def column_name(column: Column, outcome: Outcome) -> str:
    """What tells a column from the others of its grid."""
    alpha, eps = f"α = {column.alpha:g}", f"ε = {column.eps or 0:g}"
    if len({one.eps for one in outcome.columns}) == 1:
        return alpha
    return eps if len({one.alpha for one in outcome.columns}) == 1 else f"{eps}, {alpha}"


def cell_name(cell: Cell) -> str:
    """Where a cell is in its grid."""
    if cell.k == 0:
        return "ERM"
    place = f"α = {cell.alpha:g}"
    return place if cell.k == 1 else f"k = {cell.k}, {place}"


def cell_error(cell: Cell) -> str:
    """Mean and standard error in per cent."""
    return f"{cell_mean(cell)} {cell_spread(cell)}".rstrip()


def cell_mean(cell: Cell) -> str:
    """The mean in per cent, or why there is none."""
    if cell.mean is None:
        return "failed" if cell.failed else "not run"
    return number(cell.mean)


def cell_spread(cell: Cell) -> str:
    """The standard error of the mean, empty where there is none."""
    return "" if cell.standard_error is None else f"± {number(cell.standard_error)}"


def cell_gaps(cell: Cell) -> str:
    """Trials that a cell lacks, empty where it lacks none."""
    parts = []
    if cell.failed and cell.done:
        parts.append(f"{len(cell.failed)} failed")
    if cell.missing and cell.done:
        parts.append(f"{len(cell.done)} of {count(cell.expected, 'trial')}")
    return ", ".join(parts)


def subject(table: Table) -> str:
    """What is measured, on what."""
    levels = {column.eps for column in table.columns if column.eps is not None}
    where = f" of {next(iter(levels)):g}/255" if len(levels) == 1 else ""
    return f"{MEASURE[table.measure]}{where} in per cent, {table.data} with {table.model}"


def lead(outcome: Outcome) -> str:
    """What the grids of an outcome show, and what the paper says of its own."""
    table = outcome.table
    trials = count(outcome.erm[0].expected, "trial")
    text = f"Mean {subject(table)}, over {trials}, ± one standard deviation of that mean."
    if table.errors is None:
        return text
    text += f" The paper: {table.label}, {count(table.trials, 'trial')}"
    return text + ("." if table.confidence is None else f", at most ± {table.confidence:g}.")


def heading(comparison: Comparison) -> str:
    """Who is compared with whom, and how alpha was read."""
    which = "" if comparison.k is None else f" with k = {comparison.k}"
    text = f"{comparison.challenger}{which} against {comparison.baseline}"
    if comparison.eps is not None:
        text += f" at ε = {comparison.eps:g}/255"
    return text if comparison.rule is None else f"{text}, {RULE[comparison.rule]}"


def honest(comparison: Comparison) -> str:
    """The difference on trials that had no part in the choice."""
    found = comparison.honest
    if found is None:
        return "–"
    return f"{signed(found.difference)} [{signed(found.low)}, {signed(found.high)}]"


def on_test(comparison: Comparison) -> str:
    """The difference between the cells that are best on the test error itself."""
    if comparison.chosen is None:
        return "–"
    new, old = comparison.chosen
    return (
        f"{signed(comparison.difference)}: {number(new.mean)} ({cell_name(new)}) "
        f"against {number(old.mean)} ({cell_name(old)})"
    )


def sentence(comparison: Comparison) -> str:
    """A comparison in one line."""
    text = f"{heading(comparison)}: {comparison.verdict}."
    if comparison.honest is not None:
        text += (
            f" Chosen on half of {count(comparison.honest.trials, 'trial')} and compared on the "
            f"other: {honest(comparison)} points."
        )
    if comparison.chosen is not None:
        text += f" Chosen on the test error, as the paper does: {on_test(comparison)}."
    if comparison.paper is not None:
        text += f" The paper: {signed(comparison.paper)}."
    return text


def best_against_best(finding: Finding, rule: AlphaRule) -> tuple[Comparison, ...]:
    """The best of k > 1 against the best of k = 1, at each eps."""
    return tuple(
        one
        for one in finding.comparisons
        if (one.rule, one.k) == (rule, None) and one.baseline != "ERM"
    )


def shown_ks(outcome: Outcome) -> list[int]:
    """The k that are compared with k = 1 column by column: the recommended and the largest."""
    ks = [k for k in outcome.ks if k > 1]
    return sorted({HEURISTIC} & {*ks} | {max(ks)}) if ks and 1 in outcome.ks else []


def sides(grid: Grid, k: int) -> Counter[int]:
    """In how many columns `k` is below k = 1 (-1), above (1), or neither (0)."""
    return Counter(one.side for *_, one in by_column(grid, k=k) if one is not None)


def by_columns(outcome: Outcome) -> tuple[str, ...]:
    """How these k fare against k = 1 column by column."""
    found = (_by_columns(grid, k) for k in shown_ks(outcome) for grid in outcome.grids)
    return tuple(text for text in found if text is not None)


def _by_columns(grid: Grid, k: int) -> str | None:
    tally = sides(grid, k)
    if not tally:
        return None
    text = (
        f"k = {k} against k = 1 in the same column, {RULE[grid.rule]}: lower in {tally[-1]} of "
        f"{count(tally.total(), 'column')}, higher in {tally[1]}, undecided in {tally[0]} "
        "(paired over all trials, each at 95 % confidence)."
    )
    printed = [(new.paper, old.paper) for new, old, _ in by_column(grid, k=k)]
    known = [new < old for new, old in printed if new is not None and old is not None]
    return f"{text} In the paper it is lower in {sum(known)} of {len(known)}." if known else text


def readings(findings: Iterable[Finding]) -> tuple[tuple[str, str], ...]:
    """For each table that has figures of the paper: its title, and the rule they agree with."""
    return tuple(
        (finding.outcome.title, reading(finding.agreement))
        for finding in findings
        if finding.agreement is not None
    )


def reading(found: Agreement) -> str:
    """Which alpha rule the paper's figures agree with."""
    first = f"{RULE[found.nearer.rule]}, {_fit(found.nearer)}"
    cells = f"over {count(found.cells, 'cell')} with k > 1"
    if len(found.fits) == 1:
        return f"{first}, {cells}; no other rule was run."
    other = next(fit for fit in found.fits if fit is not found.nearer)
    second = f"{RULE[other.rule]}, {_fit(other)}"
    if not found.decided:
        return f"undecided, these trials cannot tell {first}, from {second}, {cells}."
    text = f"{first}; against {second}, {cells}."
    if (found.nearer.rank or 0) < (other.rank or 0):
        text += " The order of the paper's cells, though, is nearer to the latter's."
    return text


def _fit(fit: Fit) -> str:
    rank = "" if fit.rank is None else f" and has the rank correlation {number(fit.rank)}"
    return f"which differs by {number(fit.distance)} points (root mean square){rank}"


def failure(row: Row) -> str:
    """A failed trial and its reason."""
    trial = Trial.from_dict(row["trial"])
    what = f"{trial.data}, {trial.model}, {trial.method.label}, seed {trial.seed}"
    return f"{what}: {row['error']}"


def unplaced_sentence(rows: Sequence[Row]) -> str | None:
    if not rows:
        return None
    verb = "is" if len(rows) == 1 else "are"
    return f"{count(len(rows), 'further row')} of the sweep {verb} in no cell of these tables."
