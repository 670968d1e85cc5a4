"""What is tested in three studies of images and speech. Written before their rows.

All differences are paired by trial, with Student's t at 95 %, in percentage points of test error.

**label-noise**: does matching help under label noise? For each fraction of random labels (0, 20,
40 %) every trial chooses alpha (0.2, 1 or 8, the lower of equal ones) for mixup and for k = 16 by
the error on noisy validation samples. Primary: k = 16 − mixup, Holm over the three fractions.
Secondary, Holm over six: mixup − ERM and k = 64 − mixup, at each fraction.

**photographs**: is a gain of k = 16 over mixup of more than 0.4 points excluded on CIFAR-10 with
5,000 images? With the five trials of `cifar10-fitted` there are fifteen at alpha = 1. Primary:
k = 16 − mixup at alpha = 1, recomputed batch-norm statistics; a gain of 0.4 is excluded if the
lower end of the 90 % interval (a one-sided test at 5 %) is above −0.4. Secondary, Holm over two:
k = 16 − mixup at alpha = 4, and mixup at alpha = 4 − mixup at alpha = 1 (five trials).

**speech**: the paper's second-largest gain. Primary, Holm over two: k = 16 − mixup at alpha = 10,
and the better of alpha = 1 and 10 for k = 16 − that for mixup, each chosen on the other half of the
trials. Secondary, Holm over three: the same with k = 16 at equal xi, k = 4 − mixup at alpha = 10,
mixup at alpha = 1 − ERM.

    python results/stated.py label-noise
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from kmixup.lab.report.stats import holm, p_text

RESULTS = Path(__file__).parent
Plain = dict[str, Any]
Trials = Mapping[int, float]  # a number in per cent by trial
Wanted = Callable[[Plain], bool]
Tested = tuple[str, float, float]  # a difference with its interval, p-value, lower end
Family = Mapping[str, Tested]  # comparisons that are corrected together, by name


def rows(*folders: str) -> Iterator[Plain]:
    """Yield the finished rows of folders, the latest of each trial last."""
    for name in folders:
        for path in sorted((RESULTS / name).glob("rows.jsonl*"), reverse=True):
            data = path.read_bytes()
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
            yield from (row for row in map(json.loads, text.splitlines()) if "result" in row)


def arm(name: str, k: int = 1, alpha: float = 0.0, rule: str = "same") -> Wanted:
    """Return whether a row is of a method."""

    def of(row: Plain) -> bool:
        method = row["trial"]["method"]
        return (method["name"], method["k"], method["alpha"], method["alpha_rule"]) == (
            name, k, alpha, rule
        )  # fmt: skip

    return of


def errors(found: list[Plain], wanted: Wanted, test: str = "result") -> Trials:
    return {row["trial"]["seed"]: 100 * row[test]["error"] for row in found if wanted(row)}


def paired(new: Trials, old: Trials, level: float = 0.95) -> Tested:
    """Return the mean difference with its interval, its p-value, and the interval's lower end."""
    differences = [new[seed] - old[seed] for seed in sorted(new.keys() & old.keys())]
    if len(differences) < 3:
        return f"{len(differences)} pairs", 1.0, -np.inf
    test = ttest_1samp(differences, 0)
    low, high = test.confidence_interval(level)
    mean = np.mean(differences)
    text = f"{mean:+.2f} [{low:+.2f}, {high:+.2f}], n = {len(differences)}"
    return text, float(test.pvalue), float(low)


def judged(family: Family) -> Iterator[tuple[str, str, float]]:
    """Yield name, difference and corrected p-value of each comparison."""
    corrected = holm([p for _, p, _ in family.values()])
    for (name, (text, *_)), p in zip(family.items(), corrected, strict=True):
        yield name, text, p


