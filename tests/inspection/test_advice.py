"""The advice, on data that leave no doubt and on readings made up."""

import math
from dataclasses import replace

import pytest
import torch

from kmixup import inspect
from kmixup.inspection.advice import LARGEST, SMALLEST, TOLERATED, advise
from kmixup.inspection.halfway import Halfway
from kmixup.inspection.readings import Reading
from kmixup.measured import Measured


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def inspected(x, y=None, **settings):
    return inspect(x, y, generator=seeded(), largest_k=64, **settings)


def coin(n, seed=1):
    return torch.randint(2, (n,), generator=seeded(seed))


def spiral(n=1500):
    turn = (1 + 9 * math.pi**2 * torch.rand(n, generator=seeded(2))).sqrt()
    arm = coin(n)
    points = torch.stack([turn * turn.cos(), turn * turn.sin()], 1) * (2 * arm - 1)[:, None]
    return points + 0.05 * torch.randn(n, 2, generator=seeded(3)), arm


def test_a_thin_spiral_wants_a_large_k():
    inspection = inspected(*spiral())
    assert inspection.at(1).halfway.contradiction.value > 0.15
    assert inspection.at(64).halfway.contradiction.value < 0.02
    assert inspection.advice.k >= 32
    assert inspection.advice.alpha > 1
    assert inspection.advice.warning is None


def test_two_far_clusters_want_a_large_k_that_keeps_points_near_them():
    labels = coin(800)
    inspection = inspected(
        torch.randn(800, 2, generator=seeded()) + 100.0 * labels[:, None], labels
    )
    assert inspection.at(1).halfway.distance.value > 2 * inspection.at(64).halfway.distance.value
    assert inspection.advice.k >= 32
    assert inspection.advice.warning is None


def test_one_gaussian_cut_in_two_is_left_to_plain_mixup():
    x = torch.randn(800, 2, generator=seeded())
    advice = inspected(x, (x[:, 0] > 0).long()).advice
    assert (advice.k, advice.alpha, advice.warning) == (1, 1.0, None)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("d", [2, 50])
def test_random_labels_get_a_warning_that_mixup_will_not_help(seed, d):
    inspection = inspected(torch.rand(300, d, generator=seeded(seed)), coin(300, seed + 100))
    assert "mixup will not help" in inspection.advice.warning
    assert inspection.advice.alpha == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("d", [2, 50])
def test_with_too_few_samples_the_advice_cannot_tell(seed, d):
    advice = inspected(torch.rand(60, d, generator=seeded(seed)), coin(60, seed + 100)).advice
    assert advice.answer == "Cannot tell with 60 samples"
    assert (advice.k, advice.alpha, advice.warning) == (1, 1.0, None)
    assert not advice.mixes
    assert "could be seen only if less than" in advice.reasons[0]
    few = inspected(torch.rand(8, d, generator=seeded(seed)), torch.arange(8) % 2).advice
    assert "no link between labels and distances could be seen" in few.reasons[0]


def test_a_clear_link_is_seen_with_few_samples():
    labels = coin(60)
    advice = inspected(torch.randn(60, 2, generator=seeded()) + 100.0 * labels[:, None], labels)
    assert advice.advice.doubt is None


def test_a_thousand_samples_cannot_tell_of_a_class_that_is_rare():
    rare = (torch.arange(1000) % 71 == 0).long()
    advice = inspected(torch.rand(1000, 5, generator=seeded()), rare).advice
    assert advice.answer == "Cannot tell with 1,000 samples"
    assert "above all of the rarer classes" in advice.changes


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.3, 0.4])
def test_the_warning_comes_only_where_a_third_less_disagreement_would_have_been_seen(share):
    """The least share of other classes that is seen is three standard errors below chance."""
    chance, samples = 0.5, 150
    near = reading(2, crossing=chance - share, disagreement=chance - share)
    first = reading(1, crossing=chance, disagreement=chance)
    few, many = (
        advise([first, near], samples=n, alpha=1.0, batch_size=128) for n in (samples, 10_000)
    )
    noise = 3 * math.sqrt(2 * chance * (1 - chance) / samples)
    assert chance / 3 < noise
    assert (few.doubt is None) == (share > noise)
    assert few.warning is None
    assert many.doubt is None
    assert (many.warning is None) == (share > 0.05)


