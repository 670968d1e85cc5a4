import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import wavfile

from kmixup.lab.data import load
from kmixup.lab.data.dataset import Parts
from kmixup.lab.data.own import read_csv, read_npz, read_own

X, Y = np.arange(12.0).reshape(6, 2), np.array([5, 7, 5, 7, 7, 5])


def save(tmp_path, **arrays):
    np.savez(tmp_path / "own.npz", **arrays)
    return tmp_path / "own.npz"


def table(tmp_path, text):
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_npz_keeps_inputs_and_numbers_the_classes(tmp_path):
    found = read_npz(save(tmp_path, x=X, y=Y))
    assert found.x.dtype == torch.float32
    assert found.x.tolist() == X.tolist()
    assert (found.y.tolist(), found.classes) == ([0, 1, 0, 1, 1, 0], ("5", "7"))


def test_npz_labels_may_be_words_and_the_test_part_fixed(tmp_path):
    words = np.array(["b", "a", "b", "a", "c", "a"])
    path = save(tmp_path, x=X, y=words, x_test=X[:2], y_test=np.array(["c", "b"]))
    found = read_npz(path)
    assert isinstance(found, Parts)
    assert found.classes == ("a", "b", "c")
    assert found.y_test.tolist() == [2, 1]


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


@pytest.mark.parametrize("y", [Y[:5], Y.astype(float), Y.reshape(6, 1)])
def test_labels_of_another_length_or_type_are_named(tmp_path, y):
    with pytest.raises(ValueError, match=r"y of shape \(6,\), whole numbers or strings, has"):
        read_npz(save(tmp_path, x=X, y=y))


@pytest.mark.parametrize("x", [X[:, 0], X.astype(str), X.astype(complex), X[:0]])
def test_inputs_of_another_shape_or_type_are_named(tmp_path, x):
    with pytest.raises(ValueError, match=r"x of shape \(n, ...\) and numbers, has"):
        read_npz(save(tmp_path, x=x, y=Y))


def test_inputs_that_are_not_finite_are_named(tmp_path):
    x = X.copy()
    x[4, 1] = np.inf
    with pytest.raises(ValueError, match="finite numbers in x, sample 4 has others"):
        read_npz(save(tmp_path, x=x, y=Y))


def test_a_test_part_of_another_shape_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"x_test like x, torch.float32 \(2,\), has .* \(1,\)"):
        read_npz(save(tmp_path, x=X, y=Y, x_test=X[:, :1], y_test=Y))


def test_a_test_part_with_a_new_class_is_named(tmp_path):
    with pytest.raises(ValueError, match="only classes of y, has 9"):
        read_npz(save(tmp_path, x=X, y=Y, x_test=X[:1], y_test=np.array([9])))


def test_csv_takes_the_named_column_as_the_class(tmp_path):
    path = table(tmp_path, "a,kind,b\n1,x,2\n3,y,4e1\n\n5,x,-6\n")
    found = read_csv(path, target="kind")
    assert found.x.tolist() == [[1, 2], [3, 40], [5, -6]]
    assert (found.y.tolist(), found.classes) == ([0, 1, 0], ("x", "y"))


def test_a_csv_is_read_in_parts_that_do_not_show(tmp_path, monkeypatch):
    lines = [f"{i},{'zyx'[i % 3]},{-i / 7}" for i in range(10)]
    path = table(tmp_path, "\n".join(["a,kind,b", *lines]))
    whole = read_csv(path, target="kind")
    assert whole.columns == ("a", "b")
    assert whole.classes == ("x", "y", "z")
    assert whole.y.tolist() == [2, 1, 0, 2, 1, 0, 2, 1, 0, 2]
    assert whole.x.equal(torch.tensor([[float(i), -i / 7] for i in range(10)]))
    for rows in (1, 3, 10):
        monkeypatch.setattr("kmixup.lab.data.own.ROWS", rows)
        found = read_csv(path, target="kind")
        assert found.x.equal(whole.x)
        assert found.y.equal(whole.y)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,x", "2,y", "?,x"], r"row 3 has '\?' in the column 'a': encode or drop it"),
        (["1,x", "2,y", "3"], "must have 2 values in a row, row 3 has 1"),
    ],
)
def test_rows_of_a_csv_are_counted_through_its_parts(tmp_path, monkeypatch, lines, message):
    monkeypatch.setattr("kmixup.lab.data.own.ROWS", 2)
    with pytest.raises(ValueError, match=message):
        read_csv(table(tmp_path, "\n".join(["a,target", *lines])))


