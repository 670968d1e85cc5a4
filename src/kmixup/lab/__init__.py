"""The lab: data sets, networks, training and evaluation to re-run the paper with.

Needs the extra `kmixup[lab]`; nothing in the library imports it. What is imported here is
light and needs only the library: a search with a training function of one's own.
"""

from kmixup.lab.search import Config, Searched, tune
from kmixup.lab.strategies import AllFailedError, Setting

__all__ = ["AllFailedError", "Config", "Searched", "Setting", "tune"]
