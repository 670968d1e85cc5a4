"""Rows are read and written without loss, those of earlier and later versions too."""

import json
import math
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeping import done_row, failed_row

from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.experiments.rows import NAME, Done, TrainingCurve, done_of, failed_of, read_row
from kmixup.lab.train.config import Method, Protocol, Trial

TRIAL = Trial("iris", "mlp-iris", Method("kmixup", 4), Protocol(epochs=3), seed=2)
PUBLISHED = sorted((Path(__file__).parents[3] / "results").rglob(NAME))


def again(row):
    """The row after a way through JSON."""
    return read_row(json.loads(json.dumps(row.to_dict(), allow_nan=False)))


def without_checksum(row):
    return {key: value for key, value in row.to_dict().items() if key != "checksum"}


def published(path):
    return path.read_text().splitlines()[1:]


def test_there_are_published_rows():
    assert sum(len(published(path)) for path in PUBLISHED) > 4000


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.name)
def test_a_published_row_is_written_again_byte_for_byte(path):
    for line in published(path):
        plain = read_row(json.loads(line)).to_dict()
        assert json.dumps(plain, separators=(",", ":")) == line


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.name)
def test_the_ids_of_published_rows_are_those_of_their_trials(path):
    for line in published(path):
        row = read_row(json.loads(line))
        assert row.trial.id == row.id


figures = st.one_of(st.floats(0, 1e9), st.just(math.inf))
scores = st.builds(Scores, st.floats(0, 1), figures, st.floats(0, 1))


@given(
    alpha=figures,
    xi=st.one_of(st.none(), st.floats(0, 1e9)),
    scores=scores,
    shifts=st.dictionaries(
        st.sampled_from(["noise", "fgsm"]), st.dictionaries(st.floats(0, 255), scores)
    ),
)
def test_a_row_comes_back_with_every_figure(alpha, xi, scores, shifts):
    row = done_row(TRIAL, alpha=alpha, xi=xi, scores=scores, shifts=shifts)
    assert again(row) == row


def test_a_failed_row_comes_back_with_its_reason():
    row = failed_row(TRIAL, "ValueError: <é>", traceback="two\nlines")
    assert again(row) == row


def test_the_keys_of_a_row_are_those_of_published_rows():
    written = done_row(TRIAL).to_dict()
    assert list(written) == [*json.loads(published(PUBLISHED[-1])[0]), "checksum"]
    scores = {8.0: Scores(0.5, 2.0, 0.1)}
    shifted = done_row(TRIAL, shifts={"noise": {}, "fgsm": scores}).to_dict()
    assert shifted["noise"] == []
    assert shifted["fgsm"] == [{"eps": 8.0, "error": 0.5, "nll": 2.0, "ece": 0.1}]


def test_keys_of_a_later_version_are_kept():
    plain = without_checksum(done_row(TRIAL)) | {"weather": "fine"}
    plain["data"]["colour"] = "red"
    assert again(read_row(plain)).to_dict() == plain


@pytest.mark.parametrize(("data", "split"), [("iris", True), ("mnist", False), ("a.csv", False)])
def test_rows_of_earlier_versions_tell_by_their_data_set_whether_it_was_split(data, split):
    plain = without_checksum(done_row(replace(TRIAL, data=data)))
    del plain["data"]["split_by_seed"]
    assert again(read_row(plain)).data.split_by_seed == split


def test_a_changed_row_is_written_as_it_is_now():
    row = again(done_row(TRIAL))
    changed = replace(row, seconds=9.0)
    assert without_checksum(changed) == without_checksum(row) | {"seconds": 9.0}
    assert again(changed) == changed


def test_rows_go_from_process_to_process():
    for row in (done_row(TRIAL), again(done_row(TRIAL)), failed_row(TRIAL)):
        there = pickle.loads(pickle.dumps(row))
        assert (there, there.to_dict()) == (row, row.to_dict())


def test_rows_are_told_apart_by_how_their_trials_ended():
    rows = [done_row(TRIAL), failed_row(TRIAL), done_row(TRIAL, 0.3)]
    assert [row.error for row in done_of(rows)] == [0.1, 0.3]
    assert [row.reason for row in failed_of(rows)] == ["ValueError: no"]


def test_a_curve_has_a_loss_and_an_error_for_each_epoch():
    curve = TrainingCurve((1, 2), (0.5, 0.25), (0.2, 0.1))
    row = again(done_row(TRIAL, curve=curve))
    assert isinstance(row, Done)
    assert row.curve == curve
