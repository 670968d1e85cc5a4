"""Pieces of a sweep: how trials are grouped, and that company changes no row."""

import warnings
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmixup.lab import checkpoint
from kmixup.lab import unit as module
from kmixup.lab.prepare import DivergedError
from kmixup.lab.protocol import Method, Protocol, Trial
from kmixup.lab.train import train
from kmixup.lab.unit import MEMBERS, POINTS, done, failed, in_fleets, run, units

IRIS = Trial("iris", "mlp-iris", Method("kmixup", 2), Protocol(epochs=3, rate=0.05, batch_size=32))


def figures(row):
    return {name: row[name] for name in ("id", "status", "alpha", "xi", "result", "curves")}


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
    noise=st.sampled_from([(), (8.0,)]),
)


@given(st.lists(trials, unique=True, max_size=60))
def test_units_hold_every_trial_once_and_fleets_are_alike(some):
    found = units(some)
    assert Counter(trial for unit in found for trial in unit) == Counter(some)
    for unit in found:
        assert 1 <= len(unit) <= MEMBERS
        assert len(unit) == 1 or all(map(in_fleets, unit))
        assert len({replace(trial, seed=0, method=Method("erm")) for trial in unit}) == 1


def test_only_small_networks_in_full_precision_go_together():
    assert in_fleets(IRIS)
    assert not in_fleets(replace(IRIS, model="mlp-of:ones_own"))
    assert not in_fleets(replace(IRIS, model="lenet"))
    assert not in_fleets(replace(IRIS, fgsm=(1,)))
    assert not in_fleets(replace(IRIS, protocol=Protocol(precision="bf16")))


# rows


def test_a_row_says_what_a_run_alone_says():
    here = train(IRIS, device="cpu").record
    others = [replace(IRIS, seed=1), replace(IRIS, method=Method("erm"))]
    row, *_ = run((IRIS, *others))
    assert row["id"] == IRIS.id
    assert Trial.from_dict(row["trial"]) == IRIS
    for name in ("alpha", "xi", "data", "result", "versions", "machine"):
        assert row[name] == here[name], name
    assert row["curves"]["epoch"] == [1, 2, 3]
    assert row["curves"]["error"] == [entry["error"] for entry in here["epochs"]]
    assert "epochs" not in row


def test_a_trial_has_the_same_row_in_any_company():
    members = tuple(replace(IRIS, seed=seed) for seed in range(4))
    together = run(members)
    apart = [row for member in members for row in run((member,))]
    halves = run(members[:2]) + run(members[2:])
    assert list(map(figures, together)) == list(map(figures, apart)) == list(map(figures, halves))


def test_curves_are_short_and_end_at_the_end():
    record = train(IRIS, device="cpu").record
    entry = record["epochs"][0]
    for epochs in (1, 49, 50, 51, 99, 200, 1234):
        record["epochs"] = [entry | {"epoch": number + 1} for number in range(epochs)]
        shown = done(IRIS, record)["curves"]["epoch"]
        assert len(shown) <= POINTS
        assert shown[-1] == epochs
        assert len({b - a for a, b in pairwise(shown)}) <= 1
    assert min(len(done(IRIS, record)["curves"][name]) for name in ("loss", "error")) == len(shown)


def test_what_json_cannot_say_is_left_out():
    record = train(IRIS, device="cpu").record
    record["result"]["nll"] = float("inf")
    record["noise"] = [{"eps": 8.0, "nll": float("nan")}]
    row = done(IRIS, record)
    assert row["result"]["nll"] is None
    assert row["noise"] == [{"eps": 8.0, "nll": None}]
    assert row["result"]["error"] == record["result"]["error"]


def test_warnings_of_workers_are_silent_and_one_thread_is_used():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            unreachable = replace(IRIS, method=Method("kmixup", 32, 50.0, "xi"))
            (row,) = run((unreachable,))
        assert (row["status"], caught) == ("done", [])
        assert row["machine"]["threads"] == torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


# failures


def test_a_member_that_diverges_fails_alone():
    wild = [replace(IRIS, protocol=replace(IRIS.protocol, rate=1e9), seed=seed) for seed in (0, 1)]
    rows = run(tuple(wild))
    assert [row["status"] for row in rows] == ["failed", "failed"]
    assert rows[0]["error"].startswith("DivergedError: the loss became NaN or infinite in epoch")
    assert rows[0]["id"] == wild[0].id


def test_a_member_that_cannot_run_does_not_stop_the_fleet():
    members = [replace(IRIS, seed=seed) for seed in range(5)]
    large = replace(IRIS, method=Method("kmixup", 120), protocol=Protocol(3, 0.05, batch_size=128))
    alike = [replace(member, protocol=large.protocol) for member in members]
    rows = run((*alike[:2], large, *alike[2:]))
    assert [row["status"] for row in rows] == ["done"] * 2 + ["failed"] + ["done"] * 3
    assert rows[2]["error"] == (
        "ValueError: k=120 with pairing 'loaders' needs 120 training samples, iris has 100: lower k"
    )
    assert rows[2]["traceback"].count("Traceback") == 1
    assert figures(rows[0]) == figures(run((alike[0],))[0])


def test_an_error_is_one_line_in_its_row():
    row = failed(IRIS, ValueError("two\n  lines"))
    assert row["error"] == "ValueError: two lines"
    assert row["traceback"] == "ValueError: two\n  lines\n"
    assert failed(IRIS, "lost")["error"] == "lost"


# large networks


class Stopped(BaseException):
    """As sudden as a signal."""


def own_net(*, in_shape, num_classes):
    return torch.nn.Linear(in_shape[0], num_classes)


@pytest.fixture
def single():
    """A trial of a network of one's own, which is trained alone."""
    return replace(IRIS, model=f"{__name__}:own_net")


def test_an_interrupted_single_trial_goes_on_from_its_checkpoint(single, tmp_path, monkeypatch):
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
    assert row["status"] == "done"
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_does_not_fit_is_gone_at_the_next_attempt(single, tmp_path):
    (tmp_path / single.id).mkdir()
    (tmp_path / single.id / checkpoint.NAME).write_bytes(b"damaged")
    (row,) = run((single,), device="cpu", running=tmp_path)
    assert row["error"].startswith("ValueError: ")
    assert "must be a whole checkpoint" in row["error"]
    (row,) = run((single,), device="cpu", running=tmp_path)
    assert row["status"] == "done"


def test_a_full_disk_spares_the_checkpoint(single, tmp_path, monkeypatch):
    true_save = checkpoint.save

    def fill_up(path, state):
        if len(state["history"]) > 1:
            raise OSError("No space left on device")
        true_save(path, state)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", fill_up)
        (row,) = run((single,), device="cpu", running=tmp_path)
    assert row["error"] == "OSError: No space left on device"
    assert checkpoint.completed_epochs(tmp_path / single.id / checkpoint.NAME) == 1


def test_a_fleet_that_cannot_start_gives_a_row_for_each(monkeypatch):
    def refuse(some):
        raise MemoryError("no room")

    monkeypatch.setattr(module, "train_fleet", refuse)
    rows = run(tuple(replace(IRIS, seed=seed) for seed in range(3)))
    assert [row["error"] for row in rows] == ["MemoryError: no room"] * 3


def test_errors_of_a_fleet_are_those_of_a_run_alone():
    wild = replace(IRIS, protocol=replace(IRIS.protocol, rate=1e9))
    with pytest.raises(DivergedError) as alone:
        train(wild, device="cpu")
    assert run((wild,))[0]["error"] == f"DivergedError: {alone.value}"
