"""What the presets run, how small they can be made, and that they say so."""

from dataclasses import replace

import pytest
import torch
from printed import TABLES
from scipy.optimize import linear_sum_assignment

from kmixup.lab.methods import METHODS
from kmixup.lab.paper.deviations import deviations, shrinkage
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.train.step import mixer_of
from kmixup.lab.trial import Method

ATTACKS = (0.5, 1, 2, 4, 8, 16)


def cells(trials):
    return {(trial.data, trial.model, trial.method) for trial in trials}


def test_every_preset_states_its_claim_and_deviations():
    for preset in PRESETS.values():
        assert preset.claim.endswith(".")
        assert "Batch size" in deviations(preset.tables)[0]


def shortfall(name, trials):
    return shrinkage(PRESETS[name].tables, trials)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_falls_short_of_nothing_and_has_every_trial_once(name):
    trials = PRESETS[name].trials()
    assert len(trials) == len(set(trials))
    assert shortfall(name, trials) == []


def test_one_reading_of_alpha_is_as_many_networks_as_the_paper_trained():
    sizes = {
        name: len(PRESETS[name].trials(alpha_rule=["same"]))
        for name in ("toy", "uci", "mnist", "noise", "nearest")
    }
    assert sizes == {"toy": 390, "uci": 1600, "mnist": 1000, "noise": 300, "nearest": 60}


@pytest.mark.parametrize(
    ("name", "mixing"),
    [
        (
            "fgsm-mnist",
            {Method("mixup", alpha=10)}
            | {Method("kmixup", k, 10, r) for k in (2, 4, 8, 16, 32) for r in ("same", "xi")},
        ),
        ("nearest", {Method("mixup", alpha=1.0), Method("nearest", 16, 1.0)}),
        (
            "manifold",
            {
                Method("manifold", k, alpha, layers="input+first-block")
                for k in (1, 2, 4, 8, 16, 32)
                for alpha in (0.1, 0.2, 0.5, 1, 10)
            },
        ),
    ],
)
def test_a_table_has_erm_its_row_k_1_and_every_reading_of_alpha_above(name, mixing):
    methods = {trial.method for trial in PRESETS[name].trials(trials=1)}
    assert methods == {Method("erm")} | mixing


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mnist", "fgsm-mnist"),
        ("cifar10", "noise"),
        ("cifar10", "fgsm-cifar10"),
        ("cifar10", "nearest"),
        ("noise", "fgsm-cifar10"),
        ("master", "cifar10"),
    ],
)
def test_cells_that_two_presets_share_are_equal_trials(one, other):
    first, second = (PRESETS[name].trials() for name in (one, other))
    shared = cells(first) & cells(second)
    assert shared
    for cell in shared:
        of_first, of_second = (
            {t for t in trials if (t.data, t.model, t.method) == cell} for trials in (first, second)
        )
        assert of_first <= of_second or of_second <= of_first


def test_every_network_is_tested_under_all_that_the_paper_tests_it_under():
    for name in PRESETS:
        for trial in PRESETS[name].trials(trials=1):
            resnet = (trial.data, trial.model) == ("cifar10", "preact-resnet18")
            if trial.samples is None:  # the paper has no tables of drawn samples
                attacked = resnet or trial.data == "mnist"
                assert trial.levels("noise") == ((8, 10, 12, 14) if resnet else ())
                assert trial.levels("fgsm") == (ATTACKS if attacked else ())


def test_shrinking_is_said_in_words():
    trials = PRESETS["mnist"].trials(
        trials=3, epochs=12, k=[1, 4, 16, 64], alpha=[0.2, 1, 10, 100], limit=1000
    )
    assert len(trials) == 3 * (1 + 4 + 2 * 3 * 4)
    assert shortfall("mnist", trials) == [
        "3 of 20 trials",
        "12 of 200 epochs",
        "k = 1, 4, 16, 64 only",
        "alpha = 0.2, 1, 10, 100 only",
        "the first 1,000 samples only",
    ]


def test_what_is_shrunk_for_some_tables_names_them():
    large = PRESETS["cifar10-large"].trials(k=[1, 16])
    assert shortfall("cifar10-large", large) == ["CIFAR-10, WideResNet-101: k = 1, 16 only"]
    only_iris = [trial for trial in PRESETS["uci"].trials() if trial.data == "iris"]
    assert shortfall("uci", only_iris) == ["Abalone; Arrhythmia; Cancer; Phishing: not run"]


def test_other_cells_than_the_papers_are_run_and_are_no_shrinkage():
    table = TABLES["mnist"]
    trials = PRESETS["mnist"].trials(
        k=(*table.ks, 128), alpha=(*table.alphas, 7.0), alpha_rule=["same"]
    )
    assert len(trials) == 20 * (1 + 8 * 8)
    assert shortfall("mnist", trials) == []
    others = PRESETS["mnist"].trials(k=[128], alpha=[7.0])
    assert shortfall("mnist", others) == ["no k from the paper", "no alpha from the paper"]


