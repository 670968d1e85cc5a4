"""`kmixup league`: compare methods at an equal budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kmixup.lab.commands.execution import TrialRunner, finish, finished, preview
from kmixup.lab.commands.options import Out, import_from_here, print_document, print_status, typed
from kmixup.lab.experiments.league import make_contests, play, result_of
from kmixup.lab.experiments.rows import read
from kmixup.lab.experiments.selection import final_trials
from kmixup.lab.formatting import count
from kmixup.lab.train.config import Execution, Flag, Trial
from kmixup.lab.train.methods import METHODS


def league(
    data: list[str],
    *,
    methods: Annotated[
        str | None,
        Parameter(
            help="Comma-separated methods, by default all that apply to the data: "
            f"{', '.join(METHODS)}, or package.module:name of your own."
        ),
    ] = None,
    settings: int = 6,
    trials: int = 10,
    validation: float = 0.2,
    samples: int | None = None,
    epochs: int | None = None,
    out: Out = None,
    dry_run: Flag = False,
    so_far: Flag = False,
    execution: Execution = Execution(),
) -> int:
    """Compare methods at an equal budget, and rank them.

    In each trial every method tries equally many settings on validation samples. Its best
    setting is trained on all training samples of the trial, and tested once. The page has mean
    ranks with their critical difference, and every method against mixup. The same command
    resumes; more data sets or methods in the same --out train only what is new.

    ```
    # two tables without any download, all methods that apply
    kmixup league iris cancer
    # your own table, some methods, one of them your own
    kmixup league table.csv --methods erm,mixup,kmixup,my_package.mixers:MyMixer --trials 5
    # small training sets of images: number of networks and expected time
    kmixup league mnist-1000 mnist-5000 cifar10-5000 --dry-run
    ```

    Args:
        data: Names from `kmixup data list`, paths of your own data, or mnist-1000, mnist-5000
            and cifar10-5000.
        settings: Settings that each method tries in each trial, 2, 4 or 6.
        trials: Paired trials of each method.
        validation: Share of the training samples to choose on.
        samples: Use only so many training samples, drawn at random.
        epochs: Number of epochs. LR milestones scale with it.
        dry_run: Print the number of networks and the expected time, and train nothing.
        so_far: Train nothing, report on the finished trials.
    """
    from kmixup.lab.paper.presets import small_experiments
    from kmixup.lab.report.league import league_document, standings_of, write_league

    names = None if methods is None else [name.strip() for name in methods.split(",")]
    import_from_here(*data, *(names or ()))
    contests = make_contests(
        data, methods=names, settings=settings, trials=trials, validation=validation,
        samples=samples, epochs=epochs, experiments=small_experiments(),
    )  # fmt: skip
    if dry_run:
        asked = dict[Trial, None]()
        for contest in contests:
            asked |= dict.fromkeys(contest.tuning_trials)
            for entrant in contest.entrants:  # as if the last setting won
                winners = dict.fromkeys(range(contest.trials), entrant.settings[-1])
                asked |= dict.fromkeys(final_trials(contest.base, winners))
        preview(f"up to {count(len(asked), 'network')}", list(asked), execution)
        return 0
    folder = (out or Path("out") / "league").expanduser()
    if so_far:
        ended = {row.id: row for row in read(folder)}
        results = [result_of(contest, ended) for contest in contests]
        outcome = finished([row for result in results for row in result.rows], folder)
    else:
        run = TrialRunner(folder, execution)
        on_status = (lambda text: None) if execution.quiet else print_status
        results = [play(contest, run, on_status) for contest in contests]
        outcome = run.outcome
    document = league_document(standings_of(results), typed("--so-far"))
    print_document(document, page=not execution.quiet)
    return finish(outcome, folder, write_league(document, folder))
