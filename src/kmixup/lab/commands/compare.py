"""`kmixup compare`: judge methods that are tuned with equal budgets."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kmixup.lab.commands import options
from kmixup.lab.commands.execution import ExecutionOptions, TrialRunner, finish, finished, preview
from kmixup.lab.commands.options import print_document, print_status, typed
from kmixup.lab.experiments import compare as contests
from kmixup.lab.experiments.engines import Execution
from kmixup.lab.experiments.references import references
from kmixup.lab.experiments.rows import read
from kmixup.lab.experiments.tuning import ScoreName
from kmixup.lab.formatting import count
from kmixup.lab.methods import METHODS
from kmixup.lab.trial import Trial


def compare(
    data: list[str],
    *,
    methods: Annotated[
        str,
        Parameter(
            help=f"Comma-separated methods: {', '.join(METHODS)}, or your own "
            "package.module:name; all for all that apply to the data."
        ),
    ] = ",".join(contests.DEFAULT),
    model: options.ModelName = None,
    settings: int = 6,
    trials: int = 10,
    validation: float = 0.2,
    metric: ScoreName = "error",
    protocol: options.TrainingOptions = options.NONE_GIVEN,
    reading: options.DataOptions = options.NONE_GIVEN,
    out: options.Out = None,
    dry_run: options.Flag = False,
    so_far: options.Flag = False,
    execution: ExecutionOptions = Execution(),
) -> int:
    """Compare methods that are tuned with equal budgets, and test whether they differ.

    In each trial every method tries equally many settings on validation samples. Its best
    setting is trained on all training samples of the trial, and tested once. Differences from
    mixup and from ERM are paired by trial and corrected by Holm's method; with several data sets
    there are mean ranks as well. Tables have scikit-learn's linear model and gradient boosting
    for reference. The same command resumes; more data sets or methods in the same --out train
    only what is new.

    ```
    # does mixing help on your own table?
    kmixup compare table.csv --target species
    # two tables without any download, all methods that apply
    kmixup compare iris cancer --methods all
    # your own method
    kmixup compare table.csv --methods erm,mixup,kmixup,my_package.mixers:MyMixer --trials 5
    # small training sets of images: number of networks and expected time
    kmixup compare mnist-1000 mnist-5000 cifar10-5000 --dry-run
    ```

    Args:
        data: Names from `kmixup data list`, paths of your own data, or mnist-1000, mnist-5000
            and cifar10-5000.
        settings: Settings that each method tries in each trial, 2, 4 or 6.
        trials: Paired trials of each method.
        validation: Fraction of the training samples to choose on.
        metric: Score that settings are chosen and methods are compared by.
        dry_run: Print the number of networks and the expected time, and train nothing.
        so_far: Train nothing, report on the finished trials.
    """
    from kmixup.lab.paper.presets import small_experiments
    from kmixup.lab.report.compare import compare_document, standings_of
    from kmixup.lab.report.render_html import write

    names = None if methods == "all" else [name.strip() for name in methods.split(",")]
    options.import_from_here(*data, model, *(names or ()))
    todo = contests.make_contests(
        data, methods=names, settings=settings, trials=trials, validation=validation,
        metric=metric, experiments=small_experiments(), model=model, protocol=protocol,
        **reading,
    )  # fmt: skip
    if dry_run:
        asked = dict[Trial, None]()
        for contest in todo:
            asked |= dict.fromkeys(contest.tuning_trials)
            for contender in contest.contenders:  # as if the last setting won
                winners = dict.fromkeys(range(contest.trials), contender.settings[-1])
                asked |= dict.fromkeys(contest.final(winners))
        preview(f"up to {count(len(asked), 'network')}", list(asked), execution)
        return 0
    folder = (out or Path("out") / "compare").expanduser()
    on_status = (lambda text: None) if execution.quiet else print_status
    refer = partial(references, folder=folder, on_status=on_status)
    if so_far:
        ended = {row.id: row for row in read(folder)}
        results = [
            contests.compared_in(contest, ended, refer(contest, fit=False)) for contest in todo
        ]
        outcome = finished([row for result in results for row in result.rows], folder)
    else:
        run = TrialRunner(folder, execution)
        results = [contests.compare(contest, run, on_status, refer) for contest in todo]
        outcome = run.outcome
    document = compare_document(standings_of(results), typed("--so-far"))
    print_document(document, page=not execution.quiet)
    return finish(outcome, folder, write(document, folder / "compare.html", report=True))
