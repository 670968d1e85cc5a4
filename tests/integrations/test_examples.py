"""Every example of a framework runs against the framework itself."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),
]


def accuracy(printed):
    return float(re.search(r"test accuracy ([\d.]+) %", printed)[1])


@pytest.mark.parametrize(
    ("name", "epochs", "least"),
    [
        ("data_loader", 5, 85),
        ("torchvision", 3, 80),
        ("timm", 3, 60),
        ("lightning", 5, 85),
        ("sklearn", 30, 80),
        ("transformers", 6, 70),
        ("fastai", 3, 85),
        ("keras", 5, 85),
    ],
)
def test_an_example_learns(name, epochs, least, monkeypatch, capsys):
    # not in a process of its own, which would need the operators of torchvision to be defined
    monkeypatch.setattr(sys, "argv", ["example", "--epochs", str(epochs)])
    runpy.run_path(str(EXAMPLES / f"with_{name}.py"), run_name="__main__")
    assert accuracy(capsys.readouterr().out) >= least


def test_two_processes_of_torchrun_draw_differently_and_keep_equal_weights():
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*launch, EXAMPLES / "with_torchrun.py", "--epochs", "5"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    assert "2 ranks, 100 batches, 100 different lam" in done.stdout
    assert "weights equal on all ranks: True" in done.stdout
    assert accuracy(done.stdout) >= 85
