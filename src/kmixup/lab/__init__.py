"""The lab: data sets, networks, training and evaluation to re-run the paper with.

Needs the extra `kmixup[lab]`; nothing in the library imports it. Names are imported on first use:
`fit` and `tune_data` train on your own data, `load` reads a trained model, and `tune` searches k
and alpha for your own training function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kmixup.lab.experiments.search import AllFailedError, Config, Searched, Setting, tune
    from kmixup.lab.python import Model, Tuned, fit, load, tune_data

__all__ = [
    "AllFailedError",
    "Config",
    "Model",
    "Searched",
    "Setting",
    "Tuned",
    "fit",
    "load",
    "tune",
    "tune_data",
]

_OF_SEARCH = ("AllFailedError", "Config", "Searched", "Setting", "tune")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "experiments.search" if name in _OF_SEARCH else "python"
    return getattr(import_module(f"kmixup.lab.{home}"), name)
