"""The estimators against scikit-learn: its checks, its pipelines and its searches."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator
from skorch.helper import SliceDict
from torch import nn

from kmixup import Choice, KMixup, LocalMixup
from kmixup.integrations.sklearn import KMixupClassifier, KMixupRegressor
from kmixup.integrations.skorch import MixedNetClassifier, MixedNetRegressor

X, y = load_iris(return_X_y=True)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "batches and partners are random: a sample of weight 2 is drawn once, two copies of it "
        "are drawn twice, possibly with each other"
    )
}


def quick(**options):
    return KMixupClassifier(max_iter=5, random_state=0).set_params(**options)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [KMixupClassifier, KMixupRegressor])
def test_every_check_of_scikit_learn_passes_but_the_one_that_is_listed(estimator):
    checks = check_estimator(
        estimator(max_iter=20, learning_rate_init=0.02),
        expected_failed_checks=EXPECTED,
        on_skip=None,
    )
    statuses = dict.fromkeys(("passed", "xfail", "skipped"), 0)
    for check in checks:
        statuses[check["status"]] += 1
    assert statuses["xfail"] == 1
    assert statuses["skipped"] <= 1  # without SCIPY_ARRAY_API
    assert statuses["passed"] >= 55


@pytest.mark.slow
def test_iris_is_learned_with_the_defaults():
    fitted = KMixupClassifier(random_state=0).fit(X[::2], y[::2])
    assert fitted.score(X[1::2], y[1::2]) > 0.9
    assert fitted.n_iter_ == len(fitted.loss_curve_) == 500  # 1,000 steps of two batches
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0] / 2


def test_numbers_are_learned():
    inputs, numbers = load_diabetes(return_X_y=True)
    fitted = KMixupRegressor(max_iter=30, learning_rate_init=0.01, random_state=0)
    assert fitted.fit(inputs[::2], numbers[::2]).score(inputs[1::2], numbers[1::2]) > 0.3


def test_a_seed_gives_the_same_network_and_leaves_the_generators_of_others_alone():
    torch.manual_seed(4)
    before = torch.random.get_rng_state()
    first, again = quick().fit(X, y), quick().fit(X, y)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.array_equal(first.predict_proba(X), again.predict_proba(X))
    other = quick(random_state=1).fit(X, y)
    assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))


def test_mixing_is_what_alpha_says():
    plain, mixed = quick(mixer__alpha=0).fit(X, y), quick(mixer__alpha=1.0).fit(X, y)
    assert plain.net_.mixer_.alpha == 0
    assert plain.loss_curve_[-1] < mixed.loss_curve_[-1]


def test_a_grid_finds_parameters_of_the_mixer_inside_of_a_pipeline():
    pipeline = make_pipeline(MinMaxScaler(), quick())
    grid = {"kmixupclassifier__mixer__k": [1, 8], "kmixupclassifier__mixer__alpha": [0.2, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    best = search.best_estimator_[-1]
    assert best.net_.mixer_.k == search.best_params_["kmixupclassifier__mixer__k"]
    assert best.net_.mixer_.alpha == search.best_params_["kmixupclassifier__mixer__alpha"]


def test_parameters_survive_a_clone_and_are_named_in_a_refusal():
    settings = {"mixer__k": 4, "hidden_layer_sizes": (8, 8), "mixer": LocalMixup}
    copied = clone(quick(**settings))
    assert {name: copied.get_params()[name] for name in settings} == settings
    with pytest.raises(ValueError, match="no parameter mixer__size: it has .*mixer__k"):
        copied.set_params(mixer__size=3)
    with pytest.raises(TypeError, match="^KMixupClassifier.*argument 'size'"):
        KMixupClassifier(size=3)


def test_small_tables_get_batches_of_at_least_2k_and_enough_steps():
    fitted = KMixupClassifier(random_state=0, mixer__alpha=0).fit(X[:118], y[:118])
    assert fitted.net_.batch_size == 40
    assert fitted.n_iter_ == 334
    assert fitted.net_.mixer_.k == 16


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_net_takes_any_module_and_inputs_in_a_search_for_k(alpha):
    class Both(nn.Module):
        def __init__(self, width=4):
            super().__init__()
            self.image, self.number = nn.LazyLinear(width), nn.LazyLinear(width)
            self.last = nn.Linear(width, 3)

        def forward(self, image, number):
            return self.last(self.image(image.flatten(1)) + self.number(number))

    images = np.random.default_rng(0).normal(size=(150, 1, 3, 3)).astype(np.float32)
    inputs = SliceDict(image=images, number=X.astype(np.float32))
    net = MixedNetClassifier(
        Both,
        criterion=nn.CrossEntropyLoss,
        criterion__reduction="none",
        optimizer=torch.optim.Adam,
        lr=0.02,
        max_epochs=30,
        verbose=0,
        mixer__alpha=alpha,
        mixer__lam_per="sample",
    )
    grid = {"mixer__k": [1, 8], "module__width": [8]}
    search = GridSearchCV(net, grid, cv=3, scoring="accuracy").fit(inputs, y)
    assert search.best_estimator_.mixer_.k == search.best_params_["mixer__k"]
    assert search.best_score_ > 0.8


def test_a_net_trains_on_the_loss_of_both_targets_and_validates_on_clean_batches():
    seen = []

    class Recording(KMixup):
        def mix(self, *batch):
            seen.append(super().mix(*batch))
            return seen[-1]

    net = MixedNetRegressor(
        nn.Linear(4, 1), max_epochs=2, batch_size=60, verbose=0, mixer=Recording
    )
    net.fit(X.astype(np.float32), y[:, None].astype(np.float32))
    assert len(seen) == 4  # of 120 rows that train
    assert not net.mixer_.training
    assert np.isfinite(net.history[:, "valid_loss"]).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1, got 0"),
        ({"max_iter": 0}, "max_iter must be a whole number, at least 1"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be a whole number, at least 1"),
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes must be widths of at least 1"),
        ({"mixer__k": 0}, "k must be"),
        ({"mixer__alpha": -1.0}, "alpha must be"),
    ],
)
def test_impossible_settings_are_refused_in_fit(settings, message):
    with pytest.raises(ValueError, match=message):
        quick(**settings).fit(X, y)


def test_k_is_cut_to_half_of_the_smallest_batch():
    assert quick().fit(X, y).net_.mixer_.k == 16  # batches of 50
    assert quick(batch_size=20).fit(X, y).net_.mixer_.k == 9  # 150 = 6 · 19 + 2 · 18
    assert quick().fit(X[:1], y[:1]).net_.mixer_.k == 1


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["setosa", "versicolor", "virginica"])[y],
        np.array([-1.0, 0.0, 7.0])[y],
        [("a", "b", "c")[i] for i in y],
        pd.Series(y).map({0: "x", 1: "y", 2: "z"}).astype("category"),
        y == 2,
    ],
    ids=["strings", "floats", "list", "categories", "booleans"],
)
def test_labels_may_be_of_any_type(labels):
    fitted = quick().fit(X, labels)
    assert list(fitted.classes_) == sorted(set(labels))
    assert set(fitted.predict(X)) <= set(labels)


def test_a_sample_of_weight_0_is_as_if_it_were_absent():
    weight = np.where(np.arange(len(X)) % 3, 1.0, 0.0)
    kept = weight > 0
    for estimator in (quick(), KMixupRegressor(max_iter=5, random_state=0)):
        weighted = clone(estimator).fit(X, y, sample_weight=weight).predict(X)
        assert np.array_equal(weighted, clone(estimator).fit(X[kept], y[kept]).predict(X))


def test_weights_pull_and_their_scale_does_not_matter():
    weight = np.where(y == 2, 20.0, 1.0)
    shares = [
        quick(max_iter=20).fit(X, y, sample_weight=w).predict_proba(X)[:, 2].mean()
        for w in (None, weight, 10 * weight)
    ]
    assert shares[1] > shares[0] + 0.1
    assert shares[2] == pytest.approx(shares[1])


def test_early_stopping_holds_out_samples_and_keeps_the_best_weights(capsys):
    stopped = quick(
        max_iter=300, learning_rate_init=0.05, early_stopping=True, n_iter_no_change=3, verbose=1
    ).fit(X, y)
    losses = stopped.net_.history[:, "valid_loss"]
    assert stopped.n_iter_ < 300
    assert stopped.n_iter_ == np.argmin(losses) + 1 + 3
    printed = capsys.readouterr().out
    assert "train_loss" in printed
    assert "valid_loss" in printed
    assert stopped.scaler_.n_samples_seen_ == 135  # only the samples that train


def test_any_mixer_can_be_used():
    def both(k, alpha):
        return Choice([KMixup(k, alpha), LocalMixup(k, alpha)])

    fitted = quick(mixer=partial(LocalMixup, scale=1.0)).fit(X, y)
    assert isinstance(fitted.net_.mixer_, LocalMixup)
    assert isinstance(quick(mixer=both, mixer__k=2).fit(X, y).net_.mixer_, Choice)
    quick(mixer=partial(KMixup, labels=1.0)).fit(X, y)  # reads the targets


def test_float32_stays_float32_and_pickles_predict_the_same():
    fitted = quick().fit(X.astype(np.float32), y)
    assert fitted.predict_proba(X).dtype == np.float32
    copied = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copied.predict_proba(X), fitted.predict_proba(X))
    assert quick(early_stopping=True).fit(X, y).net_.train_split is None


def test_several_numbers_are_predicted_at_once():
    targets = np.column_stack([X[:, 0], 1000 * X[:, 1]])
    fitted = KMixupRegressor(max_iter=60, learning_rate_init=0.02, random_state=0).fit(X, targets)
    assert fitted.predict(X).shape == targets.shape
    assert fitted.score(X, targets) > 0.8
