"""Interleaved timing: on a noisy machine only a ratio of neighbours means anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

TURN = 0.005  # seconds that one turn of a contender takes at least


@dataclass(frozen=True)
class Timings:
    """The seconds of a call in every turn, by the name of each contender."""

    turns: dict[str, list[float]]

    def best(self, name: str) -> float:
        return min(self.turns[name])

    def ratio(self, name: str, base: str) -> float:
        """How many times longer `name` takes: the median over the turns, each with its own base.

        Neighbours in time share the machine's mood, so this is steadier than a ratio of bests.
        """
        pairs = zip(self.turns[name], self.turns[base], strict=True)
        return median(mine / theirs for mine, theirs in pairs)


def interleaved(
    contenders: Mapping[str, Callable[[], object]],
    *,
    seconds: float,
    least: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> Timings:
    """Time contenders in turns.

    A turn repeats a short call until it has taken some milliseconds. Turns go on until
    `seconds` are spent on all contenders together, and at least `least` times. The first call of
    each contender, which may import modules, does not count. With `clock=time.process_time`,
    other processes don't count either: for contenders that compute on one thread.
    """
    for call in contenders.values():
        call()
    repeats = {name: max(1, int(TURN / _time(call, 1, clock))) for name, call in contenders.items()}
    turns: dict[str, list[float]] = {name: [] for name in contenders}
    started = time.perf_counter()
    while len(min(turns.values(), key=len)) < least or time.perf_counter() - started < seconds:
        for name, call in contenders.items():
            turns[name].append(_time(call, repeats[name], clock))
    return Timings(turns)


def _time(call: Callable[[], object], times: int, clock: Callable[[], float]) -> float:
    """Seconds of one call, on average over `times` of them."""
    before = clock()
    for _ in range(times):
        call()
    return (clock() - before) / times
