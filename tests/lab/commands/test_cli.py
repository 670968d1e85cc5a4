"""The command as its users meet it: real processes, and one sentence for each mistake."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

from kmixup import __version__
from kmixup.lab.data import load
from kmixup.lab.train import checkpoint
from kmixup.lab.train.defaults import defaults_for
from kmixup_command import main as door

# training


def test_training_prints_the_result_and_keeps_the_record(kmixup, here):
    code, out, err = kmixup("train", "--data", "iris", "--k", 4, "--epochs", 3, "--rate", 0.05)
    assert (code, err) == (0, "")
    folder = here / "out" / "iris-mlp-iris-kmixup-k4-alpha1-seed0"
    written = json.loads((folder / "record.json").read_text())
    assert (
        written["trial"]["protocol"] | {"epochs": 3, "rate": 0.05} == written["trial"]["protocol"]
    )
    error = f"{written['result']['error']:.2%}"
    assert out.startswith(
        f"iris, mlp-iris, kmixup k=4 alpha=1: test error {error} on 50 samples, log-loss "
    )
    assert out.endswith("record: out/iris-mlp-iris-kmixup-k4-alpha1-seed0/record.json\n")


@pytest.mark.parametrize("data", ["one-ring", "four-bars", "swiss-roll", "iris", "cancer"])
def test_some_data_work_without_any_download(kmixup, data):
    code, out, _ = kmixup("train", "--data", data, "--epochs", 1, "--method", "mixup")
    assert code == 0
    assert out.startswith(f"{data}, mlp-")


def test_a_part_is_called_a_part(kmixup):
    _, out, _ = kmixup("train", "--data", "iris", "--limit", 50, "--epochs", 1, "--method", "erm")
    assert out.startswith("iris (the first 50 of 100 training and 50 of 50 test samples), mlp-iris")


def test_a_table_of_ones_own_and_a_network_of_ones_own(kmixup, here):
    rows = [f"{x},{-x},{'up' if x > 0 else 'down'}" for x in range(-30, 30)]
    (here / "table.csv").write_text("\n".join(["a,b,way", *rows]))
    (here / "nets.py").write_text(
        "from torch import nn\n"
        "def small(*, in_shape, num_classes):\n"
        "    return nn.Linear(in_shape[0], num_classes)\n"
    )
    words = ("train", "--data", "table.csv", "--target", "way", "--epochs", 40)
    code, out, _ = kmixup(*words, "--model", "nets:small", "--k", 4)
    assert code == 0
    assert "table.csv, nets:small, kmixup" in out
    code, out, _ = kmixup(*words)
    assert code == 0
    assert "table.csv, mlp-120-120-84, kmixup k=16" in out


def test_images_get_a_network_for_images_and_robustness_is_reported(kmixup, here):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (40, 8, 8), dtype=np.uint8), np.arange(40) % 2
    np.savez(here / "grey.npz", x=x, y=y)
    words = ("train", "--data", "grey.npz", "--epochs", 1, "--k", 4, "--rate", 0.01)
    code, out, _ = kmixup(*words, "--noise", 8, "--fgsm", 4)
    assert code == 0
    assert "grey.npz, lenet" in out
    assert "under Gaussian noise of 8/255: error" in out
    assert "under FGSM of 4/255: error" in out


def test_defaults_follow_the_data():
    def usual_for(name, data=None):
        usual = defaults_for(name, data)
        return usual.kind, usual.model

    iris = load("iris")
    assert usual_for("iris") == ("table", "mlp-iris")
    assert usual_for("own", iris) == ("table", "mlp-120-120-84")
    assert usual_for("one-ring") == ("toy", "mlp-toy")
    with pytest.raises(ValueError, match="data 'own' have no name of their own: load them first"):
        usual_for("own")
    shape = {"x_train": torch.zeros(2, 3, 32, 32), "pixel_range": (0.0, 255.0)}
    photos = type(iris)(**vars(iris) | shape)
    assert usual_for("cifar10") == usual_for("own", photos) == ("image", "preact-resnet18")
    clips = type(iris)(**vars(iris) | {"x_train": torch.zeros(2, 1, 160, 101)})
    assert usual_for("own", clips) == ("speech", "lenet")


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(kmixup):
    words = ("--data", "iris", "--alpha-rule", "xi", "--epochs", 1)
    code, _, err = kmixup("train", *words)
    assert code == 0
    assert err.startswith("kmixup: xi=")
    assert err.count("\n") == 1


def test_help_teaches_by_example(kmixup):
    code, out, _ = kmixup("train", "--help")
    assert code == 0
    assert "kmixup train --data mnist --method kmixup --k 16 --alpha 1 --epochs 3" in out
    assert "kmixup train --data mnist --method manifold --k 16 --layers all-blocks" in out
    code, out, _ = kmixup("--help")
    assert "kmixup data list" in out


# stopping and going on


def test_a_run_goes_on_only_when_asked_to(kmixup, here):
    words = ("train", "--data", "iris", "--epochs", 2, "--out", "run")
    code, _, err = kmixup(*words, "--resume")
    assert code == 0
    assert err == "nothing is saved in run as yet: starting from the beginning\n"
    code, _, err = kmixup(*words)
    assert code == 2
    assert err == (
        "kmixup: --out must be a new folder, run holds a run with 2 epochs done: "
        "set resume to continue it, or overwrite to start afresh\n"
    )
    assert kmixup(*words, "--resume")[0] == 0
    code, _, err = kmixup(*words, "--resume", "--seed", 3)
    assert code == 2
    assert "has --seed 0 and not --seed 3: use the same settings, choose another folder" in err


@pytest.mark.slow
def test_ctrl_c_keeps_the_last_epoch_and_says_how_to_go_on(here):
    words = ["train", "--data", "iris", "--epochs", "4000", "--out", "run", "--k", "4"]
    command = [sys.executable, "-m", "kmixup.lab.cli", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    path = here / "run" / checkpoint.NAME
    deadline = time.monotonic() + 300
    while not path.is_file():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    done = checkpoint.completed_epochs(path)
    assert done >= 1
    assert err == (
        f"stopped with {done} of 4000 epochs saved in run; go on with\n"
        "  kmixup train --data iris --epochs 4000 --out run --k 4 --resume\n"
    )
    assert os.listdir(here / "run") == [checkpoint.NAME]


# mistakes


def test_the_command_is_that_of_the_package():
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    scripts = tomllib.loads(pyproject.read_text())["project"]["scripts"]
    assert scripts == {"kmixup": f"{door.__module__}:{door.__name__}"}


def test_the_door_of_the_command_imports_nothing_slow():
    code = "import sys; before = set(sys.modules); import kmixup_command; "
    code += "print(sorted(set(sys.modules) - before))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "['kmixup_command']\n"


INTERRUPTED_IMPORT = """
import importlib.abc, os, signal, sys

