"""Statistics of batch norm from clean data."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import update_bn
from torch.utils.data import DataLoader, TensorDataset, default_collate

from kmixup import KMixup, MixCollate, Prefetch, clean_batchnorm


def network():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8),
        nn.BatchNorm1d(8), nn.Linear(8, 2),
    )  # fmt: skip


def batches(n=3):
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(16, 3, 8, 8, generator=generator), torch.zeros(16).long()) for _ in range(n)
    ]


def test_torch_computes_the_same_where_there_is_no_dropout():
    ours, theirs = network(), network()
    theirs.load_state_dict(ours.state_dict())
    clean_batchnorm(ours, batches())
    update_bn(batches(), theirs)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value)


def test_neither_weights_nor_mode_nor_momentum_change():
    net = network().eval()
    net[1].momentum = 0.3
    before = [weight.clone() for weight in net.parameters()]
    assert clean_batchnorm(net, batches()) is net
    assert all(map(torch.equal, before, net.parameters()))
    assert all(weight.grad is None for weight in net.parameters())
    assert not any(module.training for module in net.modules())
    assert (net[1].momentum, net[5].momentum) == (0.3, 0.1)


def test_a_batch_that_fails_leaves_everything_as_it_was():
    net = network().train()
    net[5].eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(RuntimeError, match="channels"):
        clean_batchnorm(net, [*batches(), torch.randn(16, 1, 8, 8)])
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert (net[1].training, net[5].training, net[1].momentum) == (True, False, 0.1)


def test_loaders_of_plain_inputs_will_do():
    plain, tupled = network(), network()
    tupled.load_state_dict(plain.state_dict())
    clean_batchnorm(plain, [x for x, _ in batches()])
    clean_batchnorm(tupled, batches())
    assert torch.equal(plain[1].running_mean, tupled[1].running_mean)


def test_a_network_without_batch_norm_and_an_empty_loader_are_refused():
    with pytest.raises(ValueError, match="must have batch norm with running statistics"):
        clean_batchnorm(nn.Linear(2, 2), batches())
    frozen = nn.Sequential(nn.BatchNorm1d(2, track_running_stats=False))
    with pytest.raises(ValueError, match="Sequential has none"):
        clean_batchnorm(frozen, batches())
    with pytest.raises(ValueError, match="at least one batch"):
        clean_batchnorm(network(), [])


MIXER = KMixup(k=2, num_classes=2, generator=torch.Generator().manual_seed(0))


def mixed_batch(samples, mixer=None):
    return (mixer or MIXER)(*default_collate(samples))


def loader_with(collate):
    data = TensorDataset(torch.randn(32, 3, 8, 8), torch.arange(32) % 2)
    return DataLoader(data, batch_size=16, collate_fn=collate)


@pytest.mark.parametrize(
    "loader",
    [
        loader_with(MixCollate(MIXER)),
        loader_with(mixed_batch),
        loader_with(partial(mixed_batch, mixer=MIXER)),
        Prefetch(loader_with(None), MIXER.mix),
    ],
)
def test_a_loader_that_mixes_raises(loader):
    net = network()
    before = net[1].running_mean.clone()
    with pytest.raises(ValueError, match="loader must yield clean batches, KMixup mixes them"):
        clean_batchnorm(net, loader)
    assert torch.equal(net[1].running_mean, before)


def test_a_loader_whose_mixer_is_in_eval_mode_will_do():
    mixer = KMixup(k=2, num_classes=2).eval()
    clean_batchnorm(network(), loader_with(MixCollate(mixer)))


def test_layers_that_no_batch_reaches_keep_their_statistics():
    class Domains(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.BatchNorm1d(3) for _ in range(2))

        def forward(self, x):
            return self.norms[0](x)

    net = Domains()
    net.norms[1].running_mean.fill_(20.0)
    clean_batchnorm(net, [torch.randn(8, 3) + 10])
    assert net.norms[0].running_mean.mean() > 5
    assert (net.norms[1].running_mean == 20).all()
