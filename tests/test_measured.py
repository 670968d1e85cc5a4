import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import sem

from kmixup._measured import Measured, standard_error

NUMBERS = st.floats(-1e6, 1e6)


@given(st.lists(NUMBERS, min_size=2, max_size=50))
def test_the_error_is_that_of_scipy(numbers):
    mean = Measured.of(numbers)
    assert mean.value == pytest.approx(np.mean(numbers), abs=1e-9)
    assert mean.error == pytest.approx(sem(numbers), abs=1e-9)


def test_one_sample_has_an_unknown_error():
    mean = Measured.of([3.0])
    assert mean.value == 3
    assert math.isnan(mean.error)


@pytest.mark.parametrize("samples", [[], 3.0, [[1.0, 2.0]]])
def test_anything_but_a_list_of_numbers_is_refused(samples):
    with pytest.raises(ValueError, match=r"samples must be a list of at least one number, got"):
        Measured.of(samples)


def test_another_unit_scales_the_figure_and_its_error():
    assert Measured(6.0, 1.5) / 3 == Measured(2.0, 0.5)


def test_errors_of_arrays_are_those_of_their_entries():
    samples = np.random.default_rng(0).normal(size=(20, 2, 3))
    assert standard_error(samples) == pytest.approx(sem(samples, 0))
    assert np.isnan(standard_error(samples[:1])).all()
    assert standard_error(samples[:1]).shape == (2, 3)
