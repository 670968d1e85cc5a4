"""One of two processes with the same seed: stores the lam of every batch, by how it was mixed."""

import os
import sys
from pathlib import Path

import torch
from torch import distributed
from torch.utils.data import DataLoader, TensorDataset

from kmixup import KMixup, MixCollate

if __name__ == "__main__":
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    store = f"file://{folder / 'store'}"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 3), torch.arange(32))
    x, y = data.tensors[0][:8], data.tensors[1][:8]
    plain, seeded = KMixup(2, 1.0), KMixup(2, 1.0, generator=torch.Generator().manual_seed(0))
    lam = {
        "plain": [mixer.mix(x).lam for mixer in [plain] * 4],
        "seeded": [seeded.mix(x).lam for _ in range(4)],
    }
    for workers in (0, 2):
        collate = MixCollate(KMixup(2, 1.0, 32))
        loader = DataLoader(data, batch_size=8, collate_fn=collate, num_workers=workers)
        lam[f"{workers} workers"] = [soft.max() for _, soft in loader]
    stored = {route: torch.stack(each) for route, each in lam.items()}
    torch.save(stored | {"state": seeded.generator.get_state()}, folder / f"{rank}.pt")
    distributed.barrier()
    os._exit(0)  # threads of gloo sometimes abort a process that ends by itself
