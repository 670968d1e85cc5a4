"""A `Trainer` of Hugging Face transformers that mixes training batches.

Models that get soft labels guess their loss from the labels' type: an image classifier then trains
one binary cross-entropy per class. Here models never see the labels; the loss is computed outside.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel, Trainer

from kmixup.collate import check_mixer
from kmixup.mixer import Mixing


class MixTrainer(Trainer):
    """A `transformers.Trainer` that mixes every training batch and evaluates on clean ones.

    Images, audio and other numbers are mixed as they are. Token ids are looked up in the model's
    embedding; the embeddings are mixed and passed on as `inputs_embeds`. A position counts if the
    attention mask of either sample has it. Decoders predict from the last position, so their texts
    must be padded on the left.

    `compute_loss` gets soft labels `(n, num_labels)`, also in a subclass that overrides it.
    `model.config` determines the loss: mean squared error if `problem_type` is "regression" or
    there is one label, binary cross-entropy for "multi_label_classification", cross-entropy
    otherwise, with `label_smoothing_factor`. Your own `compute_loss_func` or `compute_loss`
    replaces it. With accumulated gradients it must divide by `num_items_in_batch`, or set
    `loss_is_scaled_for_ga = False`. There is one label per sample: a class or numbers.

    Args:
        args, options: those of `Trainer`.
        mixer: e.g. `KMixup(k=16)`; the model sets the number of classes. Without its own generator
            it draws from torch's, whose state is part of the Trainer's checkpoints. In a
            distributed job every rank draws differently.

    >>> from kmixup import KMixup
    >>> from transformers import TrainingArguments, ViTConfig, ViTForImageClassification
    >>> small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> model = ViTForImageClassification(ViTConfig(image_size=32, num_labels=10, **small))
    >>> arguments = TrainingArguments("out", use_cpu=True, report_to=[])
    >>> trainer = MixTrainer(model, arguments, mixer=KMixup(k=16))
    """

    def __init__(self, *args: Any, mixer: Mixing, **options: Any) -> None:
        check_mixer(mixer)
        mixer.check_targets_suffice()
        if options.get("compute_loss_func") is None:
            # with such a function the Trainer keeps the labels from the model, and scales the loss
            # for accumulated gradients and for several devices
            options["compute_loss_func"] = self._loss
        super().__init__(*args, **options)
        self.mixer = mixer

    def training_step(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Mix a batch, and train on it as `Trainer.training_step` does."""
        bare = self.accelerator.unwrap_model(model)
        inputs = self._prepare_inputs(inputs)
        labels = inputs.get("labels")
        if self.mixer.training:
            inputs = self._mixed(bare, inputs)
        if num_items_in_batch is not None and isinstance(labels, Tensor):
            # the Trainer has counted the labels before they were mixed
            share = len(inputs["labels"]) / len(labels)
            if share != 1:
                num_items_in_batch = torch.as_tensor(num_items_in_batch) * share
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        return loss

    def _targets(self, model: PreTrainedModel, labels: Tensor) -> Tensor:
        """Return labels as floats, classes as one-hot."""
        if _kind(model) != "single_label_classification":
            return labels.float()
        if labels.is_floating_point() or labels.dim() != 1:
            raise ValueError(
                f"labels must be one class for each sample, got {labels.dtype} of shape "
                f"{tuple(labels.shape)}: set model.config.problem_type to "
                '"multi_label_classification" for several classes, or "regression" for numbers'
            )
        return F.one_hot(labels, model.config.num_labels).float()

    def _mixed(self, model: PreTrainedModel, inputs: dict[str, Any]) -> dict[str, Any]:
        name = model.main_input_name
        for needed in (name, "labels"):
            if needed not in inputs:
                raise ValueError(f"a batch needs {needed!r} to be mixed, got {sorted(inputs)}")
        targets = self._targets(model, inputs["labels"])
        x, mask, given = inputs[name], inputs.get("attention_mask"), name
        if not x.is_floating_point():
            given = "inputs_embeds"
            mask = torch.ones_like(x) if mask is None else mask
            _check_last_position(model, mask)
            x = model.get_input_embeddings()(x)
            # padding is not a token, and must not be mixed in as one
            x = x * mask.unsqueeze(-1).to(x.dtype)
        elif x.dim() > 3:
            mask = None  # images have no positions that a mask could count
        entries = {given: x} if mask is None else {given: x, "attention_mask": mask.float()}
        mixed = self.mixer.mix(entries, targets, features=given)
        changed = dict(mixed.x)
        if mask is not None:  # a position counts if either sample has it
            changed["attention_mask"] = (changed["attention_mask"] > 0).to(mask.dtype)
        kept = {key: value for key, value in inputs.items() if key != name}
        n = len(targets)
        if len(mixed.y) > n:  # clean rows are below the mixed ones
            for key, value in kept.items():
                if isinstance(value, Tensor) and value.dim() and len(value) == n:
                    kept[key] = torch.cat([value] * (len(mixed.y) // n))
        return kept | changed | {"labels": mixed.y}

    def _loss(
        self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Return the loss for hard or soft labels, the mean over all accumulated batches."""
        logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
        kind = _kind(self.accelerator.unwrap_model(self.model))
        if kind == "regression":
            losses = F.mse_loss(logits.view_as(labels), labels.to(logits.dtype), reduction="none")
        elif kind == "multi_label_classification":
            numbers = labels.to(logits.dtype)
            losses = F.binary_cross_entropy_with_logits(logits, numbers, reduction="none")
        else:
            smoothing = self.args.label_smoothing_factor
            losses = F.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)
        if num_items_in_batch is None:
            return losses.mean()
        return losses.sum() / torch.as_tensor(num_items_in_batch, device=losses.device)


def _kind(model: PreTrainedModel) -> str:
    """Return the `problem_type` of a model."""
    stated: str | None = model.config.problem_type
    if stated is not None:
        return stated
    return "regression" if model.config.num_labels == 1 else "single_label_classification"


def _check_last_position(model: PreTrainedModel, mask: Tensor) -> None:
    """Raise if texts are padded at the end where the model predicts from the last position.

    A decoder finds the last token by its token id. Given embeddings, it takes the last position.
    """
    bare = model.get_base_model() if hasattr(model, "get_base_model") else model  # of peft
    decodes = "past_key_values" in inspect.signature(bare.forward).parameters
    if decodes and not mask[..., -1].all():
        raise ValueError(
            f"texts of {type(bare).__name__}, which predicts from the last position, must "
            'be padded on the left to be mixed: set tokenizer.padding_side = "left"'
        )
