"""What is tested in the study of 43 KEEL tables. Written before its rows.

A table is the unit, and related tables count as one (`CLUSTERS`). A table's effect is the log ratio
of (errors + ½) / (n + 1), or of the mean log-loss, over its splits, paired by split. Splits of one
table overlap, so variances are those of Nadeau and Bengio (2003) with half as many test as training
samples. Effects are pooled by random effects (Hartung and Knapp), with a prediction interval for
another table. Two methods are equivalent if two one-sided tests put the ratio within ±2 %. A
network that diverged counts as the worst on validation samples and is left out, with its pair, of
test scores; how many did is printed.

**Primary**, on clean labels and all rows, Holm over seven:

1. error, the default (k = 16 at alpha = 0.2) against ERM
2. error, the default against ERM with label smoothing of 0.1
3. error, the default against mixup at alpha = 0.2
4. error, k = 16 against mixup, both at alpha = 1
5. error, the best of k = 16 against the best of mixup: in every split each chooses its alpha (of
   0.02, 0.05, 0.2 and 1; the lower of equal ones) by the error on 20 % of the training rows, and is
   trained with it on all of them
6. log-loss after temperature scaling, the default against ERM
7. log-loss after temperature scaling, the default against ERM with label smoothing

Errors are those of networks trained on all training rows; log-losses after scaling those of
networks trained on 80 % of them, whose temperature was fitted to the rest.

**Secondary**, on clean labels and all rows, Holm over six:

1. the log ratio of k = 16 to mixup at the same alpha falls with log alpha: the mean slope
2. at alpha = 1 it rises with the share of partners of another class that matching leaves; further
   regressors of the same model, reported without a test: the logarithms of the number of classes
   and of columns, and the error of the nearest neighbor (all standardized, `tables.csv`)
3. error, the default against ERM with ten times the weight decay
4. error, the default with label smoothing against ERM with label smoothing
5. error, the best of mixing against ERM: the best of k = 16 and mixup, nested as above
6. log-loss as trained, the default against ERM

**Noise** (20 % random labels, alpha = 8 as well), **a tenth** of the rows, and **long** (three
times the steps; added before its first row, when half of the clean splits 0 and 1 had been
trained), Holm over five each: primary 1, 2, 3, 5 and secondary 5. Other numbers are printed without
p-values.

Amendments, made after six splits: a mean "without the heaviest" cluster of tables, because a few
tables with many errors weigh most, and Holm's p-values of all secondary comparisons on the page.

**Verdicts in the README**, at most five, only from at least five splits of all tables. A primary
comparison gives one if it is still significant after Holm (its direction, effect and interval), or
if it is not and equivalence has p ≤ 0.05 ("no difference of 2 % or more"). They are taken in this
order: 1 and 2 together, 3, 5, 4, 6 and 7 together. If places are left, they are filled by label
noise (1 and 2 of that regime), then alpha far too large, noise on inputs and FGSM from MNIST, each
if its own comparison with mixup is significant after Holm on its page. Every verdict has ERM's
number beside it; what label smoothing or weight decay gives as well is said to be theirs too.

    python results/keel/analysis.py
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from grid import ALPHAS, BATCH, DECAY, REGIMES, K, arms, protocol, rows_of

from kmixup.lab.report.meta_analysis import (
    Pooled,
    log_ratios,
    nested_best,
    pool,
    regression,
    slope,
)
from kmixup.lab.report.stats import holm, p_text

HERE = Path(__file__).parent
CLUSTERS = {
    "crx": "australian",  # the same applications for credit
    "german": "australian",
    "breast": "breast cancer",
    "wisconsin": "breast cancer",
    "wdbc": "breast cancer",
    "twonorm": "norm",  # Breiman's artificial twins
    "ring": "norm",
    "optdigits": "digits",  # handwritten digits of the same kind
    "penbased": "digits",
    "saheart": "heart",
    "vowel": "speech",
    "phoneme": "speech",
}
NOT_RUN = Pooled(np.nan, np.nan, np.nan, p=1.0, tau=np.nan, prediction=None, clusters=0)
RATIO = 0.5  # test samples per training sample of a split
DEFAULT, ERM = f"k={K} alpha=0.2", "erm"
SMOOTH, DEFAULT_SMOOTH, MORE_DECAY = "erm smoothing", "default smoothing", "erm decay"


def mixup(alpha: float) -> str:
    return f"k=1 alpha={alpha:g}"


def matched(alpha: float) -> str:
    return f"k={K} alpha={alpha:g}"


def lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a folder, the latest of each trial last."""
    for path in (folder / "rows.jsonl.gz", folder / "rows.jsonl"):
        if path.is_file():
            data = path.read_bytes()
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
            rows = [json.loads(line) for line in text.splitlines()]
            yield from (row for row in rows if "trial" in row)


