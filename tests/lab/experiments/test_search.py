"""Searches against brute force, on made-up errors, and with your own training function."""

import math
import subprocess
import sys
import zlib
from statistics import fmean, stdev

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kmixup.lab
from kmixup.lab.experiments.search import (
    ALPHAS,
    ERM,
    KS,
    STRATEGIES,
    AllFailedError,
    Config,
    Setting,
    Tried,
    choose,
    make_strategy,
    search,
    tune,
    url_of,
)

ks = st.lists(st.sampled_from(KS), min_size=1, max_size=6, unique=True)
alphas = st.lists(st.sampled_from(ALPHAS), min_size=1, max_size=5, unique=True)
several_alphas = alphas.filter(lambda those: len(those) > 1)
names = st.sampled_from(STRATEGIES)
FEW = settings(max_examples=25, deadline=None)


@st.composite
def surfaces(draw):
    """An error for every config, with many ties: of 20 validation samples."""
    seed = draw(st.integers(0, 2**32))

    def error(config):
        key = (seed, config.k, config.alpha, config.alpha_rule, config.seed)
        return zlib.crc32(repr(key).encode()) % 21 / 20

    return error


def run(strategy, error, **more):
    """Return the result of a search, and the configs that it asked for, in their order."""
    asked = []

    def train(configs):
        asked.extend(configs)
        return [error(config) for config in configs]

    return search(strategy, train, **more), asked


def scores(setting, error, seeds):
    return [
        error(Config(setting.k, setting.alpha, setting.alpha_rule, seed)) for seed in range(seeds)
    ]


def least(settings, error, seeds):
    """The lowest mean by brute force, with the rule for ties."""

    def rank(setting):
        return round(fmean(scores(setting, error, seeds)), 12), setting.k, setting.alpha

    return min(settings, key=rank)


def smallest(settings, error, seeds):
    """The choice by brute force: the first setting within a standard error of the best."""
    best = least(settings, error, seeds)
    for setting in sorted(settings, key=lambda one: (one.k, one.alpha)):
        pairs = zip(scores(setting, error, seeds), scores(best, error, seeds), strict=True)
        differences = [one - other for one, other in pairs]
        noise = stdev(differences) / seeds**0.5 if seeds > 1 else 0.0
        if fmean(differences) <= noise + 1e-12:
            return setting
    raise AssertionError


# what wins


@given(surfaces(), ks, alphas, st.integers(1, 4))
@FEW
def test_a_grid_finds_the_lowest_mean_and_the_smallest_setting_near_it(error, ks, alphas, trials):
    strategy = make_strategy("grid", k=ks, alpha=alphas, trials=trials)
    outcome, asked = run(strategy, error)
    tried = [ERM, *strategy.settings]
    assert outcome.best.setting == least(tried, error, trials)
    assert outcome.winner == smallest(tried, error, trials)
    assert len(asked) == len(set(asked)) == (len(ks) * len(alphas) + 1) * trials == outcome.trials


def test_the_simple_recipe_is_a_grid_at_one_alpha():
    assert make_strategy("simple").settings == tuple(Setting(k, 0.2) for k in KS)


def test_a_setting_is_chosen_only_if_it_is_a_standard_error_better_than_all_smaller_ones():
    """Differences of 1 and 3 have the mean 2 and the standard error 1."""

    def chosen(*gains):
        far, near = (0.5, 0.5), tuple(0.3 - gain / 100 for gain in gains)
        table = [Tried(ERM, (0.3, 0.3)), Tried(Setting(1, 1.0), far), Tried(Setting(4, 1.0), near)]
        return choose(table)

    assert chosen(1, 3) == Setting(4, 1.0)
    assert chosen(-1, 3) == ERM  # a mean of 1 with the standard error 2
    assert choose([Tried(ERM, (0.3,)), Tried(Setting(1, 1.0), (0.29,))]) == Setting(1, 1.0)


