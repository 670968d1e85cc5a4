"""The shape of the package: what it exports, what it imports, and when."""

import ast
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import kmixup

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


def imports_of(path: Path) -> set[str]:
    """Modules of kmixup that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("kmixup.")}
    return found


def test_imports_flow_one_way():
    level = {name: i for i, names in enumerate(LEVELS) for name in names}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert modules == set(level)
    for name in modules:
        for imported in imports_of(SOURCE / f"{name}.py"):
            assert level[imported] < level[name], f"{name} imports {imported}"


def test_importing_loads_neither_solver_nor_special_functions_nor_compiler():
    code = (
        "import sys, torch; before = set(sys.modules); import kmixup; "
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before}), "
        "'torch._dynamo' in sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "['kmixup', 'numpy'] False"


def test_every_public_name_is_there_and_documented():
    for name in kmixup.__all__:
        assert getattr(kmixup, name).__doc__, name
    assert kmixup.__all__ == sorted(kmixup.__all__)


def test_the_installed_version_is_that_of_the_package():
    assert metadata.version("kmixup") == kmixup.__version__
