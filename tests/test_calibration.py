import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from torch.utils.data import Dataset, TensorDataset

from kmixup import Beta, calibrate
from kmixup.calibration import alpha_for
from oracles import literal_algorithm_1, literal_search, scipy_optimum, seeded, squared_differences


def spiral(n: int = 400) -> torch.Tensor:
    t = torch.linspace(1, 9, n)
    noise = torch.randn(n, 2, generator=seeded())
    return torch.stack([t * t.cos(), t * t.sin()], 1) + 0.1 * noise


X = spiral()


@pytest.mark.parametrize("alpha", [0.1, 1.0, 2.0])
def test_the_search_for_alpha_agrees_with_algorithm_1(alpha):
    """Steps of a factor c overshoot by less than that factor, up to sampling error.

    One step's standard error is below 0.34 % at 200,000 draws, and the literal search looks
    again at every alpha on its way: 4 standard errors allow for that.
    """
    exact, reachable = alpha_for(Beta(alpha).mean_square_step, 0.7, alpha, 1e3)
    literal = literal_search(1.0, 0.7, alpha, trials=200_000, c=1.01)
    assert reachable
    low, middle, high = (Beta(a).mean_square_step for a in (exact, literal, 1.01 * exact))
    noise = 1 + 4 * 0.0034
    assert low / noise <= middle <= high * noise


def test_calibration_agrees_with_algorithm_1_on_data():
    answer = calibrate(X, 8, 0.3, relative_error=0.002, generator=seeded())
    literal = literal_algorithm_1(X, 8, 0.3, trials=20_000)
    # 20,000 pairs leave the mean squared distance an error of 0.7 %, 2,500 matches one of 1 %
    literal_xi = math.sqrt(Beta(literal).mean_square_step * answer.square_distance)
    assert literal_xi == pytest.approx(answer.xi, rel=0.03)


@pytest.mark.parametrize("disjoint", [False, True])
def test_the_random_distance_is_exact(disjoint):
    x = torch.randn(60, 7) * 3 + 1e4
    gaps = squared_differences(x, x)
    expected = gaps.sum() / (60 * 59 if disjoint else 60 * 60)
    answer = calibrate(x, 1, 0.5, disjoint=disjoint)
    assert answer.square_distance_1 == pytest.approx(expected, rel=1e-9)


def test_the_matched_distance_has_the_error_it_states():
    x = spiral(100)
    answers = [
        calibrate(x, 8, 0.3, relative_error=0.05, generator=seeded(seed)) for seed in range(40)
    ]
    assert all(f.standard_error <= 0.05 * f.square_distance for f in answers)
    rng = np.random.default_rng(0)
    draws = [
        scipy_optimum(
            squared_differences(*(x[rng.choice(100, 8, replace=False)] for _ in range(2)))
        )
        / 8
        for _ in range(4000)
    ]
    truth, own_error = np.mean(draws), np.std(draws) / math.sqrt(4000)
    scores = [
        (f.square_distance - truth) / math.hypot(f.standard_error, own_error) for f in answers
    ]
    assert np.mean(scores) == pytest.approx(0, abs=0.7)
    assert 0.6 < np.std(scores) < 1.5


def test_the_alpha_found_reaches_the_xi_aimed_at():
    answer = calibrate(spiral(), 16, 0.05, generator=seeded())
    assert answer.reachable
    assert answer.xi == pytest.approx(answer.target_xi, rel=1e-9)
    assert answer.target_xi == pytest.approx(
        math.sqrt(Beta(0.05).mean_square_step * answer.square_distance_1)
    )
    assert answer.alpha > 0.05


def test_iris_shows_the_difference_between_independent_and_disjoint_subsets():
    x = torch.from_numpy(load_iris().data[torch.randperm(150, generator=seeded())[:100].numpy()])
    independent, disjoint = (
        calibrate(x, 16, 0.1, disjoint=d, relative_error=0.01, generator=seeded())
        for d in (False, True)
    )
    assert independent.square_distance < disjoint.square_distance
    assert independent.alpha > 1.1 * disjoint.alpha


@pytest.mark.parametrize("alpha", [0, 0.3, 7])
def test_k_1_returns_alpha_itself_and_alpha_zero_stays_zero(alpha):
    answer = calibrate(spiral(), 1, alpha)
    assert answer.alpha == alpha
    assert answer.xi == answer.target_xi
    assert (answer.standard_error, answer.blocks, answer.reachable) == (0, 0, True)
    answer = calibrate(spiral(), 8, 0)
    assert (answer.alpha, answer.xi, answer.reachable) == (0, 0, True)