def arm_of(trial: dict[str, Any]) -> str:
    """Return the name of a trial's arm, as in `grid.arms`."""
    method, protocol = trial["method"], trial["protocol"]
    if protocol.get("label_smoothing"):
        return SMOOTH if method["name"] == "erm" else DEFAULT_SMOOTH
    if protocol["weight_decay"] > DECAY:
        return MORE_DECAY
    return ERM if method["name"] == "erm" else f"k={method['k']} alpha={method['alpha']:g}"


def regime_of(trial: dict[str, Any], table: str) -> str:
    if trial["label_noise"]:
        return "noise"
    if trial["samples"]:
        return "tenth"
    usual = protocol(rows_of(table, "clean")).epochs
    return "clean" if trial["protocol"]["epochs"] == usual else "long"


def read(folder: Path = HERE) -> pd.DataFrame:
    """Return a line for each network: regime, table, split, arm, whether it held samples out."""
    found = {}
    for row in lines(folder):
        trial = row["trial"]
        table = trial["data"].removeprefix("keel-")
        line = {
            "regime": regime_of(trial, table),
            "table": table,
            "split": trial["seed"],
            "arm": arm_of(trial),
            "held": trial["validation"] is not None,
            "done": row["status"] == "done",
        }
        if line["done"]:
            test = row.get("test") or row["result"]
            line |= {"n": row["data"]["test"], "error": test["error"], "log-loss": test["nll"]}
            line |= {"brier": test["brier"], "ece": test["ece"], "seconds": row["seconds"]}
            line["training error"] = row["training"]["error"]
        if line["done"] and line["held"]:
            scaled = row["scaled"]
            line |= {"validation": row["result"]["error"], "temperature": row["temperature"]}
            line |= {f"scaled {name}": scaled[name] for name in ("nll", "brier", "ece")}
        found[row["id"]] = line
    return pd.DataFrame(list(found.values()))


@dataclass(frozen=True)
class Effect:
    """One comparison: its pooled effect, and that of each table."""

    name: str
    pooled: Pooled  # not a number if too few networks have been trained
    tables: pd.DataFrame  # as `log_ratios` returns it
    better: int  # tables with a lower score
    worse: int


class Study:
    """The rows of one regime, as wide frames: a line per table and split, a column per arm."""

    def __init__(self, rows: pd.DataFrame, regime: str) -> None:
        self.regime = regime
        rows = rows[rows.regime == regime]
        self.rows = rows
        self.whole, self.part = rows[~rows.held], rows[rows.held]
        self.n = self.whole.groupby(["table", "split"]).n.max()

    def wide(self, rows: pd.DataFrame, score: str) -> pd.DataFrame:
        """Return a column for every arm, without a number where it has not been run."""
        wide = rows.pivot(index=["table", "split"], columns="arm", values=score)
        return wide.reindex(columns=list(arms(self.regime, protocol(BATCH))))

    def compare(self, name: str, new: pd.Series, old: pd.Series, *, errors: bool = True) -> Effect:
        """Compare two methods' scores, by table and split; tables with one split are left out."""
        pairs = pd.DataFrame({"new": new, "old": old}).dropna()
        pairs = pairs[pairs.groupby(level=0).new.transform("size") > 1]
        n = self.n.reindex(pairs.index) if errors else None
        tables = log_ratios(pairs.new, pairs.old, n, ratio=RATIO)
        differing = tables[tables.variance > 0]
        clusters = [CLUSTERS.get(table, table) for table in differing.index]
        if len(set(clusters)) < 2:
            return Effect(name, NOT_RUN, tables, 0, 0)
        pooled = pool(differing.effect, differing.variance, clusters)
        better, worse = int((tables.effect < 0).sum()), int((tables.effect > 0).sum())
        return Effect(name, pooled, tables, better, worse)

    def arms(self, name: str, new: str, old: str, score: str = "error") -> Effect:
        rows = self.part if score.startswith("scaled") else self.whole
        scores = self.wide(rows, score)
        return self.compare(name, scores[new], scores[old], errors=score == "error")

    def best(self) -> pd.DataFrame:
        """Return the test error of the nested best of each family, by table and split."""
        part = self.part.assign(validation=self.part.validation.where(self.part.done, np.inf))
        alphas = REGIMES[self.regime]
        families = {"mixup": list(map(mixup, alphas)), "matched": list(map(matched, alphas))}
        both = {"any": [arm for pair in zip(*families.values(), strict=True) for arm in pair]}
        validation, test = self.wide(part, "validation"), self.wide(self.whole, "error")
        chosen = [nested_best(validation, test, some) for some in (families, both)]
        return pd.concat(chosen, axis=1)

    def best_against_best(self) -> Effect:
        best = self.best()
        return self.compare("best of k = 16 against best of mixup", best.matched, best.mixup)

    def best_against_erm(self) -> Effect:
        erm = self.wide(self.whole, "error")[ERM]
        return self.compare("best of mixing against ERM", self.best()["any"], erm)

    def shared(self) -> list[Effect]:
        """Return the comparisons that every regime has."""
        return [
            self.arms("default against ERM", DEFAULT, ERM),
            self.arms("default against label smoothing", DEFAULT, SMOOTH),
            self.arms("default against mixup at 0.2", DEFAULT, mixup(0.2)),
            self.best_against_best(),
        ]

    def primary(self) -> list[Effect]:
        first, second, third, best = self.shared()
        scaled = "scaled nll"
        return [
            first,
            second,
            third,
            self.arms("k = 16 against mixup at 1", matched(1), mixup(1)),
            best,
            self.arms("scaled log-loss, default against ERM", DEFAULT, ERM, scaled),
            self.arms("scaled log-loss, default against label smoothing", DEFAULT, SMOOTH, scaled),
        ]

    def secondary(self) -> list[Effect]:
        return [
            self.arms("default against ten times the weight decay", DEFAULT, MORE_DECAY),
            self.arms("default with smoothing against smoothing", DEFAULT_SMOOTH, SMOOTH),
            self.best_against_erm(),
            self.arms("log-loss as trained, default against ERM", DEFAULT, ERM, "log-loss"),
        ]

    def by_alpha(self) -> list[Effect]:
        return [
            self.arms(f"k = 16 against mixup at {alpha:g}", matched(alpha), mixup(alpha))
            for alpha in REGIMES[self.regime]
        ]

    def slope(self) -> Any:
        """Return the mean slope of the log ratio of k = 16 to mixup over log alpha."""
        effects = {alpha: effect.tables.effect for alpha, effect in self._alphas()}
        table = pd.DataFrame(effects).dropna().stack()
        names = table.index.get_level_values(0)
        clusters = [CLUSTERS.get(name, name) for name in names]
        return slope(np.log(table.index.get_level_values(1)), table, list(names), clusters)

    def _alphas(self) -> Iterator[tuple[float, Effect]]:
        yield from zip(REGIMES[self.regime], self.by_alpha(), strict=True)

    def regressors(self) -> pd.DataFrame:
        """Regress the effect at alpha = 1 on what is known of a table before training."""
        facts = pd.read_csv(HERE / "tables.csv", index_col="table")
        effect = self.arms("", matched(1), mixup(1)).tables.effect
        facts = facts.reindex(effect.index)
        chosen = pd.DataFrame(
            {
                "share of other classes left": facts.left,
                "log classes": np.log(facts.classes),
                "log columns": np.log(facts["columns"]),
                "nearest neighbor's error": facts.neighbor_error,
            }
        )
        standard = (chosen - chosen.mean()) / chosen.std()
        return regression(effect, standard, [CLUSTERS.get(name, name) for name in effect.index])


