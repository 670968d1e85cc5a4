"""`kmixup tune`: which k and which alpha for a data set and a network."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kmixup.lab.commands.options import (
    DATA,
    Drop,
    DryRun,
    Epochs,
    Limit,
    Model,
    Out,
    Points,
    Rate,
    Resize,
    Scaling,
    Target,
    Task,
    Weights,
    grouped,
    height_and_width,
    say_account,
)
from kmixup.lab.commands.running import (
    How,
    carry_out,
    finish,
    forecast,
    say_drawing,
    typed,
)
from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.experiments.budget import Budget
from kmixup.lab.experiments.driver import SweepOutcome
from kmixup.lab.experiments.rows import DataUsed, Done, Row, TrainingCurve, has_rows, read
from kmixup.lab.experiments.search import AllFailedError
from kmixup.lab.formatting import count
from kmixup.lab.train.config import Trial
from kmixup.lab.train.setup import load_data

if TYPE_CHECKING:
    from kmixup.lab.experiments.tuning import Plan, Tuned

SHARED = (
    "--data", "--model", "--epochs", "--rate", "--batch-size", "--limit", "--scaling", "--size",
    "--target", "--drop", "--task", "--resize", "--class-weights",
)  # fmt: skip

HELP = """Search k and alpha on validation samples, then test what won, once.

Beside it ERM is tested, and mixup with an alpha that was searched with as many trials. No
trial of a search sees the test part. The headline names the best of the three, which may be
not to mix, with a line to copy.

\b
Strategies, the first three of the paper:
  simple    alpha = 1, and k over powers of two
  two-step  the best alpha of mixup, then k at that xi (the default)
  grid      every k with every alpha
  halving   the same; about the better half goes on with twice the seeds
  tpe       every k at alpha = 1, then what Optuna's TPE proposes

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
The search as an Optuna study:
  optuna-dashboard sqlite:///out/tune-iris-two-step/study.db
