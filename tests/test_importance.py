import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kmixup import KMixup, saliency
from kmixup.interpolation import Pair


def network():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(4 * 36, 5),
    )


def batch(dtype=torch.float32):
    torch.manual_seed(0)
    return torch.randn(7, 3, 6, 6, dtype=dtype), torch.randint(5, (7,))


def test_saliency_is_the_gradient_of_the_loss_by_finite_differences():
    x, y = batch(torch.float64)
    net = network().double().eval()
    s = saliency(net, x, y)
    sample, row, column = 3, 2, 4
    steps = []
    for channel in range(3):
        nudge = torch.zeros_like(x)
        nudge[sample, channel, row, column] = 1e-6
        gain = F.cross_entropy(net(x + nudge), y) - F.cross_entropy(net(x - nudge), y)
        steps.append(float(gain.detach()) / 2e-6)
    expected = torch.tensor(steps, dtype=torch.float64).square().mean().sqrt()
    assert float(s[sample, row, column]) == pytest.approx(float(expected), rel=1e-5)


def test_saliency_leaves_the_network_as_it_was():
    x, y = batch()
    net = network()
    net[1].eval()  # a frozen layer keeps its mode
    F.cross_entropy(net(x), y).backward()
    gradients = [p.grad.clone() for p in net.parameters()]
    buffers = [b.clone() for b in net.buffers()]
    modes = [module.training for module in net.modules()]
    chance = torch.get_rng_state()
    with torch.no_grad():
        s = saliency(net, x, y)
    assert s.shape == (7, 6, 6)
    assert not s.requires_grad
    assert not x.requires_grad
    assert [module.training for module in net.modules()] == modes
    assert all(map(torch.equal, gradients, [p.grad for p in net.parameters()]))
    assert all(map(torch.equal, buffers, net.buffers()))
    assert torch.equal(chance, torch.get_rng_state())
    net.zero_grad(set_to_none=True)
    saliency(net, x, y)
    assert all(p.grad is None for p in net.parameters())


def test_saliency_restores_the_mode_of_a_network_that_fails():
    net = network()
    with pytest.raises(RuntimeError):
        saliency(net, torch.randn(2, 4, 6, 6), torch.tensor([0, 1]))
    assert all(module.training for module in net.modules())


def test_saliency_takes_soft_targets():
    x, y = batch()
    net = network()
    soft = F.one_hot(y, 5).float()
    assert torch.allclose(saliency(net, x, y), saliency(net, x, soft), atol=1e-7)


@pytest.mark.usefixtures("bf16")
def test_saliency_of_half_precision_is_float32():
    x, y = batch()
    assert saliency(network().bfloat16(), x.bfloat16(), y).dtype == torch.float32


@pytest.mark.parametrize("x", [{"image": torch.zeros(2, 1, 4, 4)}, torch.zeros(2, 4, 4)])
def test_saliency_refuses_what_is_no_image(x):
    with pytest.raises(TypeError, match="saliency needs .*images"):
        saliency(network(), x, torch.tensor([0, 1]))


def test_importance_is_checked_against_the_batch():
    mix = KMixup(2, 1.0, 5)
    x, y = batch()
    with pytest.raises(ValueError, match=r"importance must have the shape \(7, height, width\)"):
        mix.mix(x, y, importance=torch.ones(6, 6))
    wrong = torch.ones(7, 6, 6)
    wrong[4, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="finite and non-negative, sample 4"):
        mix.mix(x, y, importance=wrong)
    with pytest.raises(ValueError, match="importance must be a pair"):
        mix.mix(x, y, other=(x, y), importance=torch.ones(7, 6, 6))
    with pytest.raises(ValueError, match="this mixer needs the importance of pixels, got none"):
        _ = Pair.of([x]).importances


def test_saliency_of_a_network_that_works_in_place_leaves_the_images_alone():
    net = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3))
    x = torch.randn(4, 1, 8, 8)
    before = x.clone()
    assert saliency(net, x, torch.arange(4) % 3).shape == (4, 8, 8)
    assert torch.equal(x, before)
