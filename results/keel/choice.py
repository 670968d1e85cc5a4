"""Which setting should be the default, and can the data say so?

Written before any row was published, when 630 networks of 18 tables had been trained.

**Default.** Candidates are ERM, and mixup and k = 16 at alpha = 0.02, 0.05, 0.2 and 1. The regret
of a candidate on a table is the logarithm of its score over the lowest score of all candidates
there; scores are (errors + ½) / (n + 1) and the log-loss as trained, summed over the splits, clean
labels, all training rows. Related tables count once. 95 % intervals and the share of samples in
which a candidate has the lowest mean regret come from a bootstrap over clusters, and over splits
within a table. The lowest score of a table is that of noisy means, so all regrets are slightly too
large, for all candidates alike.

The default stays unless another candidate has a mean regret in error that is lower by more than
1 %, with an interval of the difference that excludes 0, and no significantly higher regret in
log-loss. All candidates whose difference from the best includes 0 are called equally good.

**Advice.** For each cluster, ridge regressions on the other clusters predict every candidate's
regret in error from what is known before training (`tables.csv`: logarithms of rows, columns and
classes, the share of partners of another class at k = 1 and 16, the errors of the nearest neighbor
and of a linear model; all standardized, penalty = number of clusters), and the candidate with the
lowest predicted regret is taken. Primary: its regret minus the default's, a paired t-test over
clusters. Secondary: minus that of the fixed setting that is best on the other clusters. If the
primary difference is not significantly below 0, nothing is advised, and that is published.

    python results/keel/choice.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from analysis import CLUSTERS, DEFAULT, ERM, HERE, Study, matched, mixup, read
from grid import ALPHAS

from kmixup.lab.report.stats import interval, p_text

CANDIDATES = [ERM, *(arm for alpha in ALPHAS for arm in (mixup(alpha), matched(alpha)))]
BOOTSTRAPS = 2000
CHANGE = 0.01  # a lower regret than this changes the default


def regrets(scores: pd.DataFrame, *, half: float) -> pd.DataFrame:
    """Return log regrets, a line for each cluster, from scores summed over splits."""
    logs = np.log(scores + half)
    regret = logs.sub(logs.min(axis=1), axis=0)
    return regret.groupby([CLUSTERS.get(name, name) for name in regret.index]).mean()


def summed(scores: pd.DataFrame) -> pd.DataFrame:
    """Sum the scores of each table over its splits."""
    return scores.groupby(level=0).sum()


def drawn(scores: pd.DataFrame, half: float) -> pd.DataFrame:
    """Return mean regrets of bootstrap samples, a line for each."""
    generator = np.random.default_rng(0)
    clusters: dict[str, list[np.ndarray]] = {}
    for name, table in scores.groupby(level=0):
        splits = len(table)
        counts = generator.multinomial(splits, np.full(splits, 1 / splits), size=BOOTSTRAPS)
        logs = np.log(counts @ table.to_numpy() + half)
        regret = logs - logs.min(axis=1, keepdims=True)
        clusters.setdefault(CLUSTERS.get(name, name), []).append(regret)
    means = np.stack([np.mean(tables, axis=0) for tables in clusters.values()], axis=1)
    size = len(clusters)
    weights = generator.multinomial(size, np.full(size, 1 / size), size=BOOTSTRAPS) / size
    return pd.DataFrame(np.einsum("bk,bkc->bc", weights, means), columns=scores.columns)


def per_cent(value: float) -> str:
    return f"{100 * np.expm1(value):+.1f}"


def compared(scores: pd.DataFrame, half: float) -> pd.DataFrame:
    """Return each candidate's mean regret, its difference from the default's, and bootstrap wins.

    All but `wins`, a fraction of the samples, are logarithms.
    """
    means = regrets(summed(scores), half=half).mean().sort_values()
    samples = drawn(scores, half)[means.index]
    changes = samples.sub(samples[DEFAULT], axis=0)
    found = pd.DataFrame({"regret": means, "change": means - means[DEFAULT]})
    found["low"], found["high"] = changes.quantile(0.025), changes.quantile(0.975)
    wins = samples.idxmin(axis=1).value_counts(normalize=True)
    return found.assign(wins=wins.reindex(means.index).fillna(0.0))


def show(name: str, scores: pd.DataFrame, half: float) -> None:
    print(f"\n{name}: mean regret in %, minus the default's [95 %], fraction of bootstrap wins")
    for arm, line in compared(scores, half).iterrows():
        change, low, high = (per_cent(line[end]) for end in ("change", "low", "high"))
        print(
            f"  {arm:16} {per_cent(line.regret)}  {change} [{low}, {high}]  {100 * line.wins:.0f} %"
        )


def advised(regret: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Return the regret of the advice, of the best fixed setting and of the default, by cluster."""
    x = (facts - facts.mean()) / facts.std()
    found = {}
    for name in regret.index:
        others = regret.drop(name)
        design = x.loc[others.index].to_numpy()
        centre = others.mean()
        gram = design.T @ design + len(regret) * np.eye(design.shape[1])
        weights = np.linalg.solve(gram, design.T @ (others - centre).to_numpy())
        predicted = centre + x.loc[name].to_numpy() @ weights
        found[name] = {
            "advice": regret.loc[name, predicted.idxmin()],
            "fixed": regret.loc[name, centre.idxmin()],
            "default": regret.loc[name, DEFAULT],
        }
    return pd.DataFrame(found).T


def clean_errors(study: Study) -> pd.DataFrame:
    """Return numbers of errors, a line for each table and split and a column for each candidate."""
    errors = study.wide(study.whole, "error")[CANDIDATES]
    return errors.mul(study.n, axis=0).dropna()


def clean_losses(study: Study) -> pd.DataFrame:
    return study.wide(study.whole, "log-loss")[CANDIDATES].dropna()


def advice(errors: pd.DataFrame) -> pd.DataFrame:
    """Return what `advised` finds with the facts of tables.csv."""
    regret = regrets(summed(errors), half=0.5)
    facts = pd.read_csv(HERE / "tables.csv", index_col="table").drop(columns="left")
    for name in ("rows", "columns", "classes"):
        facts[name] = np.log(facts[name])
    clusters = [CLUSTERS.get(name, name) for name in facts.index]
    return advised(regret, facts.groupby(clusters).mean().loc[regret.index])


def main() -> None:
    study = Study(read(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE), "clean")
    errors = clean_errors(study)
    show("error", errors, 0.5)
    show("log-loss", clean_losses(study), 0.0)
    found = advice(errors)
    print(f"\nadvice: mean regret {per_cent(found.advice.mean())} %")
    for other in ("default", "fixed"):
        difference = interval((100 * (found.advice - found[other])).tolist())
        print(f"  minus {other}: {difference.text} log points, p {p_text(difference.p)}")


if __name__ == "__main__":
    main()