"""


@grouped
def tune(
    data: Annotated[str, typer.Option(help=DATA)],
    model: Model = None,
    strategy: Annotated[
        str, typer.Option(help="simple, two-step, grid, halving or tpe.")
    ] = "two-step",
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
    epochs: Epochs = None,
    rate: Rate = None,
    batch_size: Annotated[int | None, typer.Option()] = None,
    seed: Annotated[int, typer.Option(help="Of the split, and the first of the trials.")] = 0,
    limit: Limit = None,
    scaling: Scaling = None,
    size: Points = None,
    target: Target = None,
    drop: Drop = [],  # noqa: B006
    task: Task = None,
    resize: Resize = None,
    class_weights: Weights = None,
    out: Out = None,
    dry_run: DryRun = False,
    *,
    how: How,
) -> None:
    from kmixup.lab.experiments.tuning import make_plan

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
        drop=drop or None,
        task=task,
        resize=height_and_width(resize),
        class_weights=class_weights,  # type: ignore[arg-type]
        protocol={name: value for name, value in given.items() if value is not None},
    )
    if data not in ENTRIES:
        say_account(load_data(plan.base))
    if dry_run:
        _preview(plan, amount, how)
        return
    folder = out or Path("out") / f"tune-{Path(data).name}-{strategy}"
    _carry_out(plan, amount, how, folder.expanduser())


def _carry_out(plan: Plan, budget: Budget, how: How, folder: Path) -> None:
    """Search and test, show what came of it, and say how it ended."""
    from kmixup.lab.experiments.tuning import STUDY, Leader, guess_seconds, tune_plan

    leader = Leader(plan)
    before = read(folder) if has_rows(folder) else []
    leader(before)
    begun = {row.id for row in before} & {trial.id for trial in plan.first_trials()}
    rows: dict[str, Row] = {}
    ran = 0
    page = None
    with how.chosen().kept() as engine:
        workers = engine.workers

        def run(trials: Sequence[Trial]) -> list[Row]:
            nonlocal ran
            outcome = carry_out(trials, folder, how, engine=engine, news=leader)
            rows.update((row.id, row) for row in outcome.rows)
            ran += outcome.ran
            return outcome.rows

        try:
            tuned = tune_plan(
                plan,
                run,
                budget=budget,
                workers=workers,
                study=folder / STUDY,
                guess=lambda: 0.0 if begun else guess_seconds(plan, workers),
                on_status=lambda sentence: None if how.quiet else typer.echo(sentence, err=True),
            )
        except AllFailedError as error:
            typer.echo(str(error), err=True)
        else:
            page = _report(tuned, folder, quiet=how.quiet)
    finish(SweepOutcome(list(rows.values()), ran), folder, page)


def _report(tuned: Tuned, folder: Path, *, quiet: bool) -> Path:
    from rich.console import Console

    from kmixup.lab.report.render_terminal import show
    from kmixup.lab.report.tune import best_of, method_words, tune_document, write_tune

    show(tune_document(tuned, typed()), Console())
    if (best := best_of(tuned)) is not None:
        words = ["kmixup", "train", *shared_words(sys.argv[1:]), *method_words(best)]
        typer.echo(f"To train a network with it:\n  {shlex.join(words)}\n")
    say_drawing(quiet=quiet)
    return write_tune(tuned, folder, typed())


def shared_words(words: Sequence[str]) -> list[str]:
    """What was typed of the data and of the training, as `kmixup train` takes it too.

    >>> shared_words(["tune", "--data", "own.csv", "--budget", "9", "--rate=0.1", "--k", "4"])
    ['--data', 'own.csv', '--rate=0.1']
    """
    kept: list[str] = []
    for word, after in zip_longest(words, words[1:], fillvalue=""):
        option, equals, _ = word.partition("=")
        if option in SHARED:
            kept += [word] if equals else [word, after]
    return kept


def _preview(plan: Plan, budget: Budget, how: How) -> None:
    """Print what would be run, and for how long, as if a larger k were always better."""
    from kmixup.lab.experiments.estimate import TimeEstimate, estimate
    from kmixup.lab.experiments.tuning import tune_plan

    workers, asked = how.chosen().workers, dict[Trial, None]()
    first = plan.first_trials()
    probed = estimate(first) if budget.timed else TimeEstimate(0, 0)
    each, guess = probed.seconds / len(first), probed.on(workers) / len(first)

    def rehearse(trials: Sequence[Trial]) -> list[Row]:
        asked.update(dict.fromkeys(trials))
        return [_made_up(trial, error=1 / trial.method.k, seconds=each) for trial in trials]

    tuned = tune_plan(plan, rehearse, budget=budget, workers=workers, guess=lambda: guess)
    typer.echo(f"{plan.base.data}  {plan.base.model}  {plan.strategy.name}")
    for part in tuned.kmixup.rounds:
        settings = count(len(part.tried), "setting")
        typer.echo(f"{part.title}: {settings} × {part.seeds} of {count(part.planned, 'seed')}")
    typer.echo(f"mixup: as many trials, {tuned.mixup.trials:,}, some of which may be the same")
    typer.echo(f"ERM: {count(len(tuned.erm), 'seed')}")
    typer.echo(f"test: 3 methods × {count(plan.tests, 'seed')}")
    typer.echo(f"about {count(len(asked), 'trial')}, as the search goes")
    forecast([replace(trial, validation=plan.validation) for trial in asked], workers)


def _made_up(trial: Trial, *, error: float, seconds: float) -> Done:
    """The row of a trial that is not run: a search reads its error and its time alone."""
    return Done(
        trial=trial,
        alpha=trial.method.alpha,
        xi=None,
        data=DataUsed(trial.data, None, 0, 0, 0, (), ""),
        scores=Scores(error, 0.0, 0.0),
        seconds=seconds,
        curve=TrainingCurve((), (), ()),
        versions={},
        machine={},
        finished="",
    )
