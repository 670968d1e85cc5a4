"""Searching with a training function of one's own, and what a budget allows."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kmixup.lab
from kmixup.lab.tuning.budget import Budget
from kmixup.lab.tuning.search import Config, Ran, search, tune
from kmixup.lab.tuning.strategies import AllFailedError, Setting, make_strategy


def error(config):
    return 0.2 + abs(math.log2(config.k) - 2) / 10 + abs(config.alpha - 1) / 100


def test_a_function_of_ones_own_is_searched():
    given = []

    def train(config):
        given.append(config)
        return error(config) + 0.001 * config.seed

    tuned = kmixup.lab.tune(train, strategy="grid", k=[1, 4], alpha=[0.5, 1], trials=2, seed=7)
    assert tuned.winner == Setting(4, 1.0)
    assert given[:2] == [Config(1, 0.5, seed=7), Config(1, 1.0, seed=7)]
    assert tuned.trials == len(given) == 8
    assert {config.seed for config in given} == {7, 8}
    best = tuned.best
    assert best.mean == pytest.approx(0.2 + 0.0075)
    assert best.standard_error == pytest.approx(0.0005)
    assert [len(tried.errors) for tried in tuned.table] == [2] * 4


def test_two_steps_are_the_default_and_a_budget_ends_them():
    tuned = tune(error, budget=23)
    assert tuned.winner == Setting(4, 1.0, "xi")
    # 5 alphas with 3 seeds, for 5 ks must have one as well
    assert [len(tried.errors) for tried in tuned.rounds] == [3, 1]
    assert tuned.trials == 20


def test_a_function_that_raises_or_gives_no_number_cannot_win():
    def train(config):
        if config.k == 4:
            raise RuntimeError("out of memory")
        return math.inf if config.k == 8 else error(config)

    with pytest.warns(UserWarning, match="cannot win") as said:
        tuned = tune(train, strategy="simple", trials=1)
    assert tuned.winner.k == 2
    assert [str(tried.message) for tried in said] == [
        "k=4 alpha=1 failed with seed 0 and cannot win: RuntimeError: out of memory",
        "k=8 alpha=1 failed with seed 0 and cannot win: ValueError: train must return a finite "
        "error, got inf",
    ]
    failed = {tried.setting.k: tried.failed for tried in tuned.table}
    assert failed == {1: 0, 2: 0, 4: 1, 8: 1, 16: 0, 32: 0}
    assert math.isnan(tuned.table[2].mean)


@pytest.mark.filterwarnings("ignore:.*cannot win")
def test_a_function_that_always_fails_is_an_error_with_its_reason():
    with pytest.raises(AllFailedError, match="every one .* the last by TypeError: float") as raised:
        tune(lambda config: None, strategy="simple", trials=1)
    assert isinstance(raised.value.__cause__, TypeError)


def test_a_keyboard_interrupt_is_no_failure():
    def train(config):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(train)


def test_a_seed_is_a_whole_number():
    with pytest.raises(ValueError, match="seed must be a whole number, at least 0, got -1"):
        tune(error, seed=-1)


@pytest.mark.parametrize("text", ["", "many", "0", "0m", "-5", "1.5", "30x", "m", "5 m m"])
def test_a_budget_is_trials_or_minutes(text):
    with pytest.raises(ValueError, match="budget must be a number of trials or of minutes, e.g. 6"):
        Budget.read(text)


def test_a_budget_can_be_read():
    assert Budget.read(60) == Budget.read(" 60 ") == Budget(60)
    assert Budget.read("30m") == Budget.read("30 min") == Budget(1800, timed=True)
    assert Budget.read(None).amount == math.inf


@pytest.mark.parametrize(
    ("name", "budget", "message"),
    [
        (
            "grid",
            "10",
            "budget must be at least 30 trials for one seed of 30 settings, got 10 trials: raise "
            "it, or use the strategy simple, which needs 6 trials",
        ),
        (
            "two-step",
            "9",
            "budget must be at least 10 trials for one seed of 10 settings, got 9 trials: raise "
            "it, or use the strategy simple, which needs 6 trials",
        ),
        (
            "simple",
            "5",
            "budget must be at least 6 trials for one seed of 6 settings, got 5 trials: raise it, "
            "or name fewer k",
        ),
        (
            "grid",
            "1m",
            "budget must be at least 5 minutes for one seed of 30 settings, got 1 minutes: raise "
            "it, or use the strategy simple, which needs 1 minutes",
        ),
    ],
)
def test_a_budget_too_small_for_one_seed_is_refused(name, budget, message):
    chosen = make_strategy(name)
    allowed = Budget.read(budget).allowance(chosen, lambda: 10.0)
    with pytest.raises(ValueError, match=f"^{message}$"):
        search(chosen, lambda configs: Ran([0.0] * len(configs), 0.0), allowed=allowed)


def test_time_is_counted_as_it_passes():
    chosen = make_strategy("simple", k=[1, 2], trials=10)
    asked = []

    def run(configs):
        asked.append(len(configs))
        return Ran([0.0] * len(configs), 20.0)

    tuned = search(chosen, run, allowed=Budget.read("1m").allowance(chosen))
    assert asked == [2, 2, 2]  # nothing was known of the first; then 20 seconds for each seed
    assert tuned.seconds == 60


def test_the_lab_itself_is_light():
    code = (
        "import sys, kmixup; before = set(sys.modules); import kmixup.lab; "
        "new = {m.split('.')[0] for m in set(sys.modules) - before}; "
        "print(new & {'scipy', 'lap', 'sklearn', 'matplotlib', 'rich', 'typer', 'jinja2', "
        "'lightning_fabric'})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


@pytest.mark.slow
def test_the_code_on_the_page_of_tuning_runs(capsys):
    page = (Path(__file__).parents[3] / "docs/tuning.md").read_text().partition("## Searching")[2]
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    names = {}
    exec(compile(block, "docs/tuning.md", "exec"), names)
    assert len(capsys.readouterr().out.splitlines()) == 9
    assert names["search"].winner in [tried.setting for tried in names["search"].table]
