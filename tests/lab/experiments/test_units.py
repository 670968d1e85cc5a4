"""Units: how trials are grouped, and that grouping changes no row."""

import errno
import os
import warnings
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmixup.lab.experiments import units as module
from kmixup.lab.experiments.rows import Done, Failed
from kmixup.lab.experiments.units import MEMBERS, POINTS, done, failed, run, units
from kmixup.lab.train import checkpoint
from kmixup.lab.train.fleet import fits_fleet
from kmixup.lab.train.loop import train
from kmixup.lab.train.setup import DivergedError
from kmixup.lab.trial import Method, Protocol, Trial

IRIS = Trial("iris", "mlp-iris", Method("kmixup", 2), Protocol(epochs=3, rate=0.05, batch_size=32))


def figures(row):
    return row.id, row.alpha, row.xi, row.scores, row.curve


# grouping

trials = st.builds(
    Trial,
    data=st.sampled_from(["iris", "mnist"]),
    model=st.sampled_from(["mlp-iris", "lenet", "mlp-own:net", "nets:mlp-iris"]),
    method=st.builds(Method, st.sampled_from(["erm", "kmixup"]), k=st.integers(1, 3)),
    protocol=st.builds(
        Protocol, epochs=st.integers(1, 2), precision=st.sampled_from(["fp32", "bf16"])
    ),
    seed=st.integers(0, 40),
    shifts=st.sampled_from([(), (("noise", (8.0,)),)]),
)


@given(st.lists(trials, unique=True, max_size=60))
def test_units_hold_every_trial_once_and_fleets_share_a_protocol(some):
    grouped = units(some)
    assert Counter(trial for unit in grouped for trial in unit) == Counter(some)
    for unit in grouped:
        assert 1 <= len(unit) <= MEMBERS
        assert len(unit) == 1 or all(map(fits_fleet, unit))
        assert len({replace(trial, seed=0, method=Method("erm")) for trial in unit}) == 1


def test_only_small_networks_in_full_precision_go_together():
    assert fits_fleet(IRIS)
    assert not fits_fleet(replace(IRIS, model="mlp-of:ones_own"))
    assert not fits_fleet(replace(IRIS, model="lenet"))
    assert not fits_fleet(replace(IRIS, shifts=(("fgsm", (1,)),)))
    assert not fits_fleet(replace(IRIS, protocol=Protocol(precision="bf16")))
    assert not fits_fleet(replace(IRIS, protocol=Protocol(augment=True)))


# rows


def test_a_row_of_a_fleet_equals_a_single_run():
    here = train(IRIS, device="cpu").record
    others = [replace(IRIS, seed=1), replace(IRIS, method=Method("erm"))]
    row, *_ = run((IRIS, *others))
    assert (row.id, row.trial) == (IRIS.id, IRIS)
    plain = row.to_dict()
    for name in ("trial", "alpha", "xi", "data", "result", "versions", "machine"):
        assert plain[name] == here[name], name
    assert row.curve.epoch == (1, 2, 3)
    assert row.curve.error == tuple(entry["error"] for entry in here["epochs"])
    assert "epochs" not in plain


def test_curves_are_short_and_end_at_the_end():
    record = train(IRIS, device="cpu").record
    entry = record["epochs"][0]
    for epochs in (1, 49, 50, 51, 99, 200, 1234):
        record["epochs"] = [entry | {"epoch": number + 1} for number in range(epochs)]
        shown = done(IRIS, record).curve.epoch
        assert len(shown) <= POINTS
        assert shown[-1] == epochs
        assert len({b - a for a, b in pairwise(shown)}) <= 1
    assert min(map(len, vars(done(IRIS, record).curve).values())) == len(shown)


def test_warnings_of_workers_are_silent_and_one_thread_is_used():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            unreachable = replace(IRIS, method=Method("kmixup", 32, 50.0, "xi"))
            (row,) = run((unreachable,))
        assert (type(row), caught) == (Done, [])
        assert row.machine["threads"] == torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


# failures


def test_a_member_that_cannot_run_does_not_stop_the_fleet():
    members = [replace(IRIS, seed=seed) for seed in range(5)]
    large = replace(IRIS, method=Method("kmixup", 120), protocol=Protocol(3, 0.05, batch_size=128))
    alike = [replace(member, protocol=large.protocol) for member in members]
    rows = run((*alike[:2], large, *alike[2:]))
    assert list(map(type, rows)) == [Done] * 2 + [Failed] + [Done] * 3
    assert "120 needs 120 training samples with pairing 'loaders'" in rows[2].reason
    assert rows[2].traceback.count("Traceback") == 1
    assert figures(rows[0]) == figures(run((alike[0],))[0])


