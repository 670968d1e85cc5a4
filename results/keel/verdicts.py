"""The verdicts of the study on other pages, between `<!-- keel NAME -->` and `<!-- /keel -->`.

The rule is in `analysis.py`. `page.py` writes them, and compares them with `--check`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from analysis import CLUSTERS, DEFAULT, ERM, Effect, Study, matched, mixup

from kmixup.lab.report.meta_analysis import pool
from kmixup.lab.report.stats import holm

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "docs/index.md",
    "docs/guide/choosing.md",
    "docs/evidence/index.md",
    "docs/evidence/default.md",
)
MARKED = re.compile(r"<!-- keel (\w+) -->(.*?)<!-- /keel -->", re.S)

# questions in the order of the rule, with the places of their comparisons among the primary ones
QUESTIONS = {
    "the default have lower error?": (0, 1),
    "matching lower the error at alpha = 0.2?": (2,),
    "matching lower the error once alpha is tuned?": (4,),
    "matching lower the error at alpha = 1?": (3,),
    "the default have lower log-loss, with a temperature fitted to both?": (5, 6),
}
SAME = "no difference of 2 % or more"  # in the mean that weights tables by precision
AGAINST = ("ERM", "label smoothing", "mixup", "mixup", "mixup", "ERM", "label smoothing")


def change(effect: Effect) -> str:
    return "not trained yet" if np.isnan(effect.pooled.mean) else effect.pooled.text


def verdict(effect: Effect, p: float) -> str:
    """Say what a comparison shows, with its p-value after Holm's correction."""
    pooled = effect.pooled
    if p <= 0.05:
        return "lower" if pooled.mean < 0 else "higher"
    if pooled.equivalence() <= 0.05:
        return SAME
    return f"not significant; a gain of {100 * pooled.largest_gain:.0f} % is not excluded"


def without_heaviest(effect: Effect) -> str:
    """Return the mean without the cluster that weighs most, and the weight of that."""
    tables = effect.tables[effect.tables.variance > 0]
    clusters = pd.Series([CLUSTERS.get(table, table) for table in tables.index], tables.index)
    error = np.sqrt(tables.variance).groupby(clusters).mean()
    weight = 1 / (error**2 + effect.pooled.tau**2)
    heaviest = weight.idxmax()
    rest = tables[clusters != heaviest]
    found = pool(rest.effect, rest.variance, clusters[clusters != heaviest].tolist())
    return f"{found.text} ({heaviest}, {100 * weight.max() / weight.sum():.0f} %)"


def answer(said: str) -> str:
    """Turn a verdict into the answer to whether a score is lower."""
    return {"lower": "yes", "higher": "no, higher", SAME: f"no: {SAME}"}.get(said, said)


def against_erm(study: Study, place: int) -> str:
    """Return how the method of a primary comparison does against ERM."""
    if place == 3:
        pair = [study.arms("", arm, ERM) for arm in (mixup(1), matched(1))]
        return f"against ERM: mixup {change(pair[0])}, k = 16 {change(pair[1])}"
    if place == 4:
        return f"the better of both against ERM: {change(study.best_against_erm())}"
    return f"mixup against ERM: {change(study.arms('', mixup(0.2), ERM))}"


def verdicts(study: Study, effects: Sequence[Effect]) -> str:
    """Return the table of the README: a line for each question that has a verdict."""
    corrected = holm([effect.pooled.p for effect in effects])
    lines = ["| On 43 tables, does … | verdict | change, 95 % interval |", "| --- | --- | --- |"]
    for question, places in QUESTIONS.items():
        said = [answer(verdict(effects[place], corrected[place])) for place in places]
        if all(text.startswith("not significant") for text in said):
            continue
        pairs = zip(places, said, strict=True)
        named = "; ".join(f"{AGAINST[place]}: {text}" for place, text in pairs)
        changes = [f"against {AGAINST[place]}: {change(effects[place])}" for place in places]
        if len(places) == 1:
            changes.append(against_erm(study, places[0]))
        if places == (4,):  # one table has nearly all the weight
            changes.insert(1, f"without the heaviest table: {without_heaviest(effects[4])}")
        short = said[0] if len(set(said)) == 1 else named
        lines.append(f"| {question} | {short} | {' · '.join(changes)} |")
    return "\n\n" + "\n".join(lines) + "\n\n"


def facts(study: Study, effects: Sequence[Effect], splits: str) -> dict[str, str]:
    """Return the texts between markers, by name."""
    return {
        "verdicts": verdicts(study, effects),
        "splits": splits,
        "default_erm": change(effects[0]),
        "default_smoothing": change(effects[1]),
        "default_mixup": change(effects[2]),
        "at_one": change(effects[3]),
        "mixup_at_one": change(study.arms("", mixup(1), ERM)),
        "tuned": change(effects[4]),
        "scaled_loss": change(effects[5]),
        "loss": change(study.arms("", DEFAULT, ERM, "log-loss")),
    }


def filled(texts: dict[str, str]) -> dict[Path, str]:
    """Return the pages with markers, filled, by path."""
    found = {}
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        if MARKED.search(text):
            found[ROOT / name] = MARKED.sub(
                lambda match: f"<!-- keel {match[1]} -->{texts[match[1]]}<!-- /keel -->", text
            )
    return found