def test_the_caveat_is_read_with_the_advice():
    advice = advised(reading(16))
    lines = str(advice).splitlines()
    assert lines == ["k = 16, alpha = 2.", *advice.reasons, advice.changes, advice.caveat]
    assert "a guess from the geometry" in advice.caveat
    assert "validation samples" in advice.caveat
    assert str(replace(advice, alpha=0.0)).startswith("Do not mix.")


@pytest.mark.parametrize("d", [2, 50])
def test_labels_that_go_with_one_of_many_features_get_no_warning(d):
    x = torch.rand(1500, d, generator=seeded())
    assert inspected(x, (x[:, 0] > 0.5).long()).advice.warning is None


def reading(k, *, distance=1.0, contradiction=0.0, disagreement=0.0, alpha=2.0, crossing=0.3):
    sure = Measured(crossing, 0.001)
    halfway = Halfway(
        Measured(distance, 0.01), Measured(contradiction, 0.002), Measured(disagreement, 0.002)
    )
    ratio = Measured(0.5, 0.01)
    return Reading(k, ratio, ratio, alpha, alpha < 1e3, math.inf, sure, 0.1, halfway)


def advised(*readings, batch_size=128):
    first = reading(1, crossing=0.5, distance=2.0, contradiction=0.2, alpha=1.0)
    return advise([first, *readings], samples=1000, alpha=1.0, batch_size=batch_size)


def test_the_smallest_k_that_is_as_good_as_the_best_is_taken():
    ks = [reading(4, contradiction=0.011), reading(16, contradiction=0.01), reading(64)]
    assert advised(*ks).k == 64
    assert advised(*ks[:2]).k == 4


def test_distances_decide_where_contradictions_do_not():
    assert advised(reading(4, distance=1.5), reading(16, distance=1.05), reading(32)).k == 16


def test_two_sets_of_k_fit_into_a_batch():
    advice = advised(reading(8, contradiction=0.1), reading(32), batch_size=32)
    assert advice.k == 8
    assert "batches of 64 samples or more" in advice.changes
    assert "or more" not in advised(reading(8), batch_size=16).changes


def test_alpha_is_calibrated_and_limited_by_contradictions():
    assert advised(reading(16, alpha=2.345)).alpha == 2.3
    assert advised(reading(16, alpha=1e3)).alpha == LARGEST
    assert advised(reading(16, alpha=50.0)).alpha == LARGEST
    limited = [advised(reading(16, contradiction=c)).alpha for c in (0.05, 0.1, 0.15)]
    assert 2 > limited[0] > limited[1] > limited[2] > SMALLEST
    lone = reading(1, crossing=0.4, contradiction=0.9, alpha=1.0)
    signal = reading(2, crossing=0.1, contradiction=0.9)
    assert advise([lone, signal], samples=1000, alpha=1.0, batch_size=128).alpha == SMALLEST


def test_the_limited_alpha_mixes_as_many_samples_into_contradictions_as_is_tolerated():
    from scipy.stats import beta

    alpha = advised(reading(16, contradiction=0.12, disagreement=0.02)).alpha
    strongly = beta(alpha, alpha).cdf(0.75) - beta(alpha, alpha).cdf(0.25)
    assert 0.1 * strongly == pytest.approx(TOLERATED, rel=0.1)  # alpha has two digits


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ([reading(16)], ("At k = 16 points half-way", "as much as mixup with alpha = 1")),
        ([reading(16, alpha=1e3)], ("no larger one can be used", "No alpha perturbs as much")),
        ([reading(16, alpha=50.0)], ("0.00% of them", "for which it takes 50")),
        ([reading(16, contradiction=0.1)], ("10% of them", "as contradictions allow")),
        ([reading(16), reading(32)], ("a larger one gains little", "50% of the squared distance")),
    ],
)
def test_reasons_say_what_decided(readings, words):
    for sentence, word in zip(advised(*readings).reasons, words, strict=True):
        assert word in sentence
        assert sentence.endswith(".")
        assert sentence.count(". ") == 0


def test_samples_that_coincide_fall_back_on_plain_mixup():
    advice = inspect(torch.tensor([[0.0], [1.0]] * 8), generator=seeded()).advice
    assert (advice.k, advice.alpha) == (1, 1.0)
    assert "16 samples" in advice.reasons[0]
    assert advice.answer == "Cannot tell from samples that coincide"
