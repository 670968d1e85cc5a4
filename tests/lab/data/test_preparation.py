"""From the columns of a table to inputs: fitted on the training rows alone, and kept."""

import json

import pytest
import torch
from own_tables import mixed, regression, wide, write_csv

from kmixup.lab.data import Holdout, load
from kmixup.lab.data.columns import Column
from kmixup.lab.data.fitting import fit_feature, looks_like_id
from kmixup.lab.data.preparation import ACCOUNT, Feature, Preparation

NAN = float("nan")
COLOURS = Column("colour", "category", "", ("red", "green", "blue"))


def fit(column, values):
    return fit_feature(column, torch.tensor(values))


def test_a_number_stays_a_number_and_a_blank_gets_the_median_and_an_indicator():
    feature = fit(Column("a"), [5.0, 1.0, NAN, 9.0])
    assert feature.names == ("a", "a blank")
    assert feature.encode(torch.tensor([7.0, NAN])).tolist() == [[7, 0], [5, 1]]
    assert feature.binary == (False, True)
    assert feature.remarks == ("1 blanks, given the median",)


def test_a_blank_that_training_did_not_have_gets_the_median_alone():
    feature = fit(Column("a"), [5.0, 1.0, 9.0])
    assert feature.encode(torch.tensor([NAN])).tolist() == [[5]]


def test_a_boolean_is_0_or_1_and_a_blank_the_most_frequent():
    feature = fit(Column("a", "boolean", ""), [1.0, 1.0, 0.0, NAN])
    assert feature.encode(torch.tensor([0.0, NAN])).tolist() == [[0, 0], [1, 1]]
    assert feature.binary == (True, True)
    assert feature.remarks == ("1 blanks, taken for yes",)


def test_a_category_is_one_hot_over_the_texts_of_the_training_rows():
    feature = fit(COLOURS, [0.0, 0.0, 2.0, NAN])
    assert feature.names == ("colour=blue", "colour=red", "colour blank")
    # places are now those of its own list
    inputs = feature.encode(torch.tensor([0.0, 1.0, -1.0, NAN]))
    assert inputs.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert feature.remarks == ("1 blanks, taken for 'red', the most frequent",)


def test_a_date_is_days_month_and_weekday():
    column = Column("when", "date", "YYYY-MM-DD")
    feature = fit(column, column.numbers(["2024-02-29", "2023-12-31"]).tolist())
    assert feature.names == ("when", "when month", "when weekday")
    days = torch.from_numpy(column.numbers(["2024-02-29", "1969-12-31", "2024-03-03 18:00"]))
    inputs = feature.encode(days)
    assert inputs[:, 1:].tolist() == [[2, 3], [12, 2], [3, 6]]  # a Thursday, Wednesday, Sunday
    assert inputs[:, 0].tolist() == [19782, -1, 19785.75]


def test_texts_that_are_all_different_are_left_out():
    column = Column("name", "category", "", tuple(f"n{i}" for i in range(20)))
    feature = fit(column, [float(i) for i in range(20)])
    assert (feature.used, feature.names) == (False, ())
    assert "its 20 texts are all different" in feature.remarks[0]
    assert feature.encode(torch.zeros(3)).shape == (3, 0)


def test_only_the_most_frequent_of_many_texts_are_inputs():
    column = Column("city", "category", "", tuple(f"{i:03d}" for i in range(150)))
    feature = fit(column, [float(i) for i in range(150)] + [float(i) for i in range(50, 150)])
    assert feature.column.categories == tuple(f"{i:03d}" for i in range(50, 150))
    assert feature.remarks == ("the 100 most frequent of 150, others are 0 everywhere",)


def test_a_column_without_a_value_in_training_is_left_out():
    feature = fit(Column("a"), [NAN, NAN])
    assert not feature.used
    assert feature.remarks == ("it has no value in the training rows",)


@pytest.mark.parametrize(("column", "values"), [(Column("a b"), [3.0] * 4), (COLOURS, [1.0] * 4)])
def test_a_constant_is_named_with_the_remedy(column, values):
    feature = fit(column, values)
    assert feature.used
    assert feature.remarks[0].startswith("constant: --drop ")
    assert feature.remarks[0].endswith(" leaves it out")


