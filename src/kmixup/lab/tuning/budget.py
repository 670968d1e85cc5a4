"""How much a search may cost, in trials or in time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from kmixup.lab.formatting import count
from kmixup.lab.tuning.strategies import Stage, Strategy


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Attributes:
        rounds: the number of whole rounds.
        seeds: the seeds of the next round that have been run.
        trials: the trials that have been run.
        seconds: the time that they took.
    """

    rounds: int = 0
    seeds: int = 0
    trials: int = 0
    seconds: float = 0.0


Allowance = Callable[[Stage, Progress], int]  # how many seeds of a stage may be begun now


@dataclass(frozen=True)
class Budget:
    """How much a search may cost, by default without a limit.

    Attributes:
        amount: the number of trials, or of seconds.
        timed: whether `amount` is in seconds.

    >>> Budget.read("60"), Budget.read("1.5m")
    (Budget(amount=60.0, timed=False), Budget(amount=90.0, timed=True))
    """

    amount: float = math.inf
    timed: bool = False

    @classmethod
    def read(cls, text: str | int | None) -> Budget:
        """A budget as users write it: a number of trials, or minutes followed by an m."""
        if text is None:
            return cls()
        match = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?) ?m(?:in)?", str(text).strip())
        amount = float(match[1] or match[2]) if match else 0.0
        if match is None or not amount:
            raise ValueError(
                f"budget must be a number of trials or of minutes, e.g. 60 or 30m, got {text!r}"
            )
        return cls(60 * amount, timed=True) if match[2] else cls(amount)

    def words(self, amount: float) -> str:
        """An amount with its unit.

        >>> Budget.read("1m").words(90), Budget.read("60").words(20)
        ('1.5 minutes', '20 trials')
        """
        return f"{amount / 60:.3g} minutes" if self.timed else count(int(amount), "trial")

    def spent(self, at: Progress) -> float:
        """What was used up, in the budget's unit."""
        return at.seconds if self.timed else at.trials

    def allowance(self, chosen: Strategy, guess: Callable[[], float] = lambda: 0.0) -> Allowance:
        """How many seeds of a stage fit into the budget, as a function of stage and progress.

        Raises ValueError if not even one seed of each setting fits. With a budget of time,
        seeds are allowed one by one, at the mean cost of the trials so far. `guess` gives the
        seconds of the first trial, 0 where they are not known.
        """

        def allowed(stage: Stage, at: Progress) -> int:
            each = 1.0
            if self.timed:
                each = at.seconds / at.trials if at.trials else guess()
            free = self.amount - self.spent(at) - each * stage.after
            fitting = free / (each * len(stage.settings)) if each else math.inf
            most = 1 if self.timed else math.inf
            left = len(stage.seeds) - at.seeds
            number = int(min(left, most, max(0.0, fitting + 1e-9)))
            if not (number or at.trials):
                raise ValueError(self._refusal(chosen, each))
            return number

        return allowed

    def _refusal(self, chosen: Strategy, each: float) -> str:
        def cost(trials: int) -> str:
            # rounded up to tenths of a minute, so that the budget asked for is enough
            return self.words(math.ceil(trials * each / 6) * 6 if self.timed else trials)

        need, simple = len(chosen.settings), len({setting.k for setting in chosen.settings})
        other = f"use the strategy simple, which needs {cost(simple)}"
        return (
            f"budget must be at least {cost(need)} for one seed of {count(need, 'setting')}, got "
            f"{self.words(self.amount)}: raise it, or "
            f"{other if simple < need else 'name fewer k'}"
        )
