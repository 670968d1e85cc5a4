"""What a run is: the paper's defaults, what is refused, and the round trip through JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from kmixup.lab.data import load
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.step import mixer_of
from kmixup.lab.trial import Method, Protocol, Trial, shifts_from
from kmixup.matching import Nearest, Optimal


def rates(protocol):
    return [protocol.rate_at(epoch) for epoch in range(protocol.epochs)]


def test_the_defaults_are_those_of_the_paper():
    assert [Protocol().rate_at(i) for i in (0, 99, 100, 149, 150, 199)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.01, 0.001, 0.001]
    )
    assert (Protocol().momentum, Protocol().weight_decay) == (0.9, 1e-4)


@pytest.mark.parametrize("epochs", [3, 6, 30, 300])
def test_speech_divides_the_rate_at_every_third(epochs):
    protocol = defaults_for("speech-commands").protocol
    assert (protocol.epochs, protocol.rate) == (30, 3e-3)
    third = epochs // 3
    assert rates(replace(protocol, epochs=epochs)) == pytest.approx(
        [3e-3] * third + [3e-4] * third + [3e-5] * third
    )


def test_tables_get_the_rate_of_uci_and_only_cifar_is_cropped():
    assert defaults_for("iris").protocol.rate == 0.005
    assert defaults_for("cifar10").protocol.augment
    assert defaults_for("cifar10").protocol.rate == 0.1
    assert defaults_for("mnist").protocol.rate == 0.05
    assert not defaults_for("mnist").protocol.augment


def test_equal_methods_compare_equal():
    assert Method("mixup", k=16) == Method("mixup", k=1)
    assert Method("erm", k=16, alpha=3, pairing="batch") == Method("erm")
    assert Method("mixup", alpha=1) == Method("mixup", alpha=1.0)
    assert mixer_of(Method("kmixup", k=16), 1.0, 3).pairing == Optimal(16)
    assert mixer_of(Method("nearest", k=4), 1.0, 3).pairing == Nearest(4)


def test_hidden_layers_pair_in_the_batch_and_other_methods_have_no_layers():
    assert Method("manifold") == Method("manifold", pairing="batch", layers="input+first-block")
    assert Method("manifold", layers="all-blocks") != Method("manifold")
    assert Method("cutmix", layers="all-blocks") == Method("cutmix")
    assert Method("manifold", k=8).smallest == 16
    for name in ("manifold", "cutmix", "local"):
        assert Method(name, k=1).name == name
        assert mixer_of(Method(name, k=8), 1.0, 3).pairing == Optimal(8)


def test_a_label_says_what_was_chosen():
    assert Method("manifold", 1).label == "manifold k=1 alpha=1"
    assert Method("manifold", 4, layers="all-blocks").label == "manifold k=4 alpha=1 in all-blocks"
    assert Method("local", 4, 0.5, pairing="batch").label == "local k=4 alpha=0.5 in the batch"


def test_methods_that_came_later_leave_the_names_of_older_trials_as_they_are():
    names = {
        "823e18975f8c341e": Trial("iris", "mlp-iris", Method("erm")),
        "5ccc107f785a3f9e": Trial("iris", "mlp-iris", Method("mixup", alpha=0.5), seed=3),
        "6890f2a4b2c53d7a": Trial(
            "mnist", "lenet", Method("kmixup", 16, 1.0, "xi"), Protocol(epochs=3),
            limit=100, shifts=shifts_from({"fgsm": (0.5, 1)}),
        ),
        "1a064d99d8e37a4f": Trial(
            "four-bars", "mlp-toy", Method("kmixup", 32, 0.25, "same", "batch"), size=64
        ),
        "c45856bc69de51a4": Trial(
            "cifar10", "preact-resnet18", Method("nearest", 16), Protocol(augment=True),
            shifts=shifts_from({"noise": (8,)}),
        ),
    }  # fmt: skip
    assert {name: trial.id for name, trial in names.items()} == {name: name for name in names}


def test_a_trial_survives_json():
    protocol = Protocol(epochs=3, milestones=(0.3,), precision="bf16", augment=True)
    method = Method("kmixup", 32, 0.5, "xi", "batch")
    trial = Trial("mnist", "lenet", method, protocol, seed=7, limit=100)
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial
    hidden = replace(trial, method=Method("manifold", 8, layers="input,3"))
    assert Trial.from_dict(json.loads(json.dumps(hidden.to_dict()))) == hidden
    assert hidden.id != replace(hidden, method=Method("manifold", 8)).id


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Protocol(epochs=0), "epochs must be a whole number, at least 1, got 0"),
        (lambda: Protocol(epochs=1.5), "epochs must be a whole number, at least 1, got 1.5"),
        (lambda: Protocol(rate=0), "rate must be a finite number above 0, got 0"),
        (lambda: Protocol(rate=float("nan")), "rate must be a finite number above 0, got nan"),
        (lambda: Protocol(momentum=1), "momentum must be in .0, 1., got 1"),
        (lambda: Protocol(weight_decay=-1), "weight_decay must be a finite number, 0 or more"),
        (lambda: Protocol(batch_size=1), "batch_size must be a whole number, at least 2, got 1"),
        (lambda: Protocol(milestones=(0.7, 0.5)), "milestones must be rising fractions"),
        (lambda: Protocol(milestones=(100,)), "milestones must be rising fractions"),
        (lambda: Protocol(precision="fp8"), "precision must be one of fp32, bf16, got 'fp8'"),
        (
            lambda: Protocol(warmup=1.5),
            r"warmup must be a fraction .* a whole number .*, got 1.5",
        ),
        (lambda: Protocol(warmup=-1), r"warmup must be a fraction of the epochs in \[0, 1\) or"),
        (lambda: Protocol(schedule="sine"), "schedule must be one of step, cosine, got 'sine'"),
        (
            lambda: Protocol(momentum=0, nesterov=True),
            "momentum must be above 0 for nesterov, got 0",
        ),
        (lambda: Protocol(test_every=0), "test_every must be a whole number, at least 1, got 0"),
        (lambda: Protocol(layout="nhwc"), "layout must be one of channels_last, got 'nhwc'"),
        (lambda: Protocol(clean_pass="no"), "clean_pass must be one of matched, got 'no'"),
        (
            lambda: Method("cutup"),
            "method must be a known name or package.module:name, got",
        ),
        (lambda: Method(k=0), "k must be a whole number, at least 1, got 0"),
        (lambda: Method(alpha=-1), "alpha must be a finite number, 0 .no mixing. or more, got -1"),
        (lambda: Method(alpha_rule="xii"), "alpha_rule must be one of same, xi, got 'xii'"),
        (
            lambda: Method(pairing="none"),
            "pairing must be one of loaders, batch, reshuffle, got 'none'",
        ),
        *(
            (
                lambda name=name: Method(name, alpha_rule="xi"),
                f'alpha_rule must be "same" for the method {name}, got .xi',
            )
            for name in ("nearest", "manifold", "cutmix", "local")
        ),
        (lambda: Trial("a", "b", seed=-1), "seed must be a whole number, at least 0, got -1"),
        (
            lambda: Trial("a", "b", Method(k=256)),
            "batch_size must be at least 256 for k = 256 with",
        ),
        (
            lambda: Trial("a", "b", Method(k=100, pairing="batch")),
            'batch_size must be at least 200 for k = 100 with pairing "batch", got 128',
        ),
        (lambda: Trial.from_dict({"data": "a"}), "a trial must have model"),
        (lambda: Trial.from_dict({"date": "a"}), "date is not a setting: those of a Trial are"),
        (
            lambda: Trial.from_dict({"data": "a", "model": "b", "method": {"kk": 1}}),
            "method.kk is not a setting: those of a Method are",
        ),
    ],
)
def test_what_makes_no_run_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_defaults_follow_the_data():
    def usual_for(name, data=None):
        usual = defaults_for(name, data)
        return usual.kind, usual.model

    iris = load("iris")
    assert usual_for("iris") == ("table", "mlp-iris")
    assert usual_for("own", iris) == ("table", "mlp-120-120-84")
    assert usual_for("one-ring") == ("toy", "mlp-toy")
    with pytest.raises(ValueError, match="data 'own' have no name: load them first"):
        usual_for("own")
    photos = replace(iris, x_train=torch.zeros(2, 3, 32, 32), pixel_range=(0.0, 255.0))
    assert usual_for("cifar10") == usual_for("own", photos) == ("image", "preact-resnet18")
    clips = replace(iris, x_train=torch.zeros(2, 1, 160, 101))
    assert usual_for("own", clips) == ("speech", "lenet")


def test_numbers_of_numpy_give_the_trial_of_python_numbers():
    method = Method(
        "kmixup", np.int64(4), np.float64(0.5), memory=np.int32(64), labels=np.float16(2)
    )
    protocol = Protocol(epochs=np.int64(2), rate=np.float64(0.5), milestones=np.array([0.5]))
    given = Trial(
        "iris", "mlp-iris", method, protocol, np.int64(3), limit=np.uint8(90),
        resize=np.array([8, 8]), validation=np.float64(0.25), clean_statistics=np.True_,
    )  # fmt: skip
    trial = Trial(
        "iris", "mlp-iris", Method("kmixup", 4, 0.5, memory=64, labels=2),
        Protocol(epochs=2, rate=0.5, milestones=(0.5,)), 3, limit=90, resize=(8, 8),
        validation=0.25, clean_statistics=True,
    )  # fmt: skip
    assert given == trial
    assert given.id == trial.id
    assert repr(given) == repr(trial)
