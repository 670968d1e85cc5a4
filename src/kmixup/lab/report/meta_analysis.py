"""Statistics over many data sets: log ratios, random effects, slopes, and nested choices.

Everything takes arrays, or pandas objects indexed by data set and trial. A log ratio is that of a
new method's score to an old one's, so below 0 is better. Related data sets form a cluster, and a
cluster counts as one data set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.stats import t as student

from kmixup.lab.formatting import signed
from kmixup.lab.report.stats import LEVEL, PairedDifference, interval

HALF = 0.5  # added to a number of errors, so that none has a logarithm
BOUND = 0.02  # two methods whose scores differ by less are equivalent


def log_ratios(
    new: pd.Series, old: pd.Series, n: pd.Series | int | None = None, *, ratio: float = 0.0
) -> pd.DataFrame:
    """Return the log ratio of two methods' scores on each data set, from paired trials.

    The scores of a data set's trials are added up before the logarithm is taken: log ratios of
    single trials are biased towards 0 if a trial has few errors. The variance comes from the
    paired trials, by linearization. For errors it is at least that of a single error that could
    have fallen otherwise, so a data set without any error has next to no weight.

    Args:
        new, old: Scores, e.g. error rates or log-losses, indexed by data set and trial. Trials
            that only one of them has are left out.
        n: Test samples of each trial, if the scores are error rates. The log ratio is then that
            of (errors + ½) / (n + 1).
        ratio: Test samples per training sample, if a data set's trials split the same samples
            anew. The variance is then that for other data of the same kind (Nadeau and Bengio
            2003, "Inference for the generalization error").

    Returns:
        A line for each data set with its `effect`, `variance`, `low`, `high` and `trials`.
    """
    pairs = pd.DataFrame({"new": new, "old": old}).assign(n=1 if n is None else n).dropna()
    half = 0.0 if n is None else HALF
    counts = pairs[["new", "old"]].mul(pairs["n"], axis=0)
    trials = counts.groupby(level=0, sort=False).size()
    if (trials < 2).any():
        name = trials.index[trials < 2][0]
        raise ValueError(f"data set {name!r} must have two paired trials, got one: leave it out")
    totals = counts.groupby(level=0, sort=False).sum() + half
    parts = counts / totals.reindex(counts.index, level=0)  # how the logarithms respond
    spread = (parts["new"] - parts["old"]).groupby(level=0, sort=False).std()
    variance = trials * spread**2 * (1 + trials * ratio)
    if n is not None:
        variance = variance.clip(lower=4 / totals.sum(axis=1) ** 2)
    effect = np.log(totals["new"] / totals["old"])
    wide = student.ppf((1 + LEVEL) / 2, trials - 1) * np.sqrt(variance)
    return pd.DataFrame(
        {
            "effect": effect,
            "variance": variance,
            "low": effect - wide,
            "high": effect + wide,
            "trials": trials,
        }
    )


@dataclass(frozen=True)
class Pooled:
    """A mean log ratio over data sets, with 95 % intervals."""

    mean: float
    low: float
    high: float
    p: float  # two-sided
    tau: float  # standard deviation of the data sets' true log ratios
    prediction: tuple[float, float] | None  # for another data set; None with fewer than three
    clusters: int

    @property
    def text(self) -> str:
        """The relative change in per cent.

        >>> Pooled(-0.07, -0.13, -0.01, p=0.02, tau=0.1, prediction=None, clusters=40).text
        '−6.8 % [−12.2, −1.0]'
        """
        mean, low, high = (signed(100 * math.expm1(x), 1) for x in (self.mean, self.low, self.high))
        return f"{mean} % [{low}, {high}]"

    @property
    def side(self) -> int:
        """-1 if the interval is below 0, 1 if it is above, 0 if it contains 0."""
        return (self.low > 0) - (self.high < 0)

    @property
    def largest_gain(self) -> float:
        """The largest relative reduction that the interval does not exclude."""
        return max(0.0, -math.expm1(self.low))

    def equivalence(self, bound: float = BOUND) -> float:
        """The p-value of two one-sided tests that the ratio is within 1 ± `bound`."""
        quantile = float(student.ppf((1 + LEVEL) / 2, self.clusters - 1))
        error = (self.high - self.low) / 2 / quantile
        if not error:
            return float(not math.log1p(-bound) < self.mean < math.log1p(bound))
        distances = (self.mean - math.log1p(-bound), math.log1p(bound) - self.mean)
        return max(float(student.sf(distance / error, self.clusters - 1)) for distance in distances)


def pool(effects: ArrayLike, variances: ArrayLike, clusters: Sequence[str] | None = None) -> Pooled:
    """Return the mean of effects by a random-effects model.

    The variance between data sets is estimated by restricted maximum likelihood, and the interval
    is that of Hartung and Knapp (2001). The prediction interval is that of Higgins, Thompson and
    Spiegelhalter (2009). Effects of one cluster are averaged first, with the variance they have
    if their errors are fully correlated.

    >>> pool([-0.1, 0.0, 0.1, -0.2], [0.01] * 4).text
    '−4.9 % [−22.5, +16.8]'
    """
    lines = pd.DataFrame({"effect": np.asarray(effects), "error": np.sqrt(variances)}, dtype=float)
    if not (lines["error"] > 0).all():
        raise ValueError("variances must be above 0: leave out data sets without any difference")
    if clusters is not None:
        lines = lines.groupby(np.asarray(clusters), sort=False).mean()
    if len(lines) < 2:
        raise ValueError("effects must be of at least two clusters, got one: add data sets")
    effect, variance, k = lines["effect"].to_numpy(), lines["error"].to_numpy() ** 2, len(lines)
    between = _between(effect, variance)
    weight = 1 / (variance + between)
    mean = float(weight @ effect / weight.sum())
    error = math.sqrt(weight @ (effect - mean) ** 2 / (k - 1) / weight.sum())
    half = float(student.ppf((1 + LEVEL) / 2, k - 1)) * error
    prediction = None
    if k > 2:
        wide = float(student.ppf((1 + LEVEL) / 2, k - 2)) * math.hypot(error, math.sqrt(between))
        prediction = (mean - wide, mean + wide)
    p = float(2 * student.sf(abs(mean) / error, k - 1)) if error else float(not mean)
    return Pooled(mean, mean - half, mean + half, p, math.sqrt(between), prediction, k)


def _between(effect: np.ndarray, variance: np.ndarray) -> float:
    """The variance between data sets by restricted maximum likelihood."""

    def loss(root: float) -> float:
        weight = 1 / (variance + root**2)
        mean = weight @ effect / weight.sum()
        fit = weight @ (effect - mean) ** 2
        return float(fit - np.log(weight).sum() + math.log(weight.sum()))

    most = 2 * float(np.ptp(effect))
    if not most:
        return 0.0
    found = minimize_scalar(loss, bounds=(0, most), method="bounded", options={"xatol": 1e-9})
    return float(found.x) ** 2 if found.fun < loss(0.0) else 0.0


def slope(
    x: ArrayLike, y: ArrayLike, data: Sequence[str], clusters: Sequence[str] | None = None
) -> PairedDifference:
    """Return the mean slope of y over x within data sets, e.g. of log ratios over log alpha.

    Every data set has its own line, fitted by least squares. Slopes are averaged within
    clusters, and Student's interval is that of the clusters' means.

    >>> slope([0, 1, 0, 1, 0, 1], [0, 1, 5, 7, 2, 5], list("aabbcc")).mean
    2.0
    """
    lines = pd.DataFrame({"x": np.asarray(x), "y": np.asarray(y)}, dtype=float)
    lines["data"] = list(data)
    lines["cluster"] = list(data if clusters is None else clusters)
    centred = lines.groupby("data")[["x", "y"]].transform(lambda values: values - values.mean())
    products = pd.DataFrame({"xy": centred.x * centred.y, "xx": centred.x**2})
    sums = products.groupby([lines["cluster"], lines["data"]], sort=False).sum()
    if not (sums.xx > 0).all():
        raise ValueError("x must have two values on every data set: leave out the others")
    return interval((sums.xy / sums.xx).groupby(level=0, sort=False).mean().tolist())


def regression(
    y: ArrayLike, regressors: pd.DataFrame, clusters: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return least-squares coefficients with cluster-robust intervals.

    An intercept is added. Variances are those of Bell and McCaffrey (2002, "CR2"), and Student's
    degrees of freedom are the clusters that exceed the coefficients.

    Returns:
        A line for each regressor with its `slope`, `low`, `high` and `p`.
    """
    design = np.column_stack([np.ones(len(regressors)), regressors.to_numpy(float)])
    response = np.asarray(y, dtype=float)
    names = np.arange(len(design)) if clusters is None else pd.factorize(np.asarray(clusters))[0]
    freedom = len(set(names.tolist())) - design.shape[1]
    if np.linalg.matrix_rank(design) < design.shape[1] or freedom < 1:
        raise ValueError(
            "regressors must be independent and fewer than the clusters: leave some of them out"
        )
    bread = np.linalg.inv(design.T @ design)
    coefficients = bread @ design.T @ response
    residual = response - design @ coefficients
    meat = np.zeros_like(bread)
    for name in range(names.max() + 1):
        part = design[names == name]
        values, vectors = np.linalg.eigh(np.eye(len(part)) - part @ bread @ part.T)
        root = np.where(values > 1e-10, values, np.inf) ** -0.5  # 0 where a cluster fits itself
        score = part.T @ (vectors * root) @ vectors.T @ residual[names == name]
        meat += np.outer(score, score)
    error = np.sqrt(np.diag(bread @ meat @ bread))
    half = float(student.ppf((1 + LEVEL) / 2, freedom)) * error
    table = {
        "slope": coefficients,
        "low": coefficients - half,
        "high": coefficients + half,
        "p": 2 * student.sf(np.abs(coefficients) / error, freedom),
    }
    return pd.DataFrame(table, index=["intercept", *regressors.columns]).drop("intercept")


