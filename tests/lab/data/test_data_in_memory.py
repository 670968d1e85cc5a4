"""Data that a program holds, as data sets of the lab."""

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from kmixup.lab.data import load
from kmixup.lab.data.arrays import arrays_of, write_npz
from kmixup.lab.data.loading import from_memory


def drawn(n=60, d=4):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(np.float32), rng.integers(3, size=n)


def test_arrays_tensors_and_data_sets_of_torch_are_the_same_data():
    x, y = drawn()
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    sources = [(x, y), tensors, (TensorDataset(*tensors), None), (x.tolist(), y.tolist())]
    first, *others = (from_memory(*source) for source in sources)
    assert (len(first.x_train), len(first.x_test), first.classes) == (40, 20, ("0", "1", "2"))
    for other in others:
        assert torch.equal(other.x_train, first.x_train)
        assert torch.equal(other.y_test, first.y_test)


def test_texts_are_classes_and_decimals_numbers():
    x, y = drawn()
    assert from_memory(x, np.array(["cat", "dog", "owl"])[y]).classes == ("cat", "dog", "owl")
    assert from_memory(x, np.array(["cat", "dog", "owl"], object)[y]).classes[0] == "cat"
    assert from_memory(x, y > 0).classes == ("0", "1")
    numbers = from_memory(x, x[:, 0])
    assert (numbers.task, numbers.outputs) == ("regression", 1)
    assert from_memory(x, y, task="regression").task == "regression"


def test_a_data_set_of_the_lab_keeps_its_parts_and_classes(tmp_path):
    iris = load("iris")
    path = write_npz(arrays_of(iris), tmp_path / "data.npz")
    again = load(str(path))
    assert torch.equal(again.x_test, iris.x_test)
    assert again.classes == iris.classes
    assert torch.equal(again.y_train, iris.y_train)
    numbers = from_memory(*drawn()[:1], drawn()[0][:, 0])
    targets = arrays_of(numbers)["y"]
    assert targets.mean() == pytest.approx(numbers.target_mean, abs=1e-6)


def test_what_is_no_data_is_refused():
    x, y = drawn()
    with pytest.raises(ValueError, match="y must be given with arrays and tensors, got None"):
        from_memory(x)
    with pytest.raises(ValueError, match="y must have one target for each of the 60 samples"):
        from_memory(x, y[:-1])
    with pytest.raises(ValueError, match="the items of a data set must be pairs of an input and"):
        from_memory([1, 2, 3])
    with pytest.raises(ValueError, match="scaling must be one of standard, .*, got 'paper'"):
        from_memory(x, y, scaling="paper")
    with pytest.raises(ValueError, match="the data must hold finite numbers in x"):
        from_memory(np.full((9, 2), np.nan), y[:9])
