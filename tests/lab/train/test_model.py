"""Models that can be used: written, read back, and given new samples."""

import json
import sys
from contextlib import suppress
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
import torch
from own_tables import mixed, regression
from PIL import Image

from kmixup.lab.data import inputs as new_samples
from kmixup.lab.data import load as load_data
from kmixup.lab.data import preparation
from kmixup.lab.data.inputs import InputPipeline
from kmixup.lab.data.loading import from_memory
from kmixup.lab.models import build
from kmixup.lab.train import model
from kmixup.lab.train.model import Model, load
from kmixup.lab.trial import Trial

pytestmark = pytest.mark.filterwarnings("ignore:.* of a training row")


def untrained(data, name="mlp-iris", *, resize=None, seed=0):
    """A model with random weights: what prediction needs is all there."""
    torch.manual_seed(seed)
    net = build(name, in_shape=data.shape, num_classes=data.outputs)
    return Model.of(net, Trial("own", name, resize=resize), data, {})


@pytest.fixture
def clients(tmp_path):
    return mixed(tmp_path / "clients.csv", rows=60)


@pytest.fixture
def inputs(clients):
    return InputPipeline.of(load_data(str(clients)))


@pytest.fixture
def iris(tmp_path):
    """A folder with a model of iris."""
    untrained(load_data("iris")).save(tmp_path)
    return tmp_path


def rows_of(path, delimiter=",", encoding="utf-8"):
    header, *lines = path.read_text(encoding).splitlines()
    names = header.split(delimiter)
    return [dict(zip(names, line.split(delimiter), strict=True)) for line in lines]


# saved and loaded


@pytest.mark.parametrize("name", ["mlp-iris", "mlp-8-4"])
def test_a_model_that_was_read_back_predicts_to_the_last_bit_alike(tmp_path, clients, name):
    saved = untrained(load_data(str(clients)), name)
    saved.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert np.array_equal(again.predict_proba(clients), saved.predict_proba(clients))
    assert (again.classes, again.name, again.record) == (("leaves", "stays"), name, {})
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "model.json",
        "model.safetensors",
        "schema.json",
    }


def test_predictions_of_the_test_rows_are_those_of_the_network_on_the_data_set(clients):
    data = load_data(str(clients))
    saved = untrained(data)
    rows = rows_of(clients)
    numbers = data.x_test[:, data.columns.index("row")].long().tolist()
    test = [rows[number - 1] for number in numbers]
    with torch.no_grad():
        logits = saved.net(data.normalise(data.x_test)).double()
    assert np.allclose(saved.predict_proba(test), logits.softmax(1).numpy())


def test_numbers_come_in_the_unit_of_the_target(tmp_path):
    path = regression(tmp_path / "rents.csv", rows=60)
    data = load_data(str(path))
    saved = untrained(data)
    with torch.no_grad():
        saved.net[-1].weight.zero_()
        saved.net[-1].bias.zero_()
    assert np.allclose(saved.predict(path), data.target_mean)
    assert 300 < data.target_mean < 1500
    with pytest.raises(ValueError, match="a regression has no probabilities: use predict"):
        saved.predict_proba(path)


def test_loading_leaves_the_random_numbers_of_the_program_as_they_are(iris):
    before = torch.get_rng_state()
    load(iris)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must be the folder of a run that has ended"):
        load(tmp_path)


NESTED = "[" * 100_000


@pytest.mark.parametrize("name", ["model.json", "record.json"])
@pytest.mark.parametrize("contents", ["{", "[3]", '"format"', NESTED, "\xff"])
def test_damaged_settings_and_records_are_refused(iris, name, contents):
    (iris / name).write_text(contents, encoding="latin-1")
    with pytest.raises(ValueError, match="must hold a model and a record of this version"):
        load(iris)


def test_a_model_of_another_version_is_refused(iris):
    forge(iris, format=1)
    with pytest.raises(ValueError, match="format 1, not 5"):
        load(iris)


def test_weights_of_another_model_are_refused(iris):
    untrained(load_data("iris"), seed=1).save(iris / "other")
    (iris / "other/model.safetensors").replace(iris / "model.safetensors")
    with pytest.raises(ValueError, match="holds others, or is damaged"):
        load(iris)


def forge(folder, **changes):
    """Change settings of a saved model, with a right checksum."""
    path = folder / "model.json"
    plain = json.loads(path.read_text()) | changes
    del plain["checksum"]
    path.write_text(json.dumps(plain | {"checksum": model._checksum(plain)}))


