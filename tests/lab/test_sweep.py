"""Grids become trials, trials become rows, and nothing is run twice or lost."""

import json
import os
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sweeping import Fake, Inline, table

from kmixup.lab import sweep as module
from kmixup.lab.prepare import load_data, network
from kmixup.lab.protocol import Method, Protocol, Trial
from kmixup.lab.store import NAME, read
from kmixup.lab.streams import Streams, epoch
from kmixup.lab.sweep import expand, read_config, sweep, weight

# ids


def test_ids_stay_what_they_are():
    """Rows of published runs carry them: a change here would run all of these again."""
    assert Trial("iris", "mlp-iris").id == "7290141d966f61bc"
    all_set = Trial(
        "mnist",
        "lenet",
        Method("kmixup", 32, 0.5, "xi", "batch"),
        Protocol(epochs=3, rate=1.0, milestones=(0.3,), precision="bf16", augment=True),
        seed=7,
        limit=100,
        scaling="minmax",
        noise=(8,),
        fgsm=(0.5, 4),
    )
    assert all_set.id == "3e6fe8f298cc16ce"


def test_settings_that_are_not_made_leave_the_id_alone():
    plain = Trial("iris", "mlp-iris")
    assert replace(plain, limit=None, scaling=None, noise=(), fgsm=[]).id == plain.id


@pytest.mark.parametrize(
    "change",
    [
        {"data": "cancer"},
        {"model": "mlp-toy"},
        {"method": Method("kmixup", 8)},
        {"method": Method("kmixup", alpha=2)},
        {"method": Method("kmixup", alpha_rule="xi")},
        {"method": Method("kmixup", pairing="batch")},
        {"protocol": Protocol(epochs=3)},
        {"protocol": Protocol(milestones=())},
        {"seed": 1},
        {"limit": 10},
        {"scaling": "none"},
        {"size": 10},
        {"target": "species"},
        {"noise": (1,)},
        {"fgsm": (1,)},
    ],
)
def test_every_setting_changes_the_id(change):
    plain = Trial("iris", "mlp-iris")
    assert replace(plain, **change).id != plain.id


def test_equal_trials_have_equal_ids():
    one = Trial("a", "b", Method("kmixup", 1, 2), Protocol(rate=1, weight_decay=0, momentum=0))
    two = Trial("a", "b", Method("mixup", 9, 2.0), Protocol(rate=1.0, weight_decay=0.0, momentum=0))
    assert one == two
    assert one.id == two.id
    assert Trial.from_dict(json.loads(json.dumps(one.to_dict()))).id == one.id


def test_augment_is_yes_or_no():
    with pytest.raises(ValueError, match="augment must be true or false, got 'yes'"):
        Protocol(augment="yes")


# grids

lists = {"min_size": 1, "max_size": 3, "unique": True}


@given(
    data=st.lists(st.sampled_from(["iris", "cancer", "mnist"]), **lists),
    k=st.lists(st.sampled_from([2, 4, 16]), **lists),
    alpha=st.lists(st.sampled_from([0.1, 1, 10]), **lists),
    rules=st.lists(st.sampled_from(["same", "xi"]), **lists),
    batch_size=st.lists(st.sampled_from([16, 32]), **lists),
    trials=st.integers(1, 3),
    seed=st.integers(0, 5),
)
def test_a_grid_is_the_product_of_its_lists(data, k, alpha, rules, batch_size, trials, seed):
    grid = {"data": data, "k": k, "alpha": alpha, "alpha_rule": rules, "trials": trials}
    grid |= {"seed": seed, "protocol": {"batch_size": batch_size}}
    found = expand(method="kmixup", **grid)
    around = len(data) * len(batch_size) * trials
    assert len(found) == around * len(k) * len(alpha) * len(rules)
    assert len({trial.id for trial in found}) == len(found)
    # plain training has no k, alpha or rule, mixup no k and no rule
    assert len(expand(method="erm", **grid)) == around
    assert len(expand(method="mixup", **grid)) == around * len(alpha)
    both = expand(method=["erm", "mixup", "kmixup"], **grid)
    assert len(both) == len(found) + around + around * len(alpha)
    cells = {}
    for trial in both:
        cells.setdefault(replace(trial, seed=0), []).append(trial.seed)
    assert set(map(tuple, cells.values())) == {tuple(range(seed, seed + trials))}


def test_single_values_are_lists_of_one():
    assert expand(data="iris", k=4, protocol={"epochs": 2}) == expand(
        data=["iris"], method=["kmixup"], k=[4], alpha=[1.0], protocol={"epochs": [2]}
    )
    assert expand(data="mnist", noise=8) == expand(data="mnist", noise=[8])


