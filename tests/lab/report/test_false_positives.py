"""The procedure of `kmixup compare` keeps its level, whatever the number of settings."""

import runpy
from pathlib import Path

import pandas as pd
from scipy.stats import binom

FOLDER = Path(__file__).parents[3] / "results/false-positives"


def test_a_sample_of_the_published_simulation_has_no_more_false_positives_than_six_per_cent():
    script = runpy.run_path(str(FOLDER / "simulate.py"))
    design, n = script["DESIGNS"][1], 60
    found = script["positives"](design, n, seed=1)
    assert binom.sf(found - 1, n, 0.06) > 0.001
    assert len({*script["SIZES"].values()}) == 3


def test_no_published_rate_is_above_six_per_cent():
    rates = pd.read_csv(FOLDER / "rates.csv")
    assert (rates.experiments == 10_000).all()
    assert (rates.rate == rates.positive / rates.experiments).all()
    assert (rates.rate <= 0.06).all()
