"""Figures and findings in words, the same on the terminal, in Markdown and on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.evaluate.wording import constant_sentence
from kmixup.lab.experiments.rows import Failed, Row, done_of
from kmixup.lab.formatting import NOTHING, count, duration, number, signed
from kmixup.lab.paper.tables import CLEAN, ERROR, PaperColumn
from kmixup.lab.report.account import Account, Finding
from kmixup.lab.report.agreement import Agreement, Fit
from kmixup.lab.report.comparing import HEURISTIC, CellComparison, by_column
from kmixup.lab.report.grids import Cell, Grid, Outcome
from kmixup.lab.train.config import AlphaRule

RULE: dict[AlphaRule, str] = {
    "same": "the same alpha at every k",
    "xi": "alpha calibrated to keep xi",
    "root": "alpha times the ratio of distances",
}
MEASURE = {ERROR: "test error", CLEAN: "test error with clean statistics of batch norm"} | {
    name: f"test error under {shift.title}" for name, shift in SHIFTS.items()
}


def title(rule: AlphaRule) -> str:
    """The alpha rule as a heading."""
    return RULE[rule][0].upper() + RULE[rule][1:]


def extent(account: Account) -> str:
    """How much was run."""
    text = (
        f"{count(account.done, 'trial')} ended well, {len(account.failed)} failed; "
        f"{duration(account.seconds)} of training in total."
    )
    further = unplaced_sentence(account.unplaced)
    return text if further is None else f"{text} {further}"


def column_name(column: PaperColumn, outcome: Outcome) -> str:
    """What tells a column from the others of its grid."""
    alpha, eps = f"α = {column.alpha:g}", f"ε = {column.eps or 0:g}"
    if len({other.eps for other in outcome.columns}) == 1:
        return alpha
    return eps if len({other.alpha for other in outcome.columns}) == 1 else f"{eps}, {alpha}"


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
    return number(cell.mean, cell.unit.digits(cell.mean))


def cell_spread(cell: Cell) -> str:
    """The standard error of the mean, empty where there is none."""
    return (
        ""
        if cell.standard_error is None
        else (f"± {number(cell.standard_error, cell.unit.digits(cell.mean))}")
    )


def cell_gaps(cell: Cell) -> str:
    """Trials that a cell lacks, empty where it lacks none."""
    parts = []
    if cell.failed and cell.done:
        parts.append(f"{len(cell.failed)} failed")
    if cell.missing and cell.done:
        parts.append(f"{len(cell.done)} of {count(cell.expected, 'trial')}")
    return ", ".join(parts)


def subject(outcome: Outcome) -> str:
    """What is measured, on what."""
    table, unit = outcome.table, outcome.unit
    levels = {column.eps for column in table.columns if column.eps is not None}
    where = f" of {next(iter(levels)):g}/255" if len(levels) == 1 else ""
    measure = MEASURE[table.measure].replace("error", unit.name)
    return f"{measure}{where} {unit.unit}, {table.data} with {table.model}"


def lead(outcome: Outcome) -> str:
    """What the grids of an outcome show, and what the paper says of its own."""
    table = outcome.table
    trials = count(outcome.erm[0].expected, "trial")
    text = f"Mean {subject(outcome)}, over {trials}, ± one standard deviation of that mean."
    if table.errors is None:
        return f"{text} {constant(outcome)}".rstrip()
    text += f" The paper: {table.label}, {count(table.trials, 'trial')}"
    return text + ("." if table.confidence is None else f", at most ± {table.confidence:g}.")


def constant(outcome: Outcome) -> str:
    """What a constant answer would come to in a sweep of one's own, where the rows know it."""
    if outcome.table.errors is not None or outcome.table.measure != ERROR:
        return ""
    return constant_sentence(row.scores for row in done_of(outcome.rows))


def heading(comparison: CellComparison) -> str:
    """Who is compared with whom, and how alpha was read."""
    which = "" if comparison.k is None else f" with k = {comparison.k}"
    text = f"{comparison.challenger}{which} against {comparison.baseline}"
    if comparison.eps is not None:
        text += f" at ε = {comparison.eps:g}/255"
    return text if comparison.rule is None else f"{text}, {RULE[comparison.rule]}"


def honest(comparison: CellComparison) -> str:
    """The difference on trials that had no part in the choice."""
    if comparison.honest is None:
        return NOTHING
    text, new_data = comparison.honest.text, comparison.honest.new_data_text
    return text if new_data is None else f"{text}, new data {new_data}"


