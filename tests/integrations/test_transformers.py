"""MixTrainer against the Trainer of transformers, with tiny models of random weights."""

import math

import pytest
import torch
from torch.nn import functional as F
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

from kmixup import Choice, CutMix, KMixup, RegMixup
from kmixup.integrations.transformers import MixTrainer


def vision(**settings):
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    patches = {"image_size": 8, "patch_size": 4, "intermediate_size": 8, "num_labels": 3}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return ViTForImageClassification(ViTConfig(**sizes, **patches, **dropout, **settings))


def images(n=24):
    torch.manual_seed(1)
    labels = torch.arange(n) % 3
    pixels = torch.randn(n, 3, 8, 8) + 3 * labels.view(-1, 1, 1, 1)
    return [
        {"pixel_values": pixel, "labels": int(label)}
        for pixel, label in zip(pixels, labels, strict=True)
    ]


def text(kind=BertForSequenceClassification, config=BertConfig):
    torch.manual_seed(0)
    if config is DistilBertConfig:
        sizes = {"dim": 8, "hidden_dim": 8, "n_layers": 1, "n_heads": 2}
    else:
        sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
        sizes |= {"num_attention_heads": 2}
    return kind(config(vocab_size=20, max_position_embeddings=16, num_labels=2, **sizes))


def sentences(n=16):
    """Sentences of 3 to 6 tokens, padded to 6."""
    torch.manual_seed(1)
    data = []
    for i in range(n):
        length = 3 + i % 4
        ids = torch.zeros(6, dtype=torch.long)
        ids[:length] = torch.randint(1, 20, (length,))
        data.append({"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": i % 2})
    return data


def trainer(tmp_path, model, data, kind=MixTrainer, mixer=None, **settings):
    steps = {"max_steps": 3, "per_device_train_batch_size": 8, "learning_rate": 0.01}
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "save_strategy": "no"}
    arguments = TrainingArguments(
        tmp_path, **(steps | quiet | {"logging_steps": 1, "seed": 3} | settings)
    )
    mixing = {} if kind is Trainer else {"mixer": mixer or KMixup(k=4)}
    return kind(model, arguments, train_dataset=data, eval_dataset=data, **mixing)


def step_and_mixed(training, batch, mixer, **more):
    """The loss of a step, and the batch that a mixer makes from the same random numbers."""
    training.model.train()
    torch.manual_seed(5)
    loss = training.training_step(training.model, dict(batch), **more)
    torch.manual_seed(5)
    return loss, *mixer(batch["pixel_values"], batch["labels"])


def batch_of(data):
    return {key: torch.stack([torch.as_tensor(row[key]) for row in data]) for key in data[0]}


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.slow
def test_a_vision_model_learns_from_mixed_images_and_is_evaluated_on_hard_labels(tmp_path):
    data = images()
    learning = trainer(tmp_path, vision(), data, max_steps=60, logging_steps=10)
    before = learning.evaluate()["eval_loss"]
    learning.train()
    after = learning.evaluate()["eval_loss"]
    assert after < 0.7 * before
    batch = batch_of(data)
    with torch.no_grad():
        logits = learning.model.eval()(batch["pixel_values"]).logits
    assert after == pytest.approx(float(F.cross_entropy(logits, batch["labels"])), rel=1e-4)


def test_the_loss_of_a_mixed_batch_is_the_cross_entropy_of_soft_labels(tmp_path):
    """A model that is given the soft labels trains one binary cross-entropy per class."""
    training = trainer(tmp_path, vision(), images(), label_smoothing_factor=0.1)
    mixer = KMixup(k=4, num_classes=3)
    loss, x, y = step_and_mixed(training, batch_of(images()), mixer)
    logits = training.model(x).logits
    torch.testing.assert_close(loss, F.cross_entropy(logits, y, label_smoothing=0.1).detach())
    naive = training.model(pixel_values=x, labels=y).loss
    assert torch.allclose(naive, F.binary_cross_entropy_with_logits(logits, y))
    assert not torch.allclose(naive, loss)