@pytest.mark.parametrize("name", ["mlp-cancer", "lenet"])
def test_a_network_that_has_changed_is_refused(iris, name):
    forge(iris, model=name)
    with pytest.raises(ValueError, match=f"must fit the network '{name}'"):
        load(iris)


def test_every_flipped_bit_of_the_settings_is_noticed_or_changes_nothing(iris):
    x = load_data("iris").x_test
    expected = load(iris).predict_proba(x)
    path = iris / "model.json"
    contents = path.read_bytes()
    for place in range(len(contents)):
        flipped = contents[place] ^ 1 << place % 8
        path.write_bytes(contents[:place] + bytes([flipped]) + contents[place + 1 :])
        with suppress(ValueError):
            assert np.array_equal(load(iris).predict_proba(x), expected), place


def test_a_huge_shape_takes_no_memory(iris):
    inputs = json.loads((iris / "model.json").read_text())["inputs"]
    forge(iris, inputs=inputs | {"shape": [10**12], "mean": 0.0, "std": 1.0})
    with pytest.raises(ValueError, match="must fit the network 'mlp-iris' for inputs of the shape"):
        load(iris)


def test_class_names_with_escape_codes_raise(iris):
    forge(iris, classes=["\x1b[2Ja", "b", "c"])
    with pytest.raises(ValueError, match="must not have control characters"):
        load(iris)


def test_code_that_a_folder_names_runs_only_on_request(tmp_path, monkeypatch):
    (tmp_path / "evilmod.py").write_text(
        "from pathlib import Path\n"
        "from torch import nn\n"
        f"Path({str(tmp_path / 'ran')!r}).touch()\n"
        "def f(*, in_shape, num_classes):\n"
        "    return nn.Linear(*in_shape, num_classes)\n"
    )
    monkeypatch.chdir(tmp_path)
    iris = load_data("iris")
    saved = Model.of(torch.nn.Linear(4, 3), Trial("own", "evilmod:f"), iris, {})
    saved.save(tmp_path / "run")
    path = list(sys.path)
    with pytest.raises(ValueError, match="allow_code must be set to load .* the code 'evilmod:f'"):
        load(tmp_path / "run")
    assert (sys.path, (tmp_path / "ran").exists()) == (path, False)
    monkeypatch.syspath_prepend(tmp_path)
    again = load(tmp_path / "run", allow_code=True)
    assert np.array_equal(again.predict(iris.x_test), saved.predict(iris.x_test))


# tables


def test_rows_lists_and_files_give_the_same_inputs(clients, inputs):
    from_file, from_rows = inputs.read(clients), inputs.read(rows_of(clients))
    assert torch.equal(from_file.x, from_rows.x)
    assert from_file.names[:2] == ("C100000", "C100007")


def test_numbers_and_dates_of_a_program_are_read_like_the_text_of_the_file(tmp_path):
    path = regression(tmp_path / "rents.csv", rows=40)
    inputs = InputPipeline.of(load_data(str(path)))
    rows = rows_of(path, ";", "cp1252")
    numbers = [row | {"area": float(row["area"].replace(",", "."))} for row in rows]
    numbers = [row | {"rooms": float(row["rooms"] or "nan")} for row in numbers]
    assert torch.equal(inputs.read(numbers).x, inputs.read(path).x)
    row = rows[0]
    blank = inputs.read([row | {"rooms": None}]).x
    assert torch.equal(blank, inputs.read([row | {"rooms": ""}]).x)
    moment = datetime.strptime(row["built"], "%d.%m.%Y")
    wanted = inputs.read([row]).x
    for value in (moment, moment.date()):
        assert torch.equal(inputs.read([row | {"built": value}]).x, wanted)
    blank = inputs.read([row | {"built": ""}]).x
    assert torch.equal(inputs.read([row | {"built": pd.NaT}]).x, blank)


def test_a_cell_that_cannot_be_read_is_named_with_its_file_and_no_other_command(clients, inputs):
    row = rows_of(clients)[0]
    with pytest.raises(ValueError, match="^X: the column 'age' .* row 1 has 'x': .* blank$"):
        inputs.read([row | {"age": "x"}])


def test_data_frames_are_rows(clients, inputs):
    typed, text = pd.read_csv(clients), pd.read_csv(clients, dtype=str)
    assert torch.equal(inputs.read(typed).x, inputs.read(clients).x)
    assert torch.equal(inputs.read(text).x, inputs.read(clients).x)


CODES = ("A1", "007", "010")


