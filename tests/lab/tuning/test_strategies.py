"""Strategies against brute force, on surfaces of errors that are made up."""

import math
import zlib
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmixup.lab.tuning.budget import Budget
from kmixup.lab.tuning.search import Ran, as_in, search
from kmixup.lab.tuning.strategies import (
    ALPHAS,
    KS,
    STRATEGIES,
    AllFailedError,
    GridSearch,
    Halving,
    Setting,
    make_strategy,
    spread,
)

ks = st.lists(st.sampled_from(KS), min_size=1, max_size=6, unique=True)
alphas = st.lists(st.sampled_from(ALPHAS), min_size=1, max_size=5, unique=True)
several_ks = ks.filter(lambda those: max(those) > 1)


@st.composite
def surfaces(draw, *, by_seed=True):
    """An error for every config, with many ties: of 20 validation samples."""
    seed = draw(st.integers(0, 2**32))

    def error(config):
        key = (seed, config.k, config.alpha, config.alpha_rule, config.seed if by_seed else 0)
        return zlib.crc32(repr(key).encode()) % 21 / 20

    return error


def carried_out(chosen, error, allowed=None, *, each=0.0):
    """The outcome of a search, and the configs that it asked for, in their order."""
    asked = []

    def run(configs):
        asked.extend(configs)
        return Ran([error(config) for config in configs], each * len(configs))

    allowed = Budget().allowance(chosen) if allowed is None else allowed
    return search(chosen, run, allowed=allowed), asked


def least(settings, error, seeds):
    """By brute force, with the rule for ties."""

    def rank(setting):
        config = [(setting, seed) for seed in range(seeds)]
        mean = fmean(error(_Config(*values)) for values in config)
        return round(mean, 12), setting.k, setting.alpha

    return min(settings, key=rank)


class _Config:
    def __init__(self, setting, seed):
        self.k, self.alpha, self.alpha_rule = setting.k, setting.alpha, setting.alpha_rule
        self.seed = seed


@given(surfaces(), ks, alphas, st.integers(1, 4), st.sampled_from(["same", "xi"]))
def test_a_grid_finds_the_least_mean_error(error, ks, alphas, trials, rule):
    outcome, asked = carried_out(
        make_strategy("grid", k=ks, alpha=alphas, alpha_rule=rule, trials=trials), error
    )
    settings = [Setting(k, alpha, rule) for k in ks for alpha in alphas]
    assert outcome.winner == least(settings, error, trials)
    assert len(asked) == len(set(asked)) == len(ks) * len(alphas) * trials == outcome.trials


@given(surfaces(), ks, st.sampled_from(ALPHAS), st.integers(1, 4))
def test_the_simple_recipe_searches_over_k_at_one_alpha(error, ks, alpha, trials):
    outcome, asked = carried_out(make_strategy("simple", k=ks, alpha=[alpha], trials=trials), error)
    assert outcome.winner == least([Setting(k, alpha) for k in ks], error, trials)
    assert {config.alpha for config in asked} == {alpha}
    assert make_strategy("simple").settings == tuple(Setting(k, 1.0) for k in KS)


@given(surfaces(), several_ks, alphas, st.integers(1, 4))
def test_two_steps_take_k_above_1_only_at_the_best_alpha_of_mixup(error, ks, alphas, trials):
    outcome, asked = carried_out(
        make_strategy("two-step", k=ks, alpha=alphas, trials=trials), error
    )
    first, second = asked[: len(alphas) * trials], asked[len(alphas) * trials :]
    mixup = least([Setting(1, alpha) for alpha in alphas], error, trials)
    assert all(config.k == 1 for config in first)
    assert len(second) == sum(k > 1 for k in ks) * trials
    assert all(
        (config.k > 1, config.alpha, config.alpha_rule) == (True, mixup.alpha, "xi")
        for config in second
    )
    at_xi = [Setting(k, mixup.alpha, "xi") for k in ks if k > 1]
    assert outcome.winner == least([mixup, *at_xi], error, trials)