def test_without_mixing_every_step_is_that_of_the_plain_trainer(tmp_path):
    trained = []
    for kind in (Trainer, MixTrainer):
        training = trainer(
            tmp_path,
            vision(),
            images(),
            kind,
            KMixup(k=4, alpha=0.0),
            gradient_accumulation_steps=2,
            label_smoothing_factor=0.1,
        )
        training.train()
        losses = [line["loss"] for line in training.state.log_history if "loss" in line]
        trained.append((weights(training.model), losses, training.evaluate()["eval_loss"]))
    (plain, plain_losses, plain_test), (mixed, mixed_losses, mixed_test) = trained
    assert torch.allclose(plain, mixed, atol=1e-6)
    assert mixed_losses == pytest.approx(plain_losses, abs=2e-4)
    assert mixed_test == pytest.approx(plain_test, rel=1e-4)


def test_accumulated_gradients_are_the_mean_over_all_samples_of_a_step(tmp_path):
    model = vision()
    training = trainer(tmp_path, model, images(24), gradient_accumulation_steps=3)
    whole = batch_of(images(24))
    parts = [{key: value[i : i + 8] for key, value in whole.items()} for i in (0, 8, 16)]
    training.current_gradient_accumulation_steps = 3
    torch.manual_seed(5)
    for part in parts:
        training.training_step(model, part, num_items_in_batch=24)
    accumulated = torch.cat([p.grad.flatten() for p in model.parameters()])
    model.zero_grad()
    torch.manual_seed(5)
    mixer = KMixup(k=4, num_classes=3)
    mixed = [mixer(part["pixel_values"], part["labels"]) for part in parts]
    x, y = (torch.cat(side) for side in zip(*mixed, strict=True))
    F.cross_entropy(model(x).logits, y).backward()
    direct = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert torch.allclose(accumulated, direct, atol=1e-6)


def one_step(tmp_path, data, mixer, **settings):
    """The weights after one step of SGD, in which two batches of 8 are accumulated."""
    steps = {"max_steps": 1, "gradient_accumulation_steps": 2, "optim": "sgd", "seed": 3}
    training = trainer(
        tmp_path, vision(), data, mixer=mixer, learning_rate=1.0, max_grad_norm=0.0, **steps
    )
    training.train()
    return weights(training.model)


def test_a_clean_batch_beside_the_mixed_one_does_not_double_the_loss(tmp_path):
    plain = one_step(tmp_path, images(), KMixup(k=4, alpha=0.0))
    start = weights(vision())
    beside = one_step(tmp_path, images(), RegMixup(k=4, alpha=1e-4))  # lam is 0 or 1
    assert (beside - start).norm() < 1.2 * (plain - start).norm()
    training = trainer(tmp_path, vision(), images(), mixer=RegMixup(k=4))
    mixer = RegMixup(k=4, num_classes=3)
    loss, x, y = step_and_mixed(training, batch_of(images()), mixer, num_items_in_batch=24)
    torch.testing.assert_close(loss, F.cross_entropy(training.model(x).logits, y))


def decoder():
    torch.manual_seed(0)
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16, "vocab_size": 20}
    return GPT2ForSequenceClassification(GPT2Config(**sizes, num_labels=2, pad_token_id=0))


def test_a_decoder_reads_the_last_token_so_that_its_texts_are_padded_on_the_left(tmp_path):
    right = sentences()
    training = trainer(tmp_path, decoder(), right)
    message = "GPT2ForSequenceClassification.*predicts from the last position.*on the left"
    with pytest.raises(ValueError, match=message):
        training.train()
    left = [{k: v.flip(0) if k != "labels" else v for k, v in row.items()} for row in right]
    trainer(tmp_path, decoder(), left).train()
    whole = [{**row, "attention_mask": torch.ones(6, dtype=torch.long)} for row in right]
    trainer(tmp_path, decoder(), whole).train()