def test_texts_of_digits_stay_texts_in_new_files(tmp_path):
    path, new = tmp_path / "own.csv", tmp_path / "new.csv"
    path.write_text("zip,y\n" + "".join(f"{code},{i % 2}\n" for i in range(9) for code in CODES))
    new.write_text("zip\n007\n010\n")
    inputs = InputPipeline.of(load_data(str(path)))
    assert inputs.read(new).x.tolist() == [[1, 0, 0], [0, 1, 0]]
    (note,) = inputs.read(new).notes
    assert note.endswith("have the inputs of a training row")


def test_a_decimal_comma_stays_one_in_new_files(tmp_path):
    path, new = tmp_path / "own.csv", tmp_path / "new.csv"
    path.write_text("size;y\n" + "".join(f"1.2{i}4,5;{i % 2}\n" for i in range(9)))
    inputs = InputPipeline.of(load_data(str(path)))
    for text, number in (("1.250", 1250.0), ("1.250,5", 1250.5), ("3", 3.0)):
        new.write_text(f"size;y\n{text};0\n")
        assert torch.equal(inputs.read(new).x, inputs.read([{"size": number}]).x)


def test_a_decimal_comma_of_the_target_stays_one_in_labelled_files(tmp_path):
    path, new = tmp_path / "own.csv", tmp_path / "new.csv"
    path.write_text("a;y\n" + "".join(f"{i};1.2{i}4,5\n" for i in range(9)))
    untrained(load_data(str(path), task="regression")).save(tmp_path)
    new.write_text("a;y\n3;1.250\n4;1.300\n")
    assert load(tmp_path).evaluate(new).metrics["RMSE"] < 400  # not of 1.25 and 1.3


def test_rows_of_blanks_do_not_shift_the_rows_below(tmp_path):
    path, new = tmp_path / "own.csv", tmp_path / "new.csv"
    rows = "".join(f"{i % 2},{'no' if i % 2 else 'yes'}\n" for i in range(24))
    path.write_text(f"a,y\n{rows}")
    new.write_text(f"a,y\nNA,\n{rows}")
    model = untrained(load_data(str(path)))
    assert model.evaluate(new).metrics == pytest.approx(model.evaluate(path).metrics)
    assert model.predictions(new).names[-1] == "25"


def test_the_target_of_training_is_scored_wherever_its_column_is(tmp_path):
    path, new = tmp_path / "own.csv", tmp_path / "new.csv"
    path.write_text("f,g,price\n" + "".join(f"{i},{i % 3},{i / 8}\n" for i in range(24)))
    untrained(load_data(str(path))).save(tmp_path)
    new.write_text("price,f,g\n" + "".join(f"{i / 8},{i},{i % 3}\n" for i in range(24)))
    model = load(tmp_path)
    assert model.evaluate(new).metrics == pytest.approx(model.evaluate(path).metrics)
    new.write_text("f,g\n1,2\n3,4\n")
    with pytest.raises(ValueError, match="target must name a column of .*, got 'price'"):
        model.evaluate(new)


def test_times_in_a_column_of_numbers_are_named(tmp_path):
    frame = pd.DataFrame({"a": np.arange(12.0)})
    inputs = InputPipeline.of(from_memory(frame, [0, 1] * 6))
    with pytest.raises(ValueError, match="'a' must hold finite numbers, row 1 has '2024"):
        inputs.read(pd.DataFrame({"a": pd.to_datetime(["2024-05-01", "2024-06-01"])}))


def test_outputs_that_overflow_raise(tmp_path):
    frame = pd.DataFrame({"a": np.arange(12.0) * 1e-6})
    model = untrained(from_memory(frame, [0, 1] * 6))
    with pytest.raises(ValueError, match="the sample 2 has some that are too large"):
        model.predict(pd.DataFrame({"a": [1e-6, 3e38]}))


def test_a_frame_without_column_names_is_read_as_in_training():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 3)))
    inputs = InputPipeline.of(from_memory(frame, [0, 1] * 6))
    assert inputs.read(frame).x.shape == (12, 3)


@pytest.mark.parametrize("rows", ["3,1.5\n", "3,2\n4,2\n"])
def test_a_regression_is_evaluated_on_one_row_or_equal_targets(tmp_path, rows):
    path, new = tmp_path / "own.csv", tmp_path / "new.csv"
    path.write_text("a,y\n" + "".join(f"{i},{i / 8}\n" for i in range(24)))
    new.write_text(f"a,y\n{rows}")
    model = untrained(load_data(str(path)))
    assert model.evaluate(new).metrics
    new.write_text("a,y\n3,?x\n")
    with pytest.raises(ValueError, match="the column 'y' must hold finite numbers, row 1 has"):
        model.evaluate(new)
    new.write_text("a,y\n3,\n")
    with pytest.raises(ValueError, match="new.csv must have a value of the target 'y' in some row"):
        model.evaluate(new)


