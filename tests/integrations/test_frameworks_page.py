"""The code on the pages of the frameworks runs, section by section."""

import re
from pathlib import Path

import lightning as L
import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from kmixup import KMixup

ROOT = Path(__file__).parents[2]
TEXTS = [path.read_text() for path in sorted((ROOT / "docs/frameworks").glob("*.md"))]
SECTIONS = {
    part.partition("\n")[0]: part for text in TEXTS for part in re.split("^#+ ", text, flags=re.M)
}
PAGE = "\n".join(TEXTS)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),
]


class Pictures(Dataset):
    """What timm's loader takes: images and classes, and a transform that it sets."""

    transform = None

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.transform(Image.fromarray(np.full((32, 32, 3), index, np.uint8))), index % 10


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))

    def training_step(self, batch, batch_idx):
        x, y = batch
        assert y.shape[1:] == (10,)
        return F.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def names():
    """What the page takes for granted."""
    images, labels = torch.rand(128, 3, 32, 32), torch.arange(128) % 10
    dataset = TensorDataset(images, labels)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))
    quiet = {"accelerator": "cpu", "logger": False, "enable_progress_bar": False}
    return {
        "torch": torch,
        "F": F,
        "KMixup": KMixup,
        "images": images,
        "labels": labels,
        "dataset": dataset,
        "pictures": Pictures(),
        "loader": DataLoader(dataset, batch_size=64),
        "plain_loader": DataLoader(dataset, batch_size=64),
        "device": torch.device("cpu"),
        "net": net,
        "optimizer": torch.optim.SGD(net.parameters(), lr=0.01),
        "classifier": Classifier(),
        "quiet": {**quiet, "enable_model_summary": False, "enable_checkpointing": False},
    }


@pytest.mark.parametrize("title", SECTIONS)
def test_the_code_of_a_section_runs(title, tmp_path, monkeypatch):
    if title == "MONAI":
        pytest.importorskip("monai")
    monkeypatch.chdir(tmp_path)
    space = names()
    for block in re.findall(r"```python\n(.*?)```", SECTIONS[title], re.S):
        exec(compile(block, f"docs/frameworks, {title}", "exec"), space)


def test_every_integration_has_a_section_an_example_and_an_extra():
    extras = (ROOT / "pyproject.toml").read_text()
    modules = {path.stem for path in (ROOT / "src/kmixup/integrations").glob("*.py")}
    for name in modules - {"__init__"}:
        assert f"kmixup.integrations.{name}" in PAGE, name
        # composer needs an older torch, skorch is in the extra of scikit-learn
        if name not in ("composer", "skorch"):
            assert f"\n{name} = [" in extras, name
            assert (ROOT / f"examples/with_{name}.py").exists(), name


def test_the_accuracy_of_torchmetrics_is_0_on_soft_targets():
    from torchmetrics import Accuracy

    x, y = torch.randn(64, 10), torch.arange(64) % 10
    mixed = KMixup(4, 1.0, 10).mix(x, y)
    logits = 5 * F.one_hot(y, 10) + torch.rand(64, 10)  # a network that knows the first label
    accuracy = Accuracy(task="multiclass", num_classes=10)
    assert float(accuracy(logits, y)) == 1
    assert float(accuracy(logits, mixed.y)) == 0
    assert float(mixed.accuracy(logits)) > 0.3