@given(surfaces(), ks, alphas, st.integers(1, 4))
@FEW
def test_two_steps_take_k_above_1_only_at_the_best_alpha_of_mixup(error, ks, alphas, trials):
    outcome, asked = run(make_strategy("two-step", k=ks, alpha=alphas, trials=trials), error)
    begun = (1 + len(alphas)) * trials
    assert {config.alpha for config in asked[:trials]} == {0.0}
    first, second = asked[trials:begun], asked[begun:]
    mixup = least([Setting(1, alpha) for alpha in alphas], error, trials)
    assert all(config.k == 1 for config in first)
    assert len(second) == sum(k > 1 for k in ks) * trials
    assert all(
        (config.k > 1, config.alpha, config.alpha_rule) == (True, mixup.alpha, "xi")
        for config in second
    )
    at_xi = [Setting(k, mixup.alpha, "xi") for k in ks if k > 1]
    first = [Setting(1, alpha) for alpha in alphas]
    assert outcome.winner == smallest([ERM, *first, *at_xi], error, trials)


def test_tpe_comes_near_the_best_setting_between_the_alphas():
    def error(config):
        return abs(math.log(max(config.alpha, 1e-3) / 0.5)) + abs(math.log2(config.k) - 3)

    outcome, asked = run(make_strategy("tpe", trials=1), error)
    assert [config.k for config in asked[1:7]] == list(KS)
    assert len(asked) == outcome.trials == 31
    assert all(0.05 <= config.alpha <= 16 for config in asked[1:])
    assert outcome.best.mean < 0.3 < min(error(config) for config in asked[1:7])


@given(names, surfaces(), ks, several_alphas, st.integers(1, 3))
@FEW
def test_a_search_is_repeated_exactly(name, error, ks, alphas, trials):
    strategy = make_strategy(name, k=ks, alpha=alphas, trials=trials)
    assert run(strategy, error, seed=3) == run(strategy, error, seed=3)


def test_of_equal_settings_erm_wins_then_the_smaller_k_then_the_smaller_alpha():
    for name in STRATEGIES:
        assert run(make_strategy(name), lambda config: 0.1 + 0.2)[0].winner == ERM
    # 0.1 + 0.2 and 0.3 + 0.0 differ in their last bit, and tie all the same
    table = [Tried(Setting(4, 1.0), (0.3, 0.0)), Tried(Setting(2, 1.0), (0.1, 0.2))]
    assert choose(table) == Setting(2, 1.0)
    assert choose([table[1], Tried(Setting(2, 0.5), (0.1, 0.2))]) == Setting(2, 0.5)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_setting_with_a_failed_trial_cannot_win(name):
    """Without the failures k = 1 would win everywhere, with alpha = 1."""

    def error(config):
        failed = config.seed == 1 and config.k == 1
        return math.nan if failed else config.k / 10 + abs(config.alpha - 1)

    alphas = [1.0] if name == "simple" else [0.5, 1.0]
    strategy = make_strategy(name, k=[1, 2, 4], alpha=alphas, trials=2)
    if name == "two-step":
        with pytest.raises(AllFailedError):
            run(strategy, error)
        return
    assert run(strategy, error)[0].winner == Setting(2, 1.0)


@pytest.mark.parametrize("name", STRATEGIES)
def test_if_every_setting_fails_none_wins(name):
    with pytest.raises(AllFailedError, match="no setting can win: every one had a trial that fai"):
        run(make_strategy(name), lambda config: math.nan)


# budgets


@given(names, surfaces(), ks, several_alphas, st.integers(1, 4), st.integers(1, 200))
@FEW
def test_a_budget_is_never_exceeded(name, error, ks, alphas, trials, budget):
    strategy = make_strategy(name, k=ks, alpha=alphas, trials=trials)
    if budget < strategy.size:
        with pytest.raises(ValueError, match=f"at least {strategy.size} trials .*, got {budget}: "):
            run(strategy, error, budget=budget)
        return
    outcome, asked = run(strategy, error, budget=budget)
    assert len(asked) == outcome.trials <= budget
    assert {len(tried.errors) for tried in outcome.table} == {outcome.seeds}
    whole, _ = run(strategy, error)
    if whole.trials <= budget:
        assert outcome == whole


def test_default_searches_have_the_documented_sizes():
    by_k = {name: run(make_strategy(name), lambda c: c.k + c.alpha)[0] for name in STRATEGIES}
    trials = {name: outcome.trials for name, outcome in by_k.items()}
    assert trials == {"simple": 35, "two-step": 55, "grid": 155, "tpe": 155}


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("grid", {"k": [0]}, "k must be a whole number, at least 1, got 0"),
        ("grid", {"alpha": [-1]}, "alpha must be"),
        ("grid", {"alpha": [0]}, "alpha must be above 0 in a search, got 0: ERM is always tried"),
        ("random", {}, "strategy must be one of simple, two-step, grid, tpe, got 'random'"),
        ("tpe", {"alpha": [1]}, "tpe searches between .* alpha, got one: give two, or use"),
    ],
)
def test_invalid_strategies_raise(name, more, message):
    with pytest.raises(ValueError, match=message):
        make_strategy(name, **more)


