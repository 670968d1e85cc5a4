"""The lab: data sets, networks, training and evaluation to re-run the paper with.

Needs the extra `kmixup[lab]`; nothing in the library imports it. Names are imported on first use:
`fit` and `tune_data` train on your own data, `load` reads a trained model, `read` the results of a
sweep, and `tune` searches k and alpha for your own training function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kmixup.lab.api import Model, Tuned, fit, load, tune_data
    from kmixup.lab.experiments.search import AllFailedError, Config, Searched, Setting, tune
    from kmixup.lab.paper.numbers import paper_numbers
    from kmixup.lab.results import read

__all__ = [
    "AllFailedError",
    "Config",
    "Model",
    "Searched",
    "Setting",
    "Tuned",
    "fit",
    "load",
    "paper_numbers",
    "read",
    "tune",
    "tune_data",
]

_HOMES = {
    "experiments.search": ("AllFailedError", "Config", "Searched", "Setting", "tune"),
    "api": ("Model", "Tuned", "fit", "load", "tune_data"),
    "paper.numbers": ("paper_numbers",),
    "results": ("read",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            try:
                return getattr(import_module(f"kmixup.lab.{home}"), name)
            except ModuleNotFoundError as error:
                raise ImportError(
                    f"kmixup.lab needs {error.name}, which is not installed: "
                    'pip install "kmixup[lab]"'
                ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
