"""Published data sets in their original formats."""

import gzip
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat

from kmixup.lab.data import ENTRIES, load
from kmixup.lab.data.catalogue import KEEL, Request
from kmixup.lab.data.dataset import Samples
from kmixup.lab.data.formats import (
    read_abalone,
    read_arrhythmia,
    read_bundled,
    read_cifar,
    read_idx,
    read_keel,
    read_phishing,
    read_svhn,
)
from kmixup.lab.data.preparation import impute

RNG = np.random.default_rng(0)


def write_idx(path, array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))
    return path


@pytest.fixture
def pixels():
    return RNG.integers(256, size=(5, 28, 28), dtype=np.uint8)


@pytest.fixture
def idx(tmp_path, pixels):
    labels = np.array([3, 1, 4, 1, 9], np.uint8)
    return write_idx(tmp_path / "images.gz", pixels), write_idx(tmp_path / "labels.gz", labels)


def test_idx_gives_back_the_pixels_and_labels(idx, pixels):
    x, y = read_idx(*idx)
    assert x.dtype == torch.uint8
    assert np.array_equal(x[:, 0].numpy(), pixels)
    assert y.tolist() == [3, 1, 4, 1, 9]


def unpacked(change):
    return lambda packed: gzip.compress(change(gzip.decompress(packed)))


@pytest.mark.parametrize(
    "change",
    [
        lambda packed: packed[:-20],
        lambda packed: b"<html>not found</html>",
        unpacked(lambda raw: raw[:-1]),
        unpacked(lambda raw: raw + b"0"),
        unpacked(lambda raw: b"\0\0\x08\x01" + raw[4:]),
    ],
)
def test_a_damaged_idx_is_named(idx, change):
    idx[0].write_bytes(change(idx[0].read_bytes()))
    with pytest.raises(ValueError, match=r"images\.gz must be a whole gzipped IDX file of bytes"):
        read_idx(*idx)


def test_labels_that_do_not_fit_are_named(idx, tmp_path):
    path = write_idx(tmp_path / "bad.gz", np.array([0, 0, 10, 0, 0], np.uint8))
    with pytest.raises(ValueError, match="labels from 0 to 9, sample 2 has 10"):
        read_idx(idx[0], path)
    with pytest.raises(ValueError, match="must be a target for each input, 2 and 0 are for 5 and"):
        Samples(torch.zeros(5, 2), torch.zeros(2), ())


@pytest.mark.parametrize(("label_bytes", "classes"), [(1, 10), (2, 100)])
def test_cifar_records_give_planes_and_the_last_label(tmp_path, label_bytes, classes):
    rows = RNG.integers(10, size=(4, label_bytes + 3072), dtype=np.uint8)
    rows.tofile(tmp_path / "batch.bin")
    x, y = read_cifar(tmp_path / "batch.bin", label_bytes=label_bytes, classes=classes)
    assert x.shape == (4, 3, 32, 32)
    assert y.tolist() == rows[:, label_bytes - 1].tolist()
    assert np.array_equal(x[2, 1].numpy().ravel(), rows[2, label_bytes + 1024 : label_bytes + 2048])


def test_a_cifar_file_of_broken_records_is_named(tmp_path):
    (tmp_path / "batch.bin").write_bytes(bytes(3074))
    with pytest.raises(ValueError, match=r"batch\.bin must be a whole file of records of 3073"):
        read_cifar(tmp_path / "batch.bin", label_bytes=1, classes=10)


def test_cifar_100_read_as_cifar_10_is_noticed(tmp_path):
    np.full((3073, 3074), 77, np.uint8).tofile(tmp_path / "train.bin")
    with pytest.raises(ValueError, match="labels from 0 to 9, sample 0 has 77"):
        read_cifar(tmp_path / "train.bin", label_bytes=1, classes=10)


def test_svhn_labels_ten_as_zero_and_puts_channels_first(tmp_path):
    x = RNG.integers(256, size=(32, 32, 3, 4), dtype=np.uint8)
    savemat(tmp_path / "train.mat", {"X": x, "y": np.array([[10], [1], [9], [5]], np.uint8)})
    images, labels = read_svhn(tmp_path / "train.mat")
    assert labels.tolist() == [0, 1, 9, 5]
    assert np.array_equal(images[3, 1].numpy(), x[:, :, 1, 3])


