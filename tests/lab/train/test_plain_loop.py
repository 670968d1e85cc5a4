"""The lab trains with the library: a plain loop around `KMixup` gets the same weights."""

import numpy as np
import pytest
import torch

from kmixup import KMixup, PairDraw
from kmixup.lab.data import load
from kmixup.lab.models import build
from kmixup.lab.train.loop import train
from kmixup.lab.train.streams import Streams, drawing_from
from kmixup.lab.trial import Method, Protocol, Trial
from kmixup.matching import Blocks


@pytest.mark.parametrize("pairing", ["loaders", "batch"])
@pytest.mark.parametrize("k", [1, 8])
def test_a_plain_loop_around_kmixup_gets_the_weights_of_the_lab(k, pairing):
    protocol = Protocol(epochs=3, rate=0.05, milestones=(), batch_size=25)
    trial = Trial("iris", "mlp-iris", Method("kmixup", k, 0.7, pairing=pairing), protocol, seed=3)
    trained = train(trial, device="cpu", progress=False).net.state_dict()

    data, chance = load("iris", seed=3), Streams(3)
    with drawing_from(chance.initialise):
        net = build("mlp-iris", in_shape=(4,), num_classes=3)
    mix = KMixup(k=k, alpha=0.7, num_classes=3)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    x, y = data.normalise(data.x_train), data.y_train
    for _ in range(3):
        orders = torch.randperm(100, generator=chance.order).split(25)
        quantiles = torch.rand(4, generator=chance.mix, dtype=torch.float64)
        facing = orders
        if pairing == "loaders":
            facing = torch.randperm(100, generator=chance.second).split(25)
        for rows, others, u in zip(orders, facing, quantiles, strict=True):
            within = pairing == "batch"
            draw = PairDraw(Blocks(25, k, np.arange(25) if within else None), u)
            m = mix.mix(x[rows], y[rows], draw, other=None if within else (x[others], y[others]))
            optimiser.zero_grad()
            (-(m.y * net(m.x).log_softmax(1)).sum() / 25).backward()
            optimiser.step()

    for name, weight in net.state_dict().items():
        assert torch.equal(weight, trained[name]), name
