"""The advice of an X-ray, checked at once: trained against mixup and ERM on validation samples.

The trials are paired: with one seed all methods have the same validation samples, first
weights and order. The test part is dropped while the data are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from kmixup.inspection import Advice
from kmixup.lab.formatting import NOTHING, TextTable, count, duration, with_error
from kmixup.lab.report.verdict import PairedDifference, paired
from kmixup.lab.sweep.estimate import estimate
from kmixup.lab.sweep.rows import Row, done_of
from kmixup.lab.train.config import Method, Trial
from kmixup.measured import Measured

SEEDS = 6
VALIDATION = 0.2  # of the training samples
SECONDS = 180.0  # that all trials may take, by estimate
FEWEST_EPOCHS, FEWEST_SAMPLES = 5, 500
HEADINGS = ("", "validation error, %", "less ERM [95 %]", "less mixup [95 %]", "trials")
ADVICE, MIXUP, ERM = "the advice", "mixup", "ERM"


@dataclass(frozen=True)
class Verified:
    """What came of the check.

    Attributes:
        methods: the methods that were trained, by their names.
        errors: validation errors in per cent by seed, by the names of the methods.
        shortened: in which way training was shorter than usual, empty if it was not.
        failed: the number of trials that failed.
    """

    methods: dict[str, Method]
    errors: dict[str, dict[int, float]]
    shortened: str
    failed: int

    def difference(self, new: str, old: str) -> PairedDifference | None:
        """In points, over the seeds that both have; None with fewer than three."""
        if new == old or new not in self.errors or old not in self.errors:
            return None
        return paired(self.errors[new], self.errors[old])

    @property
    def table(self) -> TextTable:
        rows = [
            (
                f"{name}: {_settings(method)}" if method.entry.mixes else name,
                _mean(self.errors[name]),
                _text(self.difference(name, ERM)),
                _text(self.difference(name, MIXUP) if name == ADVICE else None),
                str(len(self.errors[name])),
            )
            for name, method in self.methods.items()
        ]
        return TextTable(HEADINGS, rows)

    @property
    def sentence(self) -> str:
        """What follows for the user."""
        name = ADVICE if ADVICE in self.methods else MIXUP
        difference = self.difference(name, ERM)
        if difference is None:
            return "Nothing can be said: fewer than three paired trials ended well."
        warning = "Do not follow it blindly" if name == ADVICE else "Do not mix at random"
        said = {
            -1: f"Mixing helps here: {name} is better than ERM on validation samples",
            0: f"No difference can be told between {name} and ERM on validation samples",
            1: f"{warning}: {name} is worse than ERM on validation samples",
        }[difference.side]
        against = self.difference(name, MIXUP)
        if against is not None:
            told = {-1: "is better than", 0: "cannot be told from", 1: "is worse than"}
            said += f"; it {told[against.side]} mixup"
        return f"{said}. kmixup tune searches for a better k and alpha."

    @property
    def notes(self) -> str:
        """How it was measured."""
        seeds = max((len(errors) for errors in self.errors.values()), default=0)
        text = (
            f"Means over {count(seeds, 'paired trial')}, each with {VALIDATION:.0%} of the "
            "training samples held out; the test part was not touched. Differences are in points, "
            "below 0 is better."
        )
        text += f" {self.shortened}" if self.shortened else ""
        return text + (f" {count(self.failed, 'trial')} failed." if self.failed else "")


def methods_of(advice: Advice, alpha: float) -> dict[str, Method]:
    """What to train: ERM, mixup with the reference `alpha`, and the advice where it differs."""
    methods = {ERM: Method("erm"), MIXUP: Method("mixup", alpha=alpha, pairing="batch")}
    if advice.mixes:
        advised = Method("kmixup", advice.k, advice.alpha, pairing="batch")
        if advised != methods[MIXUP]:
            methods[ADVICE] = advised
    return methods


def verify(
    base: Trial,
    advice: Advice,
    alpha: float,
    run: Callable[[Sequence[Trial]], Sequence[Row]],
    *,
    samples: int,
    told: Callable[[str], object] = lambda sentence: None,
) -> Verified:
    """Train the advice, mixup and ERM in pairs.

    Args:
        base: the trial whose method, seed and validation are replaced; its seed is also that
            of the split.
        advice: of the X-ray.
        alpha: of the mixup to compare with.
        run: trains trials, and returns their rows.
        samples: the number of training samples.
        told: called with a sentence before the training begins.
    """
    methods = methods_of(advice, alpha)
    base = replace(base, split=base.seed, validation=VALIDATION)
    trials = _trials(base, methods)
    base, shortened, seconds = _in_time(base, trials, samples)
    told(f"training {count(len(trials), 'network')}, about {duration(seconds)}")
    rows = run(_trials(base, methods))
    errors = {
        name: {row.trial.seed: 100 * row.error for row in done_of(rows) if row.trial.method == how}
        for name, how in methods.items()
    }
    failed = len(rows) - sum(map(len, errors.values()))
    return Verified(methods, errors, shortened, failed)


def _trials(base: Trial, methods: dict[str, Method]) -> list[Trial]:
    return [
        replace(base, method=method, seed=base.seed + i)
        for i in range(SEEDS)
        for method in methods.values()
    ]


def _in_time(base: Trial, trials: Sequence[Trial], samples: int) -> tuple[Trial, str, float]:
    """The base with fewer epochs, then with fewer samples, so that all trials end in time.

    Returns it with a sentence on what was shortened and the seconds that it should take.
    """
    seconds = estimate(trials).seconds
    if seconds <= SECONDS:
        return base, "", seconds
    epochs = base.protocol.epochs
    fewer = min(epochs, max(FEWEST_EPOCHS, int(epochs * SECONDS / seconds)))
    seconds *= fewer / epochs
    base = replace(base, protocol=replace(base.protocol, epochs=fewer))
    said = f"Trained for {fewer} of {epochs} epochs"
    if seconds > SECONDS:
        limit = min(samples, max(FEWEST_SAMPLES, int(samples * SECONDS / seconds)))
        seconds *= limit / samples
        base = replace(base, limit=limit)
        said += f" on {limit:,} of {samples:,} training samples"
    return base, f"{said}, to end in a few minutes: the full training may say otherwise.", seconds


def _settings(method: Method) -> str:
    k = f"k = {method.k}, " if method.entry.has_k else ""
    return f"{k}alpha = {method.alpha:g}"


def _mean(errors: dict[int, float]) -> str:
    if not errors:
        return "failed"
    spread = Measured.of(list(errors.values())).error if len(errors) > 1 else None
    return with_error(fmean(errors.values()), spread)


def _text(difference: PairedDifference | None) -> str:
    return NOTHING if difference is None else difference.text
