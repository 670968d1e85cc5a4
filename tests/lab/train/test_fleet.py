"""A member of a fleet is the trial it would be alone, to the last bit."""

from dataclasses import replace

import pytest
import torch
from own_tables import regression
from training import own_network, run, same

from kmixup import KMixup, Nearest, Optimal, PairDraw
from kmixup.lab.data import load
from kmixup.lab.train.fleet import FleetBlocks, train_fleet
from kmixup.lab.train.setup import DivergedError
from kmixup.lab.trial import Method, Protocol, Trial
from kmixup.matching import Blocks

METHODS = [
    Method("erm"),
    Method("mixup", alpha=0.3),
    Method("kmixup", k=16, alpha=1.0),
    Method("kmixup", k=16, alpha=4.0),
    Method("kmixup", k=5, alpha=1.0),
    Method("kmixup", k=8, alpha=0.1, alpha_rule="xi"),
    Method("nearest", k=16),
    Method("kmixup", k=4, alpha=0.0),
]

PROTOCOL = {"batch_size", "label_smoothing"}


def trials(data="iris", model=None, methods=METHODS, **settings):
    protocol = Protocol(**{"epochs": 6, "rate": 0.05, "batch_size": 32} | settings)
    model = model or f"mlp-{data}"
    return [Trial(data, model, method, protocol, seed=i) for i, method in enumerate(methods)]


@pytest.mark.slow
def test_members_of_a_regression_equal_the_trial_run_alone_but_for_rounding(tmp_path):
    # divisions have other inputs: a column may have blanks in one and none in another
    rents = regression(tmp_path / "rents.csv", rows=60)
    fleet = trials(str(rents), "mlp-iris", METHODS[:5], epochs=2, rate=0.01, batch_size=16)
    members = train_fleet(fleet)
    assert len({member.net[1].in_features for member in members}) > 1
    for trial, member in zip(fleet, members, strict=True):
        single = run(trial)
        assert member.record["result"]["error"] == pytest.approx(
            single.record["result"]["error"], rel=1e-5
        )
        assert_courses_agree(member, single)


def assert_courses_agree(member, single):
    for first, second in zip(member.record["epochs"], single.record["epochs"], strict=True):
        assert first["accuracy"] == pytest.approx(second["accuracy"], rel=1e-4, abs=1e-4)
        assert first["loss"] == pytest.approx(second["loss"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "model", "settings"),
    [
        ("iris", "mlp-iris", {}),
        ("cancer", "mlp-cancer", {}),
        ("cancer", "mlp-cancer", {"class_weights": "balanced"}),
        ("four-bars", "mlp-toy", {}),
        ("iris", "mlp-iris", {"batch_size": 99}),  # of 100 samples one would be left alone
        ("iris", "mlp-iris", {"batch_size": 33}),
        ("iris", "mlp-iris", {"label_noise": 0.4, "label_smoothing": 0.1}),
        ("cancer", "mlp-cancer", {"validation": 0.2, "temperature": True, "label_noise": 0.2}),
    ],
)
def test_a_member_equals_the_trial_run_alone(data, model, settings):
    trained = {name: settings.pop(name) for name in PROTOCOL & settings.keys()}
    fleet = trials(data, model, epochs=3, rate=0.01, **trained)
    fleet = [replace(trial, **settings) for trial in fleet]
    for trial, member in zip(fleet, train_fleet(fleet), strict=True):
        single = run(trial)
        assert same(member, single), trial.method
        assert member.record.keys() == single.record.keys()
        for key in member.record.keys() - {"epochs", "seconds"}:
            assert member.record[key] == single.record[key]
        for first, second in zip(member.record["epochs"], single.record["epochs"], strict=True):
            assert first["error"] == second["error"]
        assert_courses_agree(member, single)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3])
def test_a_member_does_not_depend_on_the_fleet_it_is_in(size):
    together = train_fleet(trials())
    for start in range(0, len(METHODS), size):
        fleet = trials()[start : start + size]
        for first, second in zip(train_fleet(fleet), together[start:], strict=False):
            assert same(first, second)
    backwards = train_fleet(trials()[::-1])
    assert all(same(first, second) for first, second in zip(backwards[::-1], together, strict=True))


