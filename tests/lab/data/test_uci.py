import re

import pytest
import torch

from kmixup.lab.data import load
from kmixup.lab.data.dataset import Samples, split
from kmixup.lab.data.preparation import impute
from kmixup.lab.data.formats import read_abalone, read_arrhythmia, read_bundled, read_phishing

ABALONE = "M,0.455,0.365,0.095,0.514,0.2245,0.101,0.15,15\nI,0.3,0.2,0.1,0.2,0.1,0.05,0.07,7\n"
NAN = float("nan")


def mean_squared_distance(x):
    return float(2 * x.double().var(0).sum())


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
    ("old", "new", "message"),
    [
        ("I,", "X,", "must have one of F, M, I, row 2 has 'X'"),
        (ABALONE[-25:], "", "must have 9 values in a row, row 2 has 3"),
        (ABALONE, "\n", "must have 9 values in a row, row 1 has 0"),
        (",15\n", ",1.5\n", r"must end a row in a whole number, row 1 has '1\.5'"),
        *[
            ("0.365", cell, f"must hold finite numbers, row 1 has '{re.escape(cell)}'")
            for cell in ("0.x65", "inf", "-Infinity", "nan", "1e39", "?")
        ],
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message):
        read_abalone(write(tmp_path, ABALONE.replace(old, new)), ordinal=True)


def test_only_a_question_mark_is_a_missing_value(tmp_path):
    with pytest.raises(ValueError, match="must hold finite numbers, row 2 has 'nan'"):
        read_arrhythmia(write(tmp_path, arrhythmia(1) + arrhythmia(2).replace("?", "nan")))


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "some.data"
    path.write_bytes(b"M,0.4\xff")
    with pytest.raises(ValueError, match="must be plain text, byte 5 is not"):
        read_abalone(path, ordinal=True)


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
    ("text", "message"),
    [
        (arff([",".join(["2"] * 31)]), "could not be read: 2 value not in"),
        (arff(["1,1"]), "could not be read"),
        ("@relation phishing\n", "could not be read"),
        ("@attribute age numeric\n@data\n1\n", "have 31 attributes, has 1"),
        (arff([",".join(["1"] * 5)], columns=5), "have 31 attributes, has 5"),
    ],
)
def test_an_arff_of_something_else_is_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=rf"some\.data must .*{message}"):
        read_phishing(write(tmp_path, text))


def test_the_real_abalone_has_the_mean_squared_distance_of_the_papers_xi(real):
    table = read_abalone(real / "uci/abalone.data", ordinal=True)
    assert (table.x.shape, len(table.classes)) == ((4177, 8), 28)
    assert mean_squared_distance(table.x) == pytest.approx(1.96, abs=0.005)


def test_the_real_arrhythmia_has_the_mean_squared_distance_of_the_papers_xi(real):
    table = read_arrhythmia(real / "uci/arrhythmia.data")
    assert (table.x.shape, len(table.classes)) == ((452, 279), 13)
    assert int(table.x.isnan().sum()) == 408
    whole = impute(split(table, seed=0))
    x = torch.cat([whole.x, whole.x_test])
    assert mean_squared_distance(x) == pytest.approx(8.9e4, abs=500)


def test_the_real_phishing_has_the_mean_squared_distance_of_the_papers_xi(real):
    table = read_phishing(real / "uci/Training Dataset.arff")
    assert table.y.bincount().tolist() == [4898, 6157]
    assert mean_squared_distance(table.x) == pytest.approx(34.675, abs=0.005)


@pytest.mark.parametrize("name", ["abalone", "arrhythmia", "phishing"])
def test_the_real_tables_are_raw_under_the_papers_scaling_and_finite(real, name):
    data = load(name)
    assert (data.part, data.scaling) == (None, "paper")
    assert torch.equal(data.normalise(data.x_train), data.x_train)
    assert data.x_train.isfinite().all()
    assert data.x_test.isfinite().all()