class CtrlC(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            sys.argv.pop(1)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
from kmixup_command import main
main()
"""


@pytest.mark.parametrize("module", ["torch", "numpy", "kmixup.lab.cli", "typer", "filelock"])
def test_ctrl_c_during_an_import_is_no_traceback(module):
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, module, "calibrate", "iris", "--k", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "kmixup: stopped\n")


def test_ctrl_c_in_any_command_is_said(kmixup, monkeypatch):
    def interrupt(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("kmixup.lab.data.load", interrupt)
    assert kmixup("calibrate", "iris", "--k", 4) == (130, "", "kmixup: stopped\n")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CPU: can't allocate memory: you")])
def test_want_of_memory_is_one_sentence(kmixup, monkeypatch, error):
    def fail(*args, **more):
        raise error

    monkeypatch.setattr("kmixup.lab.data.load", fail)
    code, _, err = kmixup("calibrate", "iris", "--k", 4)
    assert code == 1
    assert err.startswith("kmixup: this machine has too little memory for that: take fewer samples")


def test_a_fault_of_the_program_keeps_its_traceback(kmixup, monkeypatch):
    def fail(*args, **more):
        raise RuntimeError("a bug")

    monkeypatch.setattr("kmixup.lab.data.load", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        kmixup("calibrate", "iris", "--k", 4)


def test_the_version_is_that_of_the_package(kmixup):
    assert kmixup("--version") == (0, f"kmixup {__version__}\n", "")


def test_the_package_can_be_run_as_a_module():
    ran = subprocess.run(
        [sys.executable, "-m", "kmixup", "--version"], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, f"kmixup {__version__}\n")


def test_without_fcntl_the_command_works(here):
    code = "import sys; sys.modules['fcntl'] = None; from kmixup_command import main; main()"
    command = [sys.executable, "-c", code, "data", "list"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0
    assert "swiss-roll" in ended.stdout
    assert "Traceback" not in ended.stderr
    (here / "grid.toml").write_text('data = "iris"\n')
    command[-2:] = ["sweep", "grid.toml"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "rows.jsonl cannot be locked (fcntl is unavailable)" in ended.stderr


def test_a_name_with_markup_is_a_name(kmixup, here):
    rows = [f"{x},{-x},{'up' if x > 0 else 'down'}" for x in range(-30, 30)]
    (here / "[").mkdir()
    (here / "[" / "b].csv").write_text("\n".join(["a,b,way", *rows]))
    words = ("--target", "way")
    code, out, err = kmixup("inspect", "[/b].csv", *words, "--no-page", "--largest-k", 4)
    assert code == 0
    assert "b].csv" in out + err
    assert kmixup("train", "--data", "[/b].csv", *words, "--epochs", 1)[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train", "Missing option '--data'"),
        ("train --data irsi", "there is no data set or file 'irsi': did you mean iris"),
        ("train --data iris --method cutup", "method must be one of erm, mixup, kmixup, nearest"),
        ("train --data iris --method cutmix", "cutmix needs images to cut boxes from, iris has"),
        ("train --data iris --method local --alpha-rule xi", 'must be "same" for the method local'),
        (
            "train --data iris --method manifold --layers hidden",
            "layers must name modules of the network, or be \"\" for its input, got 'hidden'",
        ),
        ("train --data iris --k 0", "--k must be a whole number, at least 1, got 0"),
        ("train --data iris --k many", "--k must be a whole number, got 'many'"),
        ("train --data iris --rate=fast", "--rate must be a number, got 'fast'"),
        ("tune --data iris --k 4 --k 2.5", "--k must be a whole number, got '2.5'"),
        ("train --data missing.csv", "there is no file 'missing.csv' in the folder "),
        ("train --data iris --target kind", "--target must not be given for iris, which is"),
        ("train --data iris --k 200", "--batch-size must be at least k = 200"),
        (
            "train --data iris --k 110 --batch-size 128",
            "--k must be lower: 110 needs 110 training samples",
        ),
        ("train --data iris --alpha -1", "alpha must be a finite number"),
        ("train --data iris --alpha-rule x", "--alpha-rule must be one of same, xi, root, got 'x'"),
        (
            "train --data iris --pairing x",
            "pairing must be one of loaders, batch, reshuffle, got 'x'",
        ),
        ("train --data iris --epochs 0", "epochs must be a whole number, at least 1, got 0"),
        ("train --data iris --rate 0", "rate must be a finite number above 0, got 0"),
        ("train --data iris --batch-size 1", "--batch-size must be a whole number, at least 2"),
        ("train --data iris --precision fp8", "precision must be one of fp32, bf16, got 'fp8'"),
        ("train --data iris --seed -1", "seed must be a whole number, 0 or more, got -1"),
        ("train --data iris --limit 0", "limit must be at least 1, got 0"),
        ("train --data iris --scaling big", "scaling must be one of paper, standard"),
        ("train --data iris --size 9", "size is for toys"),
        ("train --data iris --device tpu", "--device must be one of auto, cpu, cuda, mps"),
        ("train --data iris --devices 0", "devices must be a whole number, at least 1, got 0"),
        ("train --data iris --fgsm 4", "iris has no pixels"),
        ("train --data iris --augment", "--augment needs images to crop and flip, iris has none"),
        ("train --data iris --model lenet", "in_shape must be (channels, height, width)"),
        ("train --data iris --model nope", "model must be a known name"),
        ("train --data iris --model no_such:net", "no module named 'no_such'"),
        ("train --data iris --rate 1e9 --epochs 2", "the loss became NaN or infinite in epoch 1"),
        ("train --data iris --bogus 1", "No such option: --bogus"),
        ("train --data mnist", "run `kmixup data fetch mnist` (11.6 MB)"),
        ("data info irsi", "there is no data set or file 'irsi': did you mean iris"),
        ("data fetch iris", "iris needs no download: comes with scikit-learn"),
        ("bake", "No such command 'bake'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(kmixup, words, message):
    code, out, err = kmixup(*words.split())
    assert code == 2
    assert out == ""
    assert err.startswith("kmixup: ")
    assert message in err
    assert err.count("\n") == 1


MISSING = 'which is not installed: pip install "kmixup[lab]"\n'


@pytest.mark.parametrize(
    "module", ["typer", "rich.progress", "lightning_fabric", "sklearn.datasets"]
)
def test_without_the_extra_it_says_what_to_install(kmixup, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "kmixup.lab.train.loop")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    code, _, err = kmixup("train", "--data", "iris", "--epochs", 1)
    assert (code, err) == (2, f"kmixup: the lab needs {module}, {MISSING}")


def test_a_missing_module_of_ones_own_is_not_blamed_on_the_extra(kmixup, here):
    (here / "broken_net.py").write_text("import no_such_package\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        kmixup("train", "--data", "iris", "--model", "broken_net:net")


def test_a_network_of_the_wrong_size_is_refused_in_a_sentence(kmixup, here):
    (here / "narrow_net.py").write_text(
        "from torch import nn\n"
        "def net(*, in_shape, num_classes):\n"
        "    return nn.Linear(in_shape[0], 2)\n"
    )
    code, _, err = kmixup("train", "--data", "iris", "--epochs", 1, "--model", "narrow_net:net")
    assert code == 2
    assert err == (
        "kmixup: --model 'narrow_net:net' must return logits of the shape (2, 3) for a batch of "
        "the shape (2, 4), got (2, 2): give its last layer num_classes outputs\n"
    )


# the data


def test_the_list_says_what_is_at_hand(kmixup, here, monkeypatch):
    (here / "data" / "svhn-sample").mkdir(parents=True)
    for part in ("train", "test"):
        (here / "data" / "svhn-sample" / f"{part}_32x32.mat").touch()
    monkeypatch.setenv("KMIXUP_DATA", str(here / "data"))
    code, out, _ = kmixup("data", "list")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert rows["iris"].split() == ["iris", "table", "100", "50", "3", "4", "yes"]
    assert rows["mnist"].split() == [
        "mnist", "image", "60,000", "10,000", "10", "1×28×28", "no",
    ]  # fmt: skip
    assert rows["svhn"].endswith("a part (use --limit)")


def test_info_names_source_size_checksum_and_licence(kmixup):
    _, out, _ = kmixup("data", "info", "mnist")
    assert "60,000 to train, 10,000 to test" in out
    assert "train-images-idx3-ubyte.gz (9.9 MB)" in out
    assert "SHA-256 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609, publ" in out
    assert "licence  CC BY-SA 3.0" in out
    _, out, _ = kmixup("data", "info", "phishing")
    assert "SHA-256 0dfcd84c" in out


def test_fetch_says_where_the_data_are(kmixup, here):
    folder = here / "into" / "svhn"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        (folder / f"{part}_32x32.mat").touch()
    code, out, _ = kmixup("data", "fetch", "svhn", "--into", here / "into")
    assert (code, out) == (0, f"svhn is in {folder}\n")
