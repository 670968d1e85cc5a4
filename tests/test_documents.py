"""README, examples and benchmarks do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kmixup
from benchmarks.puzzle import gaps
from kmixup import theory
from kmixup.lab.data import ENTRIES
from kmixup.lab.methods import METHODS
from kmixup.lab.models import MODELS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_code_on_the_page_of_experiments_runs():
    page = (ROOT / "docs/experiments.md").read_text().partition("## Analyze results")[0]
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(compile(block, "docs/experiments.md", "exec"), names)
    assert len(names["errors"]) == 20


@pytest.mark.slow
def test_the_code_on_the_page_of_the_theory_prints_what_the_page_shows(capsys):
    page = (ROOT / "docs/evidence/theory.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.S)
    assert len(blocks) == 11
    names = {}
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, "docs/evidence/theory.md", "exec"), names)
        else:
            assert capsys.readouterr().out == block


def test_the_page_of_the_theory_names_every_instrument():
    page = (ROOT / "docs/evidence/theory.md").read_text()
    for name in theory.__all__:
        if name[0].islower():
            assert name in page, name


def test_the_page_of_matching_states_what_its_code_measures():
    page = (ROOT / "docs/learn/matching.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    names = {}
    exec(compile(block, "docs/learn/matching.md", "exec"), names)
    below = page.partition(block)[2].splitlines()
    for name, share in names["crossing"].items():
        line = next(line for line in below if line.startswith(f"| {name}"))
        _, _, crossing, distinct, _ = (cell.strip(" %") for cell in line.split("|"))
        assert 100 * share == pytest.approx(float(crossing), abs=0.5)
        assert 100 * names["distinct"][name] == pytest.approx(float(distinct), abs=0.5)


@pytest.mark.parametrize("grid", [2, 4, 8])
def test_the_page_of_the_methods_states_how_often_swap_moves_are_worse(grid):
    page = (ROOT / "docs/evidence/methods.md").read_text()
    worse, lost = gaps(grid)
    assert f"| {grid} × {grid} | {100 * worse:.1f} % | {100 * lost:.1f} % |" in page


def test_the_page_of_the_methods_names_every_method_of_the_lab():
    page = (ROOT / "docs/methods.md").read_text()
    for name in METHODS:
        assert re.search(rf"--method {name}`", page), name


@pytest.mark.slow
def test_every_method_has_a_picture_on_its_page(tmp_path):
    command = [sys.executable, ROOT / "examples/methods.py", "--out", tmp_path / "deep"]
    subprocess.run(command, capture_output=True, text=True, check=True)
    drawn = sorted(path.name for path in (tmp_path / "deep").iterdir())
    page = (ROOT / "docs/methods.md").read_text()
    assert drawn == sorted(re.findall(r"\(img/methods/(.+?)\)", page))
    assert drawn == sorted(path.name for path in (ROOT / "docs/img/methods").iterdir())


def test_the_page_of_experiments_names_every_data_set_and_network():
    page = (ROOT / "docs/experiments.md").read_text()
    assert f"{sum(name.startswith('keel-') for name in ENTRIES)} tables" in page
    for name in (*ENTRIES, *MODELS):
        assert name.startswith("keel-") or f"`{name}`" in page, name


def test_the_code_in_the_readme_runs_in_twelve_lines():
    (block,) = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len([line for line in block.splitlines() if line]) == 12
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    assert names["mixed"].shape == (128, 20)
    assert names["soft"].shape == (128, 10)


def test_the_readme_is_short_and_its_links_lead_somewhere():
    assert len(README.splitlines()) < 100
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert "://" in link or (ROOT / link).exists(), link


def test_the_targets_of_the_makefile_are_explained():
    targets = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.M)
    assert sorted(targets) == [
        "bench", "browser", "data", "dist", "docs", "integrations", "lint", "pythons", "reproduce",
        "survival", "test", "versions",
    ]  # fmt: skip
    explained = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"| `make {target}` |" in explained for target in targets)


def test_the_pages_show_every_public_name():
    pages = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    for name in set(kmixup.__all__) - {"Calibration"}:  # what a call returns
        assert re.search(rf"\b{name}\b", pages), name


@pytest.mark.slow
def test_quickstart_draws_its_picture(tmp_path):
    picture = tmp_path / "deep" / "picture.png"
    command = [sys.executable, ROOT / "examples/quickstart.py", "--epochs", "2", "--out", picture]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.count("test error") == 3
    assert str(picture) in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_quickstart_rejects_impossible_settings():
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


def test_benchmarks_reject_an_unknown_section():
    command = [sys.executable, "-m", "benchmarks", "speed"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert "sections must be among" in done.stderr