def test_the_names_of_columns_stay_with_the_data(tmp_path):
    lines = [f"{i},{'xy'[i % 2]}" for i in range(9)]
    data = load(str(table(tmp_path, "\n".join(["size,target", *lines]))), limit=3)
    assert data.columns == ("size",)
    assert load("iris").columns[0] == "sepal length (cm)"
    assert load("one-ring").columns == ()


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "target\n1\n", "a,target\n", ""])
def test_a_csv_without_target_features_or_rows_is_named(tmp_path, text):
    with pytest.raises(ValueError, match=r"own\.csv must have a column 'target', another one and"):
        read_csv(table(tmp_path, text))


@pytest.mark.parametrize("cell", ["red", "", "nan", "inf", "1e39"])
def test_a_csv_cell_that_is_no_finite_number_is_named(tmp_path, cell):
    with pytest.raises(ValueError, match=f"row 2 has '{cell}' in the column 'a': encode or drop"):
        read_csv(table(tmp_path, f"a,target\n1,x\n{cell},y\n"))


def test_a_csv_row_of_another_length_is_named(tmp_path):
    with pytest.raises(ValueError, match="must have 2 values in a row, row 1 has 3"):
        read_csv(table(tmp_path, "a,target\n1,x,5\n"))


def test_a_csv_of_bytes_is_named(tmp_path):
    (tmp_path / "own.csv").write_bytes(b"a,target\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match="must be a table of text, could not be read"):
        read_csv(tmp_path / "own.csv")


def test_a_file_of_another_kind_is_refused(tmp_path, cache):
    (tmp_path / "own.pkl").touch()
    with pytest.raises(ValueError, match=r"must be an \.npz or a \.csv file, .* is a \.pkl file"):
        read_own(tmp_path / "own.pkl", target=None, cache=cache)


def test_own_data_load_by_their_path_with_a_seeded_split_and_a_named_part(tmp_path):
    path = save(tmp_path, x=X, y=Y)
    whole, part = load(str(path), seed=1), load(str(path), seed=1, limit=3)
    assert (whole.name, whole.part, whole.scaling) == ("own.npz", None, "standard")
    assert part.part == "the first 3 of 4 training and 2 of 2 test samples"
    assert torch.equal(part.x_train, whole.x_train[:3])
    assert not torch.equal(whole.x_train, load(str(path), seed=2).x_train)


def test_own_csv_loads_with_its_target(tmp_path):
    path = table(tmp_path, "kind,a\n" + "".join(f"{'xy'[i % 2]},{i}\n" for i in range(9)))
    assert load(str(path), target="kind").classes == ("x", "y")


def test_own_folders_of_images_and_of_clips_load_by_their_path(tmp_path):
    for label in ("a", "b"):
        for folder in ("pictures/train", "clips"):
            (tmp_path / folder / label).mkdir(parents=True)
        for i in range(3):
            Image.new("L", (4, 4), i).save(tmp_path / "pictures/train" / label / f"{i}.png")
            wave = np.full(100, i, np.int16)
            wavfile.write(tmp_path / "clips" / label / f"{i}.wav", 16_000, wave)
    assert load(str(tmp_path / "pictures")).shape == (1, 4, 4)
    assert load(str(tmp_path / "clips")).shape == (1, 160, 101)
