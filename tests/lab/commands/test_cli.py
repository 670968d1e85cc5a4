"""The command line: its help, its imports, and one sentence for each mistake."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from own_tables import mixed

import kmixup_command
from kmixup import __version__
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.figures import NAMES as FIGURES
from kmixup.lab.methods import METHODS
from kmixup.lab.train import checkpoint

NET = """
from torch import nn
def net(*, in_shape, num_classes):
    return nn.Linear(in_shape[0], num_classes)
"""


def run_python(code, *words):
    """Run code in another process; returns how it ended."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


# entry points, help and imports


def test_the_package_can_be_run_as_a_module():
    command = [sys.executable, "-m", "kmixup", "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, f"kmixup {__version__}\n")


def test_the_root_help_has_a_line_for_every_command(kmixup):
    code, out, _ = kmixup("--help")
    assert code == 0
    for name, (example, summary) in kmixup_command.COMMANDS.items():
        assert f"kmixup {name} {example} " in out
        assert summary in out


@pytest.mark.parametrize(("command", "names"), [("train", METHODS), ("figures", FIGURES)])
def test_every_method_and_every_figure_is_in_the_help(kmixup, command, names):
    _, out, _ = kmixup(command, "--help")
    assert all(name in out for name in names)


def test_every_shift_is_an_option(kmixup):
    _, out, _ = kmixup("train", "--help")
    assert all(f"--{name} EPS" in out for name in SHIFTS)


@pytest.mark.parametrize("command", [*kmixup_command.COMMANDS, "reproduce cost", "data fetch"])
def test_every_example_of_a_help_can_be_parsed(kmixup, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = kmixup(*command.split(), "--help")
    assert code == 0
    examples = [line.strip() for line in out.splitlines() if line.startswith(" kmixup ")]
    assert examples or command in ("data", "data fetch")
    app = kmixup_command.make_app()
    for example in examples:
        words = shlex.split(example, comments=True)[1:]
        app.parse_args(words, print_error=False, exit_on_error=False)


MODULES = "import sys; sys.argv[0] = 'kmixup'\nfrom kmixup_command import main\ntry: main()\n"
MODULES += "finally: print('modules', *sys.modules)"


def modules_after(*words):
    ran = run_python(MODULES, *words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("words", ["--help", "--version", ""])
def test_help_and_version_import_neither_torch_nor_the_package(words):
    assert not {"torch", "kmixup", "numpy"} & set(modules_after(*words.split()))


def test_train_imports_little_more_than_it_runs(here):
    modules = modules_after("train", "iris", "--epochs", "1", "--quiet")
    own = [name for name in modules if name.partition(".")[0] == "kmixup"]
    assert len(own) <= 100
    for part in ("paper", "report", "figures", "cost", "inspection"):
        assert not any(name.startswith(f"kmixup.lab.{part}") for name in own)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("trian", "unknown command 'trian': did you mean 'train'?"),
        ("xyzzy", f"unknown command 'xyzzy': there are {', '.join(kmixup_command.COMMANDS)}"),
        ("evaluate", "'evaluate' is now kmixup predict --score"),
        ("league", "'league' is now kmixup compare"),
        ("calibrate", "'calibrate' is now kmixup inspect"),
        ("bench", "'bench' is now kmixup reproduce cost"),
    ],
)
def test_an_unknown_command_names_the_one_that_was_meant(kmixup, word, message):
    code, out, err = kmixup(word, "cost", "--option", 1)
    assert (code, out, err) == (2, "", f"kmixup: {message}\n")


# training


def test_training_prints_the_result_and_keeps_the_record(kmixup, here):
    code, out, err = kmixup("train", "iris", "--k", 4, "--epochs", 3, "--rate", 0.05)
    assert (code, err) == (0, "")
    folder = here / "out" / "iris-mlp-iris-kmixup-k4-alpha0.2-seed0"
    written = json.loads((folder / "record.json").read_text())
    assert {"epochs": 3, "rate": 0.05}.items() <= written["trial"]["protocol"].items()
    error = f"{written['result']['error']:.2%}"
    assert out.startswith(
        f"iris, mlp-iris, kmixup k=4 alpha=0.2: test error {error} on 50 samples, log-loss "
    )
    assert out.endswith("record: out/iris-mlp-iris-kmixup-k4-alpha0.2-seed0/record.json\n")


@pytest.mark.parametrize("data", ["one-ring", "four-bars", "swiss-roll", "iris", "cancer"])
def test_some_data_work_without_any_download(kmixup, data):
    code, out, _ = kmixup("train", "--data", data, "--epochs", 1, "--method", "mixup")
    assert code == 0
    assert out.startswith(f"{data}, mlp-")


def test_images_get_a_network_for_images_and_robustness_is_reported(kmixup, here):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (40, 8, 8), dtype=np.uint8), np.arange(40) % 2
    np.savez(here / "grey.npz", x=x, y=y)
    words = ("train", "grey.npz", "--epochs", 1, "--k", 4, "--rate", 0.01)
    code, out, _ = kmixup(*words, "--noise", 8, "--fgsm", 4)
    assert code == 0
    assert "grey.npz, lenet" in out
    assert "under Gaussian noise of 8/255: error" in out
    assert "under FGSM of 4/255: error" in out


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(kmixup):
    code, _, err = kmixup("train", "iris", "--alpha", 1, "--alpha-rule", "xi", "--epochs", 1)
    assert code == 0
    assert err.startswith("kmixup: xi=")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ("--k 16 --memory 32", "kmixup k=16 alpha=0.2 with memory=32"),
        ("--k 4 --labels -0.5", "kmixup k=4 alpha=0.2 with labels=-0.5"),
        ("--k 4 --match-on ema", "kmixup k=4 alpha=0.2 matched on ema:5"),
        ("--method mixup --k 1", "mixup alpha=0.2"),
    ],
)
def test_the_label_of_a_variant_names_its_settings_and_its_folder(kmixup, here, words, label):
    code, out, _ = kmixup("train", "iris", "--batch-size", 8, "--epochs", 1, *words.split())
    assert code == 0
    assert out.startswith(f"iris, mlp-iris, {label}: test error")
    slug = label.replace("=", "").replace(" ", "-").replace(":", "-")
    assert (here / "out" / f"iris-mlp-iris-{slug}-seed0" / "record.json").is_file()