def test_a_target_out_of_reach_is_said_and_answered_with_the_cap():
    with pytest.warns(UserWarning, match=r"out of reach at k=32: alpha=1000, the cap, gives xi="):
        answer = calibrate(spiral(), 32, 10.0, generator=seeded())
    assert (answer.alpha, answer.reachable) == (1000, False)
    assert answer.xi < answer.target_xi


def test_partners_matched_by_the_distance_are_a_little_farther_apart_in_squares():
    squared, plain = (
        calibrate(spiral(), 16, 0.1, metric=metric, generator=seeded())
        for metric in ("sqeuclidean", "euclidean")
    )
    assert 1 < plain.square_distance / squared.square_distance < 1.5
    with pytest.raises(ValueError, match='metric must be "sqeuclidean" or "euclidean" here, got'):
        calibrate(spiral(), 16, metric="cosine")


def test_a_generator_decides_everything():
    first, again, other = (calibrate(X, 8, 0.3, generator=seeded(s)) for s in (1, 1, 2))
    assert first == again != other


class Pairs(Dataset):
    """A data set of (sample, label)."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], 0


class Stacked(Pairs):
    """The same, read many items at a time as tensors of samples."""

    def __getitems__(self, indices):
        return self.x[indices]


FORMS = {
    "tensor": lambda x: x,
    "array": lambda x: x.numpy(),
    "images": lambda x: x.view(-1, 1, 2, 1),
    "TensorDataset": lambda x: TensorDataset(x, torch.zeros(len(x))),
    "map-style": lambda x: Pairs(x.numpy()),
    "stacked": Stacked,
    "requires grad": lambda x: x.requires_grad_(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_the_data_gives_the_same_answer(form):
    expected = calibrate(X, 8, 0.3, generator=seeded())
    assert calibrate(form(X.clone()), 8, 0.3, generator=seeded()) == expected


def test_the_data_are_read_in_chunks(monkeypatch):
    import kmixup.calibration as module

    expected = calibrate(X, 4, 0.3, relative_error=0.1, generator=seeded())
    monkeypatch.setattr(module, "CHUNK", 100)
    largest = 0
    read = module._Samples.__getitem__

    def watched(self, index):
        nonlocal largest
        largest = max(largest, len(index))
        return read(self, index)

    monkeypatch.setattr(module._Samples, "__getitem__", watched)
    answer = calibrate(X, 4, 0.3, relative_error=0.1, generator=seeded())
    assert largest <= 50
    assert answer.square_distance_1 == pytest.approx(expected.square_distance_1, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 401}, "k must be a whole number from 1 to 400, for 400 samples, got 401"),
        ({"k": 201, "disjoint": True}, "from 1 to 200, for 400 samples in disjoint subsets"),
        ({"k": 0}, "got 0"),
        ({"k": 2.0}, "got 2.0"),
        ({"alpha": -1}, "alpha must be a finite number"),
        ({"alpha": 2e3}, "alpha must be at most 1000, the cap, got 2000"),
        ({"relative_error": 0}, "relative_error must be a fraction between 0 and 1, .*, got 0"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        calibrate(X, **arguments)


def test_the_first_sample_that_is_not_finite_is_named():
    x = X.clone()
    x[[30, 7]] = math.nan
    with pytest.raises(ValueError, match="x must be finite, sample 7 has a NaN or an infinity"):
        calibrate(x, 4, 1.0)


def test_data_of_another_kind_are_refused():
    with pytest.raises(TypeError, match="must be a tensor, an array or a data set.*got generator"):
        calibrate((i for i in range(9)), 2)
    with pytest.raises(ValueError, match="x must have at least one feature, its samples have none"):
        calibrate(torch.zeros(10, 0), 2)
    with pytest.raises(TypeError, match="items of the data set must be tensors or arrays.*got str"):
        calibrate(["a", "b", "c"], 2)


def test_a_data_set_may_require_gradients():
    learnt = calibrate(TensorDataset(X.clone().requires_grad_()), 4, generator=seeded())
    assert learnt == calibrate(TensorDataset(X), 4, generator=seeded())
