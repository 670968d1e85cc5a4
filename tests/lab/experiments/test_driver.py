"""Sweeps run every trial once, and lose none."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeping import Fake, Inline, table

from kmixup.lab.experiments import driver as module
from kmixup.lab.experiments.driver import sweep, weight
from kmixup.lab.experiments.grid import expand
from kmixup.lab.experiments.rows import LOCK, NAME, read
from kmixup.lab.trial import Method, Protocol, Trial

# ids


def test_every_setting_changes_the_id():
    changes = [
        {"data": "cancer"}, {"model": "mlp-toy"}, {"seed": 1}, {"limit": 10}, {"scaling": "none"},
        {"size": 10}, {"target": "species"}, {"digest": "0123"},
        {"shifts": (("noise", (1,)),)}, {"shifts": (("fgsm", (1,)),)},
        {"protocol": Protocol(epochs=3)}, {"protocol": Protocol(milestones=())},
    ]  # fmt: skip
    methods = [{"k": 8}, {"alpha": 2}, {"alpha_rule": "xi"}, {"pairing": "batch"}]
    changes += [{"method": Method("kmixup", **change)} for change in methods]
    trials = [Trial(**{"data": "iris", "model": "mlp-iris"} | change) for change in [{}, *changes]]
    assert len({trial.id for trial in trials}) == len(trials)


def test_equal_trials_have_equal_ids():
    whole = Trial("a", "b", Method("kmixup", 1, 2), Protocol(rate=1, weight_decay=0, momentum=0))
    decimal = Trial(
        "a", "b", Method("mixup", 9, 2.0), Protocol(rate=1.0, weight_decay=0.0, momentum=0)
    )
    assert whole == decimal
    assert whole.id == decimal.id
    assert Trial.from_dict(json.loads(json.dumps(whole.to_dict()))).id == whole.id


# running them


def seeds(number, **more):
    return expand(data="iris", method="erm", trials=number, protocol={"epochs": 2}, **more)


def test_the_rows_are_those_of_the_trials_asked_for(tmp_path):
    outcome = sweep(seeds(3), tmp_path, engine=Inline(), device="cpu")
    assert [row.id for row in outcome.rows] == [trial.id for trial in seeds(3)]
    assert (outcome.ran, outcome.failed) == (3, [])
    assert sorted(os.listdir(tmp_path)) == [LOCK, NAME]
    others = sweep(seeds(2, seed=9), tmp_path, engine=Inline(), device="cpu")
    assert [row.trial.seed for row in others.rows] == [9, 10]
    assert len(read(tmp_path)) == 5


def test_finished_trials_are_not_run_again(tmp_path):
    engine = Fake()
    sweep(seeds(3), tmp_path, engine=engine)
    assert sweep(seeds(5), tmp_path, engine=engine).ran == 2
    assert sweep([*seeds(5), *seeds(5)], tmp_path, engine=engine).ran == 0
    assert sorted(engine.ran) == sorted(trial.id for trial in seeds(5))


def test_failed_trials_are_tried_again_and_the_latest_row_counts(tmp_path):
    outcome = sweep(seeds(4), tmp_path, engine=Fake(failing={1, 3}))
    assert [row.trial.seed for row in outcome.failed] == [1, 3]
    engine = Fake(failing={3})
    outcome = sweep(seeds(4), tmp_path, engine=engine)
    assert engine.ran == [seeds(4)[seed].id for seed in (1, 3)]
    assert [row.trial.seed for row in outcome.failed] == [3]
    assert (tmp_path / NAME).read_text().count('"status":"failed"') == 3


def test_progress_is_reported_once_rows_are_on_disk(tmp_path):
    sweep(seeds(1), tmp_path, engine=Fake())
    reported = []
    sweep(
        seeds(2),
        tmp_path,
        engine=Fake(),
        started=lambda *both: reported.append([len(each) for each in both]),
        ended=lambda rows: reported.append(([row.id for row in rows], len(read(tmp_path)))),
    )
    assert reported == [[2, 1], ([seeds(2)[1].id], 2)]


def test_the_heaviest_units_go_first(tmp_path):
    ran = []

    class Noting(Fake):
        def rows(self, units, **more):
            ran.extend(unit[0].protocol.epochs for unit in units)
            return super().rows(units, **more)

    sweep(expand(data="iris", protocol={"epochs": [2, 9, 4]}), tmp_path, engine=Noting())
    assert ran == [9, 4, 2]
    assert weight(Trial("iris", "m", limit=10)) == weight(Trial("own.csv", "m", limit=10)) == 2000


@pytest.mark.parametrize("model", ["mlp-iris", "lenet"])
def test_partial_results_have_every_method(tmp_path, model):
    trials = []
    for method in ("erm", "mixup", "kmixup"):
        trials += expand(data="iris", model=model, method=method, trials=20)
    rows = []

    def stop_after_fifteen(new):
        rows.extend(new)
        if len(rows) >= 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(trials, tmp_path, engine=Fake(), ended=stop_after_fifteen)
    seeds = {}
    for row in read(tmp_path):
        seeds.setdefault(row.trial.method.name, set()).add(row.trial.seed)
    assert seeds.keys() == {"erm", "mixup", "kmixup"}
    assert all(seeds[name] >= {0, 1, 2, 3, 4} for name in seeds)


@given(deaths=st.lists(st.integers(1, 4000), max_size=8))
def test_a_driver_that_dies_at_any_byte_leaves_a_sweep_to_go_on_with(tmp_path_factory, deaths):
    """The system takes some bytes of a fleet's rows, then the process is gone."""
    folder = tmp_path_factory.mktemp("sweep")
    trials = expand(data="iris", k=[2, 4], trials=3, protocol={"epochs": [1, 2, 3]})
    true_write = os.write

    class Killed(BaseException):
        pass

    for left in deaths:

        def dying(handle, data, room=[left]):  # noqa: B006
            done = true_write(handle, data[: room[0]])
            room[0] -= done
            if not room[0]:
                raise Killed
            return done

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "write", dying)
            try:
                sweep(trials, folder, engine=Fake())
            except Killed:
                continue
    before = [row.id for row in read(folder)] if (folder / NAME).exists() else []
    engine = Fake()
    outcome = sweep(trials, folder, engine=engine)
    assert table(outcome.rows) == table([Fake().row(trial) for trial in trials])
    assert sorted(before + engine.ran) == sorted(trial.id for trial in trials)
    assert (folder / NAME).read_text().count("\n") == 1 + len(trials)