# stopping and resuming


def test_a_run_is_resumed_only_when_asked_to(kmixup, here):
    words = ("train", "iris", "--epochs", 2, "--out", "run")
    code, _, err = kmixup(*words, "--resume")
    assert code == 0
    assert err == "run has no checkpoint: starting from the beginning\n"
    code, _, err = kmixup(*words)
    assert code == 2
    assert "--out must be a new folder, run holds a run with 2 epochs done: resume it" in err
    assert kmixup(*words, "--resume")[0] == 0
    for more in ((), ("--resume",)):  # one answer, which names what differs
        code, _, err = kmixup(*words, "--seed", 3, *more)
        assert code == 2
        assert "seed=0 and not 3: use the same settings, choose another folder, or" in err
    assert kmixup(*words, "--seed", 3, "--overwrite")[0] == 0


@pytest.mark.slow
def test_ctrl_c_keeps_the_last_epoch_and_prints_how_to_resume(here):
    words = ["train", "iris", "--epochs", "4000", "--out", "run", "--k", "4"]
    command = [sys.executable, "-m", "kmixup", *words]
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
    assert err.removeprefix("reading iris …\n") == (
        f"stopped with {done} of 4000 epochs saved in run; resume with\n"
        "  kmixup train iris --epochs 4000 --out run --k 4 --resume\n"
    )


INTERRUPTED_IMPORT = """
import importlib.abc, os, signal, sys

wanted = sys.argv.pop(1)

class CtrlC(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
from kmixup_command import main
main()
"""


@pytest.mark.parametrize("module", ["cyclopts", "torch", "numpy", "kmixup.lab.commands.inspect"])
def test_ctrl_c_during_an_import_is_no_traceback(module):
    ended = run_python(INTERRUPTED_IMPORT, module, "inspect", "iris", "--no-page")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "kmixup: stopped\n")


def raising(error):
    def fail(*args, **more):
        raise error

    return fail


