"""Scores against independent oracles, and networks that come back as they were."""

import math
from functools import partial

import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from torch import nn
from torch.nn.functional import cross_entropy

from kmixup.lab.evaluate import shifts
from kmixup.lab.evaluate.scores import (
    calibration_error,
    score_classes,
    score_logits,
    temperature_of,
)
from kmixup.lab.evaluate.shifts import score_under

MEAN, STD = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, -0.1, 0.3])


def as_is(x):
    return x


def normalise(x):
    """A negative scale turns the gradient round: an attack that skips it goes astray."""
    return (x - MEAN) / STD


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def linear():
    torch.manual_seed(0)
    return nn.Linear(3, 4)


@pytest.fixture
def pixels():
    return torch.rand(200, 3, generator=seeded(1)), torch.randint(4, (200,), generator=seeded(2))


@pytest.fixture
def net():
    """Parts in different modes, one of them with running statistics, one with chance."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 4)
    )
    net.train()
    net[1].eval()
    return net


class Broken(nn.Module):
    def forward(self, x):
        raise RuntimeError("broken on purpose")


def under_noise(net, x, y, eps=8, generator=None):
    generator = generator or seeded()
    return score_under("noise", net, x, y, eps=eps, generator=generator, normalise=normalise)


def under_fgsm(net, x, y, eps=8, normalise=normalise):
    return score_under("fgsm", net, x, y, eps=eps, normalise=normalise, generator=seeded())


clean = partial(under_fgsm, eps=0)
every_evaluation = pytest.mark.parametrize("evaluate", [clean, under_noise, under_fgsm])


# from logits


def test_scores_agree_with_oracles(linear, pixels):
    x, y = pixels
    logits = linear(normalise(x)).detach()
    confidence, chosen = logits.double().softmax(1).max(1)
    scores = score_classes(logits, y, majority=2)
    assert scores.error == sum(int(a) != int(b) for a, b in zip(chosen, y, strict=True)) / 200
    assert scores.nll == pytest.approx(cross_entropy(logits, y).item(), rel=1e-5)
    correct = (chosen == y).tolist()
    assert scores.ece == pytest.approx(brute_force_ece(confidence.tolist(), correct, 15), abs=1e-6)
    assert scores.baseline == float((y != 2).double().mean())
    assert scores.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, chosen))
    shares = logits.double().softmax(1).numpy()
    areas = [roc_auc_score((y == label).numpy(), shares[:, label]) for label in range(4)]
    assert scores.auc == pytest.approx(sum(areas) / 4)
    assert scores.answers == len(set(chosen.tolist()))


def test_auc_is_not_defined_for_one_class():
    assert score_classes(torch.rand(5, 2), torch.zeros(5).long(), majority=0).auc is None


def test_nll_of_a_uniform_prediction_is_the_log_of_the_number_of_classes():
    assert score_logits(torch.zeros(6, 5), torch.arange(6) % 5).nll == pytest.approx(math.log(5))


def test_nll_stays_finite_where_the_probability_of_the_true_class_underflows():
    assert score_logits(torch.tensor([[2000.0, 0.0]]), torch.tensor([1])).nll == 2000.0


def test_scores_are_plain_floats_that_cannot_be_changed(linear, pixels):
    scores = clean(linear, *pixels)
    assert all(type(value) is float for value in (scores.error, scores.nll, scores.ece))
    with pytest.raises(AttributeError):
        scores.error = 0.0


def test_logits_that_are_nan_raise():
    with pytest.raises(ValueError, match="got NaN for 1 of the 2 samples"):
        score_logits(torch.tensor([[0.0, math.nan], [0.0, 1.0]]), torch.zeros(2).long())


# expected calibration error


def brute_force_ece(confidence, correct, bins):
    total, n = 0.0, len(confidence)
    for i in range(bins):
        inside = [
            j for j, c in enumerate(confidence) if i / bins < c <= (i + 1) / bins or (c == i == 0)
        ]
        if inside:
            accuracy = sum(correct[j] for j in inside) / len(inside)
            mean = sum(confidence[j] for j in inside) / len(inside)
            total += len(inside) / n * abs(accuracy - mean)
    return total


@pytest.mark.parametrize("bins", [1, 2, 10, 15, 40])
def test_ece_agrees_with_a_loop_over_bins(bins):
    confidence = torch.rand(500, generator=seeded(bins), dtype=torch.float64)
    correct = torch.rand(500, generator=seeded(bins + 1), dtype=torch.float64) < confidence**2
    expected = brute_force_ece(confidence.tolist(), correct.tolist(), bins)
    assert calibration_error(confidence, correct, bins=bins) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("confidence", "correct", "bins", "ece"),
    [
        ([0.5] * 4 + [0.75] * 4, [1, 1, 0, 0, 1, 1, 1, 0], 15, 0),
        ([1.0] * 9, [1] * 9, 15, 0),
        ([1.0] * 9, [0] * 9, 15, 1),
        ([0.5, 0.4], [1, 0], 2, abs(0.5 - 0.4) / 2),  # an edge belongs to the bin below
        ([0.55, 0.95], [1, 0], 1, 0.25),  # opposite gaps cancel inside a bin
        ([0.55, 0.95], [1, 0], 10, (0.45 + 0.95) / 2),  # and not between bins
    ],
)
def test_ece_is_the_gap_between_confidence_and_accuracy(confidence, correct, bins, ece):
    confidence = torch.tensor(confidence, dtype=torch.float64)
    got = calibration_error(confidence, torch.tensor(correct).bool(), bins=bins)
    assert got == pytest.approx(ece)


# under a shift


@every_evaluation
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_scores_do_not_depend_on_the_batch_size(evaluate, batch_size, net, pixels, monkeypatch):
    whole = evaluate(net, *pixels)
    monkeypatch.setattr(shifts, "BATCH", batch_size)
    parts = evaluate(net, *pixels)
    assert parts.error == whole.error
    assert parts.nll == pytest.approx(whole.nll, rel=1e-6)
    assert parts.ece == pytest.approx(whole.ece, rel=1e-5)


def test_noise_depends_on_its_generator_only(linear, pixels):
    state = torch.get_rng_state()
    generator = seeded(5)
    first = under_noise(linear, *pixels, 30, generator)
    assert under_noise(linear, *pixels, 30, seeded(5)) == first
    assert under_noise(linear, *pixels, 30, seeded(6)) != first
    assert under_noise(linear, *pixels, 30, generator) != first
    assert torch.equal(torch.get_rng_state(), state)


def test_a_shift_of_zero_gives_the_clean_scores(linear, pixels):
    x, y = pixels
    expected = score_logits(linear(normalise(x)).detach(), y)
    assert under_noise(linear, x, y, eps=0) == expected
    assert under_fgsm(linear, x, y, eps=0) == expected


def test_noise_has_the_standard_deviation_of_eps_in_pixels_and_is_not_clipped():
    seen = []

    def spy(x):
        seen.append(x)
        return x

    x, y = torch.ones(50, 400), torch.zeros(50).long()
    score_under("noise", nn.Identity(), x, y, eps=8, generator=seeded(), normalise=spy)
    noise = torch.cat(seen) - x
    assert float(noise.std()) == pytest.approx(8 / 255, rel=0.03)
    assert float(noise.mean()) == pytest.approx(0, abs=1e-3)
    assert float(torch.cat(seen).max()) > 1


def test_error_under_noise_agrees_with_the_normal_tail():
    # class 1 wherever the pixel is above 1/2, and pixels one standard deviation below
    class Threshold(nn.Module):
        def forward(self, x):
            return torch.cat([torch.zeros_like(x), x - 0.5], dim=1)

    x, y = torch.full((20_000, 1), 0.5 - 10 / 255), torch.zeros(20_000).long()
    scores = score_under("noise", Threshold(), x, y, eps=10, generator=seeded(), normalise=as_is)
    tail = 0.5 * math.erfc(1 / math.sqrt(2))
    assert scores.error == pytest.approx(tail, abs=5 * math.sqrt(tail / 20_000))


def attacked_by_hand(weight, bias, x, y, eps):
    """The gradient of the loss of a linear classifier, class by class, in float64."""
    weight, bias, x = weight.double(), bias.double(), x.double()
    mean, std = MEAN.double(), STD.double()
    attacked = []
    for sample, label in zip(x, y, strict=True):
        share = (((sample - mean) / std) @ weight.T + bias).exp()
        share = share / share.sum()
        share[label] -= 1
        direction = torch.sign((share @ weight) / std)
        moved = sample + eps / 255 * direction
        attacked.append(moved.clip(0, 1))
    return torch.stack(attacked)


@pytest.mark.parametrize("eps", [1, 8, 60])
def test_fgsm_on_a_linear_classifier_is_the_closed_form(eps, linear, pixels):
    x, y = pixels
    expected = attacked_by_hand(linear.weight.detach(), linear.bias.detach(), x, y, eps)
    got = shifts.SHIFTS["fgsm"].perturb(linear, normalise, eps / 255, None)(x, y)
    assert torch.allclose(got.double(), expected, atol=1e-6)
    error = float((linear(normalise(expected.float())).argmax(1) != y).double().mean())
    assert under_fgsm(linear, x, y, eps=eps).error == pytest.approx(error)


def test_a_margin_in_pixels_decides_whom_fgsm_can_reach():
    # logits ± w·z with z = (x - 1/2) / (1/4): class 1 above 1/2, whatever the scale
    net = nn.Linear(1, 2)
    net.load_state_dict({"weight": torch.tensor([[-3.0], [3.0]]), "bias": torch.zeros(2)})
    x = torch.tensor([[0.5 - 3 / 255], [0.5 - 7 / 255], [0.5 + 3 / 255], [0.5 + 7 / 255]])
    y = torch.tensor([0, 0, 1, 1])
    errors = [
        under_fgsm(net, x, y, eps=eps, normalise=lambda x: (x - 0.5) / 0.25).error
        for eps in (0, 2, 5, 8)
    ]
    assert errors == [0, 0, 0.5, 1]


def test_the_clip_takes_its_share_of_the_attack():
    # both pixels count alike; one is at its bound and cannot move, so the sum crosses later
    net = nn.Linear(2, 2)
    net.load_state_dict(
        {"weight": torch.tensor([[0.0, 0.0], [1.0, 1.0]]), "bias": torch.tensor([0.0, -1.2])}
    )
    x, y = torch.tensor([[1.0, 0.15]]), torch.tensor([0])
    short, enough = 10, 15  # 0.05 is 12.75/255, and twice the shorter step would cross
    assert under_fgsm(net, x, y, eps=short, normalise=as_is).error == 0
    assert under_fgsm(net, x, y, eps=enough, normalise=as_is).error == 1


def test_fgsm_raises_the_loss_of_a_network(net, pixels):
    assert under_fgsm(net, *pixels, eps=4).nll > clean(net, *pixels).nll


def test_fgsm_needs_neither_gradients_nor_trainable_weights(linear, pixels):
    usual = under_fgsm(linear, *pixels)
    linear.requires_grad_(False)
    with torch.no_grad():
        assert under_fgsm(linear, *pixels) == usual


# the network comes back as it was


def state(net):
    modes = [module.training for module in net.modules()]
    return modes, {name: value.clone() for name, value in net.state_dict().items()}


@every_evaluation
def test_network_and_samples_come_back_as_they_were(evaluate, net, pixels):
    (modes, values), (x, y) = state(net), pixels
    before = x.clone()
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    scores = evaluate(net, x, y)
    after_modes, after = state(net)
    assert after_modes == modes
    assert all(torch.equal(after[name], value) for name, value in values.items())
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in net.parameters())
    assert torch.equal(x, before)
    assert not x.requires_grad
    assert evaluate(net, x, y) == scores  # dropout is off


@every_evaluation
def test_modes_are_restored_when_the_network_raises(evaluate, net, pixels):
    net.append(Broken())
    modes, _ = state(net)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        evaluate(net, *pixels)
    assert state(net)[0] == modes
    assert all(p.grad is None for p in net.parameters())


# what is rejected


@pytest.mark.parametrize("evaluate", [under_noise, under_fgsm])
@pytest.mark.parametrize("eps", [-1.0, math.inf, math.nan])
def test_impossible_levels_are_rejected(evaluate, eps, linear, pixels):
    with pytest.raises(ValueError, match=f"eps must be a finite number.*got {eps}"):
        evaluate(linear, *pixels, eps=eps)


@pytest.mark.parametrize("shift", [-1.0, 1.0, math.nan])
def test_fgsm_rejects_what_are_not_pixels(shift, linear, pixels):
    x, y = pixels
    with pytest.raises(ValueError, match=r"x must be pixels in \[0, 1\]"):
        under_fgsm(linear, x + shift, y)


def test_the_brier_score_of_a_certain_wrong_answer_is_two():
    logits = torch.tensor([[100.0, 0.0, 0.0], [0.0, 100.0, 0.0], [0.0, 0.0, 0.0]])
    scores = score_logits(logits, torch.tensor([0, 0, 1]))
    assert scores.brier == pytest.approx((0 + 2 + 2 / 3) / 3)


def test_the_temperature_is_the_factor_by_which_logits_are_too_large():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(20_000, 4, generator=generator).double()
    y = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    for factor in (0.2, 1, 5):
        assert temperature_of(factor * logits, y) == pytest.approx(factor, rel=0.03)


def test_the_temperature_stays_finite_if_all_or_no_samples_are_right():
    y = torch.arange(20) % 2
    logits = torch.nn.functional.one_hot(y, 2).float()
    right, wrong = temperature_of(logits, y), temperature_of(logits, 1 - y)
    # (n + 1) / (n + 2) of certainty, which is what Platt's targets have
    assert 1 / (1 + math.exp(-1 / right)) == pytest.approx(21 / 22, rel=1e-4)
    assert wrong > 100


def test_a_temperature_keeps_the_predicted_classes_and_lowers_the_log_loss():
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(500, 3, generator=generator)
    y = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    sure = 8 * logits
    scaled = sure.double() / temperature_of(sure, y)
    assert score_logits(scaled, y).error == score_logits(sure, y).error
    assert score_logits(scaled, y).nll < score_logits(sure, y).nll - 0.5
