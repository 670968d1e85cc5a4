"""README, examples and benchmarks do what they say."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import kmixup
from kmixup import theory
from kmixup.lab.data import ENTRIES
from kmixup.lab.models import MODELS
from kmixup.lab.protocol import MethodName

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_code_on_the_page_of_the_lab_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/lab.md").read_text(), re.S)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(compile(block, "docs/lab.md", "exec"), names)
    assert len(names["errors"]) == 20


@pytest.mark.slow
def test_the_code_on_the_page_of_the_theory_prints_what_the_page_shows(capsys):
    page = (ROOT / "docs/theory.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.S)
    assert len(blocks) == 23
    names = {}
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, "docs/theory.md", "exec"), names)
        else:
            assert capsys.readouterr().out == block


def test_the_code_on_the_page_of_tuning_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/tuning.md").read_text().partition("## Searching")[0]
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, "docs/tuning.md", "exec"), names)
    assert names["found"].features == 64
    assert np.load("embeddings.npz")["x"].shape == (150, 64)


def test_the_page_of_the_theory_names_every_instrument():
    page = (ROOT / "docs/theory.md").read_text()
    for name in theory.__all__:
        if name[0].islower():
            assert name in page, name


def test_the_page_of_the_methods_states_what_its_code_measures():
    page = (ROOT / "docs/methods.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    names = {}
    exec(compile(block, "docs/methods.md", "exec"), names)
    below = page.partition(block)[2].splitlines()
    for name, share in names["crossing"].items():
        line = next(line for line in below if line.startswith(f"| {name}"))
        _, _, crossing, distinct, _ = (cell.strip(" %") for cell in line.split("|"))
        assert 100 * share == pytest.approx(float(crossing), abs=0.5)
        assert 100 * names["distinct"][name] == pytest.approx(float(distinct), abs=0.5)


def test_the_page_of_the_methods_names_every_method_of_the_lab():
    page = (ROOT / "docs/methods.md").read_text()
    for name in get_args(MethodName):
        assert f"`--method {name}" in page, name


@pytest.mark.slow
def test_the_picture_of_the_methods_is_drawn(tmp_path):
    picture = tmp_path / "deep" / "methods.svg"
    command = [sys.executable, ROOT / "examples/methods.py", "--out", picture]
    subprocess.run(command, capture_output=True, text=True, check=True)
    drawn = picture.read_text()
    assert drawn.startswith("<?xml")
    assert drawn.count('<g id="axes_') == 8


def test_the_page_of_the_lab_names_every_data_set_and_network():
    page = (ROOT / "docs/lab.md").read_text()
    for name in (*ENTRIES, *MODELS):
        assert f"`{name}`" in page, name


def test_the_code_in_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(blocks) >= 5
    x_train = torch.randn(256, 12)
    data = TensorDataset(x_train, torch.randint(10, (256,)))
    net = nn.Linear(12, 10)
    X, y = load_iris(return_X_y=True)
    names = {
        "net": net,
        "optimizer": torch.optim.SGD(net.parameters(), lr=0.1),
        "loader": DataLoader(data, batch_size=64, shuffle=True),
        "loader2": DataLoader(data, batch_size=64, shuffle=True),
        "x_train": x_train,
        "y_train": data.tensors[1],
        "LogisticRegression": LogisticRegression,
    }
    for block in blocks:
        names |= {"X": X, "y": y}
        exec(compile(block, "README.md", "exec"), names)
    assert isinstance(names["mix"], kmixup.KMixup)


def test_the_readme_names_the_targets_of_the_makefile():
    targets = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.M)
    assert sorted(targets) == ["bench", "lint", "reproduce", "survival", "test"]
    assert all(f"make {target}" in README for target in targets)


def test_the_readme_shows_every_public_name():
    for name in set(kmixup.__all__) - {"Calibration", "Mixed"}:  # what calls return
        assert name in README, name


@pytest.mark.slow
def test_quickstart_draws_its_picture(tmp_path):
    picture = tmp_path / "deep" / "picture.png"
    command = [sys.executable, ROOT / "examples/quickstart.py", "--epochs", "2", "--out", picture]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.count("test error") == 3
    assert str(picture) in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_quickstart_refuses_impossible_settings():
    command = [sys.executable, ROOT / "examples/quickstart.py", "--epochs", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--epochs must be at least 1" in done.stderr


@pytest.mark.slow
def test_benchmarks_print_a_table():
    command = [sys.executable, "-m", "benchmarks", "mixing", "--seconds", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "KMixup(k=1)" in done.stdout
    assert done.stdout.count("(128, 1, 28, 28)") == 1


def test_benchmarks_refuse_an_unknown_section():
    command = [sys.executable, "-m", "benchmarks", "speed"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert "sections must be among" in done.stderr