LOAD = "kmixup.lab.commands.inspect.load"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "stopped\n"),
        (MemoryError(), 1, "out of memory: use fewer samples"),
        (RuntimeError("CPU: can't allocate memory: you"), 1, "out of memory: use"),
    ],
)
def test_ctrl_c_and_too_little_memory_are_one_sentence(kmixup, monkeypatch, error, code, message):
    monkeypatch.setattr(LOAD, raising(error))
    left, out, err = kmixup("inspect", "iris", "--no-page")
    assert (left, out) == (code, "")
    assert err.startswith(f"kmixup: {message}")


def test_a_bug_keeps_its_traceback(kmixup, monkeypatch):
    monkeypatch.setattr(LOAD, raising(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        kmixup("inspect", "iris", "--no-page")


def test_a_reader_that_leaves_a_pipe_is_no_traceback():
    command = f"{sys.executable} -m kmixup data list | head -c 1"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ran.stderr == ""


# mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train", "--data requires an argument. See kmixup train --help."),
        ("train iris cancer", "Unused Tokens: ['cancer']. See kmixup train --help."),
        ("train iris --epoch 1", "Unknown option: --epoch. Did you mean --epochs? See kmixup"),
        ("train iris --k", "--k requires an argument. See kmixup train --help."),
        ("train iris --k 2.5", 'Invalid value for --k: unable to convert "2.5" into int. See '),
        ("tune iris --k 4 --k 2.5", 'Invalid value for --k: unable to convert "2.5" into int.'),
        ("train iris --rate=fast", '--rate: unable to convert "fast" into float.'),
        ("train iris --pairing lodaers", 'Choose from: "loaders", "batch", "reshuffle". Did you '),
        ("train irsi", "unknown data set or file 'irsi': did you mean 'iris'"),
        ("train mnist", "run `kmixup data fetch mnist` (11.6 MB)"),
        (
            "train iris --method cutup",
            "--method must be a known name or package.module:name, got",
        ),
        ("train iris --method mixup --k 16", "--k has no effect with method mixup, got 16"),
        ("train iris --method erm --alpha 1", "--alpha has no effect with method erm, got 1.0"),
        ("train iris --layers all-blocks", "--layers has no effect with method kmixup, got all-"),
        ("train iris --model lenet", "in_shape must be (channels, height, width)"),
        ("train iris --model no_such:net", "no module named 'no_such'"),
        ("train iris --rate 1e9 --epochs 2", "the loss became NaN or infinite in epoch 1"),
        ("predict run new.csv", "there is no file or folder 'new.csv' to predict"),
        ("inspect iris --alpha 0", "--alpha must be above 0, to compare strengths with, got 0"),
        ("inspect iris --size 3", "--size must be a whole number, at least 4, got 3"),
        ("inspect iris --out file", "--out must be a folder, file is a file"),
        ("reproduce uic", "experiment must be one of toy, uci, "),
        ("reproduce uci --data mnist", "--data must be one of abalone, "),
        ("tune iris --quiet --budget 9", "budget must be at least 11 trials for one"),
        ("tune iris --k 90", "--k must be at most 80, the training samples that validation leaves"),
        ("tune iris --workers 0", "--workers must be a whole number, at least 1, got 0"),
        (
            "compare iris --methods erm,cutmix",
            "--methods must apply to every data set, cutmix ",
        ),
        ("compare iris --settings 5", "--settings must be 2, 4, 6, got 5"),
        ("compare iris --samples 9", "iris must leave 16 training samples for kmixup k=16"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(kmixup, here, words, message):
    (here / "file").touch()
    code, out, err = kmixup(*words.split())
    assert (code, out) == (2, "")
    assert err.startswith("kmixup: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("module", ["rich.progress", "sklearn.datasets"])
def test_a_missing_extra_is_named_with_its_pip_line(kmixup, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "kmixup.lab.train.loop", raising=False)
    code, _, err = kmixup("train", "iris", "--epochs", 1)
    sentence = f'kmixup: this needs {module}, which is not installed: pip install "kmixup[lab]"\n'
    assert (code, err) == (2, sentence)


def test_a_missing_module_of_your_own_is_not_blamed_on_the_extra(kmixup, here):
    (here / "broken_net.py").write_text("import no_such_package\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        kmixup("train", "iris", "--model", "broken_net:net")


def test_without_fcntl_the_command_works(here):
    code = "import sys; sys.modules['fcntl'] = None; from kmixup_command import main; main()"
    ended = run_python(code, "data", "list")
    assert ended.returncode == 0, ended.stderr
    assert "swiss-roll" in ended.stdout
    (here / "grid.toml").write_text('data = "iris"\n')
    ended = run_python(code, "sweep", "grid.toml")
    assert ended.returncode == 0, ended.stderr


# networks and methods of your own


def test_the_example_of_your_own_data_network_and_method_runs(kmixup, here, monkeypatch):
    example = Path(__file__).parents[3] / "examples" / "own_lab.py"
    monkeypatch.chdir(example.parent)
    commands = [
        line.split()[1:] for line in example.read_text().splitlines() if "    kmixup " in line
    ]
    assert [words[0] for words in commands] == ["train", "compare"]
    for words in commands:
        code, out, err = kmixup(*words, "--epochs", 2, "--out", here / words[0], "--quiet")
        assert code == 0, err
        assert "own_lab:moons" in out
        assert "own_lab:FarMixup" in out


def test_a_network_of_your_own_is_imported_from_a_run_only_if_allowed(kmixup, here):
    rows = [f"{x},{-x},{'up' if x > 0 else 'down'}" for x in range(-30, 30)]
    (here / "table.csv").write_text("\n".join(["a,b,way", *rows]))
    (here / "own_net.py").write_text(NET)
    words = ("--target", "way", "--epochs", 2, "--out", "run")
    code, out, err = kmixup("train", "table.csv", *words, "--model", "own_net:net", "--k", 4)
    assert code == 0, err
    assert "table.csv, own_net:net, kmixup k=4" in out
    sys.modules.pop("own_net")
    code, _, err = kmixup("predict", "run", "table.csv")
    assert code == 2
    assert "--allow-code must be set to load run, whose network is the code 'own_net:net'" in err
    assert "own_net" not in sys.modules
    code, out, _ = kmixup("predict", "run", "table.csv", "--allow-code")
    assert (code, len(out.splitlines())) == (0, 61)


def test_a_file_in_the_current_folder_does_not_replace_an_installed_module(here):
    (here / "csv.py").write_text("print('hijacked')")
    (here / "own_net.py").write_text(NET)
    code = "from kmixup_command import main; main()"
    command = [sys.executable, "-P", "-c", code, "train", "iris", "--epochs", "1"]
    ran = subprocess.run(
        [*command, "--model", "own_net:net"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "hijacked" not in ran.stdout


# kmixup data


def test_the_list_shows_what_is_available_locally(kmixup, here, monkeypatch):
    (here / "data" / "svhn-sample").mkdir(parents=True)
    for part in ("train", "test"):
        (here / "data" / "svhn-sample" / f"{part}_32x32.mat").touch()
    monkeypatch.setenv("KMIXUP_DATA", str(here / "data"))
    code, out, _ = kmixup("data", "list")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert rows["iris"].split() == ["iris", "table", "100", "50", "3", "4", "yes"]
    assert rows["mnist"].split()[2:] == ["60,000", "10,000", "10", "1×28×28", "no"]
    assert rows["svhn"].endswith("a part (use --limit)")


def test_info_names_source_size_checksum_and_license(kmixup):
    _, out, _ = kmixup("data", "info", "mnist")
    assert "60,000 to train, 10,000 to test" in out
    assert "train-images-idx3-ubyte.gz (9.9 MB)" in out
    assert "SHA-256 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609, publ" in out
    assert "license  CC BY-SA 3.0" in out


def test_fetch_says_where_the_data_are(kmixup, here):
    folder = here / "into" / "svhn"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        (folder / f"{part}_32x32.mat").touch()
    code, out, _ = kmixup("data", "fetch", "svhn", "--into", here / "into")
    assert (code, out) == (0, f"svhn is in {folder}\n")


@pytest.mark.parametrize("command", ["train", "tune", "inspect"])
@pytest.mark.parametrize(
    ("option", "value"),
    [("--k", 0), ("--alpha", -1), ("--epochs", 0), ("--batch-size", 1), ("--rate", 0),
     ("--test-size", 2)],
)  # fmt: skip
def test_an_impossible_value_names_its_option(kmixup, here, command, option, value):
    mixed(here / "own.csv", rows=60)
    code, out, err = kmixup(command, "own.csv", option, value)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(
        (f"kmixup: {option} must", f"kmixup: Unknown option: {option}")
    )