@pytest.mark.parametrize(
    ("name", "values", "is_id"),
    [
        ("row", torch.arange(50.0), True),
        ("row", torch.arange(75.0)[torch.randperm(75)[:50]], True),
        ("customer_id", 1000 * torch.arange(50.0), True),
        ("customerId", 1000 * torch.arange(50.0), True),
        ("paid", 1000 * torch.arange(50.0), False),
        ("customer_id", torch.arange(50.0) % 10, False),
        ("customer_id", torch.arange(50.0) / 2, False),
        ("id", torch.arange(9.0), False),
    ],
)
def test_ids_are_different_whole_numbers_in_a_row_or_by_name(name, values, is_id):
    assert looks_like_id(name, values) == is_id
    remarks = fit_feature(Column(name), values).remarks
    assert remarks == (f"looks like an id: --drop {name} leaves it out",) * is_id


# whole tables


def test_a_table_of_numbers_alone_is_left_as_it_is(tmp_path):
    rows = [[i, -i / 3, "xy"[i % 2]] for i in range(30)]
    data = load(str(write_csv(tmp_path / "own.csv", ["a", "b", "target"], rows)), seed=1)
    assert data.columns == ("a", "b")
    assert data.preparation.encode(data.x_train) is data.x_train


def test_a_mixed_table_loads_with_an_account_of_every_column(tmp_path):
    data = load(str(mixed(tmp_path / "own.csv")))
    assert data.x_train.isfinite().all()
    assert data.columns == (
        "row", "age", "age blank", "city=Aachen", "city=Bern", "city=Cádiz", "city=Dover",
        "city blank", "since", "since month", "since weekday", "income", "mail", "currency=EUR",
    )  # fmt: skip
    assert data.shape == (14,)
    account = {row[0]: row[1:] for row in data.preparation.account()}
    assert len(ACCOUNT) == 4
    assert account["customer"][1] == "left out"
    assert account["row"][2] == "looks like an id: --drop row leaves it out"
    assert account["city"][:2] == ("category of 4", "4 columns of 0 and 1, blank")
    assert account["since"][:2] == ("date like YYYY-MM-DD", "days, month, weekday")
    assert account["mail"][:2] == ("boolean", "0 or 1")
    assert account["currency"][2] == "constant: --drop currency leaves it out"


def test_inputs_of_0_and_1_are_not_scaled_and_others_are(tmp_path):
    data = load(str(mixed(tmp_path / "own.csv")))
    z = data.normalise(data.x_train)
    for i, (name, binary) in enumerate(zip(data.columns, data.preparation.binary, strict=True)):
        if binary:
            assert set(z[:, i].tolist()) <= {0, 1}, name
        else:
            assert float(z[:, i].mean()) == pytest.approx(0, abs=1e-4), name
            assert float(z[:, i].std()) == pytest.approx(1, abs=0.02), name


@pytest.mark.parametrize("scaling", ["minmax", "symmetric", "none"])
def test_other_scalings_spare_0_and_1_as_well(tmp_path, scaling):
    data = load(str(mixed(tmp_path / "own.csv")), scaling=scaling)
    mail = data.columns.index("mail")
    assert set(data.normalise(data.x_train)[:, mail].tolist()) == {0, 1}


@pytest.mark.parametrize("holdout", [None, Holdout(0.25, 3)])
def test_nothing_is_fitted_to_the_test_rows(tmp_path, holdout):
    path = mixed(tmp_path / "own.csv", rows=60)
    first = load(str(path), holdout=holdout)
    lines = path.read_text().splitlines()
    tested = {tuple(row) for row in first.x_test.tolist()}
    rows = first.columns.index("row")
    numbers = {int(row[rows]) for row in tested}
    changed = [
        line if number == 0 or number not in numbers else
        ",".join([*line.split(",")[:2], "900", "Zug", "1999-01-01", "1e9", "no", "USD",
                  line.split(",")[-1]])
        for number, line in enumerate(lines)
    ]  # fmt: skip
    path.write_text("\n".join(changed))
    second = load(str(path), holdout=holdout)
    assert torch.equal(first.x_train, second.x_train)
    assert torch.equal(first.mean, second.mean)
    assert first.preparation.names == second.preparation.names
    account = {row[0]: row[3] for row in second.preparation.account()}
    assert account["city"].endswith(f"{len(numbers)} test rows have another category")
    cities = [i for i, name in enumerate(second.columns) if name.startswith("city=")]
    assert not second.x_test[:, cities].any()