def test_columns_may_stand_in_any_order_and_others_are_told(clients, inputs):
    rows = [dict(reversed(row.items())) | {"shoe": "43"} for row in rows_of(clients)]
    taken = inputs.read(rows)
    assert torch.equal(taken.x, inputs.read(clients).x)
    assert "X has columns that the network ignores: shoe" in taken.notes  # the target is known


def test_categories_that_training_did_not_have_are_told(clients, inputs):
    taken = inputs.read([row | {"city": "Paris"} for row in rows_of(clients)])
    assert any("60 rows of X have a category of 'city' that has no" in n for n in taken.notes)


def test_missing_columns_are_named(tmp_path, clients, inputs):
    path = tmp_path / "new.csv"
    path.write_text("age,city\n3,Bern\n")
    with pytest.raises(ValueError, match="new.csv: the table must have .* lacks row, since, in"):
        inputs.read(path)
    with pytest.raises(ValueError, match="X: the table must have the columns"):
        inputs.read([{"age": "3"}])
    path.write_text(clients.read_text().splitlines()[0])
    with pytest.raises(ValueError, match="new.csv must have a row below its header, has none"):
        inputs.read(path)


def test_an_array_cannot_stand_for_a_table(inputs):
    with pytest.raises(ValueError, match="X must hold rows by column name: a list of dicts"):
        inputs.read(np.zeros((3, 8)))


# arrays and images


def test_arrays_and_tensors_have_the_shape_of_training(tmp_path):
    iris = load_data("iris")
    inputs = InputPipeline.of(iris)
    assert torch.equal(inputs.read(iris.x_test).x, iris.normalise(iris.x_test))
    np.savez(tmp_path / "new.npz", x=iris.x_test.numpy())
    assert torch.equal(inputs.read(tmp_path / "new.npz").x, inputs.read(iris.x_test.numpy()).x)
    with pytest.raises(ValueError, match=r"of the shape \(n, 4\), as in training, got .* \(4,\)$"):
        inputs.read(torch.zeros(4))
    with pytest.raises(ValueError, match="X must hold finite numbers"):
        inputs.read(torch.full((1, 4), torch.nan))
    assert torch.equal(
        inputs.read(torch.ones(1, 4, dtype=torch.uint8)).x, inputs.read(torch.ones(1, 4)).x
    )
    with pytest.raises(ValueError, match="X must hold numbers, .*, got <U1"):
        inputs.read(["a"])
    np.savez(tmp_path / "new.npz", z=np.zeros(3))
    with pytest.raises(ValueError, match="new.npz must hold the array x, has none"):
        inputs.read(tmp_path / "new.npz")


def test_a_table_is_refused_by_a_network_of_arrays(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="must hold numbers, .* got a table"):
        InputPipeline.of(load_data("iris")).read(path)
    with pytest.raises(ValueError, match="must hold numbers, .* got a folder"):
        InputPipeline.of(load_data("iris")).read(tmp_path)
    (tmp_path / "new.txt").touch()
    with pytest.raises(ValueError, match="must be a table .* or a folder of images, is a .tx"):
        InputPipeline.of(load_data("iris")).read(tmp_path / "new.txt")


def photos(folder, *, mode="RGB", size=(8, 6)):
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for i in range(4):
            Image.effect_noise(size, 50).convert(mode).save(folder / label / f"{i}.png")
    return folder


def test_a_folder_of_images_is_read_by_name(tmp_path):
    folder = photos(tmp_path / "photos")
    inputs = InputPipeline.of(load_data(str(folder)))
    taken = inputs.read(folder)
    assert (taken.names[0], tuple(taken.x.shape)) == ("cat/0.png", (8, 3, 6, 8))
    flat = inputs.read(folder / "dog")
    assert (flat.names[0], torch.equal(flat.x, taken.x[4:])) == ("0.png", True)
    grey = photos(tmp_path / "grey", mode="L")
    assert tuple(inputs.read(grey).x.shape) == (8, 3, 6, 8)
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="none must hold images"):
        inputs.read(tmp_path / "none")


def test_images_of_another_size_are_stretched_only_if_training_did(tmp_path):
    folder, large = photos(tmp_path / "photos"), photos(tmp_path / "large", size=(16, 12))
    with pytest.raises(ValueError, match="must be 8×6 as the others, is 16×12"):
        InputPipeline.of(load_data(str(folder))).read(large)
    resized = InputPipeline.of(load_data(str(folder), resize=(5, 5)), (5, 5))
    assert tuple(resized.read(large).x.shape) == (8, 3, 5, 5)
    again = InputPipeline.from_dict(json.loads(json.dumps(resized.to_dict())))
    assert torch.equal(again.read(large).x, resized.read(large).x)


