"""Every public name says what it is, shows itself at work, and lists what it takes and has."""

import ast
import dataclasses
import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

import kmixup
from kmixup import MixerOptions, PairOptions

ROOT = Path(__file__).parents[1]
PACKAGES = ("kmixup", "kmixup.inspection", "kmixup.theory", "kmixup.lab")
PUBLIC = {
    f"{package}.{name}": getattr(import_module(package), name)
    for package in PACKAGES
    for name in import_module(package).__all__
}
# what nobody makes by hand names the call that it comes from
ORIGIN = re.compile(r"(?:(?:returned|raised|passed) by|(?:answer|result) of) `([\w.]+)`", re.I)
# a class of the library may leave arguments to the class that explains them
ELSEWHERE = re.compile(r"arguments (?:are )?(?:those )?of `(\w+)`")


def shows_itself(thing):
    return ">>> " in (inspect.getdoc(thing) or "")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example_or_names_the_call_that_makes_it(name):
    if shows_itself(PUBLIC[name]):
        return
    origin = ORIGIN.search(inspect.getdoc(PUBLIC[name]) or "")
    assert origin, f"{name} has neither an example nor 'Returned by `…`'"
    package = name.rpartition(".")[0]
    maker = f"{package}.{origin[1]}"
    assert maker in PUBLIC, maker
    assert shows_itself(PUBLIC[maker]), f"{maker} makes {name} and has no example"


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isclass(PUBLIC[name])])
def test_a_public_class_lists_its_fields_and_arguments(name):
    thing = PUBLIC[name]
    said = inspect.getdoc(thing) or ""
    listed = {
        part
        for line in re.findall(r"^    (\w+(?:, \w+)*): ", said, re.M)
        for part in line.split(", ")
    }
    if dataclasses.is_dataclass(thing):
        wanted = {field.name for field in dataclasses.fields(thing) if field.repr}
    elif "__init__" in vars(thing):
        wanted = set(inspect.signature(thing).parameters)
    else:
        wanted = set()
    wanted = {field for field in wanted if not field.startswith("_")}
    mentioned = {field for field in wanted if re.search(rf"`{field}\b", said)}
    missing = wanted - listed - mentioned
    if ELSEWHERE.search(said):
        missing = set()
    assert not missing, f"{name} does not say what {sorted(missing)} are"


OPTIONS = re.compile(r"    options: `(\w+Options)`: (.*(?:\n {8}.*)*)")
KINDS = {"MixerOptions": MixerOptions, "PairOptions": PairOptions}


@pytest.mark.parametrize("name", [name for name in PUBLIC if OPTIONS.search(PUBLIC[name].__doc__)])
def test_a_public_class_names_all_of_its_options(name):
    kind, listed = OPTIONS.search(inspect.getdoc(PUBLIC[name])).groups()
    named = re.findall(r"\w+", re.sub(r"\(.*?\)", "", listed))
    assert set(named) - {"and"} == set(KINDS[kind].__annotations__)


def test_no_class_is_documented_as_a_difference_to_another():
    for path in (ROOT / "src/kmixup/methods").glob("*.py"):
        assert not re.search(r"those of `\w+`, except|options: those of", path.read_text()), path


FUNCTIONS = [name for name in kmixup.__all__ if not inspect.isclass(getattr(kmixup, name))]
METHODS = {
    f"{name}.{method}": inspect.unwrap(getattr(function, "__func__", function))
    for name in kmixup.__all__
    if inspect.isclass(getattr(kmixup, name))
    for method, function in vars(getattr(kmixup, name)).items()
    if not method.startswith("_")
    and not isinstance(function, cached_property)
    and inspect.isroutine(function)
    and function.__doc__
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_lists_arguments_and_result_and_has_an_example(name):
    for part in ("Args:", "Returns:", ">>> "):
        assert part in inspect.getdoc(getattr(kmixup, name)), part


@pytest.mark.parametrize("name", [name for name in METHODS if not name.startswith("Cut.")])
def test_a_public_method_says_what_it_takes_and_returns(name):
    """A summary that returns something, and names its arguments, needs no sections."""
    said, signature = METHODS[name].__doc__, inspect.signature(METHODS[name])
    lines = re.findall(r"^ +(\w+(?:, \w+)*): ", said, re.M)
    listed = {part for line in lines for part in line.split(", ")}
    wanted = set(signature.parameters) - {"self", "cls"}
    assert {part for part in wanted - listed if not re.search(rf"`{part}\b", said)} == set()
    returns = "Returns:" in said or re.search(r"\b[Rr]eturn\b", said.splitlines()[0])
    assert returns or signature.return_annotation == "None"


def advertised():
    """Names that the pages of the frameworks import from integrations, with their modules."""
    pages = "\n".join(path.read_text() for path in (ROOT / "docs/frameworks").glob("*.md"))
    lines = re.findall(r"^\+?from kmixup\.integrations\.(\w+) import (.+)$", pages, re.M)
    return sorted({(module, name) for module, names in lines for name in names.split(", ")})


@pytest.mark.parametrize(("module", "name"), advertised())
def test_an_integration_has_an_example(module, name):
    """Read from the source: the frameworks need not be installed."""
    source = (ROOT / f"src/kmixup/integrations/{module}.py").read_text()
    (found,) = (
        part
        for part in ast.parse(source).body
        if isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name == name
    )
    assert ">>> " in (ast.get_docstring(found) or "")
