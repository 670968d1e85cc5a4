"""The wheel and the source archive: what is in them, and what they say of themselves."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import kmixup

ROOT = Path(__file__).parents[1]
NAME = f"kmixup-{kmixup.__version__}"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as archive:
        yield archive


def test_the_wheel_has_every_module_and_nothing_of_the_repository(wheel):
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    tracked = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == tracked
    assert "kmixup/py.typed" in names


def test_the_metadata_are_complete(wheel):
    said = Parser().parsestr(wheel.read(f"{NAME}.dist-info/METADATA").decode())
    assert said["Version"] == kmixup.__version__
    assert said["License-Expression"] == "MIT"
    assert said["Requires-Python"] == ">=3.11"
    assert "Programming Language :: Python :: 3.11" in said.get_all("Classifier")
    assert any(url.startswith("Paper, https://") for url in said.get_all("Project-URL"))
    assert said.get_payload().startswith("# kmixup")
    extras = set(said.get_all("Provides-Extra"))
    assert {"lab", "ray", "docs", "dev", "timm"} <= extras


def test_the_command_is_installed(wheel):
    points = wheel.read(f"{NAME}.dist-info/entry_points.txt").decode()
    assert "kmixup = kmixup_command:main" in points


def test_the_source_archive_has_what_its_tests_need(built):
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for path in ("Makefile", "constraints.txt", "conftest.py", "mkdocs.yml", "CITATION.cff"):
        assert path in names
    for folder in ("tests", "docs", "examples", "benchmarks", "results", "src/kmixup"):
        assert any(name.startswith(f"{folder}/") for name in names), folder
    assert not any(name.startswith(("out/", ".venv/", "dist/")) for name in names)


def test_the_source_archive_alone_makes_the_same_wheel(built, wheel, tmp_path):
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(command, cwd=tmp_path / NAME, check=True, capture_output=True)
    with zipfile.ZipFile(tmp_path / f"{NAME}-py3-none-any.whl") as again:
        contents = {name: again.read(name) for name in again.namelist()}
    assert contents == {name: wheel.read(name) for name in wheel.namelist()}


def test_the_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/kmixup/__init__.py"


def test_the_citation_and_the_changelog_name_the_version():
    assert f"\nversion: {kmixup.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{kmixup.__version__}] - " in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_pinned():
    """A looser requirement may pull gigabytes, or a version that nobody has tried."""
    pins = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for requirement in (requirement for group in groups for requirement in group):
        name = requirement.partition(">=")[0].partition("[")[0].lower()
        assert name in pins | {"kmixup"}, requirement
