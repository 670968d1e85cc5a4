"""`kmixup reproduce`: the paper's experiments, re-run and compared with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from kmixup._checks import check_choice
from kmixup.lab.commands import options
from kmixup.lab.commands.execution import ExecutionOptions, finish, outcome_of, preview, report
from kmixup.lab.commands.options import Flag, Out, print_document
from kmixup.lab.experiments.engines import Execution
from kmixup.lab.experiments.rows import Done, Row, has_rows, read
from kmixup.lab.formatting import count
from kmixup.lab.paper.deviations import deviations, shrinkage
from kmixup.lab.paper.presets import PRESETS, Preset, preset_of
from kmixup.lab.trial import AlphaRule

reproduce = App(name="reproduce")


@reproduce.default
def experiment(
    name: Annotated[str, Parameter(name="TABLE", help=f"{', '.join(PRESETS)}, or cost.")],
    /,
    *,
    data: list[str] | None = None,
    trials: int | None = None,
    epochs: int | None = None,
    k: list[int] | None = None,
    alpha: list[float] | None = None,
    alpha_rule: AlphaRule | None = None,
    limit: int | None = None,
    quick: Flag = False,
    train: Flag = False,
    out: Out = None,
    dry_run: Flag = False,
    so_far: Flag = False,
    execution: ExecutionOptions = Execution(),
) -> int:
    """Re-run an experiment of the paper, and compare it with the paper's numbers.

    Every trial is stored as it ends, so the same command resumes after any interruption.
    Settings are the paper's where it states them.

    master is the paper's Table 1, which summarises seven other tables. Without --train it trains
    nothing: it prints the paper's numbers, the command that re-runs each of them, and our
    most complete numbers where rows are in out/master, out/mnist, out/mnist-200, ... or in --out
    and its folders of these names

    ```
    # the toy tables in full, in a few minutes
    kmixup reproduce toy
    # a quick run of any other
    kmixup reproduce uci --quick
    # what two cores can do in an hour
    kmixup reproduce mnist --epochs 12 --trials 4 --k 1 --k 16 --alpha 1
    # the summary, with the published rows
    kmixup reproduce master --out results
    # the paper's cost study, on this machine
    kmixup reproduce cost
    ```

    Args:
        data: Only the tables of this data set. May be repeated.
        trials: Networks per cell.
        epochs: Number of epochs. LR milestones scale with it.
        k: Rows of the tables. May be repeated.
        alpha: Columns of the tables. May be repeated.
        alpha_rule: At k > 1 use alpha as it is ("same") or at equal xi ("xi"). By default all rules
            that the experiment has.
        limit: Use only the first N samples of the training and test sets.
        quick: Run a reduced version, just large enough for a verdict.
        train: Train the networks of master. The others always train.
        dry_run: Print the number of trials and the expected time, and train nothing.
        so_far: Train nothing, report on the finished trials.
    """
    preset = _preset(name, data or ())
    if preset.summaries and not (train or dry_run):
        _print_summary(preset, out)
        return 0
    rules = None if alpha_rule is None else (alpha_rule,)
    todo = preset.trials(
        trials=trials, epochs=epochs, k=k, alpha=alpha, alpha_rule=rules, limit=limit, quick=quick
    )
    extent = (
        "Trials, epochs, k and alpha are the paper's." if preset.printed else "Not in the paper."
    )
    if shrunk := shrinkage(preset.tables, todo):
        extent = f"This is not the full experiment: {'; '.join(shrunk)}."
    if dry_run:
        preview(f"{count(len(todo), 'trial')}. {extent}", todo, execution)
        return 0
    print(extent)
    folder = out or Path("out") / name
    outcome = outcome_of(todo, folder, execution, so_far=so_far)
    page = report(
        outcome.rows, preset.tables, folder, quiet=execution.quiet,
        name=f"Reproduction of the paper's experiment {name}" if preset.printed else name,
        claim=preset.claim, comparison=preset.comparison,
        extent=extent, notes=deviations(preset.tables),
    )  # fmt: skip
    if preset.summaries:
        _print_master(preset, outcome.rows)
    return finish(outcome, folder, page)


@reproduce.command
def cost(
    data: options.DataName = "mnist",
    *,
    model: options.ModelName = None,
    batch_size: int = 128,
    steps: int = 20,
    seconds: float = 60,
) -> None:
    """Measure what k-mixup adds to an epoch of training, for k = 1 … 64, on one thread.

    A data set that is not downloaded is replaced by random noise of the same shape.

    ```
    # MNIST and LeNet, about two minutes
    kmixup reproduce cost
    # the paper's example, from few steps of a large network
    kmixup reproduce cost cifar10 --steps 2
    # your own data and network
    kmixup reproduce cost photos/ --model my_package.nets:small --batch-size 256
    ```

    Args:
        batch_size: Samples per step, and the largest k.
        steps: Batches in a turn, from which an epoch is extrapolated.
        seconds: Time to spend on the methods, three turns at least.
    """
    from kmixup.lab.cost import cost_document, measure

    options.import_from_here(data, model)
    with options.spinner(f"timing {data}"):
        measured = measure(data, model=model, batch_size=batch_size, steps=steps, seconds=seconds)
    print_document(cost_document(measured, options.typed()))


def _preset(name: str, data: Sequence[str]) -> Preset:
    """Return the preset of that name, with the tables of these data sets only."""
    check_choice("experiment", name, PRESETS)
    preset = PRESETS[name]
    known = dict.fromkeys(table.data for table in preset.tables)
    for wanted in data:
        check_choice("data", wanted, known)
    chosen = data or known
    return replace(
        preset,
        tables=tuple(table for table in preset.tables if table.data in chosen),
        summaries=tuple(line for line in preset.summaries if line.table.data in chosen),
    )


def _print_summary(preset: Preset, out: Path | None) -> None:
    """Print the paper's summary next to the rows that exist, without any training."""
    base = out or Path("out")
    names = dict.fromkeys(preset_of(table).name for table in preset.tables)
    own = out or base / preset.name
    # such as mnist and mnist-200
    folders = [own, *(path for name in names for path in sorted(base.glob(f"{name}*")))]
    rows: dict[str, Row] = {}
    for row in (row for folder in folders if has_rows(folder) for row in read(folder)):
        if row.id not in rows or isinstance(row, Done):
            rows[row.id] = row
    print(preset.claim)
    _print_master(preset, list(rows.values()))
    if not rows:
        print(
            f"No rows of ours in {', '.join(str(at) for at in (own, *(base / n for n in names)))}."
        )
    print(f"Nothing was trained: kmixup reproduce {preset.name} --train re-runs all lines.")


def _print_master(preset: Preset, rows: Sequence[Row]) -> None:
    from kmixup.lab.report.sweep import master_document

    print_document(master_document(preset.summaries, rows))
