"""The callback in fastai's Learner, beside fastai's own MixUp."""

import copy

import pytest
import torch
from fastai.basics import (
    Callback,
    CrossEntropyLossFlat,
    DataLoader,
    DataLoaders,
    Learner,
    MSELossFlat,
    TensorCategory,
    TensorImage,
)
from fastai.callback.mixup import MixUp
from fastai.callback.progress import ProgressCallback
from torch import nn
from torch.nn.functional import cross_entropy

from kmixup import LocalMixup
from kmixup.integrations.fastai import KMixUp

N, BATCH = 64, 32


def samples(number=False):
    torch.manual_seed(1)
    labels = torch.arange(N) % 3
    images = torch.randn(N, 3, 4, 4) + 2 * labels.view(-1, 1, 1, 1)
    targets = labels.float() if number else labels
    return [
        (TensorImage(image), torch.tensor(float(target)) if number else TensorCategory(target))
        for image, target in zip(images, targets, strict=True)
    ]


class Recorder(Callback):
    """Keeps the batches as the model sees them, and the losses."""

    order = 100

    def __init__(self):
        self.batches, self.losses = [], []

    def before_batch(self):
        self.batches.append((self.training, self.xb[0].clone(), self.yb[0].clone()))

    def after_loss(self):
        self.losses.append((self.training, float(self.loss.detach())))


def learner(callback, loss=None, number=False):
    torch.manual_seed(0)
    data = samples(number)
    loaders = DataLoaders(
        DataLoader(data, bs=BATCH, shuffle=False, num_workers=0),
        DataLoader(data, bs=BATCH, shuffle=False, num_workers=0),
        device="cpu",
    )
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 1 if number else 3))
    recorder = Recorder()
    chosen = loss or (MSELossFlat() if number else CrossEntropyLossFlat())
    learning = Learner(loaders, net, loss_func=chosen, cbs=[callback, recorder])
    return learning, recorder


def fit(learning, epochs=1):
    learning.remove_cbs([cb for cb in learning.cbs if isinstance(cb, ProgressCallback)])
    with learning.no_logging():
        learning.fit(epochs, lr=0.01)


def test_a_learner_learns_and_its_validation_batches_stay_clean():
    learning, recorder = learner(KMixUp(k=8))
    fit(learning, 8)
    valid = [loss for training, loss in recorder.losses if not training]
    assert valid[-1] < 0.8 * valid[0]
    clean = torch.stack([image for image, _ in samples()[:BATCH]])
    seen = {training: x for training, x, _ in reversed(recorder.batches)}
    assert not torch.equal(seen[True], clean)
    tested = [x for training, x, _ in recorder.batches if not training]
    assert torch.equal(tested[0], clean)
    assert isinstance(learning.loss_func, CrossEntropyLossFlat)


def test_the_loss_is_that_of_both_targets():
    callback = KMixUp(k=8)
    learning, recorder = learner(callback)
    net, accounts = copy.deepcopy(learning.model), []
    mix = callback.mixer.mix
    callback.mixer.mix = lambda *batch: accounts.append(mix(*batch)) or accounts[-1]
    fit(learning)
    _, x, y = recorder.batches[0]
    mixed, labels = accounts[0], torch.arange(BATCH) % 3
    assert torch.equal(y, labels)  # the loss mixes the labels
    assert mixed.lam.shape == (BATCH,)
    logits = net(x.as_subclass(torch.Tensor))
    own, partners = (
        cross_entropy(logits, target, reduction="none")
        for target in (labels, labels[mixed.partner])
    )
    expected = (mixed.lam * own + (1 - mixed.lam) * partners).mean().detach()
    assert recorder.losses[0][1] == pytest.approx(float(expected), rel=1e-5)


def test_numbers_are_interpolated_where_the_loss_takes_floats():
    learning, recorder = learner(KMixUp(k=8), number=True)
    fit(learning)
    training, _, targets = recorder.batches[0]
    assert training
    fractions = [value for value in targets.tolist() if value not in (0.0, 1.0, 2.0)]
    assert fractions
    assert 0 <= min(targets) <= max(targets) <= 2


def test_without_mixing_losses_are_those_of_a_plain_learner():
    losses = []
    for callback in (KMixUp(k=8, alpha=0.0), Callback()):
        learning, recorder = learner(callback)
        fit(learning, 2)
        losses.append([loss for _, loss in recorder.losses])
    assert losses[0] == pytest.approx(losses[1])


def test_the_loss_is_reduced_and_given_back_as_with_the_callback_of_fastai():
    for callback in (KMixUp(k=8), MixUp()):
        learning, recorder = learner(callback, CrossEntropyLossFlat(reduction="sum"))
        loss = learning.loss_func
        fit(learning)
        assert learning.loss_func is loss
        assert recorder.losses[0][1] > BATCH / 4  # a sum over the batch


def test_weights_of_local_mixup_reach_the_loss_or_are_refused():
    learning, recorder = learner(KMixUp(mixer=LocalMixup(8, 1.0, lam_per="sample")))
    fit(learning)
    assert len(recorder.losses) == 4
    learning, _ = learner(KMixUp(mixer=LocalMixup(8, 1.0)), number=True)
    with pytest.raises(ValueError, match="cannot carry the weights or the penalty"):
        fit(learning)


def test_alpha_is_the_first_argument_as_in_fastai_and_k_is_a_keyword():
    assert (KMixUp(1).mixer.alpha, KMixUp(1).mixer.k) == (1, 16)
    with pytest.raises(TypeError, match="positional"):
        KMixUp(0.4, 16)
