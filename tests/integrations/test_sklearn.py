"""The estimators against scikit-learn: its checks, its pipelines and its searches."""

import pickle
import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

from kmixup import Choice, KMixup, LocalMixup
from kmixup.integrations.sklearn import KMixupClassifier, KMixupRegressor

X, y = load_iris(return_X_y=True)
REASON = (
    "batches and partners are random: a sample of weight 2 is drawn once, two copies of it are "
    "drawn twice, possibly with each other"
)
EXPECTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": REASON for kind in ("dense", "sparse")
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:the network has not fitted"),
    pytest.mark.filterwarnings("ignore:k=.* needs batches"),
]


def quick(**options):
    settings = {"max_iter": 5, "k": 8, "learning_rate_init": 0.05, "random_state": 0}
    return KMixupClassifier(**settings | options)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [KMixupClassifier, KMixupRegressor])
def test_every_check_of_scikit_learn_passes_but_those_that_are_listed(estimator):
    checks = check_estimator(
        estimator(max_iter=20, learning_rate_init=0.05, weight_decay=1e-4),
        expected_failed_checks=EXPECTED,
        on_skip=None,
    )
    statuses = dict.fromkeys(("passed", "xfail", "skipped"), 0)
    for check in checks:
        statuses[check["status"]] += 1
    assert statuses["xfail"] == 2
    assert statuses["skipped"] <= 1  # without SCIPY_ARRAY_API
    assert statuses["passed"] >= 57


@pytest.mark.slow
def test_iris_is_learned_with_the_defaults():
    fitted = KMixupClassifier(random_state=0).fit(X[::2], y[::2])
    assert fitted.score(X[1::2], y[1::2]) > 0.9
    assert fitted.n_iter_ == len(fitted.loss_curve_) == 1000  # 2,000 steps of two batches
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
    plain, mixed = quick(alpha=0).fit(X, y), quick(alpha=1.0).fit(X, y)
    assert plain.loss_curve_[-1] < mixed.loss_curve_[-1]
    erm = quick(method="erm", alpha=1.0).fit(X, y)
    assert np.array_equal(erm.predict_proba(X), plain.predict_proba(X))
    assert quick(method="mixup").fit(X, y).k_ == 1
    with pytest.raises(ValueError, match="method must be one of kmixup, mixup, erm, got 'cutmix'"):
        quick(method="cutmix").fit(X, y)


def test_a_grid_finds_k_and_alpha_inside_of_a_pipeline_in_two_processes():
    pipeline = make_pipeline(MinMaxScaler(), quick())
    grid = {"kmixupclassifier__k": [1, 8], "kmixupclassifier__alpha": [0.2, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2).fit(X, y)
    best = search.best_estimator_[-1]
    assert best.k_ == search.best_params_["kmixupclassifier__k"]
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) > 1


def test_parameters_survive_a_clone():
    settings = {"k": 4, "hidden_layer_sizes": (8, 8), "method": LocalMixup, "metric": "euclidean"}
    copied = clone(quick(**settings))
    assert {name: copied.get_params()[name] for name in settings} == settings
    with pytest.raises(ValueError, match="Invalid parameter 'size'"):
        copied.set_params(size=3)


def test_defaults_are_those_of_the_command_line_for_so_many_rows():
    fitted = KMixupClassifier(random_state=0, alpha=0, k=8).fit(X[:118], y[:118])
    assert fitted.n_iter_ == 667  # 2,000 steps of three batches
    assert [layer.out_features for layer in fitted.net_[::2]] == [120, 120, 84, 3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1, got 0"),
        ({"max_iter": 0}, "max_iter must be a whole number, at least 1"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be a whole number, at least 1"),
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes must be widths of at least 1"),
        ({"k": 0}, "k must be"),
        ({"alpha": -1.0}, "alpha must be"),
    ],
)
def test_impossible_settings_are_refused_in_fit(settings, message):
    with pytest.raises(ValueError, match=message):
        quick(**settings).fit(X, y)


@pytest.mark.filterwarnings("error:k=.* needs batches")
def test_a_k_above_half_of_the_smallest_batch_is_cut_with_a_warning():
    assert quick(k=16).fit(X, y).k_ == 16  # batches of 37 and 38
    with pytest.warns(UserWarning, match="k=16 needs batches of 32 samples, .* 18: k_=9 is used"):
        assert quick(k=16, batch_size=20).fit(X, y).k_ == 9  # 150 = 6 · 19 + 2 · 18


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
        max_iter=300, learning_rate_init=0.3, early_stopping=True, n_iter_no_change=3, verbose=1
    ).fit(X, y)
    assert stopped.n_iter_ == len(stopped.validation_scores_) < 300
    assert 0.5 < max(stopped.validation_scores_) <= 1
    assert "epoch 1: loss" in capsys.readouterr().out
    assert stopped.scaler_.n_samples_seen_ == 135  # only the samples that train
    assert quick().fit(X, y).validation_scores_ is None


def test_any_mixer_can_be_used():
    def both(k, alpha):
        return Choice([KMixup(k, alpha), LocalMixup(k, alpha)])

    for method in (partial(LocalMixup, scale=1.0), both, partial(KMixup, labels=1.0)):
        assert quick(method=method, k=2).fit(X, y).k_ == 2


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_the_metric_is_that_of_the_matching(metric):
    quick(metric=metric).fit(X, y)


