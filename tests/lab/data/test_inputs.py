"""New samples for a trained network: ids, damaged settings, numbers that float32 lacks."""

import numpy as np
import pandas as pd
import pytest
from own_tables import mixed

from kmixup.lab.data import load
from kmixup.lab.data.inputs import InputPipeline, read_targets, target_in


def frame(**columns):
    plain = {"age": [30.0, 40.0, 50.0] * 8, "target": ["x", "y", "x"] * 8}
    return pd.DataFrame(plain | {name: list(cells) for name, cells in columns.items()})


def pipeline(tmp_path, drop=(), **columns):
    frame(**columns).to_csv(tmp_path / "own.csv", index=False)
    return InputPipeline.of(load(str(tmp_path / "own.csv"), target="target", drop=drop))


IDS = [f"C{i}" for i in range(24)]


@pytest.mark.parametrize(
    ("columns", "drop", "expected"),
    [
        ({"customer": IDS}, (), IDS),  # all texts differ
        ({"client_id": range(7, 55, 2)}, ["client_id"], [str(i) for i in range(7, 55, 2)]),
        ({"client_id": range(7, 55, 2)}, (), None),  # it is an input
        ({"client_id": [1, 1, *range(22)]}, ["client_id"], None),  # it does not tell rows apart
        ({"notes": IDS[::-1]}, ["notes"], None),
        ({}, (), None),
    ],
)
def test_predictions_keep_the_ids_of_their_rows(tmp_path, columns, drop, expected):
    inputs = pipeline(tmp_path, drop, **columns)
    new = inputs.read(tmp_path / "own.csv")
    assert list(new.names) == (expected or [str(i) for i in range(1, 25)])


def test_targets_are_read_from_tables_arrays_and_folders(tmp_path):
    path = tmp_path / "own.csv"
    frame().to_csv(path, index=False)
    rows, y = read_targets(path, (), ("x", "y"), target_in(path, frame().columns[-1]))
    assert (rows.tolist(), y.tolist()) == (list(range(24)), [0, 1, 0] * 8)
    np.savez(tmp_path / "own.npz", x=np.zeros((3, 2)), y=[7, 5, 7])
    names = ("1", "2", "3")
    assert read_targets(tmp_path / "own.npz", names, ("5", "7"), None)[1].tolist() == [1, 0, 1]
    assert read_targets(tmp_path / "own.npz", names, (), None)[1].tolist() == [7, 5, 7]
    for y in ([[7], [5], [7]], [7], [7.0, 5.0, np.nan], [1j] * 3):
        np.savez(tmp_path / "bad.npz", x=np.zeros((3, 2)), y=y)
        with pytest.raises(ValueError, match=r"must hold (y of shape \(3,\),|finite numbers)"):
            read_targets(tmp_path / "bad.npz", names, (), None)
    np.savez(tmp_path / "bad.npz", x=np.zeros((3, 2)), y=["a", "b", "c"])
    with pytest.raises(ValueError, match="must hold numbers in y, as in training, has 'a'"):
        read_targets(tmp_path / "bad.npz", names, (), None)
    images = ("cat/1.png", "a/2.png")
    assert read_targets(tmp_path, images, ("a", "cat"), None)[1].tolist() == [1, 0]
    with pytest.raises(ValueError, match="must have labels among 5, 8, has '7'"):
        read_targets(tmp_path / "own.npz", names, ("5", "8"), None)


def test_a_mixed_table_reads_alike_before_and_after_it_is_written(tmp_path):
    path = mixed(tmp_path / "own.csv", rows=60)
    inputs = InputPipeline.of(load(str(path)))
    again = InputPipeline.from_dict(inputs.to_dict(), inputs.encoder.schema)
    assert inputs.read(path).x.equal(again.read(path).x)
    with pytest.raises(ValueError, match="mean and std must be finite"):
        InputPipeline.from_dict(
            inputs.to_dict() | {"std": [float("nan")] * 5}, inputs.encoder.schema
        )
