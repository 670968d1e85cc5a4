"""k-mixup with DistributedDataParallel, on small digits.

    torchrun --nproc-per-node 2 examples/with_torchrun.py [--epochs 10]

Pairs are matched within each rank's batch: its k-subsets are k-subsets of the data, so ranks
exchange nothing. All ranks share one seed, for the same weights and sample order; the mixer draws
differently on each.
"""

from __future__ import annotations

import argparse
from typing import cast

import torch
from sklearn.datasets import load_digits
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from kmixup import KMixup


def gathered(values: Tensor) -> list[Tensor]:
    """Return the values of all ranks, on every rank."""
    rows = [torch.empty_like(values) for _ in range(distributed.get_world_size())]
    distributed.all_gather(rows, values)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup with DistributedDataParallel.")
    parser.add_argument("--epochs", type=int, default=10, help="training epochs")
    epochs = parser.parse_args().epochs

    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train, test = order[:1400], order[1400:]
    data = TensorDataset(x[train], y[train])
    sampler = cast("DistributedSampler[tuple[Tensor, ...]]", DistributedSampler(data))
    loader = DataLoader(data, batch_size=64, sampler=sampler, drop_last=True)

    mix = KMixup(k=16, alpha=0.2, num_classes=10)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    strengths = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for a, b in loader:
            mixed = mix.mix(a, b)
            strengths.append(mixed.lam)
            optimiser.zero_grad()
            F.cross_entropy(net(mixed.x), mixed.y).backward()
            optimiser.step()

    lam = torch.cat(gathered(torch.stack(strengths)))
    weights = gathered(torch.cat([p.detach().flatten() for p in net.parameters()]))
    if rank == 0:
        with torch.no_grad():
            right = (net(x[test]).argmax(1) == y[test]).float().mean()
        print(f"test accuracy {100 * float(right):.1f} %")
        print(f"{len(weights)} ranks, {len(lam)} batches, {len(lam.unique())} different lam")
        print(f"weights equal on all ranks: {all(torch.equal(weights[0], w) for w in weights)}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
