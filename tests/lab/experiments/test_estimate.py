"""Estimates of the time and memory that trials take."""

from dataclasses import replace

import pytest
import torch

from kmixup.lab.experiments import estimate as estimating
from kmixup.lab.experiments.estimate import TimeEstimate, estimate
from kmixup.lab.experiments.grid import expand


def test_an_estimate_grows_with_the_work():
    def seconds(trials, epochs):
        grid = {"data": "iris", "method": "erm", "trials": trials}
        return estimate(expand(**grid, protocol={"epochs": epochs, "batch_size": 16}))

    few, many = seconds(2, 100), seconds(40, 100)
    assert 0 < few.longest <= few.seconds
    assert few.unknown == many.unknown == ()
    assert many.seconds > few.seconds
    assert many.on(1) == many.seconds > many.on(2)


def test_probes_are_short(monkeypatch):
    probed = []
    true_fleet = estimating.train_fleet

    def noting(trials, *, data):
        lengths = (len(data.x_train) for data in data)
        epochs = (trial.protocol.epochs for trial in trials)
        probed.extend(zip(epochs, lengths, strict=True))
        return true_fleet(trials, data=data)

    monkeypatch.setattr(estimating, "train_fleet", noting)
    estimate(expand(data="iris", method="erm", protocol={"epochs": 10**6, "batch_size": 16}))
    assert probed == [(1, 16), (1, 64)]


def test_data_that_are_not_at_hand_are_probed_with_noise(here):
    protocol = {"epochs": 1, "batch_size": 8}
    missing = expand(data=["mnist", "abalone", "iris"], method="erm", trials=2, protocol=protocol)
    expected = estimate(missing)
    assert expected.seconds > 0
    assert (expected.noise, expected.unknown) == (("abalone", "mnist"), ())
    small = [replace(trial, limit=100) for trial in missing if trial.data == "mnist"]
    assert estimate(small).seconds < expected.seconds
    held = [replace(trial, validation=0.5) for trial in small]
    assert estimate(held).noise == ("mnist",)


def test_an_estimate_knows_a_k_beyond_the_batch():
    trials = expand(
        data="iris", method="kmixup", k=32, memory=64, protocol={"epochs": 10, "batch_size": 8}
    )
    expected = estimate(trials)
    assert expected.unknown == ()
    assert expected.seconds > 0


def test_an_estimate_counts_tests_under_shifts_and_the_loading_of_data(monkeypatch):
    """Both were left out once: a run that took three minutes was announced with 15 seconds."""
    protocol = {"epochs": 1, "batch_size": 4}
    plain = expand(data="mnist", method="erm", limit=8, protocol=protocol)
    attacked = [replace(trial, shifts=(("fgsm", (1.0, 2.0, 4.0)),)) for trial in plain]
    true_train = estimating.train

    def slow_shifts(trial, **more):
        estimating.time.sleep(0.1 * len(trial.levels("fgsm")))
        return true_train(trial, **more)

    monkeypatch.setattr(estimating, "train", slow_shifts)
    assert estimate(attacked).seconds > 0.3
    true_load = estimating.load_data

    def slow_load(trial):
        estimating.time.sleep(0.5)
        return true_load(trial)

    monkeypatch.setattr(estimating, "load_data", slow_load)
    assert estimate(expand(data="iris", method="erm", protocol=protocol)).seconds > 0.5


class Wide(torch.nn.Module):
    """A network that keeps a megabyte of activations for each sample."""

    def __init__(self, *, in_shape, num_classes):
        super().__init__()
        self.first = torch.nn.Linear(in_shape[0], 1 << 18)
        self.second = torch.nn.Linear(1 << 18, num_classes)

    def forward(self, x):
        return self.second(self.first(x).relu())


def test_a_large_network_is_probed_with_a_small_batch_that_fits_into_memory(
    kmixup, here, monkeypatch
):
    trials = expand(data="iris", model=f"{__name__}:Wide", k=32, protocol={"batch_size": 32})
    monkeypatch.setattr(estimating, "machine_memory", lambda: 1e6)
    probed = []
    true_train = estimating.train

    def noting(trial, **more):
        probed.append((trial.protocol.batch_size, trial.method.k))
        return true_train(trial, **more)

    monkeypatch.setattr(estimating, "train", noting)
    expected = estimate(trials)
    assert set(probed) == {(4, 2)}
    activations, weights = 32 * (1 << 20), 12 * (1 << 18) * (5 + 3)
    assert expected.memory == pytest.approx(activations + weights, rel=0.01)
    (here / "grid.toml").write_text(
        f'data = "iris"\nmodel = "{__name__}:Wide"\nk = 32\nprotocol.batch_size = 32\n'
    )
    code, out, _ = kmixup("sweep", "grid.toml", "--dry-run", "--workers", 1)
    assert code == 0
    assert "the largest network needs about 0.1 GB for each worker, this machine has 0.0 GB" in out


def test_what_cannot_be_probed_is_named_once(here):
    wild = expand(data="iris", model="no_such:net", k=2, trials=2)
    assert len(estimate(wild).unknown) == 1
    wild = expand(data="iris", model="no_such:net", k=2)
    assert estimate(wild) == TimeEstimate(
        0, 0, ("ValueError: no module named 'no_such', asked for by model 'no_such:net': install "
               "it, or put its folder on PYTHONPATH",)
    )  # fmt: skip
