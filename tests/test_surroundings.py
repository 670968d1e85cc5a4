"""The library in the places where training code calls it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, default_collate

from kmixup import KMixup, match


class MixingCollate:
    """Mixes in the loader's worker: picklable, so that spawned workers can have it."""

    def __init__(self) -> None:
        self.mix = KMixup(k=8, alpha=1.0, num_classes=4)

    def __call__(self, samples):
        x, y = default_collate(samples)
        mixed = self.mix.mix(x, y)
        return x, mixed.x, mixed.y, mixed.partner


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_works_in_data_loader_workers(context):
    match(torch.randn(64, 3), k=8)  # the solver has run in the parent before the fork
    data = TensorDataset(torch.randn(256, 5), torch.randint(4, (256,)))
    loader = DataLoader(
        data,
        batch_size=32,
        num_workers=2,
        collate_fn=MixingCollate(),
        multiprocessing_context=context,
    )
    partners = []
    for x, mixed, y, partner in loader:
        assert mixed.shape == x.shape
        torch.testing.assert_close(y.sum(1), torch.ones(32))
        assert sorted(partner.tolist()) == list(range(32))
        partners.append(tuple(partner.tolist()))
    assert len(set(partners)) == 8  # workers draw from seeds of their own


def test_threads_get_what_one_after_the_other_gets():
    batches = [torch.randn(2, 96, 40) for _ in range(40)]
    expected = [match(a, b, k=32) for a, b in batches]
    with ThreadPoolExecutor(8) as pool:
        partners = list(pool.map(lambda pair: match(*pair, k=32), batches))
    assert all(torch.equal(a, b) for a, b in zip(expected, partners, strict=True))


def test_autocast_does_not_coarsen_the_match():
    x1, x2 = torch.randn(2, 64, 300)
    expected = match(x1, x2, k=32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(match(x1, x2, k=32), expected)
        m = KMixup(32, 1.0, 3).mix(x1, torch.randint(3, (64,)))
    assert m.x.dtype == m.y.dtype == torch.float32


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "inductor"])
# dynamo itself looks at .grad of tensors that cross a graph break, inductor loads torch.jit
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_training_step_equals_the_eager_one(backend):
    net, mix = nn.Linear(6, 5), KMixup(4, 1.0, 5, generator=torch.Generator())
    compiled_net = torch.compile(net, backend=backend)

    def step(net, x, y):
        m = mix.mix(x, y)
        x, soft = mix(x, y)
        partner = match(m.x, x, k=4)
        loss = F.cross_entropy(net(x), soft) + m.loss(F.cross_entropy, net(m.x))
        return loss + x[partner].square().mean()

    compiled = torch.compile(lambda x, y: step(net, x, y), backend=backend)
    for n in (16, 16, 13):
        x, y = torch.randn(n, 6), torch.randint(5, (n,))
        results = []
        for run in (lambda x, y: step(net, x, y), compiled, lambda x, y: step(compiled_net, x, y)):
            mix.generator.manual_seed(n)
            net.zero_grad()
            loss = run(x, y)
            loss.backward()
            results.append((loss.detach(), net.weight.grad.clone()))
        for other in results[1:]:
            torch.testing.assert_close(other, results[0])