def test_reading_a_mat_unpickles_nothing(tmp_path, monkeypatch):
    path = tmp_path / "train.mat"
    savemat(path, {"X": np.zeros((32, 32, 3, 1), np.uint8), "y": np.ones((1, 1))})
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *a, **k: pytest.fail("something was unpickled"))
    assert len(read_svhn(path)[0]) == 1


ZEROS = np.zeros((32, 32, 3, 4), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "end"),
    [
        ({"X": ZEROS, "y": np.ones((4, 1))}, -500),
        ({"X": ZEROS}, None),
        ({"X": ZEROS.transpose(3, 0, 1, 2), "y": np.ones((4, 1))}, None),
    ],
)
def test_a_damaged_or_foreign_mat_is_named(tmp_path, arrays, end):
    path = tmp_path / "train.mat"
    savemat(path, arrays)
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ValueError, match=r"train\.mat must be a whole MATLAB 5 file with arrays X"):
        read_svhn(path)


@pytest.mark.data
def test_the_real_mnist_is_whole():
    data = load("mnist")
    assert data.part is None
    assert data.x_train.shape == (60_000, 1, 28, 28)
    assert data.y_train.bincount().tolist()[:3] == [5923, 6742, 5958]
    x = data.normalise(data.x_train[:10_000]).flatten(1).double()
    assert float(2 * x.var(0).sum()) == pytest.approx(105, rel=0.01)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "limit", "part", "classes", "first"),
    [
        ("cifar10", 10_000, "50,000 training and 10,000 of 10,000 test samples", 10, "airplane"),
        ("cifar100", 500, "50,000 training and 500 of 10,000 test samples", 91, "apple"),
        ("svhn", 2000, "73,257 training and 500 of 26,032 test samples", 10, "0"),
    ],
)
def test_the_real_samples_of_images_serve_a_limit(name, limit, part, classes, first):
    data = load(name, limit=limit)
    assert data.part == f"the first {limit:,} of {part}"
    assert len(data.y_train.unique()) >= classes
    assert (data.num_classes, data.classes[0]) == (ENTRIES[name].classes, first)
    if name == "cifar10":
        assert data.y_test.bincount().tolist() == [1000] * 10
        mean = (data.mean / 255).flatten().tolist()
        assert mean == pytest.approx([0.491, 0.482, 0.447], abs=0.005)


ABALONE = "M,0.455,0.365,0.095,0.514,0.2245,0.101,0.15,15\nI,0.3,0.2,0.1,0.2,0.1,0.05,0.07,7\n"
NAN = float("nan")


def write(tmp_path, text):
    path = tmp_path / "some.data"
    path.write_text(text)
    return path


def arff(rows, columns=31):
    attributes = "".join(f"@attribute a{i} {{-1,0,1}}\r\n" for i in range(columns))
    return f"@relation phishing\r\n\r\n{attributes}\r\n@data\r\n" + "\r\n".join(rows)


def arrhythmia(*labels):
    return "".join(",".join(["1", "?", *["2.5"] * 277, str(label)]) + "\n" for label in labels)


def test_iris_and_cancer_have_the_published_size():
    iris, cancer = read_bundled("iris"), read_bundled("cancer")
    assert (iris.x.shape, iris.y.bincount().tolist()) == ((150, 4), [50, 50, 50])
    assert (cancer.x.shape, cancer.y.bincount().tolist()) == ((569, 30), [212, 357])
    assert cancer.classes == ("malignant", "benign")


def test_abalone_has_rings_as_classes_and_sex_as_one_column_or_three(tmp_path):
    path = write(tmp_path, ABALONE)
    ordinal, one_hot = read_abalone(path, ordinal=True), read_abalone(path, ordinal=False)
    assert ordinal.classes == ("7", "15")
    assert ordinal.y.tolist() == [1, 0]
    assert ordinal.x[:, 0].tolist() == [1, 2]
    assert one_hot.x[:, :3].tolist() == [[0, 1, 0], [0, 0, 1]]
    assert torch.equal(one_hot.x[:, 3:], ordinal.x[:, 1:])