@given(surfaces(by_seed=False), ks, alphas, st.integers(1, 3))
def test_halving_finds_the_least_error_where_seeds_do_not_matter(error, ks, alphas, trials):
    chosen = make_strategy("halving", k=ks, alpha=alphas, trials=trials)
    assert carried_out(chosen, error)[0].winner == least(chosen.settings, error, trials)


@given(surfaces(), ks, alphas, st.integers(1, 3))
def test_halving_doubles_the_seeds_of_the_better_half(error, ks, alphas, trials):
    outcome, asked = carried_out(make_strategy("halving", k=ks, alpha=alphas, trials=trials), error)
    n = len(ks) * len(alphas)
    expected, left, seeds = n * trials, -(-n // 2), trials
    while left > 1:
        expected += left * seeds
        left, seeds = -(-left // 2), 2 * seeds
    assert len(asked) == len(set(asked)) == outcome.trials == expected
    for before, after in zip(outcome.rounds, outcome.rounds[1:], strict=False):
        assert after.stage.seeds.stop == 2 * before.stage.seeds.stop
        assert set(after.stage.settings) < set(before.stage.settings)
        seeds = before.stage.seeds.stop
        gone = set(before.stage.settings) - set(after.stage.settings)
        worst = max(_mean(setting, error, seeds) for setting in after.stage.settings)
        assert all(_mean(setting, error, seeds) >= worst for setting in gone)


def _mean(setting, error, seeds):
    return round(fmean(error(_Config(setting, seed)) for seed in range(seeds)), 12)


names = st.sampled_from(STRATEGIES)


def some_strategy(name, ks, alphas, trials):
    return make_strategy(
        name, k=ks, alpha=alphas[:1] if name == "simple" else alphas, trials=trials
    )


@given(names, surfaces(), several_ks, alphas, st.integers(1, 4), st.integers(1, 200))
def test_a_budget_of_trials_is_never_exceeded(name, error, ks, alphas, trials, budget):
    chosen = some_strategy(name, ks, alphas, trials)
    allowed = Budget.read(budget).allowance(chosen)
    if budget < len(chosen.settings):
        with pytest.raises(ValueError, match="budget must be at least"):
            carried_out(chosen, error, allowed)
        return
    outcome, asked = carried_out(chosen, error, allowed)
    assert len(asked) == outcome.trials <= budget
    whole, _ = carried_out(chosen, error)
    if whole.trials <= budget:
        assert outcome == whole


@given(names, surfaces(), several_ks, alphas, st.integers(1, 4), st.floats(0.1, 3), st.data())
def test_a_budget_of_minutes_is_never_exceeded(name, error, ks, alphas, trials, each, data):
    chosen = some_strategy(name, ks, alphas, trials)
    need = each * len(chosen.settings)
    seconds = data.draw(st.floats(need / 2, 8 * need))
    allowed = Budget(seconds, timed=True).allowance(chosen, lambda: each)
    if seconds < 0.999999 * need:
        with pytest.raises(ValueError, match="budget must be at least .* minutes for one seed"):
            carried_out(chosen, error, allowed, each=each)
    elif seconds > 1.000001 * need:
        outcome, _ = carried_out(chosen, error, allowed, each=each)
        assert outcome.seconds <= seconds * 1.000001


@given(names, surfaces(), several_ks, alphas, st.integers(1, 4), st.integers(30, 200))
def test_mixup_is_searched_with_as_many_trials(name, error, ks, alphas, trials, budget):
    chosen = some_strategy(name, ks, alphas, trials)
    outcome, asked = carried_out(chosen, error, Budget.read(budget).allowance(chosen))
    rival, tried = carried_out(chosen.mixup(), error, as_in(outcome))
    assert rival.trials == outcome.trials == len(set(tried))
    assert {config.k for config in tried} == {1}
    # what both ask for is trained once
    given = {config.alpha for config in asked if config.seed == 0}
    assert given <= {config.alpha for config in tried}


@given(st.lists(st.sampled_from([*ALPHAS, 3.0, 100.0]), min_size=1, max_size=6), st.integers(1, 80))
def test_alphas_are_spread_to_as_many_as_are_wanted(alphas, size):
    chosen = spread(alphas, size)
    assert len(chosen) == max(size, len(set(alphas)))
    assert sorted(set(chosen)) == list(chosen)
    assert set(alphas) <= set(chosen)


def test_equal_errors_go_to_the_smaller_k_and_then_to_the_smaller_alpha():
    for name in STRATEGIES:
        outcome, _ = carried_out(make_strategy(name), lambda config: 0.1 + 0.2)
        assert (outcome.winner.k, outcome.winner.alpha) == (1, 1.0 if name == "simple" else 0.1)
    # 0.1 + 0.2 and 0.3 + 0.0 differ in their last bit, and tie all the same
    errors = {(2, 0): 0.1, (2, 1): 0.2, (4, 0): 0.3, (4, 1): 0.0}
    chosen = GridSearch((Setting(4, 1.0), Setting(2, 1.0)), 2)
    assert carried_out(chosen, lambda c: errors[c.k, c.seed])[0].winner == Setting(2, 1.0)


def test_settings_are_compared_on_the_seeds_that_all_have():
    # seed 1 is hard; mixup has it, the second step has not
    chosen = make_strategy("two-step", k=[2], alpha=[1.0], trials=2)
    outcome, _ = carried_out(chosen, lambda c: 0.1 * c.k + c.seed, Budget.read(3).allowance(chosen))
    assert outcome.winner == Setting(1, 1.0)
    assert [len(setting.errors) for setting in outcome.rounds] == [2, 1]


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_setting_with_a_failed_trial_cannot_win(name):
    """Without the failures k = 1 would win everywhere, with alpha = 1."""

    def error(config):
        failed = config.seed == 1 and config.k == 1 and config.alpha == 1.0
        return math.nan if failed else config.k / 10 + abs(config.alpha - 1)

    alphas = [1.0] if name == "simple" else [0.5, 1.0]
    outcome, _ = carried_out(make_strategy(name, k=[1, 2, 4], alpha=alphas, trials=2), error)
    expected = {"two-step": Setting(1, 0.5)}
    assert outcome.winner == expected.get(name, Setting(2, 1.0))


def test_those_that_fail_late_in_halving_leave_the_field_to_the_others():
    chosen = make_strategy("halving", k=[1, 2, 4, 8], alpha=[1.0], trials=1)
    outcome, _ = carried_out(chosen, lambda c: math.nan if c.seed else c.k / 10)
    assert outcome.winner == Setting(4, 1.0)


@pytest.mark.parametrize("name", STRATEGIES)
def test_if_every_setting_fails_none_wins(name):
    with pytest.raises(AllFailedError, match="no setting can win: every one had a trial that fai"):
        carried_out(make_strategy(name), lambda config: math.nan)


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("bayes", {}, "strategy must be one of simple, two-step, grid, halving, got 'bayes'"),
        ("grid", {"k": [0]}, "k must be a whole number, at least 1, got 0"),
        ("grid", {"alpha": [-1]}, "alpha must be"),
        ("grid", {"alpha": [0]}, "alpha must be above 0 in a search, got 0: that is ERM"),
        ("grid", {"trials": 0}, "trials must be a whole number, at least 1, got 0"),
        ("grid", {"alpha_rule": "both"}, "alpha_rule must be same or xi, got 'both'"),
        ("two-step", {"alpha_rule": "same"}, 'alpha_rule must be "xi" in two steps, got "same"'),
        ("two-step", {"k": [1]}, "two-step needs a k above 1 for its second step, got 1 alone"),
        ("simple", {"alpha": [1, 2]}, "simple has one alpha, got 2: give one, or use the strategy"),
    ],
)
def test_mistakes_are_named(name, more, message):
    with pytest.raises(ValueError, match=message):
        make_strategy(name, **more)


def test_strategies_know_their_rule():
    assert {setting.alpha_rule for setting in make_strategy("grid", alpha_rule="xi").settings} == {
        "same",
        "xi",
    }
    assert isinstance(make_strategy("halving"), Halving)


def test_the_usual_searches_are_as_large_as_the_page_of_tuning_says():
    trials = {
        name: carried_out(make_strategy(name), lambda config: 0.1)[0].trials for name in STRATEGIES
    }
    assert trials == {"simple": 30, "two-step": 50, "grid": 150, "halving": 186}