def regrets(errors: pd.DataFrame, base: str, held_out: str) -> pd.DataFrame:
    """Return each setting's error minus the lowest of its data set, in per cent of the base's.

    Args:
        errors: Mean errors, a line for each setting and a column for each data set.
        base: The setting whose error is 100 per cent.
        held_out: Name of one more line: the regret on each data set of the setting with the least
            mean regret on the others.

    >>> errors = pd.DataFrame({"a": [4.0, 3.0], "b": [5.0, 6.0]}, index=["ERM", "mixup"])
    >>> regrets(errors, "ERM", "chosen elsewhere").loc["chosen elsewhere"].tolist()
    [25.0, 20.0]
    """
    regret = 100 * (errors - errors.min()) / errors.loc[base]
    others = [regret.drop(columns=name).mean(axis=1).to_numpy() for name in regret]
    of_chosen = [
        regret[name].iloc[means.argmin()] for name, means in zip(regret, others, strict=True)
    ]
    return pd.concat([regret, pd.DataFrame([of_chosen], [held_out], regret.columns)])


def nested_choice(validation: pd.DataFrame, families: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the setting that each family chooses in each trial, by its validation score.

    Args:
        validation: Scores, a line for each trial and a column for each setting; the lowest is
            chosen. A setting that failed has infinity, and one that was not run has NaN.
        families: The settings of each family, the simplest first: of equal scores the first wins.
            All must have equally many, as a larger family has a better best.

    Returns:
        A line for each trial and a column for each family; None if a setting of the family was
        not run in the trial, or all of them failed.
    """
    sizes = {name: len(settings) for name, settings in families.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"families must have equally many settings, got {sizes}: drop some")
    chosen = {}
    for name, settings in families.items():
        scores = validation[list(settings)].to_numpy(float)
        usable = ~np.isnan(scores).any(1) & np.isfinite(scores).any(1)
        best = np.where(np.isnan(scores), np.inf, scores).argmin(1)
        pairs = zip(best, usable, strict=True)
        chosen[name] = [settings[at] if usable else None for at, usable in pairs]
    return pd.DataFrame(chosen, index=validation.index, dtype=object)


def nested_best(
    validation: pd.DataFrame, test: pd.DataFrame, families: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return the test score of the setting that each family chooses in each trial.

    The arguments are those of `nested_choice`. `test` has the scores of networks that were
    trained on all training samples, a column for each setting. A score that is missing is NaN.
    """
    chosen = nested_choice(validation, families)
    scores = test.reindex(chosen.index)
    best = {
        name: [np.nan if one is None else scores[one].iloc[at] for at, one in enumerate(column)]
        for name, column in chosen.items()
    }
    return pd.DataFrame(best, index=chosen.index, dtype=float)
