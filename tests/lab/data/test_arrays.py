import struct
import zipfile

import numpy as np
import pytest
import torch

from kmixup.lab import files
from kmixup.lab.data import load
from kmixup.lab.data.arrays import read_npz
from kmixup.lab.data.dataset import Parts

X, Y = np.arange(12.0).reshape(6, 2), np.array([5, 7, 5, 7, 7, 5])


def save(tmp_path, **arrays):
    np.savez(tmp_path / "own.npz", **arrays)
    return tmp_path / "own.npz"


def test_npz_keeps_inputs_and_numbers_the_classes(tmp_path):
    arrays = read_npz(save(tmp_path, x=X, y=Y))
    assert arrays.x.tolist() == X.tolist()
    assert (arrays.y.tolist(), arrays.classes) == ([0, 1, 0, 1, 1, 0], ("5", "7"))


def test_npz_labels_may_be_words_and_the_test_part_fixed(tmp_path):
    words = np.array(["b", "a", "b", "a", "c", "a"])
    path = save(tmp_path, x=X, y=words, x_test=X[:2], y_test=np.array(["c", "b"]))
    arrays = read_npz(path)
    assert isinstance(arrays, Parts)
    assert arrays.classes == ("a", "b", "c")
    assert arrays.y_test.tolist() == [2, 1]


@pytest.mark.parametrize("shape", [(6, 4, 5), (6, 3, 4, 5)])
def test_npz_bytes_are_images(tmp_path, shape):
    data = load(str(save(tmp_path, x=np.zeros(shape, np.uint8), y=Y)))
    assert data.x_train.dtype == torch.uint8
    assert data.shape == (3 if len(shape) == 4 else 1, 4, 5)
    assert data.pixel_range == (0, 255)


def test_an_npz_with_pickled_objects_is_refused(tmp_path):
    path = save(tmp_path, x=np.array([{"a": 1}, None], dtype=object), y=Y[:2])
    with pytest.raises(ValueError, match=r"own\.npz must be a whole \.npz of plain arrays"):
        read_npz(path)


@pytest.mark.parametrize("keep", [10, -30])
def test_a_truncated_npz_is_named(tmp_path, keep):
    path = save(tmp_path, x=X, y=Y)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"own\.npz must be a whole \.npz of plain arrays"):
        read_npz(path)


def test_a_plain_array_called_npz_is_named(tmp_path):
    with (tmp_path / "own.npz").open("wb") as stream:
        np.save(stream, X)
    with pytest.raises(ValueError, match=r"own\.npz must be a whole \.npz of plain arrays"):
        read_npz(tmp_path / "own.npz")


def test_an_npz_without_y_is_named(tmp_path):
    with pytest.raises(ValueError, match="must hold the arrays x and y, has no y"):
        read_npz(save(tmp_path, x=X))


@pytest.mark.parametrize("y", [Y[:5], Y.astype(complex), Y.reshape(6, 1)])
def test_targets_of_another_length_or_type_are_named(tmp_path, y):
    with pytest.raises(ValueError, match=r"y of shape \(6,\), numbers or strings, has"):
        read_npz(save(tmp_path, x=X, y=y))


def test_decimal_targets_are_a_regression_and_whole_ones_are_classes(tmp_path):
    decimal = read_npz(save(tmp_path, x=X, y=Y + 0.5))
    assert decimal.classes == ()
    assert decimal.y.tolist() == (Y + 0.5).tolist()
    whole = read_npz(save(tmp_path, x=X, y=Y.astype(float)))
    assert (whole.y.tolist(), whole.classes) == ([0, 1, 0, 1, 1, 0], ("5", "7"))


def test_the_task_decides_where_it_is_given(tmp_path):
    path = save(tmp_path, x=X, y=Y, x_test=X, y_test=Y + 1)
    parts = read_npz(path, task="regression")
    assert (parts.classes, parts.y_test.tolist()) == ((), (Y + 1).tolist())
    decimal = read_npz(save(tmp_path, x=X, y=Y + 0.5), task="classes")
    assert decimal.classes == ("5.5", "7.5")


def test_targets_that_are_not_finite_are_named(tmp_path):
    y = Y + 0.5
    y[3] = np.nan
    with pytest.raises(ValueError, match="must hold finite numbers in y, sample 3 has nan"):
        read_npz(save(tmp_path, x=X, y=y))


def test_targets_beyond_float32_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"up to 3.4e\+38 in y, sample 4 has 4e\+38: change the"):
        read_npz(save(tmp_path, x=X, y=np.arange(6) * 1e38), task="regression")


def test_arrays_of_other_names_are_not_unpacked(tmp_path):
    path = save(tmp_path, x=X, y=Y, notes=np.array([{"a": 1}], dtype=object))
    assert len(read_npz(path).x) == 6


def test_an_npz_that_unpacks_to_far_more_is_refused_before_it_does(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "own.npz", x=np.zeros((3000, 1000)), y=np.arange(3000) % 2)
    monkeypatch.setattr(files, "ROOM", 1 << 20)
    monkeypatch.setattr(np, "load", lambda *a, **k: pytest.fail("it was unpacked"))
    with pytest.raises(ValueError, match=r"own\.npz must not unpack to more than 100 times its"):
        read_npz(tmp_path / "own.npz")


def test_an_array_whose_header_declares_more_than_there_is_is_refused(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (40000000000,), }"
    header += b" " * (117 - len(header)) + b"\n"
    with zipfile.ZipFile(tmp_path / "own.npz", "w") as archive:
        for name in ("x.npy", "y.npy"):
            archive.writestr(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header)
    with pytest.raises(ValueError, match=r"declare 640\.0 GB: store it without compression"):
        read_npz(tmp_path / "own.npz")


@pytest.mark.parametrize("x", [X[:, 0], X.astype(str), X.astype(complex), X[:0]])
def test_inputs_of_another_shape_or_type_are_named(tmp_path, x):
    with pytest.raises(ValueError, match=r"x of shape \(n, ...\) and numbers, has"):
        read_npz(save(tmp_path, x=x, y=Y))


def test_inputs_that_are_not_finite_are_named(tmp_path):
    for bad in (np.inf, np.nan, 1e39):
        x = X.copy()
        x[4, 1] = bad
        with pytest.raises(ValueError, match="finite numbers in x, sample 4 has NaN or one beyond"):
            read_npz(save(tmp_path, x=x, y=Y))


def test_a_test_part_of_another_shape_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"x_test like x, torch.float64 \(2,\), has .* \(1,\)"):
        read_npz(save(tmp_path, x=X, y=Y, x_test=X[:, :1], y_test=Y))


def test_both_parts_of_an_array_have_the_precision_of_the_first(tmp_path):
    parts = read_npz(save(tmp_path, x=X.astype(np.float32), y=Y, x_test=X, y_test=Y))
    assert parts.x_test.dtype == parts.x_train.dtype == torch.float32


def test_a_test_part_with_a_new_class_is_named(tmp_path):
    with pytest.raises(ValueError, match="only classes of y, has 9"):
        read_npz(save(tmp_path, x=X, y=Y, x_test=X[:1], y_test=np.array([9])))
