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

ENDS = {"__init__", "__main__"}
# a module may import from the levels before its own
LEVELS = [
    {"_checks", "_compiling", "_measured"},
    {"_networks", "_randomness", "tables"},
    {"coefficient", "matching"},
    {"_nests", "_subsets"},
    {"targets"},
    {"interpolation"},
    {"_batch", "calibration", "importance", "mixed"},
    {"mixer"},
    {"batchnorm", "collate", "vicinal", "wrappers"},
    {"methods"},
    {"hidden"},  # in wrappers, but KMixup is its default
]
SHARED = {"kmixup", "_masks"}  # by several methods
THEORY = [{"matching"}, {"clusters", "expansion", "manifold", "reversion"}]
INSPECTION = [{"readings"}]
# folders and modules of the lab
LAB = [
    {"checks", "formatting", "imports", "_terminal"},
    {"_files", "_provenance"},
    {"plotting"},
    {"data", "models"},
    {"methods"},
    {"evaluate"},
    {"trial"},
    {"train"},
    {"experiments"},
    {"results"},
    {"paper"},
    {"figures"},
    {"inspection"},
    {"report"},
    {"timing"},
    {"cost"},
    {"commands", "api"},
    {"__init__"},
]


def imports_of(path: Path, package: str = "kmixup") -> set[str]:
    """Modules of a package that a file imports."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            module = f"{'.' * node.level}{node.module or ''}"
            assert node.level == 0, f"{path.name} imports {module} relatively"
            several = [f"{package}.{alias.name}" for alias in node.names]
            names = several if module == package else [module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        inside = (
            name.removeprefix(f"{package}.") for name in names if name.startswith(f"{package}.")
        )
        imported |= {name.split(".")[0] for name in inside}
    return imported


def test_only_commands_know_the_library_of_the_command_line():
    users = {path for path in (SOURCE / "lab").rglob("*.py") if "cyclopts" in path.read_text()}
    assert users
    assert {path.parent.name for path in users} == {"commands"}


def test_imports_flow_one_way():
    level = {name: i for i, names in enumerate(LEVELS) for name in names}
    paths = {path.stem: [path] for path in SOURCE.glob("*.py") if path.stem not in ENDS}
    for folder in ("matching", "methods", "tables", "wrappers"):
        paths[folder] = list((SOURCE / folder).glob("*.py"))
    paths["hidden"] = [SOURCE / "wrappers" / "hidden.py"]
    paths["wrappers"].remove(*paths["hidden"])
    assert set(paths) == set(level)
    for name, files in paths.items():
        for imported in set().union(*map(imports_of, files)) - {name}:
            assert level[imported] < level[name], f"{name} imports {imported}"


def test_methods_import_only_shared_modules_of_each_other():
    for path in (SOURCE / "methods").glob("*.py"):
        if path.stem != "__init__":
            assert imports_of(path, "kmixup.methods") <= SHARED, path


@pytest.mark.parametrize(
    ("folder", "levels", "below"),
    [("theory", THEORY, set()), ("inspection", INSPECTION, {"theory"})],
)
def test_the_instruments_build_on_the_library_and_import_one_way(folder, levels, below):
    level = {name: i for i, names in enumerate(levels) for name in names}
    paths = {path.stem: path for path in (SOURCE / folder).glob("*.py")}
    del paths["__init__"]
    assert set(paths) == set(level)
    for name, path in paths.items():
        assert imports_of(path) <= {folder}.union(below, *LEVELS), name
        for imported in imports_of(path, f"kmixup.{folder}"):
            assert level[imported] < level[name], f"{name} imports {imported}"


def test_the_lab_imports_one_way():
    level = {name: i for i, names in enumerate(LAB) for name in names}
    paths = sorted((SOURCE / "lab").rglob("*.py"))
    places = {path: path.relative_to(SOURCE / "lab").with_suffix("").parts[0] for path in paths}
    assert set(places.values()) == set(level)
    wrong = [
        f"{path.relative_to(SOURCE)} imports {imported}"
        for path, place in places.items()
        for imported in sorted(imports_of(path, "kmixup.lab") - {place})
        if level[imported] >= level[place]
    ]
    assert wrong == []


def test_the_integrations_build_on_the_library_and_nothing_imports_them():
    for path in SOURCE.rglob("*.py"):
        if path.parent.name == "integrations":
            assert imports_of(path) <= {"integrations"}.union(*LEVELS), path
        else:
            assert "integrations" not in imports_of(path), path


def test_nothing_outside_of_the_lab_imports_it():
    for path in SOURCE.rglob("*.py"):
        if "lab" not in path.relative_to(SOURCE).parts:
            assert "lab" not in imports_of(path), path


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


def test_no_two_classes_have_the_same_name():
    """Integrations are left out: there classes have the names that their frameworks give them."""
    places: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        if "integrations" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_the_lab_composes_no_stage_by_hand():
    """It makes draws, and the mixers of the library do the rest; entries of methods build them."""
    stages = {
        "Mixer",
        "Optimal",
        "Nearest",
        "Linear",
        "Cut",
        "Locality",
        "mix_targets",
        "mixed_loss",
    }
    for path in (SOURCE / "lab").rglob("*.py"):
        if path != SOURCE / "lab" / "methods.py":
            called = {
                ast.unparse(node.func).removeprefix("kmixup.").removeprefix("pairing.")
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call)
            }
            assert called & stages == set(), path


def test_no_code_depends_on_the_name_of_a_method():
    """What else must be known about a method is a field of its entry in the registry."""
    for path in (SOURCE / "lab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                literal = any(isinstance(side, ast.Constant) for side in sides)
                texts = list(map(ast.unparse, sides))
                named = any(
                    text.endswith("method.name") or text.startswith("baseline_of(")
                    for text in texts
                )
                assert not (literal and named), f"{path}:{node.lineno}"


def test_no_module_needs_a_posix_system_to_be_imported():
    """Beyond these modules, functions that only some systems have are asked for by `hasattr`."""
    posix = {"crypt", "fcntl", "grp", "nis", "posix", "pty", "pwd", "resource", "syslog", "termios"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not posix & {alias.name for alias in node.names}, path
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in posix, path


WITHOUT_THE_EXTRA = """
import sys

class Absent:
    names = {"jinja2", "matplotlib", "optuna", "PIL", "pooch", "requests", "rich",
             "safetensors", "sklearn", "tqdm", "cyclopts"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def test_without_the_extra_a_search_says_what_to_install():
    code = f"{WITHOUT_THE_EXTRA}\nfrom kmixup.lab import tune\ntune(lambda config: 0.1)"
    command = [sys.executable, "-c", code]
    error = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    said = 'kmixup.lab needs optuna, which is not installed: pip install "kmixup[lab]"'
    assert error.splitlines()[-1] == f"ImportError: {said}"


def test_without_the_extra_the_command_says_what_to_install():
    code = f"{WITHOUT_THE_EXTRA}\nfrom kmixup_command import main\nmain()"
    command = [sys.executable, "-c", code, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        'kmixup: this needs cyclopts, which is not installed: pip install "kmixup[lab]"\n'
    )