# the file of a study


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_file_has_every_setting_with_its_error(name, tmp_path):
    def error(config):
        return math.nan if (config.k, config.alpha) == (4, 0.2) else config.k + config.alpha

    strategy, file = make_strategy(name, trials=1), tmp_path / "50%? #1.db"
    outcome, asked = run(strategy, error, storage=file)
    assert (outcome, asked) == run(strategy, error)
    study = optuna.load_study(study_name="k-mixup", storage=url_of(file))
    stored = {(trial.params["k"], trial.params["alpha"]): trial for trial in study.trials}
    assert len(stored) == len(outcome.table) - 1  # without ERM
    for tried in outcome.table[1:]:
        trial = stored[tried.setting.k, tried.setting.alpha]
        assert trial.state.is_finished()
        assert trial.value == (None if tried.failed else pytest.approx(tried.mean))
    assert study.best_value == min(tried.mean for tried in outcome.table[1:] if tried.ended)


# your own training function


def error(config):
    return 0.2 + abs(math.log2(config.k) - 2) / 10 + abs(config.alpha - 1) / 100


def test_tune_searches_over_your_own_function():
    given = []

    def train(config):
        given.append(config)
        return error(config) + 0.001 * config.seed

    tuned = kmixup.lab.tune(train, strategy="grid", k=[1, 4], alpha=[0.5, 1], trials=2, seed=7)
    assert tuned.winner == Setting(4, 1.0)
    erm = [Config(1, 0.0, seed=7), Config(1, 0.0, seed=8)]
    assert given[:4] == [*erm, Config(1, 0.5, seed=7), Config(1, 1.0, seed=7)]
    assert tuned.trials == len(given) == 10
    assert {config.seed for config in given} == {7, 8}
    best = tuned.best
    assert best.mean == pytest.approx(0.2 + 0.0075)
    assert best.standard_error == pytest.approx(0.0005)
    assert [len(tried.errors) for tried in tuned.table] == [2] * 5


def test_two_steps_are_the_default_and_a_budget_ends_them():
    tuned = tune(error, budget=23)
    assert tuned.winner == Setting(4, 1.0, "xi")
    assert (tuned.seeds, tuned.trials) == (2, 22)


def test_a_function_that_raises_or_gives_no_number_cannot_win():
    def train(config):
        if config.k == 4:
            raise RuntimeError("out of memory")
        return math.inf if config.k == 8 else error(config)

    with pytest.warns(UserWarning, match="cannot win") as said:
        tuned = tune(train, strategy="simple", trials=1)
    assert tuned.winner.k == 2
    assert [str(tried.message) for tried in said] == [
        "k=4 alpha=0.2 failed with seed 0 and cannot win: RuntimeError: out of memory",
        "k=8 alpha=0.2 failed with seed 0 and cannot win: ValueError: train must return a finite "
        "error, got inf",
    ]
    failed = {tried.setting.k: tried.failed for tried in tuned.table}
    assert failed == {1: 0, 2: 0, 4: 1, 8: 1, 16: 0, 32: 0}
    assert math.isnan(tuned.table[3].mean)


def test_a_keyboard_interrupt_is_no_failure():
    def train(config):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(train)


def test_a_seed_is_a_whole_number():
    with pytest.raises(ValueError, match="seed must be a whole number, at least 0, got -1"):
        tune(error, seed=-1)


def test_the_lab_itself_is_light():
    code = (
        "import sys, kmixup; before = set(sys.modules); import kmixup.lab; "
        "new = {m.split('.')[0] for m in set(sys.modules) - before}; "
        "print(new & {'scipy', 'lap', 'sklearn', 'matplotlib', 'rich', 'typer', 'jinja2', "
        "'optuna'})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_a_search_takes_arrays_of_numpy():
    ks, alphas = 2 ** np.arange(3), np.array([0.5, 1.0])
    given = make_strategy("grid", k=ks, alpha=alphas, trials=np.int64(2))
    assert repr(given) == repr(make_strategy("grid", k=[1, 2, 4], alpha=[0.5, 1.0], trials=2))
