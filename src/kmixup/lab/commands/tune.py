"""`kmixup tune`: choose k and alpha for a data set and a network."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from kmixup.lab.commands import options
from kmixup.lab.commands.execution import (
    ExecutionOptions,
    TrialRunner,
    finish,
    make_engine,
    preview,
)
from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.experiments.engines import Execution
from kmixup.lab.experiments.rows import DataUsed, Done, Row, TrainingCurve
from kmixup.lab.experiments.search import AllFailedError, StrategyName
from kmixup.lab.experiments.tuning import STUDY, Plan, ScoreName, make_plan, tune_plan
from kmixup.lab.formatting import count
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.setup import load_data
from kmixup.lab.trial import Protocol, Trial, TrialData
from kmixup.tables.defaults import TableSettings


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
    metric: ScoreName = "error",
    seed: int = 0,
    protocol: options.TrainingOptions = options.NONE_GIVEN,
    reading: options.DataOptions = options.NONE_GIVEN,
    out: options.Out = None,
    dry_run: options.Flag = False,
    execution: ExecutionOptions = Execution(),
) -> int:
    """Choose k and alpha on validation samples.

    ERM is always included as a baseline. The smallest setting within one standard error of the
    best is chosen: ERM before mixup before k-mixup. The command that is printed trains exactly
    that setting. No trial sees the test set, so this does not show that mixing helps: test that
    with kmixup compare. The same command resumes an interrupted search, and chooses the same.

    Strategies, the first three from the paper:

    - simple: alpha = 0.2, k over powers of two
    - two-step: the best alpha of mixup, then k at that xi
    - grid: every k with every alpha
    - tpe: every k at the alpha nearest to 1, then proposals of Optuna's TPE

    ```
    # without any download, in a minute or two
    kmixup tune iris
    # your own data and network, within a budget of trials
    kmixup tune table.csv --target species --model my_package.nets:small --budget 60
    # your own grid
    kmixup tune iris --strategy grid --k 4 --k 16 --alpha 0.5 --alpha 1 --trials 10
    # the search as an Optuna study
    optuna-dashboard sqlite:///out/tune-iris-two-step/study.db
    ```

    Args:
        strategy: Search strategy, see above.
        k: Values of k to search. Default: 1, 2, 4 … 32, limited by the data. May be repeated.
        alpha: Values of alpha, in place of 0.05, 0.2, 1, 4, 16 (simple: 0.2). May be repeated.
        trials: Seeds of a setting. By default 5.
        budget: Budget of the search in trials, e.g. 60.
        validation: Fraction of training samples used for validation.
        metric: Score to choose by.
        seed: Seed of the split, and the first seed of the trials.
        dry_run: Print the number of trials and the expected time, and train nothing.
    """
    options.import_from_here(data, model)
    with options.spinner(f"reading {data}"):
        plan = make_plan(
            data, strategy=strategy, model=model, k=k, alpha=alpha, trials=trials,
            validation=validation, metric=metric, seed=seed, protocol=protocol,
            **reading,
        )  # fmt: skip
        loaded = None if data in ENTRIES else load_data(plan.base)
    if loaded is not None:
        options.print_columns(loaded)
    if dry_run:
        _preview(plan, budget, execution)
        return 0
    folder = (out or Path("out") / f"tune-{Path(data).name}-{strategy}").expanduser()
    return _search(plan, budget, execution, folder)


def _search(plan: Plan, budget: int | None, execution: Execution, folder: Path) -> int:
    """Search and report the results."""
    from kmixup.lab.report.render_html import write
    from kmixup.lab.report.tune import tune_document

    page = None
    with make_engine(execution).kept() as engine:
        run = TrialRunner(folder, execution, engine=engine)
        try:
            tuned = tune_plan(plan, run, budget=budget, study=folder / STUDY)
        except AllFailedError as error:
            options.print_status(str(error))
        else:
            again = [train_command(tuned.trial), compare_command(plan)]
            document = tune_document(tuned, options.typed(), again)
            options.print_document(document, page=not execution.quiet)
            print(f"To train a network with it:\n  {again[0]}\n")
            print(f"To test whether mixing helps:\n  {again[1]}\n")
            page = write(document, folder / "tune.html")
    return finish(run.outcome, folder, page)


def train_command(trial: Trial) -> str:
    """Return the command that trains exactly a trial.

    >>> from kmixup.lab.trial import Method
    >>> train_command(Trial("iris", "mlp-iris", Method("kmixup", 4, 0.5), Protocol(epochs=50)))
    'kmixup train iris --epochs 50 --rate 0.1 --batch-size 128 --k 4 --alpha 0.5'
    """
    method = trial.method
    mixing: dict[str, Any] = {"method": "erm"}
    if method.entry.mixes:
        mixing = {"k": method.k, "alpha": method.alpha}
        mixing |= {"alpha_rule": "xi"} if method.alpha_rule == "xi" else {}
    settings = {**_subject(trial), "seed": trial.seed or None, **mixing}
    return shlex.join(["kmixup", "train", trial.data, *_option_words(settings)])


def compare_command(plan: Plan) -> str:
    """Return the command that judges what a plan chooses among."""
    base = plan.base
    settings = {**_subject(base), "metric": None if plan.metric == "error" else plan.metric}
    return shlex.join(["kmixup", "compare", base.data, *_option_words(settings)])


def _subject(trial: Trial) -> dict[str, Any]:
    """The settings of a trial that are not the defaults of its data."""
    named = trial.data in ENTRIES and ENTRIES[trial.data].model is not None
    usual = vars(defaults_for(trial.data).protocol if named else Protocol())
    # other defaults depend on how many samples are held out
    own = () if named else TableSettings._fields
    protocol = {
        name: value
        for name, value in vars(trial.protocol).items()
        if name in own or value != usual[name]
    }
    model = trial.model if not named or trial.model != defaults_for(trial.data).model else None
    reading = {field.name: getattr(trial, field.name) for field in fields(TrialData)}
    return {"model": model, **protocol, **reading}


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
    preview(f"about {count(len(asked), 'trial')}, depending on the search", list(asked), execution)


def _made_up(trial: Trial) -> Done:
    """Return a row for a trial that is not run: a search reads only its score."""
    return Done(
        trial=trial, alpha=trial.method.alpha, xi=None, seconds=0,
        data=DataUsed(trial.data, None, 0, 0, 0, (), ""), scores=Scores(*[1 / trial.method.k] * 3),
        curve=TrainingCurve((), (), ()), versions={}, machine={}, finished="",
    )  # fmt: skip
