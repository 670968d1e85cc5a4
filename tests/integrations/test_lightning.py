"""The callback in Lightning's own trainer."""

import subprocess
import sys
from pathlib import Path

import lightning as L
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from kmixup import Choice, KMixup
from kmixup.integrations.lightning import MixCallback

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning:.*lightning"),
]
N, CLASSES = 48, 4


class Dicts(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"image": self.x[index], "label": self.y[index], "index": index}


def tuples(samples):
    x, y = zip(*samples, strict=True)
    return torch.stack(x), torch.stack(y)


def data_of(kind=list):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 6, generator=generator)
    y = torch.arange(N) % CLASSES
    if kind is dict:
        return DataLoader(Dicts(x, y), batch_size=16)
    collate = tuples if kind is tuple else None
    return DataLoader(TensorDataset(x, y), batch_size=16, collate_fn=collate)


class Net(L.LightningModule):
    """Keeps what it is given."""

    def __init__(self, keys=(0, 1)):
        super().__init__()
        self.net = nn.Linear(6, CLASSES)
        self.keys = keys
        self.seen, self.validated = [], []

    def training_step(self, batch, batch_idx):
        self.seen.append(batch)
        x, y = (batch[key] for key in self.keys)
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        self.validated.append(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def trainer_of(tmp_path, callback, kind=L.Trainer, **options):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    options = {"max_epochs": 1, "enable_checkpointing": False, **quiet, **options}
    return kind(accelerator="cpu", default_root_dir=tmp_path, callbacks=[callback], **options)


def mixer_of(seed=0, **options):
    return KMixup(4, 1.0, CLASSES, generator=torch.Generator().manual_seed(seed), **options)


@pytest.mark.parametrize("kind", [tuple, list, dict])
def test_training_batches_are_mixed_and_validation_is_left_alone(tmp_path, kind):
    keys = ("image", "label") if kind is dict else (0, 1)
    callback = MixCallback(mixer_of(), keys=keys)
    net = Net(keys)
    trainer_of(tmp_path, callback).fit(net, data_of(kind), data_of(kind))
    direct = mixer_of()
    assert len(net.seen) == 3
    for batch, plain in zip(net.seen, data_of(kind), strict=True):
        assert type(batch) is type(plain)
        x, y = direct(plain[keys[0]], plain[keys[1]])
        assert torch.equal(batch[keys[0]], x)
        assert torch.equal(batch[keys[1]], y)
        if kind is dict:
            assert torch.equal(batch["index"], plain["index"])
    assert len(net.validated) == 5  # two of them before training
    assert all(not batch[keys[1]].is_floating_point() for batch in net.validated)


def test_hooks_of_module_and_data_module_run_before_the_mixing(tmp_path):
    class Shifted(L.LightningDataModule):
        def train_dataloader(self):
            return data_of()

        def on_after_batch_transfer(self, batch, dataloader_idx):
            return batch[0] + 100, batch[1]

    net = Net()
    trainer_of(tmp_path, MixCallback(mixer_of())).fit(net, Shifted())
    x, y = mixer_of()(next(iter(data_of()))[0] + 100, next(iter(data_of()))[1])
    assert torch.equal(net.seen[0][0], x)
    assert torch.equal(net.seen[0][1], y)


def test_mixing_stops_at_an_epoch_and_targets_stay_soft(tmp_path):
    net, mixer = Net(), mixer_of()
    callback = MixCallback(mixer, off_epoch=1)
    trainer_of(tmp_path, callback, max_epochs=2).fit(net, data_of())
    plain = list(data_of())
    for batch, (x, _) in zip(net.seen[:3], plain, strict=True):
        assert not torch.equal(batch[0], x)
    for batch, (x, y) in zip(net.seen[3:], plain, strict=True):
        assert torch.equal(batch[0], x)
        assert torch.equal(batch[1], F.one_hot(y, CLASSES).float())
    assert not mixer.training
    trainer_of(tmp_path, callback).fit(net, data_of())  # the next fit mixes again
    assert not torch.equal(net.seen[6][0], plain[0][0])


@pytest.mark.parametrize("seeded", [True, False])
def test_a_resumed_run_goes_on_bit_for_bit(tmp_path, seeded):
    def fitted(epochs, path=None):
        L.seed_everything(3, verbose=False)
        generator = torch.Generator().manual_seed(1) if seeded else None
        mixers = [KMixup(4, 1.0, CLASSES), KMixup(2, 0.5, CLASSES)]
        callback = MixCallback(Choice(mixers, generator=generator))
        net = Net()
        trainer = trainer_of(tmp_path, callback, max_epochs=epochs)
        trainer.fit(net, data_of(), ckpt_path=path)
        return net, trainer

    whole, _ = fitted(4)
    first, trainer = fitted(2)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    second, _ = fitted(4, tmp_path / "half.ckpt")
    assert torch.equal(whole.net.weight, second.net.weight)
    seen = [*first.seen, *second.seen]
    assert len(seen) == len(whole.seen) == 12
    assert all(torch.equal(a[0], b[0]) for a, b in zip(seen, whole.seen, strict=True))
    assert len({float(batch[0][0, 0]) for batch in seen}) == 12


def test_every_new_callback_draws_differently_and_a_seed_repeats_all_of_them(tmp_path):
    def members(seed=1):
        L.seed_everything(seed, verbose=False)
        lams = []
        for _ in range(2):
            net = Net()
            trainer_of(tmp_path, MixCallback(KMixup(4, 1.0, CLASSES))).fit(net, data_of())
            lams.append(torch.cat([batch[1].max(1).values for batch in net.seen]))
        return lams

    first, second = members()
    assert not torch.equal(first, second)
    assert all(map(torch.equal, (first, second), members()))
    assert not torch.equal(first, members(2)[0])


def test_the_trainer_is_as_it_was_afterwards_also_after_an_error(tmp_path):
    class Failing(Net):
        def training_step(self, batch, batch_idx):
            raise RuntimeError("as it happens")

    trainer = trainer_of(tmp_path, MixCallback(mixer_of()))
    with pytest.raises(RuntimeError, match="as it happens"):
        trainer.fit(Failing(), data_of())
    assert "batch_to_device" not in vars(trainer.strategy)
    net = Net()
    trainer.fit(net, data_of())
    assert "batch_to_device" not in vars(trainer.strategy)
    trainer.validate(net, data_of(), verbose=False)
    assert all(not y.is_floating_point() for _, y in net.validated)


def test_the_account_of_the_last_batch_is_at_hand_in_the_step(tmp_path):
    callback = MixCallback(mixer_of())

    class Scored(Net):
        def training_step(self, batch, batch_idx):
            self.scores.append(float(callback.mixed.accuracy(self.net(batch[0]))))
            return super().training_step(batch, batch_idx)

    net = Scored()
    net.scores = []
    trainer_of(tmp_path, callback).fit(net, data_of())
    assert len(net.scores) == 3
    assert all(0 <= score <= 1 for score in net.scores)


def test_the_trainer_of_pytorch_lightning_takes_the_callback_too(tmp_path):
    import pytorch_lightning as pl

    class Other(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.seen = nn.Linear(6, CLASSES), []

        training_step, configure_optimizers = Net.training_step, Net.configure_optimizers
        keys = (0, 1)

    net = Other()
    trainer_of(tmp_path, MixCallback(mixer_of()), pl.Trainer).fit(net, data_of())
    x, y = mixer_of()(*next(iter(data_of())))
    assert torch.equal(net.seen[0][0], x)
    assert torch.equal(net.seen[0][1], y)


def test_ranks_draw_differently_and_resume_bit_for_bit(tmp_path):
    """Two processes with one seed; see the script."""
    script = Path(__file__).parent / "lightning_ranks.py"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run([*launch, script, tmp_path], check=True, capture_output=True, timeout=300)
    whole = [torch.load(tmp_path / f"whole-{rank}.pt") for rank in (0, 1)]
    second = [torch.load(tmp_path / f"second-{rank}.pt") for rank in (0, 1)]
    lam = torch.stack(whole)
    assert lam.shape == (2, 6)
    assert len(lam.unique()) == 12
    for rank in (0, 1):
        assert torch.equal(whole[rank][3:], second[rank])