def test_class_weights_pull():
    fractions = [
        quick(max_iter=20, class_weight=w).fit(X, y).predict_proba(X)[:, 2].mean()
        for w in (None, {0: 1, 1: 1, 2: 20})
    ]
    assert fractions[1] > fractions[0] + 0.1
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:5]])
    plain, balanced = (
        quick(max_iter=20, class_weight=w).fit(X[rare], y[rare]).predict_proba(X[rare])[:, 1].mean()
        for w in (None, "balanced")
    )
    assert balanced > plain


def test_log_probabilities_are_finite_where_probabilities_vanish():
    fitted = quick(max_iter=50).fit(1000 * X, y)
    logs = fitted.predict_log_proba(1000 * X)
    assert np.isfinite(logs).all()
    assert np.allclose(np.exp(logs), fitted.predict_proba(1000 * X))


def test_sparse_inputs_are_those_of_dense_ones():
    encoded = make_column_transformer((OneHotEncoder(), [0, 1, 2, 3])).fit_transform(X)
    assert hasattr(encoded, "toarray")
    fitted, dense = quick().fit(csr_array(encoded), y), quick().fit(encoded.toarray(), y)
    assert np.array_equal(fitted.predict_proba(encoded), dense.predict_proba(encoded.toarray()))


def test_a_warm_start_continues():
    once = quick(max_iter=1, warm_start=True).fit(X, y)
    first = once.loss_curve_[0]
    for _ in range(20):
        once.fit(X, y)
    assert once.loss_curve_[0] < first
    with pytest.raises(ValueError, match="y must have the classes of the last fit"):
        once.fit(X, y == 2)


@pytest.mark.parametrize("rate", [1e3, 1e6])
def test_weights_that_are_not_finite_raise(rate):
    with pytest.raises(ValueError, match="NaN or infinite.* at learning_rate_init=.*: try a lower"):
        quick(learning_rate_init=rate, max_iter=50).fit(X, y)


@pytest.mark.filterwarnings("default:the network has not fitted")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning_rate_init": 1e-6}, "its training error is that of a constant answer|without"),
        ({"hidden_layer_sizes": (), "learning_rate_init": 1e-3}, "without mixing"),
    ],
)
def test_a_network_that_has_not_fitted_warns(settings, words):
    with pytest.warns(ConvergenceWarning, match=words):
        quick(**settings).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(max_iter=60).fit(X, y)


def clients(rows=120):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, rows).astype(float)
    days = pd.date_range("2020-01-01", periods=300).astype(str)
    columns = {
        "age": np.where(rng.random(rows) < 0.1, np.nan, age),
        "city": rng.choice(["Bern", "Zug"], rows),
        "since": rng.choice(days, rows),
    }
    return pd.DataFrame(columns), np.where(age > 45, "stays", "leaves")


def test_a_data_frame_with_text_dates_and_blanks_is_encoded():
    frame, labels = clients()
    fitted = quick(max_iter=100).fit(frame, labels)
    assert fitted.score(frame, labels) > 0.8
    assert fitted.encoder_.names[:2] == ("age", "age blank")
    assert list(fitted.feature_names_in_) == list(frame.columns)
    with pytest.warns(UserWarning, match="1 rows of X have a category of 'city' that has no input"):
        fitted.predict(frame[:3].assign(city=["Zug", "Bern", "Uri"]))
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.drop(columns="city"))
    scores = cross_val_score(quick(max_iter=60), frame, labels, cv=3)
    assert scores.mean() > 0.6


def test_what_a_look_at_a_data_frame_finds_is_a_warning():
    frame, labels = clients()
    frame["name"] = [f"client {i}" for i in range(len(frame))]
    frame["copy"] = np.where(labels == "stays", "s", "l")
    frame["visits"] = np.where(np.arange(len(frame)) % 9, np.arange(len(frame)) % 7, -999)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        quick().fit(frame, labels)
    told = [str(warning.message) for warning in found]
    for words in (
        "left out, as nearly all cells differ or are blank: 'name'",
        "the target is a copy of 'copy'",
        "'visits' has -999 in 14 rows",
    ):
        assert any(words in each for each in told), (words, told)


def test_without_mixing_no_k_is_too_large():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the network has not fitted")
        assert quick(method="erm", k=300).fit(X, y).k_ == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate_init": "fast"}, "learning_rate_init must be a number .*, got 'fast'"),
        ({"learning_rate_init": -1}, "learning_rate_init must be a number .*, got -1"),
        ({"weight_decay": -1.0}, "weight_decay must be a number of at least 0, or 'auto', got"),
        ({"early_stopping": True, "validation_fraction": 2}, "validation_fraction must be a frac"),
    ],
)
def test_a_number_that_cannot_be_is_one_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        quick(**settings).fit(X, y)


def test_a_fitted_estimator_can_be_calibrated_and_stored(tmp_path):
    calibrated = CalibratedClassifierCV(quick(max_iter=30), cv=2).fit(X, y)
    assert np.allclose(calibrated.predict_proba(X).sum(1), 1)
    frame, labels = clients()
    fitted = quick().fit(frame, labels)
    joblib.dump(fitted, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    assert np.array_equal(again.predict_proba(frame), fitted.predict_proba(frame))


def test_float32_stays_float32_and_pickles_predict_the_same():
    fitted = quick().fit(X.astype(np.float32), y)
    assert fitted.predict_proba(X).dtype == np.float32
    copied = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copied.predict_proba(X), fitted.predict_proba(X))


def test_several_numbers_are_predicted_at_once():
    targets = np.column_stack([X[:, 0], 1000 * X[:, 1]])
    fitted = KMixupRegressor(max_iter=60, learning_rate_init=0.02, random_state=0).fit(X, targets)
    assert fitted.predict(X).shape == targets.shape
    assert fitted.score(X, targets) > 0.8
