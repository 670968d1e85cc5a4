"""Rows are read and written without loss."""

import gzip
import json
import math
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeping import done_row, failed_row

from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.experiments.rows import (
    PUBLISHED,
    read_row,
)
from kmixup.lab.trial import Method, Protocol, Trial

TRIAL = Trial("iris", "mlp-iris", Method("kmixup", 4), Protocol(epochs=3), seed=2)
PATHS = sorted((Path(__file__).parents[3] / "results").rglob(PUBLISHED))


def again(row):
    """The row after a way through JSON."""
    return read_row(json.loads(json.dumps(row.to_dict(), allow_nan=False)))


def published(path):
    """The rows of a published file, as JSON objects."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()[1:]]


def test_there_are_published_rows():
    assert sum(len(published(path)) for path in PATHS) > 7000


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.parent.name)
def test_published_rows_are_read_without_loss_and_have_the_ids_of_their_trials(path):
    for plain in published(path):
        row = read_row(plain)
        assert row.id == plain["id"]
        assert again(row) == row


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


def test_a_row_has_the_training_error():
    fits = [{"error": error, "linear": 0.0, "fitted": error < 0.1} for error in (0.02, 0.4)]
    rows = [done_row(TRIAL, training=fit) for fit in (*fits, None)]
    assert [again(row).training for row in rows] == [*fits, None]


def test_the_keys_of_a_row_are_those_of_published_rows():
    written = done_row(TRIAL).to_dict()
    assert list(written) == list(published(PATHS[-1])[0])
    scores = {8.0: Scores(0.5, 2.0, 0.1)}
    shifted = done_row(TRIAL, shifts={"noise": {}, "fgsm": scores}).to_dict()
    assert shifted["noise"] == []
    assert shifted["fgsm"] == [{"eps": 8.0, "error": 0.5, "nll": 2.0, "ece": 0.1}]


def test_rows_go_from_process_to_process():
    for row in (done_row(TRIAL), again(done_row(TRIAL)), failed_row(TRIAL)):
        there = pickle.loads(pickle.dumps(row))
        assert (there, there.to_dict()) == (row, row.to_dict())