def test_an_engine_is_stopped_when_rows_cannot_be_written(tmp_path, monkeypatch):
    stopped = []

    class Stopping(Fake):
        def rows(self, units, **more):
            try:
                yield from super().rows(units, **more)
            finally:
                stopped.append(True)

    def full(self, rows):
        raise OSError("the rows could not be written")

    monkeypatch.setattr(module.Store, "append", full)
    with pytest.raises(OSError, match="the rows could not be written") as held:
        sweep(seeds(2), tmp_path, engine=Stopping())
    assert stopped
    del held


def test_an_unknown_device_raises_at_once(tmp_path):
    with pytest.raises(ValueError, match="device must be one of auto, cpu, cuda, got 'tpu'"):
        sweep(seeds(1), tmp_path, engine=Fake(), device="tpu")
    assert os.listdir(tmp_path) == []


# checkpoints of large networks


def test_checkpoints_are_kept_until_their_row_is_safe_and_no_longer(tmp_path):
    first, second, other = (trial.id for trial in seeds(3))
    running = tmp_path / "running"

    class Saving(Fake):
        def rows(self, units, **more):
            assert first not in os.listdir(running)
            (running / second).mkdir(exist_ok=True)
            yield from super().rows(units, **more)

    sweep(seeds(1), tmp_path, engine=Fake())
    (running / first).mkdir(parents=True)  # a crash came after the row
    (running / other).mkdir()  # of another sweep
    sweep(seeds(2), tmp_path, engine=Saving(failing={1}))
    assert sorted(os.listdir(running)) == sorted([second, other])
    sweep(seeds(2), tmp_path, engine=Saving())
    assert os.listdir(running) == [other]
