"""`kmixup tune`: choose k and alpha for a data set and a network."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kmixup.lab.commands import options
from kmixup.lab.commands.execution import TrialRunner, finish, make_engine, preview
from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.experiments.rows import DataUsed, Done, Row, TrainingCurve
from kmixup.lab.experiments.search import AllFailedError, StrategyName
from kmixup.lab.experiments.tuning import STUDY, Plan, make_plan, tune_plan
from kmixup.lab.formatting import count
from kmixup.lab.train.config import Execution, Flag, ProtocolChanges, Trial, TrialData
from kmixup.lab.train.setup import load_data


def tune(
    data: options.DataName,
    *,
    model: options.ModelName = None,
    strategy: StrategyName = "two-step",
    k: list[int] | None = None,
    alpha: list[float] | None = None,
    trials: int | None = None,
    budget: int | None = None,
    validation: float = 0.2,
    tests: int = 10,
    seed: int = 0,
    protocol: ProtocolChanges = ProtocolChanges(),
    reading: TrialData = TrialData(),
    out: options.Out = None,
    dry_run: Flag = False,
    execution: Execution = Execution(),
) -> int:
    """Search k and alpha on validation samples, then test the winner once.

    ERM and mixup are always included as baselines: mixup's alpha is searched with as many
    trials. No trial of a search sees the test part. The headline names the best of the three,
    with a command to copy. The same command resumes an interrupted search, and ends with the
    same winner.

    Strategies, the first three from the paper:

    - simple: alpha = 1, k over powers of two
    - two-step: the best alpha of mixup, then k at that xi
    - grid: every k with every alpha
    - tpe: every k at the alpha nearest to 1, then proposals of Optuna's TPE

    ```
    # without any download, in a minute or two
    kmixup tune iris
    # your own data and network, within a budget of trials; mixup gets an equal budget
    kmixup tune table.csv --target species --model my_package.nets:small --budget 60
    # your own grid
    kmixup tune iris --strategy grid --k 4 --k 16 --alpha 0.5 --alpha 1 --trials 10
    # the search as an Optuna study
    optuna-dashboard sqlite:///out/tune-iris-two-step/study.db
    ```

    Args:
        strategy: Search strategy, see above.
        k: Values of k, in place of 1, 2, 4 … 32 as far as the data allow. May be repeated.
        alpha: Values of alpha, in place of 0.1, 0.25, 1, 4, 16 (simple: 1). May be repeated.
        trials: Seeds of a setting. By default 5.
        budget: Budget of the search in trials, e.g. 60.
        validation: Share of the training samples to choose on.
        tests: Seeds of the final test.
        seed: Seed of the split, and the first seed of the trials.
        dry_run: Print the number of trials and the expected time, and train nothing.
    """
    options.import_from_here(data, model)
    plan = make_plan(
        data, strategy=strategy, model=model, k=k, alpha=alpha, trials=trials,
        validation=validation, tests=tests, seed=seed, protocol=protocol.given, **vars(reading),
    )  # fmt: skip
    if data not in ENTRIES:
        options.print_columns(load_data(plan.base))
    if dry_run:
        _preview(plan, budget, execution)
        return 0
    folder = out or Path("out") / f"tune-{Path(data).name}-{strategy}"
    given = {"model": model, "seed": seed or None, **protocol.given, **vars(reading)}
    same_data = [data, *_option_words(given)]  # another seed would test on samples of the search
    return _search(plan, budget, execution, folder.expanduser(), same_data)


def _search(
    plan: Plan, budget: int | None, execution: Execution, folder: Path, same_data: Sequence[str]
) -> int:
    """Search and test, and report the results; `same_data` are arguments of `kmixup train`."""
    from kmixup.lab.report.tune import best_of, method_words, tune_document, write_tune

    page = None
    with make_engine(execution).kept() as engine:
        run = TrialRunner(folder, execution, engine=engine)
        try:
            tuned = tune_plan(
                plan,
                run,
                budget=budget,
                study=folder / STUDY,
                on_status=lambda text: None if execution.quiet else options.print_status(text),
            )
        except AllFailedError as error:
            options.print_status(str(error))
        else:
            document = tune_document(tuned, options.typed())
            options.print_document(document, page=not execution.quiet)
            if (best := best_of(tuned)) is not None:
                words = ["kmixup", "train", *same_data, *method_words(best)]
                print(f"To train a network with it:\n  {shlex.join(words)}\n")
            page = write_tune(document, folder)
    return finish(run.outcome, folder, page)


def _option_words(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as command-line options.

    >>> _option_words({"rate": 0.1, "model": None, "drop": ("id",), "resize": (6, 5)})
    ['--rate', '0.1', '--drop', 'id', '--resize', '6', '5']
    >>> _option_words({"augment": False})
    ['--no-augment']
    """
    words = []
    given = {name.replace("_", "-"): value for name, value in settings.items() if value is not None}
    for option, value in given.items():
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif option == "resize":
            words += ["--resize", *map(str, value)]
        else:
            for entry in value if isinstance(value, tuple) else (value,):
                words += [f"--{option}", str(entry)]
    return words


def _preview(plan: Plan, budget: int | None, execution: Execution) -> None:
    """Print how many trials would run, and for how long, as if a larger k were always better."""
    asked = dict[Trial, None]()

    def rehearse(trials: Sequence[Trial]) -> list[Row]:
        asked.update(dict.fromkeys(trials))
        return [_made_up(trial) for trial in trials]

    tune_plan(plan, rehearse, budget=budget)
    trials = [replace(trial, validation=plan.validation) for trial in asked]
    preview(f"about {count(len(asked), 'trial')}, depending on the search", trials, execution)


def _made_up(trial: Trial) -> Done:
    """Return a row for a trial that is not run: a search reads only its error."""
    return Done(
        trial=trial, alpha=trial.method.alpha, xi=None, seconds=0,
        data=DataUsed(trial.data, None, 0, 0, 0, (), ""), scores=Scores(1 / trial.method.k, 0, 0),
        curve=TrainingCurve((), (), ()), versions={}, machine={}, finished="",
    )  # fmt: skip