def chosen(found: list[Plain], options: list[Wanted]) -> Trials:
    """Return the test error of the option with the lowest validation error in each trial."""
    validation = [errors(found, option) for option in options]
    test = [errors(found, option, "test") for option in options]
    seeds = set.intersection(*map(set, validation))
    best = {seed: min(range(len(options)), key=lambda i: validation[i][seed]) for seed in seeds}
    return {seed: test[i][seed] for seed, i in best.items()}


def label_noise() -> tuple[Family, Family]:
    found = list(rows("label-noise"))
    primary, secondary = {}, {}
    for noise in (None, 0.2, 0.4):
        noisy = [row for row in found if row["trial"]["label_noise"] == noise]
        best = {
            k: chosen(noisy, [arm(name, k, alpha) for alpha in (0.2, 1.0, 8.0)])
            for name, k in (("mixup", 1), ("kmixup", 16), ("kmixup", 64))
        }
        about = f"{100 * (noise or 0):g} % random labels"
        primary[f"k = 16 − mixup, {about}"] = paired(best[16], best[1])
        erm = errors(noisy, arm("erm"), "test")
        secondary[f"mixup − ERM, {about}"] = paired(best[1], erm)
        secondary[f"k = 64 − mixup, {about}"] = paired(best[64], best[1])
    return primary, secondary


def photographs() -> tuple[Family, Family]:
    found = list(rows("cifar10-fitted", "photographs"))

    def of(name: str, k: int, alpha: float) -> Trials:
        return errors(found, arm(name, k, alpha), "clean")

    difference = of("kmixup", 16, 1.0), of("mixup", 1, 1.0)
    *_, low = paired(*difference, level=0.9)
    excluded = f"a gain above 0.4 points is {'' if low > -0.4 else 'not '}excluded"
    primary = {f"k = 16 − mixup, alpha = 1 ({excluded})": paired(*difference)}
    stronger = of("kmixup", 16, 4.0), of("mixup", 1, 4.0)
    secondary = {
        "k = 16 − mixup, alpha = 4": paired(*stronger),
        "mixup, alpha = 4 − alpha = 1": paired(stronger[1], difference[1]),
    }
    return primary, secondary


def held_out(options: list[Trials]) -> Trials:
    """Return the errors of the option with the lowest mean on the other half of the trials."""
    seeds = sorted(set.intersection(*map(set, options)))
    halves = seeds[::2], seeds[1::2]
    best = {}
    for half, other in (halves, halves[::-1]):
        if other:
            means = [np.mean([option[seed] for seed in other]) for option in options]
            best |= {seed: options[int(np.argmin(means))][seed] for seed in half}
    return best


def speech() -> tuple[Family, Family]:
    found = list(rows("speech"))

    def of(name: str, k: int, alpha: float, rule: str = "same") -> Trials:
        return errors(found, arm(name, k, alpha, rule))

    erm, mixup = of("erm", 1, 0.0), {alpha: of("mixup", 1, alpha) for alpha in (1.0, 10.0)}
    better = held_out([*mixup.values()])
    matched = {
        rule: held_out([of("kmixup", 16, alpha, rule) for alpha in mixup])
        for rule in ("same", "xi")
    }
    primary = {
        "k = 16 − mixup, alpha = 10": paired(of("kmixup", 16, 10.0), mixup[10.0]),
        "better k = 16 − better mixup": paired(matched["same"], better),
    }
    secondary = {
        "better k = 16 at equal xi − better mixup": paired(matched["xi"], better),
        "k = 4 − mixup, alpha = 10": paired(of("kmixup", 4, 10.0), mixup[10.0]),
        "mixup, alpha = 1 − ERM": paired(mixup[1.0], erm),
    }
    return primary, secondary


STUDIES = {"label-noise": label_noise, "photographs": photographs, "speech": speech}

if __name__ == "__main__":
    for study in sys.argv[1:] or STUDIES:
        for kind, family in zip(("primary", "secondary"), STUDIES[study](), strict=True):
            print(f"{study}, {kind}, Holm over {len(family)}")
            for name, text, p in judged(family):
                print(f"  {name}: {text}, p {p_text(p)}")
