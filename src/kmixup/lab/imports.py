"""Models, methods and data of your own, named by `package.module:name`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kmixup._checks import did_you_mean


def is_import_path(name: str) -> bool:
    """Whether a name is `package.module:name`, and not a registered name or a file.

    >>> is_import_path("my_package.nets:small"), is_import_path("iris"), is_import_path("a.csv")
    (True, False, False)
    """
    module, colon, attribute = name.partition(":")
    dotted = all(part.isidentifier() for part in module.split("."))
    return bool(colon) and dotted and attribute.isidentifier() and not Path(name).exists()


def import_callable(name: str, what: str, **arguments: Any) -> Callable[..., Any]:
    """Import the function or class at `package.module:name`.

    `what` is the setting that it is the value of, for error messages. Raises where it does not
    take the keyword `arguments`, or requires more.
    """
    path, _, attribute = name.partition(":")
    if not path or not attribute.isidentifier():
        raise ValueError(f"a {what} of your own is written package.module:name, got {name!r}")
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
