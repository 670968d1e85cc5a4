"""Numbers of NumPy and torch count as numbers, booleans and strings do not, in every argument."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from kmixup import (
    Beta,
    KMixup,
    LocalMixup,
    Memory,
    Optimal,
    Sometimes,
    calibrate,
    inspect,
    vicinal_dataset,
)
from kmixup._checks import check_number, check_probability, check_whole, did_you_mean

X, Y = torch.rand(512, 3), torch.randint(5, (512,))


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.int16, torch.tensor])
def test_a_whole_number_of_any_kind_becomes_an_int(kind: Callable[[int], Any]) -> None:
    assert type(check_whole("k", kind(16))) is int
    assert type(Optimal(kind(16)).k) is int
    _, y = KMixup(kind(16), 0.2, kind(5), ignore_index=kind(4))(X, Y)
    assert y.shape == (512, 5)
    assert calibrate(X, kind(4)).k == 4
    assert len(Memory(KMixup(4), kind(16))) == 0


def test_numbers_of_numpy_work_in_functions_on_whole_data_sets() -> None:
    k, seed = np.uint8(4), np.int64(3)
    points, _ = vicinal_dataset(X, Y, k=k, alpha=np.float32(0.2), size=np.int16(9), seed=seed)
    assert points.shape == (9, 3)
    assert [reading.k for reading in inspect(X, largest_k=k, size=np.int64(64)).readings] == [
        1, 2, 4,
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.float16, torch.tensor])
def test_a_number_of_any_kind_becomes_a_float(kind: Callable[[float], Any]) -> None:
    assert type(check_number("alpha", kind(0.5))) is float
    assert type(check_probability("prob", kind(0.5))) is float
    assert type(Beta(kind(0.5)).alpha) is float
    assert KMixup(4, kind(0.5), prob=kind(0.5), labels=kind(0.5)).prob == 0.5
    assert Sometimes(KMixup(4), kind(0.5)).prob == 0.5
    assert LocalMixup(scale=kind(0.5)).scale == 0.5


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: KMixup(k=True), "k must be a whole number, at least 1, got True"),
        (lambda: calibrate(X, True), "k must be a whole number, at least 1, got True"),
        (lambda: calibrate(X, 2.0), "k must be a whole number, at least 1, got 2.0"),
        (lambda: Optimal(np.bool_(True)), "k must be a whole number, at least 1, got np.True_"),
        (lambda: Memory(KMixup(1), True), "size must be a whole number, at least 1, got True"),
        (lambda: KMixup(alpha=True), "alpha must be a finite number, 0 .no mixing. or more, got T"),
        (lambda: KMixup(alpha="1"), "alpha must be a finite number, 0 .no mixing. or more, got '1"),
        (lambda: KMixup(prob=True), r"prob must be a probability in \[0, 1\], got True"),
        (lambda: KMixup(labels="1"), "labels must be a finite number, got '1'"),
        (lambda: KMixup(num_classes=-1), "num_classes must be a whole number, at least 1, got -1"),
        (lambda: LocalMixup(scale=0), "scale must be a finite number above 0, got 0"),
    ],
)
def test_what_is_no_number_is_named_with_its_argument(
    build: Callable[[], Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        build()


def test_unknown_names_get_the_nearest_ones_or_the_first() -> None:
    assert did_you_mean("Trian", ["train", "tune"]) == "did you mean 'train'?"
    assert did_you_mean("x", []) == "there are none"
    assert did_you_mean("x", map(str, range(28))).endswith("18, 19 and 8 more")