def test_network_and_protocol_are_the_papers_unless_given():
    iris, ring = expand(data=["iris", "one-ring"], protocol={"epochs": 5})
    assert (iris.model, iris.protocol) == (
        "mlp-iris",
        Protocol(epochs=5, rate=0.005, batch_size=32),
    )
    assert (ring.model, ring.protocol.epochs) == ("mlp-toy", 5)
    own = expand(data="iris", model=["mlp-toy", "nets:small"])
    assert [trial.model for trial in own] == ["mlp-toy", "nets:small"]


def test_milestones_are_one_value_or_a_list_of_lists():
    one = expand(data="iris", protocol={"milestones": [0.3, 0.6]})
    assert [trial.protocol.milestones for trial in one] == [(0.3, 0.6)]
    two = expand(data="iris", protocol={"milestones": [[0.3, 0.6], [0.5]]})
    assert [trial.protocol.milestones for trial in two] == [(0.3, 0.6), (0.5,)]
    assert expand(data="iris", protocol={"milestones": []})[0].protocol.milestones == ()


def test_what_is_named_twice_is_run_once():
    assert len(expand(data=["iris", "iris"], k=[4, 4, 1], method=["kmixup", "mixup"])) == 2


def test_data_of_ones_own_are_looked_at(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,way\n" + "\n".join(f"{x},{x > 0}" for x in range(-9, 9)))
    (trial,) = expand(data=str(path), target="way", limit=8)
    assert (trial.model, trial.target, trial.limit) == ("mlp-phishing", "way", 8)


def test_trials_of_a_seed_share_split_weights_and_order_in_all_cells():
    grid = expand(data="iris", method=["erm", "mixup", "kmixup"], k=[4, 16], seed=3)
    data = [load_data(trial) for trial in grid]
    nets = [network(*one, Streams(3)) for one in zip(grid, data, strict=True)]
    orders = [epoch(trial, 100, trial.method.alpha, Streams(3)) for trial in grid]
    for one, net, order in zip(data, nets, orders, strict=True):
        assert torch.equal(one.x_train, data[0].x_train)
        assert torch.equal(one.y_test, data[0].y_test)
        for weights, first in zip(net.parameters(), nets[0].parameters(), strict=True):
            assert torch.equal(weights, first)
        assert torch.equal(order[0].first, orders[0][0].first)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"trials": 0}, "trials must be a whole number, at least 1, got 0"),
        ({"trials": [1, 2]}, "trials must be a whole number, at least 1, got .1, 2."),
        ({"seed": -1}, "seed must be a whole number, at least 0, got -1"),
        ({"method": []}, "method must have at least one value, got an empty list"),
        ({"k": []}, "k must have at least one value, got an empty list"),
        ({"data": []}, "data must have at least one value, got an empty list"),
        ({"model": []}, "model must have at least one value, got an empty list"),
        ({"protocol": {"rate": []}}, "rate must have at least one value, got an empty list"),
        ({"protocol": {"speed": 1}}, "protocol.speed is not a setting: those of a Protocol are e"),
        ({"data": "irsi"}, "there is no data set or file 'irsi': did you mean iris"),
        ({"method": "cutup"}, "method must be one of erm, mixup, kmixup, nearest, manif"),
        ({"k": [4, 200]}, 'batch_size must be at least k = 200 with pairing "loaders", got 32'),
    ],
)
def test_what_makes_no_grid_is_refused(grid, message):
    with pytest.raises(ValueError, match=message):
        expand(**{"data": "iris"} | grid)


# grids as files


def config(folder, text):
    (folder / "grid.toml").write_text(text)
    return folder / "grid.toml"


def test_a_file_says_what_the_arguments_say(tmp_path):
    text = 'data = "iris"\nmethod = ["erm", "kmixup"]\nk = [4, 8]\ntrials = 2\n'
    text += "noise = []\n[protocol]\nepochs = [2, 3]\nmilestones = [0.5]\n"
    assert read_config(config(tmp_path, text)) == expand(
        data="iris", method=["erm", "kmixup"], k=[4, 8], trials=2,
        protocol={"epochs": [2, 3], "milestones": [0.5]},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data = ", "grid.toml must be TOML: Invalid value"),
        ("\xff", "grid.toml must be TOML"),
        ('data = "iris"\nmethods = "erm"', "methods in .*grid.toml is not a setting: those of a"),
        ("trials = 3", 'grid.toml must name its data, e.g. data = "iris"'),
        ('data = "iris"\n[protocol]\nlr = 1', "protocol.lr is not a setting: those of a Protocol"),
        ('data = "iris"\n[protocol]\nrate = "high"', "grid.toml has a value of the wrong kind: "),
        ('data = "iris"\ntarget = ["a"]', "grid.toml has a value of the wrong kind: "),
        ('data = "iris"\nprotocol = 3', "grid.toml has a value of the wrong kind: "),
    ],
)
def test_what_is_no_grid_in_a_file_is_refused(tmp_path, text, message):
    path = tmp_path / "grid.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        read_config(path)


