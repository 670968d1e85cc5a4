"""Variants of the pairs in the lab: memory, labels, and what samples are matched on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from training import run, same, stopped_after

from kmixup.lab.data import load
from kmixup.lab.methods import MatchOn
from kmixup.lab.models import MODELS, build
from kmixup.lab.train.features import (
    DECAY,
    FeatureTable,
    penultimate,
    principal_components,
)
from kmixup.lab.train.fleet import fits_fleet
from kmixup.lab.train.step import Step
from kmixup.lab.train.streams import Streams, epoch
from kmixup.lab.trial import Method, Protocol, Trial

FAST = Protocol(epochs=4, rate=0.05, batch_size=8)
VARIANTS = [
    {"k": 16, "memory": 32},
    {"k": 16, "memory": 32, "pairing": "batch", "match_on": "network:2"},
    {"k": 4, "labels": 0.5},
    {"k": 4, "metric": "euclidean"},
    {"k": 4, "match_on": "pca:2"},
    {"k": 4, "match_on": "network:3"},
    {"k": 4, "match_on": "ema:2"},
]


def trial(**settings):
    return Trial("iris", "mlp-iris", Method(**settings), FAST)


@pytest.mark.parametrize("settings", VARIANTS)
def test_a_resumed_run_ends_in_the_same_bits(tmp_path, monkeypatch, settings):
    this = trial(**settings)
    whole = run(this)
    plain = run(trial(k=settings["k"] if "memory" not in settings else 8))
    stopped_after(monkeypatch, 3, this, out=tmp_path)
    assert same(whole, run(this, out=tmp_path, resume=True))
    assert not same(whole, plain)


def test_ids_of_older_trials_stay():
    assert Trial("iris", "mlp-iris", Method(alpha=1.0)).id == "7290141d966f61bc"
    assert trial(k=4, match_on="pixels", labels=0).id == trial(k=4).id
    assert trial(k=4, match_on="pca").id == trial(k=4, match_on="pca:50").id != trial(k=4).id
    for settings in VARIANTS:
        this = trial(**settings)
        assert Trial.from_dict(this.to_dict()) == this


def test_random_pairs_have_no_variants():
    assert Method("mixup", labels=1, match_on="ema") == Method("kmixup", k=1) == Method("mixup")
    assert Method("erm", memory=64) == Method("erm")


def test_words_name_the_variant():
    assert Method(memory=512, k=64).label == "kmixup k=64 alpha=0.2 with memory=512"
    assert Method(match_on="ema").label == "kmixup k=16 alpha=0.2 matched on ema:5"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "cutmix", "labels": 1.0}, "labels is a setting of kmixup, got the method cutmix"),
        ({"memory": 20}, "memory must be a whole number, at least 32, got 20"),
        (
            {"memory": 64, "pairing": "reshuffle"},
            "pairing must be .* with a memory, got .reshuffle",
        ),
        ({"labels": float("nan")}, "labels must be a finite number, got nan"),
        ({"labels": "1"}, "labels must be a finite number, got '1'"),
        ({"match_on": 5}, 'match_on must be pixels, pca, .* got "5"'),
        ({"match_on": "taste"}, 'match_on must be pixels, pca, .* got "taste"'),
        ({"match_on": "pca:0"}, 'match_on must be .* got "pca:0"'),
        ({"match_on": "ema", "alpha_rule": "xi"}, 'alpha_rule must be "same"'),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Method(**settings)


def test_variants_are_not_of_fleets_and_a_memory_asks_for_no_large_batch():
    for settings in VARIANTS:
        assert not fits_fleet(trial(**settings))
    with pytest.raises(ValueError, match="batch_size must be at least 16 for k = 16"):
        trial(k=16)


def test_principal_components_are_those_of_a_singular_value_decomposition():
    for n, d in ((30, 8), (8, 30)):
        x = torch.randn(n, d, generator=torch.Generator().manual_seed(n)) * torch.arange(1.0, d + 1)
        u, s, _ = np.linalg.svd((x - x.mean(0)).double().numpy(), full_matrices=False)
        components, expected = principal_components(x.view(n, d, 1), 3), u[:, :3] * s[:3]
        # signs are free
        assert np.abs(components.numpy()) == pytest.approx(np.abs(expected), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", ["lenet", "preact-resnet14", "mlp-iris"])
def test_penultimate_features_give_the_outputs(name):
    shape = (5,) if name.startswith("mlp") else (1, 28, 28)
    net = build(name, in_shape=shape, num_classes=3)
    x = torch.randn(6, *shape)
    features = penultimate(net, x)
    last = [layer for layer in net.modules() if not list(layer.children())][-1]
    with torch.no_grad():
        assert torch.allclose(last(features), net.eval()(x), atol=1e-5)
    assert name in MODELS


def test_a_network_that_does_not_end_in_its_last_layer_is_refused():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(4, 2), nn.Linear(3, 4)

        def forward(self, x):
            return self.last(self.first(x))

    net = Odd()
    with pytest.raises(ValueError, match="match_on needs a network that ends in its last layer"):
        penultimate(net, torch.zeros(4, 3))
    assert net.training


def test_features_are_computed_every_so_many_epochs_and_looked_up_by_row():
    data = load("iris", seed=0)
    net = build("mlp-iris", in_shape=data.shape, num_classes=3)
    table = FeatureTable(MatchOn.read("network:2"), data, net)
    seen = []
    for number in range(4):
        table.refresh(number)
        seen.append(table.rows.clone())
        with torch.no_grad():
            for value in net.parameters():
                value.add_(0.1)
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[2], seen[3])
    assert not torch.equal(seen[1], seen[2])
    rows = torch.tensor([7, 3, 3])
    assert torch.equal(table[rows], table.rows[rows])


def test_the_moving_average_is_that_of_the_formula():
    data = load("iris", seed=0)
    net = build("mlp-iris", in_shape=data.shape, num_classes=3)
    table = FeatureTable(MatchOn.read("ema"), data, net)
    value, expected = next(net.parameters()), None
    for step in range(5):
        with torch.no_grad():
            value.add_(step)
        table.update_average()
        now = value.detach().clone()
        expected = now if expected is None else DECAY * expected + (1 - DECAY) * now
    assert torch.allclose(next(table.average.module.parameters()), expected, atol=1e-6)


def test_a_step_matches_on_the_table_and_mixes_inputs():
    this = replace(trial(k=4, match_on="pca:1"), protocol=replace(FAST, batch_size=8))
    data = load("iris", seed=0)
    net = build("mlp-iris", in_shape=data.shape, num_classes=3)
    streams = Streams(0)
    forward = Step(net, this, data, streams, 1.0)
    step = epoch(this, len(data.x_train), 1.0, streams)[0]
    mixed = forward.mix(step)
    own, facing = forward.table[step.first], forward.table[step.second]
    order = own[:, 0].view(2, 4).argsort(1), facing[:, 0].view(2, 4).argsort(1)
    for block in range(2):  # on a line the optimum is in the order of both sides
        assert torch.equal(mixed.partner[4 * block + order[0][block]], 4 * block + order[1][block])
    x = data.normalise(data.x_train)
    expected = mixed.lam * x[step.first] + (1 - mixed.lam) * x[step.second][mixed.partner]
    assert torch.allclose(mixed.x, expected, atol=1e-6)
