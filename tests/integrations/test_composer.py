"""The algorithm in Composer's Trainer; Composer asks for an older torch, and is rarely there."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from kmixup import KMixup

composer = pytest.importorskip("composer")
models = pytest.importorskip("composer.models")

from kmixup.integrations.composer import MixAlgorithm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Recording(models.ComposerClassifier):
    """Keeps the targets that its loss gets."""

    def loss(self, outputs, batch, *args, **options):
        self.seen.append(batch[1])
        return super().loss(outputs, batch, *args, **options)


def fit(algorithms):
    torch.manual_seed(0)
    y = torch.arange(256) % 4
    data = TensorDataset(torch.randn(256, 6) + 4 * nn.functional.one_hot(y, 6), y)
    model = Recording(nn.Linear(6, 4), num_classes=4)
    model.seen = []
    trainer = composer.Trainer(
        model=model,
        train_dataloader=DataLoader(data, batch_size=64, shuffle=True),
        max_duration="6ep",
        optimizers=torch.optim.Adam(model.parameters(), 0.05),
        algorithms=algorithms,
        progress_bar=False,
        device="cpu",
    )
    trainer.fit()
    (metric,) = trainer.state.train_metrics.values()
    return model.seen, float(metric.compute())


def test_the_loss_gets_soft_targets_and_the_training_accuracy_is_of_hard_ones():
    seen, accuracy = fit([MixAlgorithm(KMixup(8, 1.0, 4))])
    assert [targets.shape for targets in seen] == [(64, 4)] * 24
    assert all(((targets > 0) & (targets < 1)).any() for targets in seen)
    assert accuracy > 0.4
    plain, _ = fit([])
    assert all(targets.dtype == torch.int64 for targets in plain)