def test_a_preparation_survives_json_and_treats_new_rows_alike(tmp_path):
    path = mixed(tmp_path / "own.csv", rows=60)
    data = load(str(path))
    kept = Preparation.from_dict(json.loads(json.dumps(data.preparation.to_dict())))
    assert kept == data.preparation
    header, *lines = (line.split(",") for line in path.read_text().splitlines())
    rows = {int(line[1]): dict(zip(header, line, strict=True)) for line in lines}
    number = data.columns.index("row")
    for x in (data.x_train, data.x_test):
        again = kept.transform(rows[int(i)] for i in x[:, number].tolist())
        assert torch.equal(again, x)


def test_new_rows_need_no_target_and_may_have_new_categories(tmp_path):
    data = load(str(mixed(tmp_path / "own.csv", rows=60)))
    row = {
        "row": "7", "age": "", "city": " Zug ", "since": "2020-05-01", "income": "1e4",
        "mail": "No", "currency": "EUR", "comment": "new",
    }  # fmt: skip
    raw = data.preparation.read([row, row])
    assert data.preparation.unseen(raw) == {"city": 2}
    x = data.preparation.encode(raw)
    assert x.shape == (2, len(data.columns))
    assert x.isfinite().all()
    with pytest.raises(ValueError, match="row 2 must have the columns of the training rows, lacks"):
        data.preparation.transform([row, {"row": "7"}])
    with pytest.raises(ValueError, match="'age' must hold finite numbers, row 1 has 'old'"):
        data.preparation.transform([row | {"age": "old"}])


def test_a_table_of_which_nothing_can_be_learnt_is_refused(tmp_path):
    rows = [[f"n{i}", "", "xy"[i % 2]] for i in range(30)]
    path = write_csv(tmp_path / "own.csv", ["name", "none", "target"], rows)
    with pytest.raises(ValueError, match="must have a column to learn from, all are empty or of"):
        load(str(path))


def test_targets_of_a_regression_are_standardised_and_can_be_unscaled(tmp_path):
    path = regression(tmp_path / "rent.csv")
    data = load(str(path))
    assert (data.task, data.outputs, data.classes) == ("regression", 1, ())
    assert float(data.y_train.mean()) == pytest.approx(0, abs=1e-6)
    assert float(data.y_train.std(correction=0)) == pytest.approx(1, abs=1e-6)
    lines = path.read_text("cp1252").splitlines()[1:]
    rents = sorted(float(line.split(";")[-1].replace(",", ".")) for line in lines)
    unscaled = data.unscale(torch.cat([data.y_train, data.y_test])).tolist()
    assert sorted(unscaled) == pytest.approx(rents, rel=1e-4)
    assert load("iris").task == "classes"
    assert load("iris").outputs == 3


def test_a_constant_target_of_a_regression_is_refused(tmp_path):
    path = write_csv(tmp_path / "own.csv", ["a", "y"], [[i, 2.5] for i in range(9)])
    with pytest.raises(ValueError, match="'y' must have two different values or more, all 9 rows"):
        load(str(path))
    part = write_csv(tmp_path / "part.csv", ["a", "y"], [[i, 2.5 + i] for i in range(9)])
    with pytest.raises(ValueError, match=r"must differ, all 1 training samples have \d.5: name"):
        load(str(part), limit=1)


def test_a_wide_table_of_few_rows_leaves_its_patients_out(tmp_path):
    data = load(str(wide(tmp_path / "genes.csv")))
    assert data.shape == (400,)
    assert data.preparation.account()[0][2] == "left out"


def test_parts_and_notes_are_told_of_a_table(tmp_path):
    data = load(str(mixed(tmp_path / "own.csv")), limit=50)
    assert data.part == "the first 50 of 200 training and 50 of 100 test samples"
    assert data.notes == ("the target is the last column, 'churn': --target names another",)
    assert isinstance(data.preparation.features[0], Feature)
