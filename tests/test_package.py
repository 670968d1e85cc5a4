"""The shape of the package: what it exports, what it imports, and when."""

import ast
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import kmixup
from kmixup import theory

SOURCE = Path(kmixup.__file__).parent

# a module may import from the levels before its own
LEVELS = [
    {"assignment", "sampling"},
    {"coefficient"},
    {"pairing", "calibration", "interpolation", "targets"},
    {"nests"},
    {"mixing"},
    {"methods"},
    {"hidden", "vicinal"},
]
THEORY = [
    {"matching"},
    {"angles", "endpoints", "expansion", "manifold", "rate", "reversion"},
    {"clusters"},
    {"fraction"},
]


def imports_of(path: Path, package: str = "kmixup") -> set[str]:
    """Modules of a package that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        inside = (
            name.removeprefix(f"{package}.") for name in names if name.startswith(f"{package}.")
        )
        found |= {name.split(".")[0] for name in inside}
    return found


def test_imports_flow_one_way():
    level = {name: i for i, names in enumerate(LEVELS) for name in names}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert modules == set(level)
    for name in modules:
        for imported in imports_of(SOURCE / f"{name}.py"):
            assert level[imported] < level[name], f"{name} imports {imported}"


def test_the_theory_builds_on_the_library_and_imports_one_way():
    level = {name: i for i, names in enumerate(THEORY) for name in names}
    paths = {path.stem: path for path in (SOURCE / "theory").glob("*.py")}
    del paths["__init__"]
    assert set(paths) == set(level)
    for name, path in paths.items():
        assert imports_of(path) <= {"theory"}.union(*LEVELS), name
        for imported in imports_of(path, "kmixup.theory"):
            assert level[imported] < level[name], f"{name} imports {imported}"


def test_the_inspection_builds_on_the_theory_and_imports_one_way():
    level = {name: i for i, name in enumerate(("halfway", "readings", "advice", "inspecting"))}
    paths = {path.stem: path for path in (SOURCE / "inspection").glob("*.py")}
    del paths["__init__"]
    assert set(paths) == set(level)
    for name, path in paths.items():
        assert imports_of(path) <= {"theory", "inspection"}.union(*LEVELS), name
        for imported in imports_of(path, "kmixup.inspection"):
            assert level[imported] < level[name], f"{name} imports {imported}"


@pytest.mark.parametrize("package", ["kmixup", "kmixup.theory"])
def test_importing_loads_neither_solver_nor_special_functions_nor_compiler(package):
    code = (
        f"import sys, torch; before = set(sys.modules); import {package}; "
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before}), "
        "'torch._dynamo' in sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "['kmixup', 'numpy'] False"


def test_every_public_name_is_there_and_documented():
    for package in (kmixup, theory):
        for name in package.__all__:
            assert getattr(package, name).__doc__, name
        assert package.__all__ == sorted(package.__all__)


def test_the_installed_version_is_that_of_the_package():
    assert metadata.version("kmixup") == kmixup.__version__