def show(
    title: str, effects: list[Effect], extra: dict[str, tuple[str, float]] | None = None
) -> None:
    """Print a family of comparisons with Holm's p-values; `extra` are others of the family."""
    extra = extra or {}
    corrected = holm([effect.pooled.p for effect in effects] + [p for _, p in extra.values()])
    print(f"\n{title}: Holm over {len(corrected)}")
    for effect, p in zip(effects, corrected, strict=False):
        pooled = effect.pooled
        low, high = (np.expm1(end) * 100 for end in pooled.prediction or (np.nan, np.nan))
        print(
            f"  {effect.name}: {pooled.text}, p {p_text(p)}; lower on {effect.better}, higher on "
            f"{effect.worse} of {len(effect.tables)}; another table [{low:.1f}, {high:.1f}]; "
            f"equivalent p {p_text(pooled.equivalence())}; gain not excluded "
            f"{100 * pooled.largest_gain:.1f} %"
        )
    for (name, (text, _)), p in zip(extra.items(), corrected[len(effects) :], strict=True):
        print(f"  {name}: {text}, p {p_text(p)}")


def main() -> None:
    rows = read(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
    print(f"{len(rows):,} networks, {(~rows.done).sum()} diverged")
    for regime in rows.regime.unique():
        study = Study(rows, regime)
        splits = study.n.groupby("table").size()
        print(f"\n{regime}: {len(splits)} tables, {splits.min()} to {splits.max()} splits")
        if regime == "clean":
            show("Primary", study.primary())
            sloped = study.slope()
            fit = study.regressors()
            text = f"{sloped.mean:+.4f} [{sloped.low:+.4f}, {sloped.high:+.4f}]"
            left = fit.iloc[0]
            extra = {
                "slope over log alpha": (text, sloped.p),
                fit.index[0]: (f"{left.slope:+.4f} [{left.low:+.4f}, {left.high:+.4f}]", left.p),
            }
            show("Secondary", study.secondary(), extra)
            print(fit.drop(fit.index[0]).drop(columns="p").round(4).to_string())
        else:
            show("Family", [*study.shared(), study.best_against_erm()])
        for effect in study.by_alpha():
            print(f"  {effect.name}: {effect.pooled.text}")
    print(f"\nalphas: {ALPHAS}")


if __name__ == "__main__":
    main()
