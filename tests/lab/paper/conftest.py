"""A stand-in for the expansion of grids, used only as long as `kmixup.lab.sweep` is missing."""

import importlib.util
import sys
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType

from kmixup.lab.data import ENTRIES
from kmixup.lab.protocol import Method, Trial, paper_protocol


@dataclass(frozen=True)
class Asked(Trial):
    noise: tuple[float, ...] = ()
    fgsm: tuple[float, ...] = ()


def expand(
    *, data, model, method, k, alpha, alpha_rule, trials, limit, noise, fgsm, protocol
) -> list[Trial]:
    methods = dict.fromkeys(Method(*cell) for cell in product(method, k, alpha, alpha_rule))
    one = replace(paper_protocol(data, ENTRIES[data].kind), **protocol)
    return [
        Asked(data, model, cell, one, seed, limit, noise=noise, fgsm=fgsm)
        for seed in range(trials)
        for cell in methods
    ]


if importlib.util.find_spec("kmixup.lab.sweep") is None:
    sys.modules["kmixup.lab.sweep"] = ModuleType("kmixup.lab.sweep")
    sys.modules["kmixup.lab.sweep"].expand = expand
