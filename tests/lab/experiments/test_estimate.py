"""Estimates of the time that trials take."""

from dataclasses import replace

import numpy as np
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


def test_an_estimate_knows_a_k_beyond_the_batch():
    trials = expand(
        data="iris", method="kmixup", k=32, memory=64, protocol={"epochs": 10, "batch_size": 8}
    )
    expected = estimate(trials)
    assert expected.unknown == ()
    assert expected.seconds > 0


def test_an_estimate_counts_tests_under_shifts_and_the_loading_of_data(tmp_path, monkeypatch):
    """Both were left out once: a run that took three minutes was announced with 15 seconds."""
    path, protocol = tmp_path / "images.npz", {"epochs": 1, "batch_size": 4}
    y = np.arange(40) % 2
    np.savez(path, x=np.zeros((40, 28, 28), dtype=np.uint8), y=y)
    plain = expand(data=str(path), method="erm", model="lenet", protocol=protocol)
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


def linear(*, in_shape, num_classes):
    return torch.nn.Linear(in_shape[0], num_classes)


def test_a_large_network_is_probed_with_a_small_batch_first(monkeypatch):
    trials = expand(data="iris", model=f"{__name__}:linear", k=32, protocol={"batch_size": 32})
    probed = []
    true_train = estimating.train

    def noting(trial, **more):
        probed.append((trial.protocol.batch_size, trial.method.k))
        return true_train(trial, **more)

    monkeypatch.setattr(estimating, "train", noting)
    assert estimate(trials).seconds > 0
    assert probed == [(4, 2), (4, 2), (32, 32)]


def test_what_cannot_be_probed_is_named_once(here, monkeypatch):
    source = "def net(in_shape, num_classes):\n    raise RuntimeError('too large')\n"
    (here / "own_net.py").write_text(source)
    monkeypatch.syspath_prepend(here)
    wild = expand(data="iris", model="own_net:net", k=2, trials=2)
    assert len(estimate(wild).unknown) == 1
    wild = expand(data="iris", model="own_net:net", k=2)
    assert estimate(wild) == TimeEstimate(0, 0, ("RuntimeError: too large",))
