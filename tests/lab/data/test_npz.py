"""Your own arrays, in an .npz file."""

import numpy as np
import pytest
import torch

from kmixup.lab import _files
from kmixup.lab.data import load
from kmixup.lab.data.own import OwnOptions, decide, read_npz, read_own

X, Y = np.arange(12.0).reshape(6, 2), np.array([5, 7, 5, 7, 7, 5])


def save(tmp_path, name="own.npz", **arrays):
    np.savez(tmp_path / name, **arrays)
    return tmp_path / name


def read(path, **options):
    return read_own(path, OwnOptions(**options))


def test_inputs_are_kept_and_classes_numbered(tmp_path):
    own = read(save(tmp_path, x=X, y=Y))
    assert own.x.tolist() == X.tolist()
    assert (own.y.tolist(), own.classes) == ([0, 1, 0, 1, 1, 0], ("5", "7"))


def test_labels_may_be_words_and_the_test_part_fixed(tmp_path):
    words = np.array(["b", "a", "b", "a", "c", "a"])
    own = read(save(tmp_path, x=X, y=words, x_test=X[:2], y_test=np.array(["c", "b"])))
    assert own.classes == ("a", "b", "c")
    assert own.y_test.tolist() == [2, 1]


@pytest.mark.parametrize("shape", [(6, 4, 5), (6, 3, 4, 5)])
def test_bytes_are_images(tmp_path, shape):
    data = load(str(save(tmp_path, x=np.zeros(shape, np.uint8), y=Y)))
    assert data.x_train.dtype == torch.uint8
    assert data.shape == (3 if len(shape) == 4 else 1, 4, 5)
    assert data.pixel_range == (0, 255)


def test_decimal_targets_are_a_regression_and_whole_ones_are_classes(tmp_path):
    decimal = read(save(tmp_path, x=X, y=Y + 0.5))
    assert (decimal.classes, decimal.y.tolist()) == ((), (Y + 0.5).tolist())
    whole = read(save(tmp_path, x=X, y=Y.astype(float)))
    assert (whole.y.tolist(), whole.classes) == ([0, 1, 0, 1, 1, 0], ("5", "7"))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_classes_in_floats_keep_all_of_their_digits(tmp_path, kind):
    own = read(save(tmp_path, x=X, y=(Y + 1_234_562).astype(kind)))
    assert own.classes == ("1234567", "1234569")
    assert read(save(tmp_path, x=X, y=(Y / 10).astype(kind)), task="classes").classes == (
        "0.5",
        "0.7",
    )


def test_class_names_with_escape_codes_raise(tmp_path):
    with pytest.raises(ValueError, match=r"must not have control characters, got '\\x1b\[31mb'"):
        read(save(tmp_path, x=X, y=np.array(["a", "\x1b[31mb"] * 3)))


def test_the_task_decides_where_it_is_given(tmp_path):
    parts = read(save(tmp_path, x=X, y=Y, x_test=X, y_test=Y + 1), task="regression")
    assert (parts.classes, parts.y_test.tolist()) == ((), (Y + 1).tolist())
    assert read(save(tmp_path, x=X, y=Y + 0.5), task="classes").classes == ("5.5", "7.5")


def test_both_parts_have_the_precision_of_the_first(tmp_path):
    parts = read(save(tmp_path, x=X.astype(np.float32), y=Y, x_test=X, y_test=Y))
    assert parts.x_test.dtype == parts.x.dtype == torch.float32


def test_arrays_of_other_names_are_not_unpacked(tmp_path):
    path = save(tmp_path, x=X, y=Y, notes=np.array([{"a": 1}], dtype=object))
    assert len(read(path).x) == 6