class Sound(torch.nn.Module):
    """Reads numbers under a mask, as models of audio do."""

    main_input_name = "input_values"

    def __init__(self):
        super().__init__()
        self.config = vision().config
        self.layer = torch.nn.Linear(6, 3)

    def forward(self, input_values, attention_mask=None):
        return {"logits": self.layer(input_values * attention_mask)}


def test_sounds_are_mixed_under_the_union_of_the_masks(tmp_path):
    mask = torch.arange(6) < torch.tensor([[2], [6]] * 8)
    batch = {"input_values": torch.randn(16, 6) * mask, "attention_mask": mask.long()}
    batch["labels"] = torch.arange(16) % 3
    training = trainer(tmp_path, Sound(), images())
    torch.manual_seed(5)
    changed = training._mixed(training.model, dict(batch))
    torch.manual_seed(5)
    mixed = KMixup(k=4, num_classes=3).mix(batch["input_values"], batch["labels"])
    assert torch.equal(changed["input_values"], mixed.x)
    assert torch.equal(changed["labels"], mixed.y)
    assert torch.equal(changed["attention_mask"], (mask | mask[mixed.partner]).long())


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (BertForSequenceClassification, BertConfig),
        (DistilBertForSequenceClassification, DistilBertConfig),
    ],
)
def test_text_is_mixed_as_embeddings_under_the_union_of_the_masks(tmp_path, kind, config):
    model, seen = text(kind, config), []
    training = trainer(tmp_path, model, sentences())
    model.register_forward_pre_hook(
        lambda module, args, inputs: seen.append(inputs), with_kwargs=True
    )
    training.train()
    assert len(seen) == 3
    for inputs in seen:
        assert "labels" not in inputs
        assert "input_ids" not in inputs
        assert inputs["inputs_embeds"].shape == (8, 6, 8)
    batch = batch_of(sentences())
    model.train()
    torch.manual_seed(5)
    training.training_step(model, dict(batch))
    embedded = model.get_input_embeddings()(batch["input_ids"])
    embedded = embedded * batch["attention_mask"][:, :, None]
    torch.manual_seed(5)
    mixed = KMixup(k=4, num_classes=2).mix(embedded, batch["labels"])
    mask = batch["attention_mask"] | batch["attention_mask"][mixed.partner]
    assert torch.equal(seen[-1]["inputs_embeds"], mixed.x)
    assert torch.equal(seen[-1]["attention_mask"], mask)
    assert mask.sum() > batch["attention_mask"].sum()
    # the embedding is trained through the mixed embeddings
    training.training_step(model, dict(batch))
    assert model.get_input_embeddings().weight.grad.abs().sum() > 0
    assert "eval_loss" in training.evaluate()


def test_a_text_without_a_mask_is_all_tokens(tmp_path):
    model = text()
    training = trainer(tmp_path, model, sentences())
    batch = batch_of(sentences())
    del batch["attention_mask"]
    changed = training._mixed(model, batch)
    assert changed["attention_mask"].all()


@pytest.mark.parametrize(
    ("problem", "criterion", "labels"),
    [
        ("regression", F.mse_loss, torch.linspace(-1, 1, 72).view(24, 3)),
        (
            "multi_label_classification",
            F.binary_cross_entropy_with_logits,
            (torch.arange(72).view(24, 3) % 5 < 2).float(),
        ),
    ],
)
def test_numbers_and_several_labels_have_losses_of_their_own(tmp_path, problem, criterion, labels):
    training = trainer(tmp_path, vision(problem_type=problem), images())
    batch = batch_of(images()) | {"labels": labels}
    loss, x, y = step_and_mixed(training, batch, KMixup(k=4))
    wanted = criterion(training.model(x).logits, y)
    assert torch.allclose(loss, wanted)
    assert problem != "regression" or torch.equal(loss, wanted)


def test_integers_are_numbers_where_the_model_has_one_output(tmp_path):
    model = vision()
    model.config.num_labels = 1
    targets = trainer(tmp_path, model, images())._targets(model, batch_of(images())["labels"])
    assert targets.dtype == torch.float32
    assert targets.shape == (24,)