def test_members_differ_in_split_weights_and_order():
    method = Method("kmixup", k=4)
    first, second = train_fleet(trials(methods=[method, method], epochs=2))
    assert not same(first, second)
    assert not torch.equal(load("iris", seed=0).x_train, load("iris", seed=1).x_train)


@pytest.mark.slow
def test_a_fleet_learns():
    fleet = trials(methods=[Method("kmixup", k=16)] * 8, epochs=40)
    errors = [member.record["result"]["error"] for member in train_fleet(fleet)]
    assert sum(errors) / len(errors) < 0.08


def test_a_member_that_diverges_disturbs_no_other():
    fleet = trials(methods=METHODS[:3], epochs=2)
    data = [load("iris", seed=trial.seed) for trial in fleet]
    healthy = train_fleet(fleet, data=data)
    data[1] = replace(data[1], x_train=data[1].x_train * 1e30)
    ended = train_fleet(fleet, data=data)
    assert same(ended[0], healthy[0])
    assert same(ended[2], healthy[2])
    assert isinstance(ended[1], DivergedError)
    assert "the loss became NaN or infinite in epoch 1, at the learning rate 0.05" in str(ended[1])


def test_the_seconds_of_a_fleet_are_shared_out():
    members = train_fleet(trials(epochs=2))
    assert len({member.record["seconds"] for member in members}) == 1


SINGLE = trials()[0]


@pytest.mark.parametrize(
    ("fleet", "message"),
    [
        (
            [SINGLE, replace(SINGLE, data="cancer")],
            "may differ only in seed and method, got Trial",
        ),
        (
            [SINGLE, replace(SINGLE, protocol=replace(SINGLE.protocol, rate=1.0))],
            "may differ only in seed and method",
        ),
        *(
            ([replace(SINGLE, protocol=replace(SINGLE.protocol, **setting))], "fleet cannot train")
            for setting in ({"precision": "bf16"}, {"drop_last": True}, {"clean_pass": "matched"})
        ),
        *(
            ([replace(SINGLE, method=method)], "a fleet cannot train .*: use train")
            for method in (Method("mixup", pairing="batch"), Method("local", 4))
        ),
        ([replace(SINGLE, limit=12, method=Method(k=16))], "k must be lower: 16 needs 16 training"),
    ],
)
def test_what_is_no_fleet_is_refused(fleet, message):
    with pytest.raises(ValueError, match=message):
        train_fleet(fleet)


def test_a_network_that_is_no_mlp_is_refused(tmp_path, monkeypatch):
    model = own_network(tmp_path, monkeypatch, "nn.Linear(in_shape[0], num_classes)")
    with pytest.raises(ValueError, match="a fleet cannot train"):
        train_fleet([replace(SINGLE, model=model)])


# the blocks of a fleet


@pytest.mark.parametrize("pairing", [Optimal(4), Nearest(4), Optimal(1)])
@pytest.mark.parametrize("n", [3, 8, 10])
def test_batches_matched_together_are_matched_as_alone(pairing, n):
    x, x2 = torch.randn(5, n, 3), torch.randn(5, n, 3)
    k = min(pairing.k, n)
    blocks = FleetBlocks(5 * n, k, batches=5)
    together = pairing.partners([x.flatten(0, 1)], [x2.flatten(0, 1)], blocks).view(5, n)
    for i, (row, a, b) in enumerate(zip(together, x, x2, strict=True)):
        assert torch.equal(row - i * n, pairing.partners([a], [b], Blocks(n, k)))


def test_several_batches_are_mixed_at_once_as_they_would_be_alone():
    mix = KMixup(4, 1.0, 3)
    x, x2 = torch.randn(2, 5, 10, 3)
    y, y2 = torch.randint(3, (2, 5, 10))
    u = torch.rand(5, dtype=torch.float64)
    draw = PairDraw(FleetBlocks(50, 4, batches=5), u)
    other = x2.flatten(0, 1), y2.flatten()
    together = mix.mix(x.flatten(0, 1), y.flatten(), draw, other=other)
    for i in range(5):
        alone = mix.mix(x[i], y[i], PairDraw(Blocks(10, 4), u[i]), other=(x2[i], y2[i]))
        assert torch.equal(together.x.view(5, 10, 3)[i], alone.x)
        assert torch.equal(together.y.view(5, 10, 3)[i], alone.y)
