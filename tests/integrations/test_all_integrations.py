"""What holds for all integrations, each through its own framework."""

import pytest
import torch
from torch import distributed, nn

from kmixup import HiddenMixup, KMixup, LocalMixup, MixCollate, StackMix
from kmixup.mixer import Mixing


def lightning(mixer):
    from kmixup.integrations.lightning import MixCallback

    return MixCallback(mixer)._mix


def fastai(mixer):
    from fastai.basics import DataLoader, DataLoaders, Learner

    from kmixup.integrations.fastai import KMixUp

    callback = KMixUp(mixer=mixer)
    callback.learn = Learner(DataLoaders(DataLoader([]), DataLoader([])), nn.Flatten(), nn.MSELoss)

    def mix(x, y):
        callback.learn.xb, callback.learn.yb, callback.stack_y = (x,), (y,), False
        callback.before_batch()
        return callback.learn.xb[0], callback.learn.yb[0]

    return mix


def transformers(mixer):
    from transformers import TrainingArguments, ViTConfig, ViTForImageClassification

    from kmixup.integrations.transformers import MixTrainer

    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_labels": 4}
    model = ViTForImageClassification(ViTConfig(image_size=8, patch_size=4, **size))
    arguments = TrainingArguments("out", use_cpu=True, report_to=[])
    trainer = MixTrainer(model, arguments, mixer=mixer)

    def mix(x, y):
        mixed = trainer._mixed(model, {"pixel_values": x, "labels": y})
        return mixed["pixel_values"], mixed["labels"]

    return mix


def composer(mixer):
    pytest.importorskip("composer.models")
    from composer.core import Event

    from kmixup.integrations.composer import MixAlgorithm

    class State:
        def batch_get_item(self, key):
            return self.batch[key]

        def batch_set_item(self, key, value):
            self.batch[key] = value

    algorithm, state = MixAlgorithm(mixer), State()

    def mix(x, y):
        state.batch = [x, y]
        for event in (Event.BEFORE_FORWARD, Event.BEFORE_LOSS):
            algorithm.apply(event, state, None)
        return state.batch

    return mix


def collate(mixer):
    collating = MixCollate(mixer)
    return lambda x, y: collating(list(zip(x, y, strict=True)))


def torchvision(mixer):
    from kmixup.integrations.torchvision import MixUp

    return MixUp(k=mixer.k, num_classes=4)


def timm(mixer):
    from kmixup.integrations.timm import Mixup

    return Mixup(k=mixer.k, num_classes=4, label_smoothing=0.0)


MIXER_TAKEN = {
    "composer": composer,
    "fastai": fastai,
    "lightning": lightning,
    "loader": collate,
    "transformers": transformers,
}
ROUTES = {
    "keys": lambda mixer: lambda x, y: mixer((x, y), keys=(0, 1)),
    "timm": timm,
    "torchvision": torchvision,
    **MIXER_TAKEN,
}


@pytest.mark.parametrize("name", ROUTES)
def test_targets_become_soft_and_ranks_draw_differently_from_one_seed(name, monkeypatch):
    x, y = torch.rand(16, 3, 8, 8), torch.arange(16) % 4
    mix = ROUTES[name](KMixup(4, 1.0, 4))
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    batches = []
    for rank in (0, 1, 0):
        monkeypatch.setattr(distributed, "get_rank", lambda rank=rank: rank)
        torch.manual_seed(5)
        batches.append(mix(x, y))
    for first, second, again in zip(*batches, strict=True):
        assert not torch.equal(first, second)
        assert torch.equal(first, again)
    soft = batches[0][1]
    assert soft.shape == (16, 4)
    torch.testing.assert_close(soft.sum(1), torch.ones(16))


@pytest.mark.parametrize("name", MIXER_TAKEN)
def test_mixers_that_cannot_be_used_raise(name):
    hidden = HiddenMixup(nn.Sequential(nn.Linear(3, 4)), ["0"], num_classes=4)
    assert not isinstance(hidden, Mixing)
    for wrong, kind in ((16, "int"), (hidden, "HiddenMixup")):
        with pytest.raises(TypeError, match=f"mixer must mix inputs.*got {kind}"):
            MIXER_TAKEN[name](wrong)
    if name != "fastai":  # whose losses can have weights
        with pytest.raises(ValueError, match="cannot carry the weights or the penalty"):
            MIXER_TAKEN[name](LocalMixup(4, num_classes=4))
    if name != "loader":  # which can mix evaluation batches too
        with pytest.raises(ValueError, match="leave unmixed inputs as they are, got StackMix"):
            MIXER_TAKEN[name](StackMix(4))
