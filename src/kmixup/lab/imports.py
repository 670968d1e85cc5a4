"""Your own models, methods and data, named by `package.module:name`."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from kmixup._checks import SettingError, did_you_mean

INSTALLED = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}


def is_import_path(name: str) -> bool:
    """Whether a name is `package.module:name`, and not a registered name or a file.

    >>> is_import_path("my_package.nets:small"), is_import_path("iris"), is_import_path("a.csv")
    (True, False, False)
    """
    module, colon, attribute = name.partition(":")
    dotted = all(part.isidentifier() for part in module.split("."))
    return bool(colon) and dotted and attribute.isidentifier() and not Path(name).exists()


def unknown_name(setting: str, name: str, known: Iterable[str]) -> SettingError:
    """Return the error for a name that is neither known nor `package.module:name`."""
    return SettingError(
        setting,
        f"must be a known name or package.module:name, got {name!r}: {did_you_mean(name, known)}",
    )


def import_callable(name: str, what: str, **arguments: Any) -> Callable[..., Any]:
    """Import the function or class at `package.module:name`.

    `what` is the setting that it is the value of, for error messages. Raises where it does not
    take the keyword `arguments`, or requires more.
    """
    path, _, attribute = name.partition(":")
    if not path or not attribute.isidentifier():
        raise ValueError(f"your own {what} is written package.module:name, got {name!r}")
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        # an import that fails inside of the user's module keeps its own traceback
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise
        raise ValueError(
            f"no module named {error.name!r}, asked for by {what} {name!r}: "
            "install it, or put its folder on PYTHONPATH"
        ) from error
    if not hasattr(module, attribute):
        names = [each for each in vars(module) if not each.startswith("_")]
        raise ValueError(
            f"module {path!r} has no {attribute!r}, asked for by {what} {name!r}: "
            f"{did_you_mean(attribute, names)}"
        )
    found: Callable[..., Any] = getattr(module, attribute)
    try:
        inspect.signature(found).bind(**arguments)
    except TypeError as error:
        wanted = " and ".join(arguments) or "nothing"
        raise ValueError(
            f"{what} {name!r} must be a function or class with {wanted} as its only required "
            f"arguments: {error}"
        ) from error
    return found


def source_digest(name: str) -> str:
    """Return a SHA-256 of the source behind `package.module:name`, equal on every machine.

    It covers the module and all that it imports, directly or not, from its package or from the
    folder that the package or the module is in. A module that stays imported keeps its digest.
    """
    module = importlib.import_module(name.partition(":")[0])
    if module not in _digests:
        _digests[module] = _digest_of(module.__name__)
    return _digests[module]


_digests: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()


def _digest_of(module: str) -> str:
    top = module.partition(".")[0]
    home = _home(top)
    sources: dict[str, bytes] = {}
    waiting = [module]
    while waiting and home is not None:
        inner = waiting.pop()
        own = inner.partition(".")[0]
        near = own == top or (home not in INSTALLED and _home(own) == home)
        path = _source(home, inner) if near else None
        if path is None or inner in sources:
            continue
        sources[inner] = path.read_bytes().replace(b"\r\n", b"\n")
        parent = inner.rpartition(".")[0]
        waiting += _imported(sources[inner], inner if path.name == "__init__.py" else parent)
        waiting.append(parent)  # whose __init__.py runs first
    if module not in sources:
        raise ValueError(
            f"the module {module!r} must be a Python file, so that edits to it are noticed, it "
            "has none: move your code into one"
        )
    digest = hashlib.sha256()
    for inner in sorted(sources):
        digest.update(f"{inner}\0{len(sources[inner])}\0".encode() + sources[inner])
    return digest.hexdigest()


def _home(top: str) -> Path | None:
    """Return the folder that a module or package without a dot is in."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):  # no such module, or a script
        return None
    if spec is None:
        return None
    places = spec.submodule_search_locations or [spec.origin or ""]
    return Path(next(iter(places))).parent


def _source(home: Path, module: str) -> Path | None:
    """Return the file of a module."""
    place = home.joinpath(*module.split("."))
    files = (place / "__init__.py", place.parent / f"{place.name}.py")
    return next((path for path in files if path.is_file()), None) if module else None


def _imported(source: bytes, package: str) -> Iterator[str]:
    """Yield the names that a module in `package` may import as modules."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # of a module that nothing has imported yet
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                start = resolve_name("." * node.level + start, package)
            yield start
            yield from (f"{start}.{alias.name}" for alias in node.names)