def with_bad(x, bad):
    return np.where(np.arange(12).reshape(6, 2) == 9, bad, x)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": None}, "must hold the array y, has x$"),
        *[
            ({"x": x}, r"x of shape \(n, ...\) and numbers, has")
            for x in (X[:, 0], X.astype(str), X.astype(complex), X[:0], X[:, :0])
        ],
        *[
            ({"x": with_bad(X, bad)}, r"finite numbers up to 3.4e\+38 in x, sample 4 has")
            for bad in (np.inf, np.nan, 1e39)
        ],
        *[
            ({"y": y}, r"y of shape \(6,\), numbers or strings, has")
            for y in (Y[:5], Y.astype(complex), Y.reshape(6, 1))
        ],
        ({"y": np.append(Y[:5] + 0.5, np.nan)}, "in y, sample 5 has nan"),
        ({"y": np.arange(6) * 1.1e38}, "in y, sample 4 has 4.4e.38: .* change the unit"),
        ({"x_test": X[:, :1], "y_test": Y}, r"x_test like x, torch.float64 \(2,\), has .* \(1,\)"),
        ({"x_test": X}, "must hold the array y_test, has x, y, x_test"),
        ({"x_test": X, "y_test": Y + 2}, "only classes of y, has 9"),
    ],
)
def test_impossible_arrays_are_named(tmp_path, arrays, message):
    given = {"x": X, "y": Y} | arrays
    arrays = {name: values for name, values in given.items() if values is not None}
    task = "regression" if arrays.get("y", Y).max() > 1e30 else None
    with pytest.raises(ValueError, match=message):
        read(save(tmp_path, **arrays), task=task)


@pytest.mark.parametrize("damage", ["pickle", "head", "tail", "npy"])
def test_what_is_no_npz_of_plain_arrays_is_named(tmp_path, damage):
    path = save(tmp_path, x=X, y=Y)
    if damage == "pickle":
        save(tmp_path, x=np.array([{"a": 1}, None], dtype=object), y=Y[:2])
    elif damage == "npy":
        with path.open("wb") as stream:
            np.save(stream, X)
    else:
        path.write_bytes(path.read_bytes()[: 10 if damage == "head" else -30])
    with pytest.raises(ValueError, match=r"own\.npz must be a whole \.npz of plain arrays"):
        read_npz(path)


def test_an_npz_that_unpacks_to_far_more_is_rejected_before_it_does(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "own.npz", x=np.zeros((3000, 1000)))
    monkeypatch.setattr(_files, "ROOM", 1 << 20)
    monkeypatch.setattr(np.lib.format, "read_array", lambda *a, **k: pytest.fail("it was unpacked"))
    with pytest.raises(ValueError, match=r"own\.npz must not unpack to more than 100 times its"):
        read_npz(tmp_path / "own.npz")


# targets


def decision(values, rows=1000, task=None):
    notes = []
    return decide(np.array(values), rows=rows, task=task, name="t", notes=notes), notes


@pytest.mark.parametrize(
    ("values", "rows", "task", "note"),
    [
        ([0, 1], 100, "classes", False),
        (range(10), 100, "classes", False),
        (range(28), 4177, "classes", True),
        (range(51), 100, "regression", True),
        (range(51), 1100, "classes", True),
        ([0.5, 1.0, 1.5], 100, "regression", True),
        (np.arange(60) / 4, 100, "regression", False),
    ],
)
def test_few_whole_numbers_are_classes_and_others_a_regression(values, rows, task, note):
    decided, notes = decision(list(values), rows=rows)
    assert decided == task
    other = {"classes": "regression", "regression": "classes"}[task]
    said = [f"treated as {task}: use --task {other} to change that"] if note else []
    assert [text[-len(said[0]) :] for text in notes] == said


@pytest.mark.parametrize("task", ["classes", "regression"])
def test_the_user_decides_without_a_note(task):
    assert decision([0.5, 1.5], task=task) == decision([1, 2], task=task) == (task, [])


@pytest.mark.parametrize("task", [None, "classes", "regression"])
def test_a_single_value_is_nothing_to_learn(task):
    with pytest.raises(ValueError, match="'t' must have at least two distinct values, all 5 rows"):
        decision([1.0], rows=5, task=task)


def test_words_are_classes_unless_nearly_all_differ_and_no_regression():
    words = [f"w{i}" for i in range(51)]
    assert decision(words[:50], 60)[0] == decision(words, 200)[0] == "classes"
    assert decision(words, 60, task="classes")[0] == "classes"
    with pytest.raises(
        ValueError, match=r"'t' must have fewer classes, has 51 .* \(--target\), or"
    ):
        decision(words, 60)
    with pytest.raises(ValueError, match="task must be classes for the target 't', got regression"):
        decision(words, 60, task="regression")