def test_images_in_colour_are_refused_by_a_network_of_grey_ones(tmp_path):
    grey, colour = photos(tmp_path / "grey", mode="L"), photos(tmp_path / "colour")
    red = Image.new("RGB", (8, 6), "red")
    red.save(colour / "cat" / "0.png")
    inputs = InputPipeline.of(load_data(str(grey)))
    with pytest.raises(ValueError, match="colour must hold grey images, as in training"):
        inputs.read(colour)
    assert tuple(inputs.read(np.zeros((2, 6, 8), np.uint8)).x.shape) == (2, 1, 6, 8)
    with pytest.raises(ValueError, match=r"X must hold bytes \(uint8\)"):
        inputs.read(np.zeros((2, 1, 6, 8)))


# a loaded model is a fitted estimator


def test_a_loaded_model_is_a_fitted_estimator_for_scikit_learn(tmp_path, clients):
    from sklearn.base import is_classifier
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils.validation import check_is_fitted

    untrained(load_data(str(clients))).save(tmp_path / "run")
    again = load(tmp_path / "run")
    check_is_fitted(again)
    assert is_classifier(again)
    frame = pd.read_csv(clients)
    labels = frame["churn"]
    assert again.score(frame, labels) == pytest.approx((again.predict(frame) == labels).mean())
    calibrated = CalibratedClassifierCV(FrozenEstimator(again)).fit(frame, labels)
    assert calibrated.predict_proba(frame).shape == (60, 2)
    with pytest.raises(ValueError, match="a loaded model is not trained again: use kmixup"):
        again.fit(frame, labels)


def test_a_regression_is_scored_by_r2(tmp_path):
    path = regression(tmp_path / "rents.csv", rows=60)
    saved = untrained(load_data(str(path)))
    rents = [float(row["rent"].replace(",", ".")) for row in rows_of(path, ";", "cp1252")]
    assert saved.score(path, rents) < 0.5


def test_rows_that_were_in_the_training_set_are_counted(tmp_path, clients):
    untrained(load_data(str(clients))).save(tmp_path / "run")
    again = load(tmp_path / "run")
    (note,) = [note for note in again.predictions(clients).notes if "training row" in note]
    assert note.startswith("40 of 60 rows of ")
    with pytest.warns(UserWarning, match="40 of 60 rows of .* have the inputs of a training row"):
        again.predict(clients)
    new = mixed(tmp_path / "new.csv", rows=30, seed=1)
    assert not any("training row" in note for note in again.predictions(new).notes)


def test_of_many_training_rows_some_are_known(tmp_path, clients, monkeypatch):
    for module in (preparation, new_samples):
        monkeypatch.setattr(module, "MOST_ROWS", 10)
    untrained(load_data(str(clients))).save(tmp_path / "run")
    notes = load(tmp_path / "run").predictions(clients).notes
    assert any(note.startswith("at least 10 of 60 rows of ") for note in notes)


def test_an_edited_schema_is_not_used_by_the_model_that_has_another(tmp_path, clients):
    untrained(load_data(str(clients))).save(tmp_path / "run")
    path = tmp_path / "run/schema.json"
    path.write_text(path.read_text().replace('"city": "category"', '"city": "ignore"'))
    with pytest.raises(ValueError, match="schema.json was edited after training: pass it to"):
        load(tmp_path / "run")
    data = load_data(str(clients), schema=str(path))
    assert not any(name.startswith("city") for name in data.columns)
    assert data.encoder.schema.target == "churn"


@pytest.mark.parametrize(
    ("entry", "value"),
    [("fill", "x"), ("means", [[1]]), ("categories", {"a": 1}), ("kind", "none"), ("used", 3)],
)
def test_entries_of_other_kinds_with_a_right_checksum_are_refused(tmp_path, clients, entry, value):
    untrained(load_data(str(clients))).save(tmp_path)
    inputs = json.loads((tmp_path / "model.json").read_text())["inputs"]
    inputs["table"][1][entry] = value
    forge(tmp_path, inputs=inputs)
    with pytest.raises(ValueError, match="must have entries as training wrote them"):
        load(tmp_path)
    forge(tmp_path, inputs=inputs | {"mean": [["x"]]})
    with pytest.raises(ValueError, match="must hold a model and a record of this version"):
        load(tmp_path)