def printed(comparison: CellComparison) -> str:
    """The difference in the paper, with its own standard error where that is known."""
    if comparison.paper is None or comparison.noise is None:
        return signed(comparison.paper)
    return f"{signed(comparison.paper)} ± {number(comparison.noise)}"


def on_test(comparison: CellComparison) -> str:
    """The difference between the cells that are best on the test error itself."""
    if comparison.chosen is None:
        return NOTHING
    new, old = comparison.chosen
    return (
        f"{signed(comparison.difference, new.unit.digits(new.mean))}: {cell_mean(new)} "
        f"({cell_name(new)}) against {cell_mean(old)} ({cell_name(old)})"
    )


def sentence(comparison: CellComparison) -> str:
    """A comparison in one line."""
    text = f"{heading(comparison)}: {comparison.text}."
    if comparison.honest is not None:
        text += (
            f" Chosen on half of {count(comparison.honest.trials, 'trial')} and compared on the "
            f"other: {honest(comparison)} {comparison.unit.points}."
        )
    if comparison.chosen is not None:
        how = "" if comparison.paper is None else ", as the paper does"
        text += f" Chosen on the test error{how}: {on_test(comparison)}."
    if comparison.paper is not None:
        text += f" The paper: {printed(comparison)}."
    return text


def best_against_best(finding: Finding, rule: AlphaRule) -> tuple[CellComparison, ...]:
    """The best of k > 1 against the best of k = 1, at each eps."""
    return tuple(
        comparison
        for comparison in finding.comparisons
        if (comparison.rule, comparison.k) == (rule, None) and comparison.baseline != "ERM"
    )


def shown_ks(outcome: Outcome) -> list[int]:
    """The k that are compared with k = 1 column by column: the recommended and the largest."""
    ks = [k for k in outcome.ks if k > 1]
    return sorted({HEURISTIC} & {*ks} | {max(ks)}) if ks and 1 in outcome.ks else []


def sides(grid: Grid, k: int) -> Counter[int]:
    """In how many columns `k` is below k = 1 (-1), above (1), or neither (0)."""
    return Counter(
        difference.side for *_, difference in by_column(grid, k=k) if difference is not None
    )


def by_columns(outcome: Outcome) -> tuple[str, ...]:
    """How these k fare against k = 1 column by column."""
    texts = (_by_columns(grid, k) for k in shown_ks(outcome) for grid in outcome.grids)
    return tuple(text for text in texts if text is not None)


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


def reading(agreement: Agreement) -> str:
    """Which alpha rule the paper's figures agree with, by their level and by their shape."""
    first = f"{RULE[agreement.nearer.rule]}, {_fit(agreement.nearer)}"
    cells = f"over {count(agreement.cells, 'cell')} with k > 1"
    if len(agreement.fits) == 1:
        return f"{first}, {cells}; no other rule was run."
    other = next(fit for fit in agreement.fits if fit is not agreement.nearer)
    second = f"{RULE[other.rule]}, {_fit(other)}"
    if agreement.decided:
        text = f"{first}; against {second}, {cells}."
        if (agreement.nearer.rank or 0) < (other.rank or 0):
            text += " The order of the paper's cells, though, is nearer to the latter's."
    else:
        text = f"undecided, these trials cannot tell {first}, from {second}, {cells}."
    return text + _shape(agreement)


def _shape(agreement: Agreement) -> str:
    """What is said where every row of k has its mean taken away."""
    nearer = agreement.nearer_shape
    if nearer is None:
        return ""
    other = next(fit for fit in agreement.fits if fit is not nearer)
    distances = f"{number(nearer.shape)} against {number(other.shape)} points"
    sure = "nearer" if agreement.shape_decided else "nearer, within chance,"
    return f" By shape, each row less its mean, {RULE[nearer.rule]} is {sure} ({distances})."


def _fit(fit: Fit) -> str:
    rank = "" if fit.rank is None else f" and has the rank correlation {number(fit.rank)}"
    return f"which differs by {number(fit.distance)} points (root mean square){rank}"


def failure(row: Failed) -> str:
    """A failed trial and its reason."""
    trial = row.trial
    what = f"{trial.data}, {trial.model}, {trial.method.label}, seed {trial.seed}"
    return f"{what}: {row.reason}"


def unplaced_sentence(rows: Sequence[Row]) -> str | None:
    """How many rows are in no cell of any table, None if there are none."""
    if not rows:
        return None
    verb = "is" if len(rows) == 1 else "are"
    return f"{count(len(rows), 'further row')} of the sweep {verb} in no cell of these tables."
