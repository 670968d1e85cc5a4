"""The lab: data sets, networks, training and evaluation to re-run the paper with.

Needs the extra `kmixup[lab]`; nothing in the library imports it. What is imported at once is
light and needs only the library: a search with a training function of one's own. What needs
the extra is imported on first use: `fit` and `tune_data` for data of one's own, `load` for a
model that was trained before, and `Model` and `Tuned`, which they return.
"""

from typing import TYPE_CHECKING, Any

from kmixup.lab.tuning.search import Config, Searched, tune
from kmixup.lab.tuning.strategies import AllFailedError, Setting

if TYPE_CHECKING:
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

_ON_USE = ("Model", "Tuned", "fit", "load", "tune_data")


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kmixup.lab import python

    return getattr(python, name)
