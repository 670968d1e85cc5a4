"""The Trainer of Hugging Face transformers, with mixed training batches.

A model that is handed soft labels guesses its loss from their type: an image classifier then
trains one binary cross-entropy per class. So the model never sees the labels here; its logits
are compared with them outside.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel, Trainer

from kmixup.batchnorm import clean_batchnorm
from kmixup.integrations.ranks import current_rank, draws_of_rank
from kmixup.mixing import Mixing


class MixTrainer(Trainer):
    """A `transformers.Trainer` that mixes every training batch and evaluates on clean ones.

    Images, audio and other numbers are mixed as they are. Token ids are looked up in the
    embedding of the model: embeddings are mixed and handed over as `inputs_embeds`, and a
    position counts if it is a token of either text.

    Args:
        args, options: those of `Trainer`.
        mixer: e.g. `KMixup(k=16)`; the number of classes is that of the model. Without a
            generator of its own it draws from torch's, whose state is part of the Trainer's
            checkpoints. In a distributed job every rank draws differently.
        clean_batchnorm: compute the statistics of batch norm afresh at the end of `train`, on
            the training batches as they are (see `kmixup.clean_batchnorm`).

    The loss follows from `model.config`: mean squared error where `problem_type` is
    "regression" or there is one label, binary cross-entropy for "multi_label_classification",
    cross-entropy otherwise, with `label_smoothing_factor`. A `compute_loss_func` of the user
    takes its place and is given soft labels. Labels are one per sample.

    >>> from kmixup import KMixup
    >>> from transformers import TrainingArguments, ViTConfig, ViTForImageClassification
    >>> small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> model = ViTForImageClassification(ViTConfig(image_size=32, num_labels=10, **small))
    >>> arguments = TrainingArguments("out", use_cpu=True, report_to=[])
    >>> trainer = MixTrainer(model, arguments, mixer=KMixup(k=16))
    """

    def __init__(
        self, *args: Any, mixer: Mixing, clean_batchnorm: bool = False, **options: Any
    ) -> None:
        if not isinstance(mixer, Mixing):
            raise TypeError(
                f"mixer must mix inputs, such as KMixup or CutMix, got {type(mixer).__name__}"
            )
        mixer.check_unweighted()
        if options.get("compute_loss_func") is None:
            # with a function of our own the Trainer keeps the labels from the model, and
            # scales the loss for accumulated gradients and for several devices
            options["compute_loss_func"] = self._loss
        super().__init__(*args, **options)
        self.mixer = mixer
        self.clean_batchnorm = clean_batchnorm

    def train(self, *args: Any, **options: Any) -> Any:
        """`Trainer.train`, with clean statistics of batch norm at its end if asked for."""
        trained = super().train(*args, **options)
        if self.clean_batchnorm:
            clean_batchnorm(self.model, self.get_train_dataloader(), call=self._run_unmixed)
        return trained

    def _run_unmixed(self, batch: dict[str, Any]) -> None:
        inputs = self._prepare_inputs(batch)
        self.model(**{name: value for name, value in inputs.items() if name != "labels"})

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The Trainer's loss, of a mixed batch while the model trains."""
        if model.training and self.mixer.training:
            inputs = self._mixed(self.accelerator.unwrap_model(model), inputs)
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

    @torch.no_grad()
    def _targets(self, model: PreTrainedModel, inputs: dict[str, Any]) -> Tensor:
        """Labels as floats, classes as one-hot."""
        if "labels" not in inputs:
            raise ValueError(f'a batch needs "labels" to be mixed, got {sorted(inputs)}')
        labels: Tensor = inputs["labels"]
        if labels.is_floating_point():
            return labels
        if labels.dim() != 1:
            raise ValueError(
                "labels must be one class for each sample, or floats to be interpolated, got "
                f"{labels.dtype} of shape {tuple(labels.shape)}"
            )
        if _kind(model) == "regression":
            return labels.float()
        return F.one_hot(labels, model.config.num_labels).float()

    def _mixed(self, model: PreTrainedModel, inputs: dict[str, Any]) -> dict[str, Any]:
        name = model.main_input_name
        targets = self._targets(model, inputs)
        if name not in inputs:
            raise ValueError(f"a batch needs {name!r} to be mixed, got {sorted(inputs)}")
        with draws_of_rank(self.mixer, current_rank()):
            if inputs[name].is_floating_point():
                x, y = self.mixer(inputs[name], targets)
                return {**inputs, name: x, "labels": y}
            mask = inputs.get("attention_mask")
            mask = torch.ones_like(inputs[name]) if mask is None else mask
            embedded = model.get_input_embeddings()(inputs[name])
            # padding stands for no token, and must not be mixed in as if it were one
            mixed = self.mixer.draw(embedded * mask.unsqueeze(-1).to(embedded.dtype), targets)
        either = torch.maximum(mask, mask[mixed.partner.to(mask.device)])
        changed = {"inputs_embeds": mixed.x, "attention_mask": either, "labels": mixed.y}
        return {key: value for key, value in inputs.items() if key != name} | changed

    def _loss(
        self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Loss of logits and labels, hard or soft; the mean over all accumulated batches."""
        logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
        kind = _kind(self.accelerator.unwrap_model(self.model))
        if kind == "regression":
            losses = F.mse_loss(logits.view_as(labels), labels.to(logits.dtype), reduction="none")
        elif kind == "multi_label_classification":
            losses = F.binary_cross_entropy_with_logits(
                logits, labels.to(logits.dtype), reduction="none"
            )
        else:
            losses = F.cross_entropy(
                logits, labels, reduction="none", label_smoothing=self.args.label_smoothing_factor
            )
        if num_items_in_batch is None:
            return losses.mean()
        # the Trainer counts entries of the labels: as many as there are losses
        return losses.sum() / torch.as_tensor(num_items_in_batch, device=losses.device)


def _kind(model: PreTrainedModel) -> str:
    """What the model predicts, in the words of its configuration."""
    stated: str | None = model.config.problem_type
    if stated is not None:
        return stated
    return "regression" if model.config.num_labels == 1 else "single_label_classification"