def test_a_loss_of_the_user_is_given_soft_labels(tmp_path):
    seen = []

    def loss(outputs, labels, num_items_in_batch=None):
        seen.append(labels)
        return F.cross_entropy(outputs["logits"], labels)

    training = trainer(tmp_path, vision(), images())
    training = MixTrainer(
        vision(), training.args, train_dataset=images(), mixer=KMixup(4), compute_loss_func=loss
    )
    training.train()
    assert [labels.shape for labels in seen] == [(8, 3)] * 3


class Weighted(MixTrainer):
    """The documented recipe for class weights: `compute_loss` is overridden."""

    seen: list

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        self.seen.append(labels)
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, labels, weight=torch.tensor([1.0, 2.0, 3.0]))
        return (loss, outputs) if return_outputs else loss


def test_a_subclass_that_overrides_compute_loss_mixes(tmp_path):
    training = trainer(tmp_path, vision(), images(), Weighted)
    training.seen = []
    training.train()
    assert len(training.seen) == 3
    for labels in training.seen:
        assert labels.shape == (8, 3)
        assert ((labels > 0) & (labels < 1)).any()
    training.evaluate()
    assert all(labels.dtype == torch.int64 for labels in training.seen[3:])


def test_a_resumed_run_goes_on_as_it_would_have(tmp_path):
    settings = {"max_steps": 4, "save_strategy": "steps", "save_steps": 2}
    whole = trainer(tmp_path, text(), sentences(), **settings)
    whole.train()
    resumed = trainer(tmp_path, text(), sentences(), **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert torch.equal(weights(resumed.model), weights(whole.model))


class Watched(MixTrainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        self.seen.append(inputs["pixel_values"])
        return super().training_step(model, inputs, num_items_in_batch)

    def _mixed(self, model, inputs):
        mixed = super()._mixed(model, inputs)
        self.seen.append(mixed["pixel_values"])
        return mixed


def test_a_run_resumed_within_an_epoch_mixes_the_same_images(tmp_path):
    """Its weights may differ, as they do with the plain Trainer."""
    settings = {"max_steps": 5, "save_strategy": "steps", "save_steps": 2}
    whole, resumed = (trainer(tmp_path, vision(), images(), Watched, **settings) for _ in range(2))
    whole.seen, resumed.seen = [], []
    whole.train()
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert len(resumed.seen) == 6
    for mixed, again in zip(whole.seen[4:], resumed.seen, strict=True):
        assert torch.equal(mixed, again)


def test_a_mixer_in_eval_mode_ends_the_mixing(tmp_path):
    mixer = Choice([KMixup(4), CutMix(4)])
    training = trainer(tmp_path, vision(), images(), mixer=mixer)
    training.train()
    mixer.eval()
    batch = batch_of(images())
    training.model.train()
    loss = training.training_step(training.model, dict(batch))
    logits = training.model(batch["pixel_values"]).logits
    assert torch.equal(loss, F.cross_entropy(logits, batch["labels"]))


def test_what_cannot_be_mixed_is_refused(tmp_path):
    training, batch = trainer(tmp_path, vision(), images()), batch_of(images())
    for labels in (torch.zeros(24, 8, 8, dtype=torch.long), torch.ones(24, 3)):
        with pytest.raises(ValueError, match="one class for each sample, got .*problem_type"):
            training._mixed(training.model, batch | {"labels": labels})
    with pytest.raises(ValueError, match="needs 'labels' to be mixed"):
        training._mixed(training.model, {"pixel_values": batch["pixel_values"]})
    with pytest.raises(ValueError, match="needs 'pixel_values' to be mixed"):
        training._mixed(training.model, {"labels": batch["labels"]})


def test_clean_rows_double_all_tensors_of_a_batch(tmp_path):
    data = [row | {"token_type_ids": torch.zeros(6, dtype=torch.long)} for row in sentences()]
    training = trainer(tmp_path, text(), data, mixer=RegMixup(k=4))
    assert math.isfinite(training.train().training_loss)
