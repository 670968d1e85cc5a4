"""Write the pages and pictures of the studies in `stated.py`; `--check` only compares.

python results/pages.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from stated import STUDIES, Family, judged

from kmixup.lab import read
from kmixup.lab.report.stats import p_text

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))
from evidence import curves, themed  # noqa: E402

SCORES = {"error": "error, %", "nll": "log-loss", "brier": "Brier score", "ece": "calibration, %"}
SCALED = {"nll": "log-loss, scaled", "brier": "Brier, scaled", "ece": "calibration, scaled, %"}
PER_CENT = {"error", "ece"}


@dataclass(frozen=True)
class Page:
    """What a page says beyond its numbers."""

    title: str
    about: str  # what was asked
    protocol: str
    panel: str  # the column that splits the picture and the table of scores
    panels: dict[object, str]  # its values, with their titles


PAGES = {
    "label-noise": Page(
        "Label noise",
        "MNIST with 5,000 images, of which 0, 20 or 40 % have labels drawn at random. Every trial "
        "chooses alpha of 0.2, 1 and 8 for mixup, k = 16 and k = 64 on held-out training samples, "
        "which are as noisy.",
        "LeNet, 40 epochs, the paper's learning rate; ten trials, each with its own images, noise "
        "and weights. A fifth of the images is held out, to choose alpha and to fit a temperature "
        'for the scaled scores. `label_noise` is an option of every command that trains: '
        "`kmixup train mnist --samples 5000 --label-noise 0.4`.",
        "label_noise",
        {0.0: "no random labels", 0.2: "20 % random labels", 0.4: "40 % random labels"},
    ),
    "speech": Page(
        "Speech",
        "Ten words of Google Speech Commands with 120 training clips each, a tenth of what the "
        "paper trains on: its second-largest gain of k-mixup is on speech.",
        "LeNet on spectrograms, 30 epochs and the learning rate as in the paper; twenty trials, "
        "paired by seed, on the same clips. At equal xi, alpha is raised until matched pairs "
        "move as far as mixup's.",
        "alpha_rule",
        {"same": "same alpha at every k", "xi": "alpha at equal xi"},
    ),
}  # fmt: skip


def results(name: str) -> pd.DataFrame:
    """Return the scores of test samples: a line for each trial, test and metric."""
    frame = read(ROOT / "results" / name)
    frame = frame[frame.test.isin(["test", "scaled"])]
    return frame.assign(label_noise=frame.label_noise.astype(float).fillna(0.0))


def arms(frame: pd.DataFrame, page: Page) -> Iterator[tuple[str, str, float, pd.DataFrame]]:
    """Yield title of the panel, name, alpha and scores of each arm; ERM is in every panel."""
    for value, title in page.panels.items():
        other = frame.method.eq("erm") | (frame.k == 1)
        shared = other if page.panel == "alpha_rule" else other & False
        some = frame[shared | (frame[page.panel] == value)]
        for (k, alpha), scores in some.groupby(["k", "alpha"], sort=True):
            name = "ERM" if not alpha else "mixup" if k == 1 else f"k = {k:g}"
            yield title, name, float(alpha), scores


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *body])


def scores_table(frame: pd.DataFrame, page: Page) -> str:
    scaled = SCALED if (frame.test == "scaled").any() else {}
    body = []
    for title, name, alpha, scores in arms(frame, page):
        cells = [title, name, f"{alpha:g}" if alpha else ""]
        for test, metrics in (("test", SCORES), ("scaled", scaled)):
            for metric in metrics:
                values = scores[(scores.test == test) & (scores.metric == metric)].value
                values = values.astype(float) * (100 if metric in PER_CENT else 1)
                digits = 2 if metric == "error" else 1 if metric in PER_CENT else 3
                spread = f" ± {values.sem():.{digits}f}" if metric == "error" else ""
                cells.append(f"{values.mean():.{digits}f}{spread}")
        body.append(cells)
    return table(["", "", "alpha", *SCORES.values(), *scaled.values()], body)


def family(found: Family) -> str:
    body = [[name, text.partition(", n")[0], p_text(p)] for name, text, p in judged(found)]
    return table(["percentage points of test error", "difference, 95 %", "p (Holm)"], body)


def headline(found: Family) -> str:
    """Say which primary comparisons are significant."""
    said = []
    for name, text, p in judged(found):
        difference, _, pairs = text.partition(", n = ")
        word = "not significant" if p > 0.05 else "lower" if difference[0] in "-−" else "higher"
        said.append(f"{name}: {difference} points ({word}, {pairs} trials)")
    return f"**{'; '.join(said)}.**"


def shown(frame: pd.DataFrame, page: Page) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Return mean and standard error of the test error by panel, method and alpha."""
    lines: dict[str, dict[str, dict[str, list[float]]]] = {}
    errors = frame[(frame.test == "test") & (frame.metric == "error")]
    for title, name, alpha, scores in arms(errors, page):
        values = 100 * scores.value.astype(float)
        point = [round(values.mean(), 4), round(values.sem(), 4)]
        panel = lines.setdefault(f"{title}:\ntest error, %", {})
        panel.setdefault(name, {})[f"{alpha:g}"] = point
    return lines


def contents(name: str) -> dict[Path, str]:
    """Return the page of a study and its picture, by path."""
    page, frame = PAGES[name], results(name)
    primary, secondary = STUDIES[name]()
    numbers = shown(frame, page)
    text = f"""# {page.title}

{headline(primary)} ERM, training without mixup, is in the table of scores.

![{page.title}: test error against alpha, for ERM, mixup and k-mixup](../img/{name}.svg)

*Means of all trials with their standard errors.*

{page.about} Primary questions, Holm over {len(primary)}:

{family(primary)}

Secondary, Holm over {len(secondary)}:

{family(secondary)}

## All scores

Means over trials, errors with their standard error:

{scores_table(frame, page)}

## Protocol

{page.protocol} [Questions and statistics](../../results/stated.py) were written down before the \
first row.

`kmixup sweep results/{name}/*.toml --out results/{name}` trains, `results/stated.py {name}` \
computes, `python results/pages.py` writes this page.
"""
    picture = themed(curves(numbers), name, json.dumps(numbers))
    return {ROOT / f"docs/evidence/{name}.md": text, ROOT / f"docs/img/{name}.svg": picture}


def complete(name: str) -> bool:
    """Return whether every primary comparison has paired trials."""
    primary, _ = STUDIES[name]()
    return all(" pairs" not in text for text, *_ in primary.values())


def main() -> int:
    stale = 0
    for name in PAGES:
        if not complete(name):
            continue
        for path, text in contents(name).items():
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
            elif path.read_text(encoding="utf-8") != text:
                print(f"{path.relative_to(ROOT)} is not what the rows say")
                stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
