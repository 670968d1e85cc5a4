"""The lab for programs: networks trained and searched on data in memory."""

import numpy as np
import pandas as pd
import pytest

import kmixup.lab
from kmixup.lab.data import at_hand, cache_folder
from kmixup.lab.data import load as load_data
from kmixup.lab.data.loading import write_samples
from kmixup.lab.experiments.rows import read
from kmixup.lab.inspection import inspect_data

QUICK = {"epochs": 2, "batch_size": 16}


def drawn(n=60):
    x = np.random.default_rng(0).normal(size=(n, 4))
    return x, (x[:, 0] > 0).astype(int)


def test_tests_without_the_marker_data_see_none():
    assert not at_hand("mnist")
    assert not cache_folder().exists()


@pytest.mark.slow
def test_a_network_trained_on_arrays_is_kept_and_read_back(tmp_path):
    x, y = drawn()
    model = kmixup.lab.fit(x, y, k=4, protocol=QUICK, class_weights="balanced", out=tmp_path)
    assert model.record["trial"]["class_weights"] == "balanced"
    again = kmixup.lab.load(tmp_path)
    assert np.array_equal(again.predict_proba(x), model.predict_proba(x))
    assert again.record["result"] == model.record["result"]


@pytest.mark.slow
def test_names_and_data_sets_are_trained_alike():
    by_name = kmixup.lab.fit("iris", method="erm", protocol=QUICK)
    by_data = kmixup.lab.fit(load_data("iris"), method="erm", protocol=QUICK)
    assert by_name.record["result"] == by_data.record["result"]


@pytest.mark.slow
def test_a_search_with_a_folder_keeps_its_rows(tmp_path):
    few = {"strategy": "simple", "k": [1, 2], "trials": 1, "protocol": QUICK}
    there = kmixup.lab.tune_data(*drawn(), out=tmp_path, workers=1, **few)
    here = kmixup.lab.tune_data(*drawn(), **few)
    assert len(read(tmp_path)) == len(there.rows)
    assert there.search == here.search


@pytest.mark.filterwarnings("ignore:.* of a training row")
def test_a_frame_may_have_a_column_called_name():
    x, y = drawn()
    frame = pd.DataFrame({"name": x[:, 0], "b": x[:, 1]})
    assert kmixup.lab.fit(frame, y, k=4, protocol=QUICK).predict(frame).shape == (60,)


def test_numbers_of_numpy_are_numbers(tmp_path):
    x, y = drawn()
    for k in 2 ** np.arange(2, 4):
        protocol = {"epochs": np.int64(1), "batch_size": np.int32(16)}
        model = kmixup.lab.fit(
            x, y, k=k, alpha=np.float32(0.5), seed=np.int64(1), test_size=np.float64(0.25),
            protocol=protocol, out=tmp_path / str(k),
        )  # fmt: skip
        assert model.record["trial"]["method"]["k"] == k
    iris = load_data("iris", seed=np.int64(1))
    inspected = inspect_data(iris, alpha=np.float32(1), largest_k=np.int64(2), seed=np.int64(1))
    assert inspected.compared == (1, 2)
    with pytest.raises(ValueError, match="seed must be a whole number, at least 0, got True"):
        load_data("iris", seed=True)


def test_arguments_that_would_be_ignored_raise():
    with pytest.raises(ValueError, match="y must not be given with data that have targets"):
        kmixup.lab.fit("iris", [0, 1])
    with pytest.raises(ValueError, match="scaling must not be given for a Dataset"):
        kmixup.lab.fit(load_data("iris"), scaling="minmax")
    with pytest.raises(ValueError, match="limit must not be given for data in memory, got 5"):
        kmixup.lab.fit(*drawn(), limit=5)


def test_other_data_in_the_folder_are_never_overwritten(tmp_path):
    (tmp_path / "data.npz").write_text("mine")
    with pytest.raises(ValueError, match=r"out must be a folder without other data, \S*data.npz"):
        kmixup.lab.tune_data(*drawn(), out=tmp_path)
    assert (tmp_path / "data.npz").read_text() == "mine"
    path = write_samples(*drawn(), tmp_path / "new")
    assert write_samples(*drawn(), tmp_path / "new") == path
    with pytest.raises(ValueError, match="without other data"):
        write_samples(*drawn(50), tmp_path / "new")


def test_workers_need_a_folder():
    with pytest.raises(ValueError, match="workers need a folder for their rows, got workers=2"):
        kmixup.lab.tune_data(*drawn(), workers=2)


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="module 'kmixup.lab' has no attribute 'train_me'"):
        _ = kmixup.lab.train_me