# running them


def seeds(number, **more):
    return expand(data="iris", method="erm", trials=number, protocol={"epochs": 2}, **more)


def test_the_rows_are_those_of_the_trials_asked_for(tmp_path):
    outcome = sweep(seeds(3), tmp_path, engine=Inline(), device="cpu")
    assert [row["id"] for row in outcome.rows] == [trial.id for trial in seeds(3)]
    assert (outcome.ran, outcome.failed) == (3, [])
    assert os.listdir(tmp_path) == [NAME]
    others = sweep(seeds(2, seed=9), tmp_path, engine=Inline(), device="cpu")
    assert [row["trial"]["seed"] for row in others.rows] == [9, 10]
    assert len(read(tmp_path)) == 5


def test_what_has_a_row_is_not_run_again(tmp_path):
    engine = Fake()
    sweep(seeds(3), tmp_path, engine=engine)
    assert sweep(seeds(5), tmp_path, engine=engine).ran == 2
    assert sweep([*seeds(5), *seeds(5)], tmp_path, engine=engine).ran == 0
    assert sorted(engine.ran) == sorted(trial.id for trial in seeds(5))


def test_what_failed_is_tried_again_and_the_later_row_counts(tmp_path):
    outcome = sweep(seeds(4), tmp_path, engine=Fake(failing={1, 3}))
    assert [row["trial"]["seed"] for row in outcome.failed] == [1, 3]
    engine = Fake(failing={3})
    outcome = sweep(seeds(4), tmp_path, engine=engine)
    assert engine.ran == [seeds(4)[seed].id for seed in (1, 3)]
    assert [row["trial"]["seed"] for row in outcome.failed] == [3]
    assert (tmp_path / NAME).read_text().count('"status":"failed"') == 3


def test_progress_is_told_as_rows_are_safe(tmp_path):
    sweep(seeds(1), tmp_path, engine=Fake())
    told = []
    sweep(
        seeds(2),
        tmp_path,
        engine=Fake(),
        started=lambda *both: told.append([len(each) for each in both]),
        ended=lambda rows: told.append(([row["id"] for row in rows], len(read(tmp_path)))),
    )
    assert told == [[2, 1], ([seeds(2)[1].id], 2)]


def test_the_heaviest_units_go_first(tmp_path):
    ran = []

    class Noting(Fake):
        def rows(self, units, **more):
            ran.extend(unit[0].protocol.epochs for unit in units)
            return super().rows(units, **more)

    sweep(expand(data="iris", protocol={"epochs": [2, 9, 4]}), tmp_path, engine=Noting())
    assert ran == [9, 4, 2]
    assert weight(Trial("iris", "m", limit=10)) == weight(Trial("own.csv", "m", limit=10)) == 2000


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
    before = [row["id"] for row in read(folder)] if (folder / NAME).exists() else []
    engine = Fake()
    outcome = sweep(trials, folder, engine=engine)
    assert table(outcome.rows) == {trial.id: Fake().row(trial) for trial in trials}
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


def test_a_device_that_is_none_is_refused_at_once(tmp_path):
    with pytest.raises(ValueError, match="device must be one of auto, cpu, cuda, mps, got 'tpu'"):
        sweep(seeds(1), tmp_path, engine=Fake(), device="tpu")
    assert os.listdir(tmp_path) == []


# checkpoints of large networks


def test_checkpoints_are_kept_until_their_row_is_safe_and_no_longer(tmp_path):
    one, two, other = (trial.id for trial in seeds(3))
    running = tmp_path / "running"

    class Saving(Fake):
        def rows(self, units, **more):
            assert one not in os.listdir(running)
            (running / two).mkdir(exist_ok=True)
            yield from super().rows(units, **more)

    sweep(seeds(1), tmp_path, engine=Fake())
    (running / one).mkdir(parents=True)  # a crash came after the row
    (running / other).mkdir()  # of another sweep
    sweep(seeds(2), tmp_path, engine=Saving(failing={1}))
    assert sorted(os.listdir(running)) == sorted([two, other])
    sweep(seeds(2), tmp_path, engine=Saving())
    assert os.listdir(running) == [other]
