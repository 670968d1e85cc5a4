"""AdaMixup: intervals of lam that a policy learns, and a critic that tells real from mixed."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kmixup import AdaMixup, KMixup
from kmixup.interpolation import Pair
from kmixup.methods.adamixup import Critic, Interval, Policy
from oracles import seeded

EACH = nn.CrossEntropyLoss(reduction="none")


def network(inputs=4, classes=3):
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, classes))


def batch(n=12, classes=3):
    return torch.randn(n, 4), torch.randint(classes, (n,))


class Fixed(nn.Module):
    """The same interval for all pairs, from the logits of a, delta and the rest."""

    def __init__(self, *logits):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, x):
        return self.logits.expand(len(x), 3)


def fixed(k, *logits):
    mix = AdaMixup(network(), (4,), k, 3, generator=seeded())
    mix.interpolation = Interval(Fixed(*logits))
    return mix


def test_where_a_is_one_training_is_plain():
    x, y = batch()
    m = fixed(4, 90.0, 0.0, 0.0).mix(x, y)
    assert torch.equal(m.lam, torch.ones(24))
    assert torch.equal(m.x, torch.cat([x, x]))
    assert torch.equal(m.y, F.one_hot(y, 3).float().repeat(2, 1))


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("paired", [False, True])
def test_where_a_is_zero_and_delta_one_lam_is_uniform_as_in_mixup_at_alpha_one(k, paired):
    x, y = batch()
    other = batch() if paired else None
    m = fixed(k, 0.0, 90.0, 0.0).mix(x, y, other=other)
    plain = KMixup(k, 1.0, 3, lam_per="sample", generator=seeded()).mix(x, y, other=other)
    torch.testing.assert_close(m.lam[:12], plain.lam)
    torch.testing.assert_close(m.x[:12], plain.x)
    torch.testing.assert_close(m.y[:12], plain.y)


def interval(mix, pair):
    """The least and the greatest lam of every pair."""
    return [mix.interpolation.settle(torch.tensor(u), None, pair)[0] for u in (0.0, 1.0)]


def test_lam_lies_in_the_interval_of_its_pair():
    x, y = batch(64)
    mix = AdaMixup(network(), (4,), 4, 3)
    nn.init.normal_(mix.policy[-1].weight, std=2.0)
    m = mix.mix(x, y)
    low, high = interval(mix, Pair([x], [x], m.partner[:64]))
    lam = m.lam[:64]
    assert low.std() > 0.05
    assert ((low <= lam + 1e-6) & (lam <= high + 1e-6)).all()
    assert (high <= 1).all()
    assert torch.equal(m.lam[64:], torch.ones(64))


def test_the_first_interval_is_the_middle_third_and_images_are_made_small():
    policy = Policy((3, 32, 20))
    assert policy[2].in_features == 3 * 8 * 8
    assert policy(torch.randn(5, 3, 32, 20)).tolist() == [[0.0] * 3] * 5
    x = torch.randn(6, 3)
    mix = AdaMixup(network(3), (3,))
    low, high = interval(mix, Pair([x], [x], torch.arange(6).roll(1)))
    torch.testing.assert_close(low, torch.full((6,), 1 / 3, dtype=torch.float64))
    torch.testing.assert_close(high, 2 * low)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("joint", [True, False])
def test_gradients_of_all_parts_are_those_of_a_forward_by_hand(k, joint):
    x, y = batch()
    net = network()
    mix = AdaMixup(net, (4,), k, 3, joint=joint)
    for parameter in mix.parameters():
        nn.init.normal_(parameter, std=0.5)
    draw = mix.draw(12)
    m = mix.mix(x, y, draw)
    loss = m.loss(EACH, net(m.x)).mean()

    other = x[m.partner[:12]]
    share = mix.policy((x + other) / 2).softmax(1)
    lam = share[:, 0] + share[:, 1] * draw.u.float()
    mixed = lam[:, None] * x + (1 - lam[:, None]) * other
    trunk = net[:-1]
    on_mixed, on_real = (mix.critic.unit(trunk(inputs))[:, 0] for inputs in (mixed, x))
    told = F.softplus(-on_mixed).mean() + F.softplus(on_real).mean()
    if not joint:
        mixed, lam = mixed.detach(), lam.detach()
    logits = net(mixed)
    classified = lam * EACH(logits, y) + (1 - lam) * EACH(logits, y[m.partner[:12]])
    by_hand = (classified.mean() + F.cross_entropy(net(x), y) + told) / 2

    torch.testing.assert_close(loss, by_hand)
    learned = [*net.parameters(), *mix.parameters()]
    assert len(learned) == 4 + 4 + 2
    wanted, found = (torch.autograd.grad(value, learned) for value in (by_hand, loss))
    for one, two in zip(wanted, found, strict=True):
        assert one.abs().sum() > 0
        torch.testing.assert_close(one, two)


def test_soft_targets_carry_the_gradient_to_the_policy_as_well():
    x, y = batch()
    net = network()
    mix = AdaMixup(net, (4,), 1, 3)
    m = mix.mix(x, y)
    (F.cross_entropy(net(m.x), m.y)).backward()
    assert mix.policy[-1].bias.grad.abs().sum() > 0
    assert mix.critic.unit.weight.grad is None


def test_the_network_is_no_part_of_the_mixer():
    net = network()
    mix = AdaMixup(net, (4,))
    assert not set(net.parameters()) & set(mix.parameters())
    assert all(name.startswith(("policy.", "critic.unit.")) for name in mix.state_dict())
    net.eval()
    mix.train()
    assert not net.training


def test_the_critic_learns_to_tell_mixed_from_real():
    torch.manual_seed(0)
    x = torch.cat([torch.randn(32, 4) - 8, torch.randn(32, 4) + 8])
    y = torch.arange(64) // 32
    net = network(4, 2)
    mix = AdaMixup(net, (4,), 1, 2, generator=seeded())
    optimiser = torch.optim.Adam([*net.parameters(), *mix.parameters()], lr=0.02)
    for _ in range(150):
        m = mix.mix(x, y)
        optimiser.zero_grad()
        m.loss(EACH, net(m.x)).mean().backward()
        optimiser.step()
    # half of the pairs are of one cluster, where nobody can tell
    assert m.penalty < 0.55


def test_a_network_in_float64_and_tokens_are_judged_as_well():
    net = nn.Linear(4, 3).double()
    m = AdaMixup(net, (5, 4), 1, 3).mix(torch.randn(6, 5, 4), torch.randint(3, (6,)))
    assert m.x.shape == (12, 5, 4)
    assert m.penalty.isfinite()


def test_a_critic_needs_a_linear_layer_that_the_network_calls():
    net = network()
    net.forward = lambda x: net[1](x)  # not the last layer
    with pytest.raises(RuntimeError, match="did not call its layer Linear"):
        AdaMixup(net, (4,), 1, 3).mix(*batch())
    with pytest.raises(ValueError, match="net must have an nn.Linear.*ReLU without one"):
        Critic(nn.ReLU())
