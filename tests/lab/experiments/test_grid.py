"""Grids become trials: each once, with the same seeds in every cell."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmixup.lab.data import digest
from kmixup.lab.experiments.grid import expand, read_config
from kmixup.lab.train.setup import load_data, network
from kmixup.lab.train.streams import Streams, epoch
from kmixup.lab.trial import Protocol, Trial

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
    expanded = expand(method="kmixup", **grid)
    around = len(data) * len(batch_size) * trials
    assert len(expanded) == around * len(k) * len(alpha) * len(rules)
    assert len({trial.id for trial in expanded}) == len(expanded)
    # plain training has no k, alpha or rule, mixup no k and no rule
    assert len(expand(method="erm", **grid)) == around
    assert len(expand(method="mixup", **grid)) == around * len(alpha)
    both = expand(method=["erm", "mixup", "kmixup"], **grid)
    assert len(both) == len(expanded) + around + around * len(alpha)
    cells = {}
    for trial in both:
        cells.setdefault(replace(trial, seed=0), []).append(trial.seed)
    assert set(map(tuple, cells.values())) == {tuple(range(seed, seed + trials))}


def test_single_values_are_lists_of_one():
    assert expand(data="iris", k=4, protocol={"epochs": 2}) == expand(
        data=["iris"], method=["kmixup"], k=[4], alpha=[0.2], protocol={"epochs": [2]}
    )
    assert expand(data="mnist", noise=8) == expand(data="mnist", noise=[8])


def test_network_and_protocol_are_the_papers_unless_given(monkeypatch, tmp_path):
    iris, ring = expand(data=["iris", "one-ring"], protocol={"epochs": 5})
    assert (iris.model, iris.protocol) == (
        "mlp-iris",
        Protocol(epochs=5, rate=0.005, batch_size=32),
    )
    assert (ring.model, ring.protocol.epochs) == ("mlp-toy", 5)
    (tmp_path / "grid_nets.py").write_text("def small(*, in_shape, num_classes): ...")
    monkeypatch.syspath_prepend(tmp_path)
    own = expand(data="iris", model=["mlp-toy", "grid_nets:small"])
    assert [trial.model for trial in own] == ["mlp-toy", "grid_nets:small"]


def test_a_grid_can_test_on_validation_samples_to_choose_settings():
    (trial,) = expand(data="iris", validation=0.2)
    assert trial.validation == 0.2
    assert len(load_data(trial).x_test) == 20


def test_milestones_are_one_value_or_a_list_of_lists():
    single = expand(data="iris", protocol={"milestones": [0.3, 0.6]})
    assert [trial.protocol.milestones for trial in single] == [(0.3, 0.6)]
    two = expand(data="iris", protocol={"milestones": [[0.3, 0.6], [0.5]]})
    assert [trial.protocol.milestones for trial in two] == [(0.3, 0.6), (0.5,)]
    assert expand(data="iris", protocol={"milestones": []})[0].protocol.milestones == ()


def test_values_that_are_given_twice_are_trained_once():
    assert len(expand(data=["iris", "iris"], k=[4, 4, 1], method=["kmixup", "mixup"])) == 2


def test_the_model_of_your_own_data_follows_from_their_shape(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,way\n" + "\n".join(f"{x},{x > 0}" for x in range(-9, 9)))
    (trial,) = expand(data=str(path), target="way", limit=8)
    assert (trial.model, trial.target, trial.limit) == ("mlp-120-120-84", "way", 8)


def test_an_edited_file_gives_other_trials(tmp_path):
    path = tmp_path / "table.csv"
    ids = []
    for bound in (0, 1, 0):
        path.write_text("a,way\n" + "\n".join(f"{x},{x > bound}" for x in range(-9, 9)))
        (trial,) = expand(data=str(path), protocol={"epochs": 1})
        assert Trial.from_dict(trial.to_dict()) == trial
        ids.append(trial.id)
    assert ids[0] == ids[2] != ids[1]
    path.write_text("a,way\n" + "\n".join(f"{x},{x > 5}" for x in range(-9, 9)))
    with pytest.raises(ValueError, match="must not change between the trials .*csv has changed"):
        load_data(trial)


def test_trials_of_a_seed_share_split_weights_and_order_in_all_cells():
    grid = expand(data="iris", method=["erm", "mixup", "kmixup"], k=[4, 16], seed=3)
    data = [load_data(trial) for trial in grid]
    nets = [network(*start, Streams(3)) for start in zip(grid, data, strict=True)]
    orders = [epoch(trial, 100, trial.method.alpha, Streams(3)) for trial in grid]
    for dataset, net, order in zip(data, nets, orders, strict=True):
        assert torch.equal(dataset.x_train, data[0].x_train)
        assert torch.equal(dataset.y_test, data[0].y_test)
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
        ({"protocol": {"augment": "yes"}}, "augment must be true or false, got 'yes'"),
        ({"protocol": {"speed": 1}}, "protocol.speed is not a setting: those of a Protocol are e"),
        (
            {"method": "cutup"},
            "method must be .*, got 'cutup': there are erm, .*fmix, sal",
        ),
    ],
)
def test_an_invalid_grid_raises(grid, message):
    with pytest.raises(ValueError, match=message):
        expand(**{"data": "iris"} | grid)


# grids as files


def config(folder, text):
    (folder / "grid.toml").write_text(text)
    return folder / "grid.toml"


def test_every_test_file_of_a_grid_has_its_own_digest(tmp_path):
    paths = [tmp_path / f"{name}.csv" for name in ("train", "b", "c")]
    for i, path in enumerate(paths):
        path.write_text("a,target\n" + f"{i},x\n{i + 1},y\n" * 4)
    train, *tests = map(str, paths)
    trials = expand(data=train, method="erm", test=tests)
    assert [trial.digest for trial in trials] == [digest(train, test=test) for test in tests]


def test_a_file_gives_the_same_grid_as_arguments(tmp_path):
    text = 'data = "iris"\nmethod = ["erm", "kmixup"]\nk = [4, 8]\ntrials = 2\n'
    text += "noise = []\n[protocol]\nepochs = [2, 3]\nmilestones = [0.5]\n"
    assert read_config(config(tmp_path, text)) == expand(
        data="iris", method=["erm", "kmixup"], k=[4, 8], trials=2,
        protocol={"epochs": [2, 3], "milestones": [0.5]},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\xff", "grid.toml must be TOML"),
        ('data = "iris"\nepochs = 3', r"epochs in .*grid.toml must be below \[protocol\]"),
        ("trials = 3", 'grid.toml must name its data, e.g. data = "iris"'),
        (
            'data = "iris"\n[protocol]\nrate = "high"',
            "rate must be a finite number above 0, got 'high'",
        ),
        ('data = "iris"\nprotocol = 3', "grid.toml has a value of the wrong kind: "),
    ],
)
def test_an_invalid_grid_file_raises(tmp_path, text, message):
    path = tmp_path / "grid.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        read_config(path)


def test_a_grid_takes_arrays_of_numpy():
    ks, alphas = 2 ** np.arange(1, 4), np.array([0.5, 1.0])
    numbers = {"k": ks.tolist(), "alpha": alphas.tolist(), "trials": 2, "seed": 1}
    arrays = {"k": ks, "alpha": alphas, "trials": np.int64(2), "seed": np.int64(1)}
    assert expand(data="iris", **arrays) == expand(data="iris", **numbers)