def test_an_error_is_one_line_in_its_row():
    row = failed(IRIS, ValueError("two\n  lines"))
    assert row.reason == "ValueError: two lines"
    assert row.traceback == "ValueError: two\n  lines\n"
    assert failed(IRIS, "lost").reason == "lost"


# large networks


class Stopped(BaseException):
    """As sudden as a signal."""


def own_net(*, in_shape, num_classes):
    return torch.nn.Linear(in_shape[0], num_classes)


@pytest.fixture
def single():
    """A trial of your own network, which is trained alone."""
    return replace(IRIS, model=f"{__name__}:own_net")


def test_an_interrupted_single_trial_resumes_from_its_checkpoint(single, tmp_path, monkeypatch):
    expected = figures(run((single,), device="cpu")[0])
    true_save, saved = checkpoint.save, []

    def save_and_stop(path, state):
        true_save(path, state)
        saved.append(path)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", save_and_stop)
        for epochs in (1, 2):
            with pytest.raises(Stopped):
                run((single,), device="cpu", running=tmp_path)
            assert checkpoint.completed_epochs(tmp_path / single.id / checkpoint.NAME) == epochs
    (row,) = run((single,), device="cpu", running=tmp_path)
    assert figures(row) == expected
    assert saved == [tmp_path / single.id / checkpoint.NAME] * 2


def test_without_a_common_folder_nothing_is_kept(single, tmp_path):
    (row,) = run((single,), device="cpu", running=tmp_path / "on another machine")
    assert isinstance(row, Done)
    assert list(tmp_path.iterdir()) == []


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-1])


def of_another_network(path):
    state = checkpoint.read(path)
    state["model"]["weight"] = torch.zeros(7, 7)
    checkpoint.save(path, state)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (cut_off, "must be a whole checkpoint of kmixup"),
        (of_another_network, r"it does not fit \(.*size mismatch.*\): delete it, or"),
    ],
)
def test_a_trial_with_an_unusable_checkpoint_starts_anew(single, tmp_path, damage, problem):
    expected = figures(run((single,), device="cpu")[0])
    path = tmp_path / single.id / checkpoint.NAME
    train(single, device="cpu", out=path.parent)
    damage(path)
    with pytest.raises(checkpoint.UnusableError, match=problem):
        train(single, device="cpu", out=path.parent, resume=True)
    (row,) = run((single,), device="cpu", running=tmp_path)
    assert figures(row) == expected
    assert checkpoint.completed_epochs(path) == 3


@pytest.mark.parametrize(
    "error", [RuntimeError("out of memory"), OSError("No space left on device")]
)
def test_an_error_of_training_spares_the_checkpoint(single, tmp_path, monkeypatch, error):
    true_save = checkpoint.save

    def fail_later(path, state):
        if len(state["history"]) > 1:
            raise error
        true_save(path, state)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", fail_later)
        (row,) = run((single,), device="cpu", running=tmp_path)
    assert row.reason == f"{type(error).__name__}: {error}"
    assert checkpoint.completed_epochs(tmp_path / single.id / checkpoint.NAME) == 1


def test_a_disk_that_cannot_be_read_spares_the_checkpoint(single, tmp_path, monkeypatch):
    path = tmp_path / single.id / checkpoint.NAME
    train(single, device="cpu", out=path.parent)

    def fail(path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "read_bytes", fail)
        (row,) = run((single,), device="cpu", running=tmp_path)
    assert row.reason == "OSError: [Errno 5] Input/output error"
    assert checkpoint.completed_epochs(path) == 3


def test_a_fleet_that_cannot_start_gives_a_row_for_each(monkeypatch):
    def fail(some):
        raise MemoryError("no room")

    monkeypatch.setattr(module, "train_fleet", fail)
    rows = run(tuple(replace(IRIS, seed=seed) for seed in range(3)))
    assert [row.reason for row in rows] == ["MemoryError: no room"] * 3


def test_errors_of_a_fleet_are_those_of_a_run_alone():
    wild = replace(IRIS, protocol=replace(IRIS.protocol, rate=1e9))
    with pytest.raises(DivergedError) as alone:
        train(wild, device="cpu")
    rows = run((wild, replace(wild, seed=1)))
    assert list(map(type, rows)) == [Failed, Failed]
    assert rows[0].reason == f"DivergedError: {alone.value}"