@pytest.mark.parametrize(
    ("old", "new"), [("I,", "X,"), (",7\n", "\n"), (",15\n", ",15,1\n"), ("0.365", "0.x65")]
)
def test_a_file_that_is_not_abalone_is_named(tmp_path, old, new):
    with pytest.raises(ValueError, match=r"some\.data must be a whole Abalone file of 9 columns"):
        read_abalone(write(tmp_path, ABALONE.replace(old, new)), ordinal=True)


def test_a_question_mark_is_a_missing_value(tmp_path):
    table = read_arrhythmia(write(tmp_path, arrhythmia(1, 16, 1)))
    assert table.x.shape == (3, 279)
    assert table.x[:, 1].isnan().all()
    assert not table.x[:, 2:].isnan().any()
    assert table.classes == ("1", "16")


def test_missing_values_take_the_training_median_of_their_column():
    train = torch.tensor([[1.0, NAN], [2.0, NAN], [9.0, NAN], [NAN, NAN]])
    test = torch.tensor([[NAN, 5.0], [100.0, NAN]])
    parts = impute(Samples(train, torch.zeros(4), ("a",), test, torch.zeros(2)))
    assert parts.x.tolist() == [[1, 0], [2, 0], [9, 0], [2, 0]]
    assert parts.x_test.tolist() == [[2, 5], [100, 0]]


def test_phishing_reads_rows_of_an_arff_without_a_last_line_end(tmp_path):
    rows = [",".join(["1"] * 30 + ["-1"]), ",".join(["0"] * 30 + ["1"])]
    table = read_phishing(write(tmp_path, arff(rows)))
    assert table.x.tolist() == [[1.0] * 30, [0.0] * 30]
    assert (table.y.tolist(), table.classes) == ([0, 1], ("-1", "1"))


@pytest.mark.parametrize(
    "text", [arff([",".join(["2"] * 31)]), "@relation phishing\n", arff(["1,1,1,1,1"], columns=5)]
)
def test_an_arff_of_something_else_is_named(tmp_path, text):
    with pytest.raises(ValueError, match=r"some\.data must be a whole ARFF file of 31 nominal"):
        read_phishing(write(tmp_path, text))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "shape", "classes", "missing", "distance"),
    [
        ("abalone", (4177, 8), 28, 0, pytest.approx(1.96, abs=0.005)),
        ("arrhythmia", (452, 279), 13, 408, pytest.approx(8.9e4, abs=500)),
        ("phishing", (11055, 30), 2, 0, pytest.approx(34.675, abs=0.005)),
    ],
)
def test_the_real_tables_have_the_mean_squared_distance_of_the_papers_xi(
    name, shape, classes, missing, distance
):
    (file,) = ENTRIES[name].files
    raw = ENTRIES[name].read(
        Request((Path(os.environ["KMIXUP_DATA"], "uci", file),), None, "paper", 0, None)
    )
    assert (raw.x.shape, len(raw.classes), int(raw.x.isnan().sum())) == (shape, classes, missing)
    data = load(name)
    x = torch.cat([data.x_train, data.x_test])
    assert float(2 * x.double().var(0).sum()) == distance
    assert (data.part, data.scaling) == (None, "paper")
    assert torch.equal(data.normalise(data.x_train), data.x_train)
    assert x.isfinite().all()


def test_a_keel_table_has_numbers_and_words_and_its_class_comes_last(tmp_path):
    table = read_keel(write(tmp_path, "1.5, red, t, yes\n-2, blue, f, no\n3, red, f, yes\n"))
    assert table.classes == ("no", "yes")
    assert table.y.tolist() == [1, 0, 1]
    kinds = [column.kind for column in table.schema.inputs]
    assert kinds == ["number", "category", "boolean"]


@pytest.mark.parametrize("text", ["", "1\n2\n", "1,2,3\n1,2,3,4\n"])
def test_a_file_that_is_no_keel_table_is_named(tmp_path, text):
    with pytest.raises(ValueError, match=r"some\.data must be a whole KEEL table"):
        read_keel(write(tmp_path, text))


@pytest.mark.data
@pytest.mark.parametrize("name", [facts[0] for facts in KEEL])
def test_every_keel_table_has_its_entrys_size(name):
    data = load(f"keel-{name}")
    assert data.part is None
    assert len(data.encoder.columns) == ENTRIES[f"keel-{name}"].shape[0]
    assert data.normalise(data.x_train).isfinite().all()
