"""Who takes part: the methods of the registry, each with as many settings to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kmixup.lab.train.config import Method
from kmixup.lab.train.methods import METHODS

BUDGETS = (2, 4, 6)  # settings of a method: two k need an even number
# where a method tries n of them, it tries the first n
ALPHAS = (1.0, 0.2, 4.0, 0.05, 16.0, 0.5)
KS = (1, 16, 4, 8, 2, 32)  # of a method without an alpha
MIXUP = "mixup"
MATCHED_K = 16


@dataclass(frozen=True)
class Entrant:
    """A method that takes part.

    Attributes:
        name: that of the registry.
        title: what pages call it.
        settings: what is tried on validation samples; of equal ones the first wins.
    """

    name: str
    title: str
    settings: tuple[Method, ...]


def make_entrants(names: Sequence[str], budget: int) -> tuple[Entrant, ...]:
    """Methods by their names, each with `budget` settings.

    >>> [entrant.name for entrant in make_entrants(["erm", "mixup", "kmixup"], 6)]
    ['erm', 'mixup', 'kmixup']
    """
    if budget not in BUDGETS:
        raise ValueError(f"settings must be {', '.join(map(str, BUDGETS))}, got {budget}")
    for name in names:
        if name not in METHODS:
            raise ValueError(f"methods must be among {', '.join(METHODS)}, got {name!r}")
    return tuple(
        Entrant(name, METHODS[name].title, settings_of(name, budget))
        for name in dict.fromkeys(names)
    )


def settings_of(name: str, budget: int) -> tuple[Method, ...]:
    """The settings that a method tries, those of small k and alpha first.

    >>> [method.label for method in settings_of("kmixup", 4)]
    ['kmixup k=4 alpha=0.2', 'kmixup k=4 alpha=1', 'kmixup k=16 alpha=0.2', 'kmixup k=16 alpha=1']
    >>> [method.k for method in settings_of("stackmix", 6)]
    [1, 2, 4, 8, 16, 32]
    """
    entry = METHODS[name]
    if not entry.has_alpha:
        return _product(name, KS[:budget] if entry.has_k else (1,), (1.0,))
    if not entry.has_k:
        return _product(name, (1,), ALPHAS[:budget])
    # at k = 1 some are mixup itself, which takes part anyway
    ks = (1, MATCHED_K) if entry.baseline is None else (4, MATCHED_K)
    return _product(name, ks, ALPHAS[: budget // len(ks)])


def _product(name: str, ks: Sequence[int], alphas: Sequence[float]) -> tuple[Method, ...]:
    return tuple(Method(name, k, alpha) for k in sorted(ks) for alpha in sorted(alphas))
