"""One run in several processes: large outcomes come back, and a death is told in a sentence."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from kmixup.lab.train import checkpoint, ranks
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.train.loop import train
from kmixup.lab.train.setup import DivergedError

PATIENCE = 300  # seconds, after which something hangs

NETS = """
import os, signal, time
import torch
from pathlib import Path
from torch import nn

def _rank():
    return int(os.environ.get("LOCAL_RANK", -1))

class Mortal(nn.Linear):
    def __init__(self, in_shape, num_classes):
        super().__init__(in_shape[0], num_classes)

    def forward(self, x):
        Path(f"begun-{_rank()}").write_text(str(os.getpid()))
        if self.training and _rank() == 1:
            self.end()
        return super().forward(x)

class Killed(Mortal):
    def end(self):
        os.kill(os.getpid(), signal.SIGKILL)

class Raising(Mortal):
    def end(self):
        raise ValueError("no such luck")

class Patient(Mortal):
    def end(self):
        time.sleep(0.05)
"""


@pytest.fixture
def command(tmp_path):
    """Starts the command in a folder with networks of one's own."""
    (tmp_path / "nets.py").write_text(NETS)

    def start(*words):
        return subprocess.Popen(
            [sys.executable, "-m", "kmixup", "train", "--devices", "2", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )

    return start


def ended(process):
    """Exit code, output and own words of a command that must not hang."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert "Traceback" not in err
    # Fabric tells between rules how it sets up the ranks
    return process.returncode, out, err.rpartition("-\n\n")[2]


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


WORDS = ("--device", "cpu", "--out", "run", "--quiet")


@pytest.mark.slow
def test_weights_larger_than_a_pipe_come_back_and_the_run_goes_on(command, tmp_path):
    words = ("--data", "one-ring", "--model", "mlp-toy", "--size", 128, "--k", 4, "--epochs", 2)
    code, out, err = ended(command(*words, *WORDS))
    assert (code, err) == (0, "")
    assert "one-ring, mlp-toy, kmixup k=4 alpha=0.2: test error" in out
    assert (tmp_path / "run" / checkpoint.NAME).stat().st_size > 2**16
    code, again, err = ended(command(*words, *WORDS, "--resume"))
    assert (code, err) == (0, "")
    assert again == out


@pytest.mark.survival
def test_lenet_on_images_ends(command, tmp_path):
    x = torch.randint(256, (96, 28, 28), dtype=torch.uint8).numpy()
    np.savez(tmp_path / "images.npz", x=x, y=np.arange(96) % 3)
    words = ("--data", "images.npz", "--model", "lenet", "--k", 4, "--epochs", 1, "--rate", 0.01)
    code, out, err = ended(command(*words, *WORDS))
    assert (code, err) == (0, "")
    assert "images.npz, lenet, kmixup k=4 alpha=0.2: test error" in out


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_the_other_and_is_told_in_a_sentence(command, tmp_path):
    code, _, err = ended(command("--data", "iris", "--model", "nets:Killed", "--k", 4, *WORDS))
    assert (code, err) == (
        2,
        "kmixup: process 2 of 2 died of SIGKILL, and the run with it, perhaps for want of memory: "
        "try smaller batches; what was saved is safe: resume with --resume\n",
    )
    assert not any(alive(path.read_text()) for path in tmp_path.glob("begun-*"))


@pytest.mark.survival
def test_an_error_of_a_rank_is_that_of_the_run(command, tmp_path):
    code, _, err = ended(command("--data", "iris", "--model", "nets:Raising", "--k", 4, *WORDS))
    assert (code, err) == (2, "kmixup: no such luck\n")
    assert not any(alive(path.read_text()) for path in tmp_path.glob("begun-*"))


@pytest.mark.survival
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_ctrl_c_ends_all_and_the_run_goes_on_where_it_was(command, tmp_path, send):
    words = ("--data", "iris", "--model", "nets:Patient", "--method", "mixup", "--epochs", 9)
    process = command(*words, *WORDS)
    path = tmp_path / "run" / checkpoint.NAME
    deadline = time.monotonic() + PATIENCE
    while not path.is_file():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    send(process.pid, signal.SIGINT)
    code, _, err = ended(process)
    assert code == 130
    assert "of 9 epochs saved in run; resume with" in err
    assert not any(alive(path.read_text()) for path in tmp_path.glob("begun-*"))
    assert 1 <= checkpoint.completed_epochs(path) < 9
    assert ended(command(*words, *WORDS, "--resume"))[0] == 0
    assert checkpoint.completed_epochs(path) == 9


@pytest.mark.survival
def test_a_loss_that_leaves_the_numbers_stops_all_ranks():
    protocol = Protocol(epochs=2, rate=1e9, batch_size=32)
    wild = Trial("iris", "mlp-iris", Method("mixup"), protocol)
    with pytest.raises(DivergedError, match="the loss became NaN or infinite in epoch"):
        train(wild, device="cpu", devices=2, progress=False)


# without processes


def fabric(death=None, rank=0):
    """As much of Fabric as is used: one rank, in this process."""

    def launch(function):
        try:
            function(SimpleNamespace(global_rank=rank))
        except Exception as error:
            raise ProcessRaisedException(f"Traceback: {error!r}", rank, 1) from None
        if death is not None:
            raise death

    return SimpleNamespace(world_size=2, launch=launch)


class UnsendableError(Exception):
    """Has no way through a file."""

    def __reduce__(self):
        raise TypeError("no way")


def test_only_the_outcome_of_the_first_rank_counts():
    assert ranks.launch(fabric(), lambda _: ("record", b"w" * 10**6)) == ("record", b"w" * 10**6)
    with pytest.raises(FileNotFoundError):
        ranks.launch(fabric(rank=1), lambda _: "outcome")


def test_an_error_comes_back_with_its_type_and_its_traceback():
    def fails(_):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full") as raised:
        ranks.launch(fabric(rank=1), fails)
    assert "in fails" in raised.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_told_by_its_text():
    def fails(_):
        raise UnsendableError("pity")

    with pytest.raises(
        RuntimeError, match="process 1 of the run failed: Traceback: UnsendableError"
    ):
        ranks.launch(fabric(rank=1), fails)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (-9, "process 2 of 2 died of SIGKILL, and the run with it, perhaps for want of memory"),
        (
            -11,
            "process 2 of 2 died of SIGSEGV, and the run with it; what was saved is safe",
        ),
        (3, "process 2 of 2 ended with exit code 3, and the run with it; what was saved is safe"),
    ],
)
def test_only_a_killed_rank_is_said_to_have_wanted_memory(code, sentence):
    death = ProcessExitedException("gone", error_index=1, error_pid=1, exit_code=code)
    with pytest.raises(ChildProcessError, match=sentence):
        ranks.launch(fabric(death), lambda _: None)
