"""The recipes of the page on adding things: each is applied to a copy of the package, and checked.

A block titled by a path is a new file, or a change to a file as a diff. The block of the same
section in recipe_checks.md runs afterwards.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r'^```(python|diff) title="([^"]+)"\n(.*?)^```', re.S | re.M)
SECTION = re.compile(r"^## Add (.+?)\n(.*?)(?=^## |\Z)", re.S | re.M)
ROW = re.compile(r"^\| (an? [^|]+) \| .* \| ([^|]+) \|$", re.M)

Block = tuple[str, str, str]  # language, title and text


def recipes() -> Iterator[tuple[str, list[Block]]]:
    page = (ROOT / "docs/contributing/adding.md").read_text()
    checks = dict(SECTION.findall((ROOT / "tests/recipe_checks.md").read_text()))
    for thing, text in SECTION.findall(page):
        if blocks := BLOCK.findall(text + checks.get(thing, "")):
            yield thing, blocks


RECIPES = dict(recipes())


def changed(blocks: list[Block]) -> set[str]:
    return {title for _, title, _ in blocks if title != "check"}


def apply(diff: str, path: Path) -> None:
    lines = [(line[:1], line[1:]) for line in diff.splitlines(keepends=True)]
    before = "".join(text for mark, text in lines if mark != "+")
    after = "".join(text for mark, text in lines if mark != "-")
    text = path.read_text()
    assert text.count(before) == 1, f"{path.name} must have these lines once:\n{before}"
    path.write_text(text.replace(before, after))


RUN = """
import json, sys, traceback
failed = {}
for thing, check in json.load(sys.stdin).items():
    try:
        exec(check, {})
    except BaseException:
        failed[thing] = traceback.format_exc()
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Why checks fail in a copy of the package to which all recipes are applied."""
    folder = tmp_path_factory.mktemp("recipes")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "data").mkdir()
    checks = {}
    for thing, blocks in RECIPES.items():
        for language, title, text in blocks:
            if title == "check":
                checks[thing] = text
            elif language == "diff":
                apply(text, folder / title)
            else:
                (folder / title).write_text(text)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder)]),
        "KMIXUP_DATA": str(folder / "data"),
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(checks), cwd=folder, env=environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("thing", RECIPES)
def test_a_recipe_works_as_it_stands(thing: str, failed: dict[str, str]) -> None:
    assert "check" in {title for _, title, _ in RECIPES[thing]}
    assert thing not in failed, failed[thing]


@pytest.mark.parametrize("thing", RECIPES)
def test_a_recipe_touches_as_many_files_as_contributing_says(thing: str) -> None:
    files = dict(ROW.findall((ROOT / "CONTRIBUTING.md").read_text()))
    count = len(changed(RECIPES[thing]))
    assert count <= 3
    assert str(count) in files[thing].split(" or ")


def test_your_own_stage_solver_method_and_wrapper_take_one_file_each() -> None:
    """Another test runs the code of the guide, which changes nothing of the package."""
    guide = (ROOT / "docs/guide/extending.md").read_text()
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", guide, re.S | re.M))
    for task in ("Pairing", "Coefficient", "Interpolation", "Method", "Wrapper"):
        assert re.search(r"^class \w+\(kmixup\.\w+\):", sections[task], re.M), task
    assert "solver=scipy_solver" in sections["Solver"]
    assert "src/kmixup" not in guide
    assert len(changed(RECIPES["a target type"])) == 1
