"""One training run: what it learns, records, survives and refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from training import own_network, run, same, stopped_after

from kmixup.lab.data import load
from kmixup.lab.data.dataset import Dataset
from kmixup.lab.train import checkpoint, record
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import train
from kmixup.lab.train.setup import DivergedError, strengths
from kmixup.lab.trial import Method, Protocol, Trial, shifts_from

FAST = Protocol(epochs=4, rate=0.05, batch_size=32)


def trial(method="kmixup", *, k=4, seed=0, protocol=FAST, **settings):
    return Trial("iris", "mlp-iris", Method(method, k, **settings), protocol, seed=seed)


# learning


@pytest.mark.slow
@pytest.mark.parametrize("method", ["erm", "mixup", "kmixup", "nearest", "local", "manifold"])
@pytest.mark.parametrize("pairing", ["loaders", "batch"])
def test_every_method_learns_iris(method, pairing):
    protocol = Protocol(epochs=30, rate=0.05, batch_size=32)
    result = run(trial(method, pairing=pairing, protocol=protocol)).record["result"]
    assert result["error"] <= 0.1


@pytest.mark.usefixtures("bf16")
@pytest.mark.slow
def test_augmented_images_are_learned_in_both_precisions(photos):
    for precision in ("fp32", "bf16"):
        protocol = Protocol(epochs=12, rate=0.05, batch_size=16, augment=True, precision=precision)
        this = Trial("photos", "lenet", Method("kmixup", 4), protocol)
        assert run(this, data=photos).record["result"]["error"] < 0.1


def test_a_run_is_repeated_by_its_trial_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    trained = run(trial())
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(99)
    assert same(trained, run(trial()))
    assert not same(trained, run(trial(seed=1)))


def test_alpha_zero_is_plain_training():
    assert same(run(trial("erm")), run(trial("kmixup", alpha=0)))


def test_the_calibrated_alpha_is_used_and_written_down():
    this = trial(alpha=0.1, alpha_rule="xi")
    plain, calibrated = run(trial(alpha=0.1)), run(this)
    assert plain.record["alpha"] == 0.1
    (strength,) = strengths([this], [load("iris")])
    assert (calibrated.record["alpha"], calibrated.record["xi"]) == (strength.alpha, strength.xi)
    assert calibrated.record["alpha"] > 0.12
    assert not same(plain, calibrated)


# the record


def test_the_record_says_what_was_run_and_its_result_is_the_last_epochs(tmp_path):
    this = trial(protocol=Protocol(epochs=6, rate=0.1, batch_size=16))
    written = run(this, out=tmp_path).record
    assert json.loads((tmp_path / "record.json").read_text()) == written
    assert Trial.from_dict(written["trial"]) == this
    assert [entry["epoch"] for entry in written["epochs"]] == [1, 2, 3, 4, 5, 6]
    assert [entry["rate"] for entry in written["epochs"]] == [
        this.protocol.rate_at(i) for i in range(6)
    ]
    errors = [entry["error"] for entry in written["epochs"]]
    assert written["result"]["error"] == errors[-1]
    assert set(written["result"]) >= {"error", "nll", "ece"}
    assert written["data"] == {
        "name": "iris", "part": None, "train": 100, "test": 50, "classes": 3,
        "shape": [4], "scaling": "symmetric", "split_by_seed": True,
    }  # fmt: skip
    assert torch.__version__.startswith(written["versions"]["torch"].partition("+")[0])
    assert written["machine"]["device"] == "cpu"


def linear_classes(n=120):
    """Two classes in three inputs that a plane separates."""
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    y, half = (x.sum(1) > 0).long(), n // 2
    one = torch.tensor(1.0)
    return Dataset(
        "plane", x[:half], y[:half], x[half:], y[half:], ("a", "b"), 0 * one, one, "none"
    )


@pytest.mark.parametrize(("epochs", "fitted"), [(2, False), (80, True)])
def test_the_training_error_is_recorded_and_a_network_that_has_not_fitted_is_noted(epochs, fitted):
    protocol = Protocol(epochs=epochs, rate=0.02, batch_size=60)
    this = Trial("plane", "mlp-iris", Method("mixup"), protocol)
    trained = run(this, data=linear_classes())
    training = trained.record["training"]
    outputs = trained.net.eval()(linear_classes().x_train)
    wrong = outputs.argmax(1) != linear_classes().y_train
    assert training["error"] == pytest.approx(float(wrong.double().mean()))
    assert training["linear"] < 0.1
    assert training["fitted"] is fitted
    note = record.training_note(trained.record)
    assert (note is None) if fitted else ("has not fitted the training data, its" in note)
    (member,) = train_fleet([this], data=[linear_classes()])
    assert member.record["training"] == training


def test_a_part_of_a_data_set_is_named_in_the_record():
    this = Trial("iris", "mlp-iris", Method(k=4), FAST, limit=40)
    assert run(this).record["data"]["part"].startswith("the first 40 of 100 training")


@pytest.mark.usefixtures("bf16")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.slow
def test_noise_and_attacks_are_tested_on_request(photos, precision):
    protocol = Protocol(epochs=12, rate=0.05, batch_size=16, precision=precision)
    this = Trial("photos", "lenet", Method("kmixup", 4), protocol)
    written = run(
        replace(this, shifts=shifts_from({"noise": [8], "fgsm": [128, 0]})), data=photos
    ).record
    assert [scores["eps"] for scores in written["noise"]] == [8]
    assert written["noise"][0]["error"] < 0.2
    assert [scores["eps"] for scores in written["fgsm"]] == [0, 128]
    assert written["fgsm"][0]["error"] == written["result"]["error"]
    assert written["result"]["error"] < 0.1
    assert written["fgsm"][1]["error"] > 0.5  # 128/255 is more than lies between the classes


@pytest.mark.parametrize("test", ["noise", "fgsm"])
def test_robustness_of_what_has_no_pixels_is_refused(test):
    with pytest.raises(ValueError, match="iris has no pixels"):
        run(replace(trial(), shifts=((test, (4,)),)))


def test_the_bar_shows_loss_error_and_rate(capsys):
    train(trial(), device="cpu", progress=True)
    shown = capsys.readouterr().err
    assert all(part in shown for part in ("iris 4/4", "loss", "error", "lr 0.0005"))


# going on


@pytest.mark.parametrize("method", ["erm", "kmixup", "manifold"])
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_resumed_run_ends_in_the_same_bits(tmp_path, monkeypatch, method, epochs):
    whole = run(trial(method))
    stopped_after(monkeypatch, epochs, trial(method), out=tmp_path)
    resumed = run(trial(method), out=tmp_path, resume=True)
    assert same(whole, resumed)
    for entry in (*whole.record["epochs"], *resumed.record["epochs"]):
        del entry["seconds"]
    assert whole.record["epochs"] == resumed.record["epochs"]


def test_augmentation_and_dropout_go_on_as_well(tmp_path, monkeypatch, photos):
    layers = "nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(192, num_classes))"
    model = own_network(tmp_path, monkeypatch, layers)
    this = Trial("photos", model, Method("mixup"), replace(FAST, augment=True, rate=0.01))
    whole = run(this, data=photos)
    stopped_after(monkeypatch, 2, this, data=photos, out=tmp_path / "out")
    assert same(whole, run(this, data=photos, out=tmp_path / "out", resume=True))


def test_a_finished_run_is_not_trained_on(tmp_path):
    trained = run(trial(), out=tmp_path)
    resumed = run(trial(), out=tmp_path, resume=True)
    assert same(trained, resumed)
    assert trained.record == resumed.record


SCRIPT = """
import sys, torch
from kmixup.lab.trial import *
from kmixup.lab.train import checkpoint
from kmixup.lab.train.loop import train
torch.set_num_threads(1)
trial = Trial("iris", "mlp-iris", Method("kmixup", 4), Protocol(epochs=60, rate=0.05, batch_size=8))
train(trial, device="cpu", out=sys.argv[1], resume=True, progress=False)
"""


@pytest.mark.slow
def test_killed_at_any_moment_and_resumed_the_weights_are_the_same_bits(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-c", SCRIPT, str(out)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 300
    while not (out / checkpoint.NAME).is_file():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert 0 < checkpoint.completed_epochs(out / checkpoint.NAME) < 60
    this = trial(protocol=Protocol(epochs=60, rate=0.05, batch_size=8))
    assert same(run(this), run(this, out=out, resume=True))


# what is refused


def test_a_folder_with_a_run_is_not_overwritten(tmp_path):
    run(trial(), out=tmp_path)
    with pytest.raises(ValueError, match="holds a run with 4 epochs done: resume it"):
        run(trial(), out=tmp_path)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    ("other", "settings"),
    [
        (trial("mixup"), "method.name='kmixup' and not 'mixup', method.k=4 and not 1"),
        (trial(protocol=replace(FAST, rate=0.1, epochs=9)), "protocol.epochs=4 and not 9, "),
    ],
)
def test_every_setting_that_differs_from_the_run_in_the_folder_is_named(
    tmp_path, other, settings, resume
):
    run(trial(), out=tmp_path)
    with pytest.raises(ValueError, match=f"has {settings}.*: use the same settings, .* overwrite"):
        run(other, out=tmp_path, resume=resume)


def test_overwrite_starts_afresh(tmp_path):
    run(trial(), out=tmp_path)
    replaced = run(trial(seed=2), out=tmp_path, overwrite=True)
    assert same(replaced, run(trial(seed=2)))
    assert checkpoint.completed_epochs(tmp_path / checkpoint.NAME) == 4
    assert json.loads((tmp_path / "record.json").read_text()) == replaced.record
    with pytest.raises(DivergedError):
        run(trial(protocol=replace(FAST, rate=1e6)), out=tmp_path, overwrite=True)
    assert os.listdir(tmp_path) == [checkpoint.LOCK]  # nothing of the run before is left


def test_a_folder_in_which_a_run_is_training_is_not_used_by_another(tmp_path):
    with checkpoint.locked(tmp_path):
        for resume in (False, True):
            with pytest.raises(ValueError, match="out must be a folder that no other run is using"):
                run(trial(), out=tmp_path, resume=resume)
    run(trial(), out=tmp_path)


def test_a_resumed_run_notices_that_its_data_have_changed(tmp_path, monkeypatch):
    table = tmp_path / "own.csv"
    rows = [f"{i},{i % 7},{i % 2}" for i in range(60)]
    table.write_text("\n".join(["a,b,y", *rows]))
    this = Trial(str(table), "mlp-iris", Method("kmixup", 4), FAST)
    stopped_after(monkeypatch, 2, this, out=tmp_path / "run")
    rows[5] = "5,5,0"
    table.write_text("\n".join(["a,b,y", *rows]))
    with pytest.raises(ValueError, match=r"own.csv has changed since .*checkpoint.pt was written"):
        run(this, out=tmp_path / "run", resume=True)


def test_a_loss_that_leaves_the_numbers_stops_with_epoch_rate_and_advice():
    message = "in epoch 1, at the learning rate 1e.06: try a lower one, e.g. 1000"
    with pytest.raises(DivergedError, match=message):
        run(trial(protocol=replace(FAST, rate=1e6)))


def test_weights_that_overflow_in_the_last_step_are_noticed():
    protocol = Protocol(epochs=1, rate=1e38, batch_size=128, weight_decay=100.0)  # one step in all
    with pytest.raises(DivergedError, match="in epoch 1"):
        run(trial("erm", protocol=protocol))


@pytest.mark.parametrize(
    ("circumstances", "message"),
    [
        ({"device": "tpu"}, "device must be one of auto, cpu, cuda, got 'tpu'"),
        ({"out": __file__}, "out must be a folder, .*test_loop.py is a file"),
    ],
)
def test_circumstances_that_cannot_be_are_refused(circumstances, message):
    with pytest.raises(ValueError, match=message):
        train(trial(), progress=False, **{"device": "cpu"} | circumstances)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="device must be one that this machine has, got 'cuda'"):
        train(trial(), device="cuda")


def test_data_that_do_not_fit_the_trial_are_refused():
    few = Trial("iris", "mlp-iris", Method(k=64), limit=40)
    with pytest.raises(ValueError, match="k must be lower: 64 needs 64 training samples"):
        run(few)
    with pytest.raises(ValueError, match="augment needs images to crop and flip, iris has none"):
        run(trial(protocol=replace(FAST, augment=True)))
    with pytest.raises(ValueError, match="layout is for images, iris has none"):
        run(trial(protocol=replace(FAST, layout="channels_last")))
    with pytest.raises(ValueError, match="model must be a known name"):
        run(replace(trial(), model="mlp-irs"))
    with pytest.raises(ValueError, match="must be a function or class with"):
        run(replace(trial(), model="kmixup.lab.train.setup:DEVICES"))


def test_a_table_trains_on_one_thread_and_leaves_the_others_as_they_were():
    torch.set_num_threads(2)
    trained = train(Trial("iris", "mlp-iris", protocol=Protocol(epochs=1)), device="cpu")
    assert trained.record["machine"]["threads"] == 1
    assert torch.get_num_threads() == 2