def test_more_trials_of_other_presets_do_not_hide_too_few():
    noise, cifar10 = PRESETS["noise"], PRESETS["cifar10"].trials()
    assert shortfall("noise", noise.trials() + cifar10) == []
    assert shortfall("noise", noise.trials(trials=15) * 2) == ["15 of 30 trials"]
    assert shortfall("noise", noise.trials(trials=2) + cifar10) == ["2 of 30 trials"]


def test_without_k_1_there_is_no_mixup():
    names = {trial.method.name for trial in PRESETS["toy"].trials(trials=1, k=[16])}
    assert names == {"erm", "kmixup"}
    names = {trial.method.name for trial in PRESETS["toy"].trials(trials=1, k=[1])}
    assert names == {"erm", "mixup"}
    with pytest.raises(ValueError, match="k must be a whole number, at least 1, got 0"):
        PRESETS["toy"].trials(k=[0])


@pytest.mark.parametrize("name", PRESETS)
def test_quick_is_small_and_what_is_given_goes_before_it(name):
    preset = PRESETS[name]
    trials = preset.trials(quick=True)
    assert len(trials) <= 240
    assert shortfall(name, trials)
    assert all(trial.protocol.epochs <= 50 for trial in trials)
    short = preset.trials(quick=True, trials=1, epochs=1, k=[4], alpha=[0.3], limit=64)
    assert {(trial.seed, trial.protocol.epochs, trial.limit) for trial in short} == {(0, 1, 64)}
    free = [trial.method for trial in short if trial.method.entry.has_alpha]
    assert {method.alpha for method in free} == {0.3}
    assert {trial.method.k for trial in short} == {1, 4}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("toy", "Learning rate 0.02"),
        ("mnist", "Learning rate 0.05"),
        ("uci", "Cancer; Iris: One mean"),
        ("cifar10-large", "wide ResNet-101"),
        ("noise", "Random crops and flips"),
    ],
)
def test_what_always_differs_is_kept_apart(name, words):
    assert any(words in sentence for sentence in deviations(PRESETS[name].tables))


@pytest.mark.parametrize("name", ["uci", "speech"])
def test_a_learning_rate_that_the_paper_states_is_no_difference(name):
    sentences = deviations(PRESETS[name].tables)
    assert not any("Learning rate" in sentence for sentence in sentences)


def test_manifold_mixup_has_a_table_for_each_set_of_layers():
    layers = {trial.method.layers for trial in PRESETS["manifold-layers"].trials(trials=1)}
    assert layers == {None, "input+first-block", "all-blocks", "deep-blocks"}
    *_, ablation = PRESETS["manifold-layers"].tables
    assert (ablation.errors, ablation.confidence, ablation.ks) == (None, None, (1, 2, 4, 8, 16, 32))


def methods_of(data):
    """What the family trains on a data set."""
    return {trial.method for trial in PRESETS["family"].trials() if trial.data == data}


def named(*, images, alpha):
    """What the registry has for classes, on images or not."""
    free = {
        Method(name, k, alpha)
        for name, entry in METHODS.items()
        for k in (1, 16)
        if entry.has_k and entry.needs_numbers is None and (images or not entry.needs_images)
    }
    return {Method("erm"), *free} - {Method("nearest", 1, alpha)}


def test_the_family_is_all_methods_that_apply():
    assert methods_of("four-bars") == named(images=False, alpha=1) | named(images=False, alpha=16)
    assert methods_of("mnist") == named(images=True, alpha=1)
    trials = PRESETS["family"].trials()
    sizes = {(trial.data, trial.protocol.epochs, trial.samples) for trial in trials}
    assert sizes == {("four-bars", 200, None), ("mnist", 188, 1000)}
    assert {trial.seed for trial in trials} == {0, 1, 2}


def test_the_script_preset_matches_by_the_distance_as_the_script_does():
    """Partners of one batch against one dense assignment of each block, as in the script."""
    trials = PRESETS["script"].trials(quick=True, alpha_rule=["same"])
    assert {trial.method.metric for trial in trials if trial.method.k > 1} == {"euclidean"}
    method = next(trial.method for trial in trials if trial.method.k > 1)
    mixer = mixer_of(replace(method, k=16), 1.0, 10)
    torch.manual_seed(0)
    x, y = torch.rand(128, 3, 8, 8), torch.zeros(128).long()
    other = x[torch.randperm(128)]
    mixed = mixer.mix(x, y, other=(other, y))
    distance = torch.cdist(x.flatten(1).double(), other.flatten(1).double()).numpy()
    for start in range(0, 128, 16):
        block = slice(start, start + 16)
        _, columns = linear_sum_assignment(distance[block, block])
        assert mixed.partner[block].tolist() == (start + columns).tolist()


def test_a_rule_that_an_experiment_does_not_have_raises():
    with pytest.raises(ValueError, match="alpha_rule must be same for family, got xi"):
        PRESETS["family"].trials(alpha_rule=("xi",))
