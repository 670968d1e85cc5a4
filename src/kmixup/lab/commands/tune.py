"""`kmixup tune`: which k and which alpha for a data set and a network."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kmixup.lab.budget import Budget
from kmixup.lab.commands.options import (
    DATA,
    Address,
    Device,
    DryRun,
    EngineName,
    Limit,
    Model,
    NumCpus,
    NumGpus,
    Out,
    Points,
    Quiet,
    Scaling,
    Target,
    Workers,
)
from kmixup.lab.commands.sweep import (
    How,
    carry_out,
    finish,
    forecast,
    typed,
)
from kmixup.lab.protocol import Trial
from kmixup.lab.store import NAME, Row, read
from kmixup.lab.strategies import AllFailedError
from kmixup.lab.sweep import Outcome
from kmixup.lab.words import count

if TYPE_CHECKING:
    from kmixup.lab.tuning import Plan, Tuned

HELP = """Search k and alpha on validation samples, then test what won, once.

Beside it ERM is tested, and mixup with an alpha that was searched with as many trials. No
trial of a search sees the test part.

\b
Strategies, the first three of the paper:
  simple    alpha = 1, and k over powers of two
  two-step  the best alpha of mixup, then k at that xi (the default)
  grid      every k with every alpha
  halving   the same; the better half goes on with twice the seeds

\b
Without any download, in a minute or two:
  kmixup tune --data iris
  kmixup tune --data iris --strategy halving
Your own data and network:
  kmixup tune --data table.csv --target species --model my_package.nets:small
Within limits, for the search of k-mixup; that of mixup gets the same again:
  kmixup tune --data mnist --epochs 10 --budget 60
  kmixup tune --data mnist --epochs 10 --budget 30m
Your own list:
  kmixup tune --data iris --strategy grid --k 4 --k 16 --alpha 0.5 --alpha 1 --trials 10
What would be run, and for how long:
  kmixup tune --data iris --dry-run
Stopped? The same command goes on, and ends with the same winner.
"""


def tune(
    data: Annotated[str, typer.Option(help=DATA)],
    model: Model = None,
    strategy: Annotated[str, typer.Option(help="simple, two-step, grid or halving.")] = "two-step",
    k: Annotated[
        list[int],
        typer.Option(help="Instead of 1, 2, 4 … 32, as far as data allow; may be repeated."),
    ] = [],  # noqa: B006, typer copies it
    alpha: Annotated[
        list[float],
        typer.Option(help="Instead of 0.1, 0.25, 1, 4, 16 (simple: 1); may be repeated."),
    ] = [],  # noqa: B006
    alpha_rule: Annotated[
        str | None,
        typer.Option(help="At k > 1 alpha as it is (same), or at equal xi (xi, as in two-step)."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Seeds of a setting, 5; halving begins with 2.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Of the search: trials, e.g. 60, or minutes, e.g. 30m.")
    ] = None,
    validation: Annotated[
        float, typer.Option(help="Share of the training samples to choose on.")
    ] = 0.2,
    tests: Annotated[int, typer.Option(help="Seeds of the final test.")] = 10,
    epochs: Annotated[int | None, typer.Option(help="The rate's milestones move along.")] = None,
    rate: Annotated[float | None, typer.Option(help="The first learning rate.")] = None,
    batch_size: Annotated[int | None, typer.Option()] = None,
    seed: Annotated[int, typer.Option(help="Of the split, and the first of the trials.")] = 0,
    limit: Limit = None,
    scaling: Scaling = None,
    size: Points = None,
    target: Target = None,
    out: Out = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    num_cpus: NumCpus = 1,
    num_gpus: NumGpus = 0,
    device: Device = "auto",
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    from kmixup.lab.tuning import make_plan

    sys.path.insert(0, os.getcwd())  # for models of one's own
    given = {"epochs": epochs, "rate": rate, "batch_size": batch_size}
    amount = Budget.read(budget)
    plan = make_plan(
        data,
        strategy=strategy,
        model=model,
        k=k or None,
        alpha=alpha or None,
        alpha_rule=alpha_rule,
        trials=trials,
        validation=validation,
        tests=tests,
        seed=seed,
        limit=limit,
        scaling=scaling,
        size=size,
        target=target,
        protocol={name: value for name, value in given.items() if value is not None},
    )
    how = How(engine, workers, address, num_cpus, num_gpus, device, quiet)
    if dry_run:
        _preview(plan, amount, how)
        return
    folder = out or Path("out") / f"tune-{Path(data).name}-{strategy}"
    _carry_out(plan, amount, how, folder.expanduser())


def _carry_out(plan: Plan, budget: Budget, how: How, folder: Path) -> None:
    """Search and test, show what came of it, and say how it ended."""
    from kmixup.lab.tuning import Leader, guess_seconds, tune_plan

    workers, leader = how.chosen().workers, Leader(plan)
    before = read(folder) if (folder / NAME).is_file() else []
    leader(before)
    begun = {row["id"] for row in before} & {trial.id for trial in plan.first_trials()}
    rows: dict[str, Row] = {}
    ran = 0

    def run(trials: Sequence[Trial]) -> list[Row]:
        nonlocal ran
        outcome = carry_out(trials, folder, how, news=leader)
        rows.update((row["id"], row) for row in outcome.rows)
        ran += outcome.ran
        return outcome.rows

    try:
        tuned = tune_plan(
            plan,
            run,
            budget=budget,
            workers=workers,
            guess=lambda: 0.0 if begun else guess_seconds(plan, workers),
            told=lambda sentence: None if how.quiet else typer.echo(sentence, err=True),
        )
    except AllFailedError as error:
        typer.echo(str(error), err=True)
        page = None
    else:
        page = _report(tuned, folder)
    finish(Outcome(list(rows.values()), ran), folder, page)


def _report(tuned: Tuned, folder: Path) -> Path:
    from rich.console import Console

    from kmixup.lab.report.tuned_page import show, write

    show(tuned, Console())
    return write(tuned, folder, command=typed())


def _preview(plan: Plan, budget: Budget, how: How) -> None:
    """Print what would be run, and for how long, as if a larger k were always better."""
    from kmixup.lab.estimate import Estimate, estimate
    from kmixup.lab.tuning import tune_plan

    workers, asked = how.chosen().workers, dict[Trial, None]()
    first = plan.first_trials()
    probed = estimate(first) if budget.timed else Estimate(0, 0)
    each, guess = probed.seconds / len(first), probed.on(workers) / len(first)

    def rehearse(trials: Sequence[Trial]) -> list[Row]:
        asked.update(dict.fromkeys(trials))
        return [
            {
                "id": one.id, "status": "done", "trial": one.to_dict(),
                "result": {"error": 1 / one.method.k}, "seconds": each,
            }
            for one in trials
        ]  # fmt: skip

    tuned = tune_plan(plan, rehearse, budget=budget, workers=workers, guess=lambda: guess)
    typer.echo(f"{plan.base.data}  {plan.base.model}  {plan.name}")
    for one in tuned.kmixup.rounds:
        settings = count(len(one.stage.settings), "setting")
        seeds = f"{len(one.errors)} of {count(len(one.stage.seeds), 'seed')}"
        typer.echo(f"{one.stage.title}: {settings} × {seeds}")
    typer.echo(f"mixup: as many trials, {tuned.mixup.trials:,}, some of which may be the same")
    typer.echo(f"test: 3 methods × {count(plan.tests, 'seed')}")
    typer.echo(f"about {count(len(asked), 'trial')}, as the search goes")
    forecast([replace(trial, validation=plan.validation) for trial in asked], workers)
