import numpy as np
import pytest

from kmixup import vicinal_dataset
from oracles import scipy_optimum

X = np.random.default_rng(0).normal(size=(60, 3))
NAMES = np.array(["ant", "bee", "cow"])[np.arange(60) % 3]


def test_soft_labels_have_a_column_for_every_class_and_sum_to_one():
    points, soft = vicinal_dataset(X, NAMES, k=8, size=100, seed=0)
    assert points.shape == (100, 3)
    assert soft.shape == (100, 3)
    np.testing.assert_allclose(soft.sum(1), 1)


def test_hard_labels_and_weights_say_the_same_as_soft_ones():
    points, soft = vicinal_dataset(X, NAMES, k=8, size=100, seed=0)
    twice, labels, weight = vicinal_dataset(X, NAMES, k=8, size=100, seed=0, hard=True)
    assert labels.dtype == NAMES.dtype
    np.testing.assert_array_equal(twice, np.concatenate([points, points]))
    np.testing.assert_allclose(weight[:100] + weight[100:], 1)
    one_hot = (labels[:, None] == np.unique(NAMES)).astype(float)
    np.testing.assert_allclose(weight[:100, None] * one_hot[:100] + weight[100:, None] * one_hot[100:], soft)  # fmt: skip # noqa: E501


def test_points_lie_between_optimally_matched_samples():
    index = np.arange(60.0)  # the target tells which samples were mixed
    _, own_and_partner, weight = vicinal_dataset(X, index, k=6, size=60, seed=1, hard=True)
    own, partner = own_and_partner.astype(int).reshape(2, 60)
    points = vicinal_dataset(X, index, k=6, size=60, seed=1)[0]
    lam = weight[:60, None]
    np.testing.assert_allclose(points, lam * X[own] + (1 - lam) * X[partner], atol=1e-12)
    for block in range(0, 60, 6):
        a, b = X[own[block : block + 6]], X[partner[block : block + 6]]
        cost = ((a[:, None] - b[None]) ** 2).sum(2)
        assert np.trace(cost) == pytest.approx(scipy_optimum(cost))
        assert len(set(own[block : block + 6])) == 6
    assert len(np.unique(lam)) == 10


def test_lam_may_differ_for_each_sample():
    _, _, weight = vicinal_dataset(X, NAMES, k=6, size=50, lam_per="sample", hard=True, seed=0)
    assert len(np.unique(weight[:50])) == 50


def test_float_targets_are_interpolated():
    _, y = vicinal_dataset(X, X[:, :2], k=4, size=30, seed=0)
    points, _ = vicinal_dataset(X, X[:, :2], k=4, size=30, seed=0)
    np.testing.assert_allclose(y, points[:, :2], atol=1e-12)


def test_the_seed_decides_everything_and_the_default_size_is_that_of_the_data():
    first, again, other = (vicinal_dataset(X, NAMES, k=8, seed=s)[0] for s in (1, 1, 2))
    assert first.shape == X.shape
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (vicinal_dataset(X, NAMES, k=8)[0] != vicinal_dataset(X, NAMES, k=8)[0]).any()


def test_lists_integers_and_float32_are_welcome():
    points, soft = vicinal_dataset([[0], [1], [8], [9]], [0, 0, 1, 1], k=2, size=3, seed=0)
    assert points.dtype == np.float64
    assert soft.shape == (3, 2)
    assert vicinal_dataset(X.astype(np.float32), NAMES, k=2, seed=0)[0].dtype == np.float32


def test_arrays_that_torch_does_not_take_are_welcome():
    plain = vicinal_dataset(X, NAMES, k=4, seed=0)[0]
    fixed = X.copy()
    fixed.setflags(write=False)
    np.testing.assert_array_equal(vicinal_dataset(fixed, NAMES, k=4, seed=0)[0], plain)
    backwards = X[::-1].copy()[::-1]
    np.testing.assert_array_equal(vicinal_dataset(backwards, NAMES, k=4, seed=0)[0], plain)
    for dtype in (">f8", np.longdouble):
        points = vicinal_dataset(X.astype(dtype), NAMES, k=4, seed=0)[0]
        np.testing.assert_array_equal(points, plain)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"y": NAMES[:5]}, ValueError, "X and y must have the same length, got 60 and 5"),
        ({"k": 61}, ValueError, "k must be at most the number of samples, 60, got 61"),
        ({"k": 0}, ValueError, "k must be a whole number, at least 1, got 0"),
        ({"size": 0}, ValueError, "size must be a whole number, at least 1, got 0"),
        ({"size": 6.5}, ValueError, "size must be a whole number, at least 1, got 6.5"),
        ({"lam_per": "batch"}, ValueError, 'lam_per must be "block" or "sample"'),
        ({"y": np.eye(60, dtype=int)}, ValueError, "y must have one class for each sample, "
         r"got int64 of shape \(60, 60\): one-hot labels are y.astype\(float\)"),
        ({"X": NAMES[:, None]}, TypeError, "X must be numeric, got .*: encode its columns first"),
        ({"X": X + 1j}, TypeError, "X must be numeric, got complex128: encode its columns first"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        vicinal_dataset(**({"X": X, "y": NAMES} | arguments))
