"""Run by torchrun: trains on two ranks, whole and resumed, and stores the lam of every batch."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from torchvision_operators import define_missing

define_missing()

import lightning as L  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from kmixup import KMixup  # noqa: E402
from kmixup.integrations.lightning import MixCallback  # noqa: E402


class Net(L.LightningModule):
    def __init__(self, callback):
        super().__init__()
        self.net = nn.Linear(6, 4)
        self.callback, self.lam = callback, []

    def training_step(self, batch, batch_idx):
        self.lam.append(float(self.callback.mixed.lam))
        return F.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(folder: Path, name: str, epochs: int, resumed: Path | None = None) -> L.Trainer:
    L.seed_everything(3, verbose=False)
    callback = MixCallback(KMixup(4, 1.0, 4))
    net = Net(callback)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callback,
    )
    data = TensorDataset(torch.randn(96, 6), torch.arange(96) % 4)
    trainer.fit(net, DataLoader(data, batch_size=16), ckpt_path=resumed)
    torch.save(torch.tensor(net.lam), folder / f"{name}-{trainer.global_rank}.pt")
    return trainer


if __name__ == "__main__":
    torch.set_num_threads(1)
    place = Path(sys.argv[1])
    fit(place, "whole", 2)
    fit(place, "first", 1).save_checkpoint(place / "first.ckpt")
    fit(place, "second", 2, place / "first.ckpt")
