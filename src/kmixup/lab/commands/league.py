"""`kmixup league`: which method at an equal budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from kmixup.lab.commands.options import DrawnSamples, DryRun, Out, SoFar, grouped
from kmixup.lab.commands.running import (
    How,
    carry_out,
    ended_so_far,
    finish,
    forecast,
    say_drawing,
    typed,
)
from kmixup.lab.experiments.driver import SweepOutcome
from kmixup.lab.experiments.rows import Row
from kmixup.lab.formatting import count
from kmixup.lab.train.config import Trial
from kmixup.lab.train.methods import METHODS

if TYPE_CHECKING:
    from kmixup.lab.experiments.league import Contest, Result

HELP = f"""Train every method at an equal budget, and rank them.

In each trial every method tries as many settings on validation samples as the others. What wins
is trained on all training samples of the trial, and tested once. The page has the ranks with
their critical difference, and every method against mixup.

\b
Data sets are names from `kmixup data list`, your own .csv, .npz or folders, or images with few
training samples:
  mnist-1000  mnist-5000  cifar10-5000
Methods, those that need images or numbers as targets only where there are any:
{fill(", ".join(METHODS), 78, initial_indent="  ", subsequent_indent="  ")}

\b
Two tables without any download, all methods that apply:
  kmixup league iris cancer
Some methods:
  kmixup league iris cancer --methods erm,mixup,kmixup
Your own table, with fewer settings and trials:
  kmixup league table.csv --settings 4 --trials 5
What would be run, and for how long:
  kmixup league iris cancer mnist-1000 --dry-run
The page of what has ended, while the rest is running or after Ctrl-C:
  kmixup league iris cancer mnist-1000 --so-far
Stopped? The same command goes on. More data sets or methods in the same --out train what is new.
"""


@grouped
def league(
    data: Annotated[list[str], typer.Argument(metavar="DATA...", help="Data sets.")],
    methods: Annotated[
        str | None, typer.Option(help="Names with commas between; by default all that apply.")
    ] = None,
    settings: Annotated[
        int, typer.Option(help="Tried by each method in each trial: 2, 4 or 6.")
    ] = 6,
    trials: Annotated[int, typer.Option(help="Paired trials of each method.")] = 10,
    validation: Annotated[
        float, typer.Option(help="Share of the training samples to tune on.")
    ] = 0.2,
    samples: DrawnSamples = None,
    epochs: Annotated[int | None, typer.Option(help="The rate's milestones move along.")] = None,
    out: Out = None,
    dry_run: DryRun = False,
    so_far: SoFar = False,
    *,
    how: How,
) -> None:
    from kmixup.lab.experiments.league import make_contests, result_of
    from kmixup.lab.paper.presets import small_experiments

    names = None if methods is None else [name.strip() for name in methods.split(",")]
    contests = make_contests(
        data,
        methods=names,
        settings=settings,
        trials=trials,
        validation=validation,
        samples=samples,
        epochs=epochs,
        experiments=small_experiments(),
    )
    if dry_run:
        _preview(contests, how)
        return
    folder = (out or Path("out") / "league").expanduser()
    if so_far:
        possible = [trial for contest in contests for trial in contest.possible_trials]
        outcome = ended_so_far(possible, folder)
        ended = {row.id: row for row in outcome.rows}
        results = [result_of(contest, ended) for contest in contests]
    else:
        results, outcome = _play(contests, folder, how)
    page = _report(results, folder, quiet=how.quiet)
    finish(outcome, folder, page)


def _play(contests: Sequence[Contest], folder: Path, how: How) -> tuple[list[Result], SweepOutcome]:
    """Tune and test on one data set after the other."""
    from kmixup.lab.experiments.league import play

    rows: dict[str, Row] = {}
    ran = 0

    def run(asked: Sequence[Trial]) -> list[Row]:
        nonlocal ran
        outcome = carry_out(asked, folder, how)
        rows.update((row.id, row) for row in outcome.rows)
        ran += outcome.ran
        return outcome.rows

    def told(sentence: str) -> None:
        if not how.quiet:
            typer.echo(sentence, err=True)

    results = [play(contest, run, told) for contest in contests]
    return results, SweepOutcome(list(rows.values()), ran)


def _report(results: Sequence[Result], folder: Path, *, quiet: bool) -> Path:
    from rich.console import Console

    from kmixup.lab.report.league import league_document, standings_of, write_league
    from kmixup.lab.report.render_terminal import show

    standings = standings_of(results)
    show(league_document(standings, typed()), Console())
    say_drawing(quiet=quiet)
    return write_league(standings, folder, typed())


def _preview(contests: Sequence[Contest], how: How) -> None:
    """Print what would be run, and for how long, as if the last settings won."""
    from kmixup.lab.experiments.budget import final_trials

    workers, asked = how.chosen().workers, list[Trial]()
    for contest in contests:
        typer.echo(f"{contest.name}  {contest.base.model}")
        for entrant in contest.entrants:
            typer.echo(f"  {entrant.title}: {count(len(entrant.settings), 'setting')}")
        tests = [
            trial
            for entrant in contest.entrants
            for trial in final_trials(
                contest.base, dict.fromkeys(range(contest.trials), entrant.settings[-1])
            )
        ]
        typer.echo(
            f"  {count(contest.trials, 'trial')}: {count(len(contest.tuning_trials), 'network')} "
            f"to tune, up to {count(len(tests), 'network')} to test"
        )
        asked += [*contest.tuning_trials, *tests]
    forecast(list(dict.fromkeys(asked)), workers)
