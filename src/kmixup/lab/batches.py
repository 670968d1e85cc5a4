"""One step's batch: gathered, augmented, normalised, mixed, and the loss on it.

All functions take what was drawn and draw nothing themselves, but for what depends on the
images: their crops and flips, and the boxes of CutMix.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.utils import _pytree as pytree

from kmixup.interpolation import Cut, Linear
from kmixup.lab.data import Dataset
from kmixup.lab.protocol import Method
from kmixup.lab.streams import Step
from kmixup.mixing import Mixed
from kmixup.nests import Nest, matched_features
from kmixup.pairing import Blocks, Pairing
from kmixup.targets import Decay, mix_targets

PADDING = 4


def batch_of(
    step: Step,
    data: Dataset,
    method: Method,
    *,
    augment: Generator | None,
    place: Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Mixed inputs `(n, ...)` and soft targets `(n, classes)` of a step.

    Where losses have weights, so have the targets: cross-entropy is linear in them.
    """
    x, y = gather(step.first, data, augment)
    if method.alpha == 0:
        return x, mix_targets(y, y, step.lam, data.num_classes)
    other = None if step.second is None else gather(step.second, data, augment)
    mixed = mix(step, method, x, y, other=other, classes=data.num_classes, place=place)
    if mixed.weight is None:
        return mixed.x, mixed.y
    return mixed.x, mixed.weight[:, None] * mixed.y


def mix(
    step: Step,
    method: Method,
    x: Nest,
    y: Tensor,
    *,
    other: tuple[Nest, Tensor] | None,
    classes: int,
    place: Generator | None = None,
) -> Mixed:
    """Mix a batch, of inputs or of what a layer made of them, as the step and method say."""
    n, k = len(y), method.k
    if other is None:
        # the order is random as it is: a batch faces itself, one block on, and so disjoint blocks
        k = within_k(k, n)
        other = pytree.tree_map(lambda leaf: leaf.roll(-k, 0), x), y.roll(-k)
    x2, y2 = other
    features = matched_features(x, x2, None, n=n, paired=True)
    partner = method.stage.partners(*features, Blocks(n, k))
    interpolation = Cut() if method.name == "cutmix" else Linear()
    lam, where = interpolation.draw(step.lam, pytree.tree_leaves(x), place)
    lam = lam.to(step.lam.dtype)
    mixed = pytree.tree_map(lambda a, b: interpolation(a, b, partner, lam, where), x, x2)
    targets = (y, y2.index_select(0, partner))
    locality = Decay() if method.name == "local" else None
    return Mixed(mixed, targets, partner, lam, classes, features, locality)


def within_k(k: int, n: int) -> int:
    """k, or half of a batch of `n` that is too short for two blocks of k."""
    return max(1, min(k, n // 2))


def partners(stage: Pairing, x: Tensor, x2: Tensor, k: int) -> Tensor:
    """Partners in each of m batches at once: `(m, n, d)` and `(m, n, d)` to rows `(m, n)`.

    Each batch is matched as it would be alone, the blocks of all in one call.
    """
    m, n, d = x.shape
    full = n - n % k
    rows = torch.empty(m, n, dtype=torch.long)
    for start, stop, size in ((0, full, k), (full, n, n - full)):
        if start == stop:
            continue
        width = stop - start
        a, b = (side[:, start:stop].reshape(m * width, d) for side in (x, x2))
        found = stage.partners(a, b, Blocks(m * width, size)).view(m, width)
        rows[:, start:stop] = found - torch.arange(m)[:, None] * width + start
    return rows


def soft_cross_entropy(logits: Tensor, targets: Tensor, count: float) -> Tensor:
    """-Σ targets · log softmax(logits) / count over `(..., n, classes)`, `(...)`."""
    return -(targets * logits.log_softmax(-1)).sum((-2, -1)) / count


def agreement(logits: Tensor, targets: Tensor) -> Tensor:
    """Weight that soft targets give to the chosen class, summed over `(..., n, classes)`, `(...)`.

    Of a mixed batch this is the lam-weighted number of samples that are put in a right class.
    """
    chosen = logits.detach().argmax(-1, keepdim=True)
    return targets.gather(-1, chosen).sum((-2, -1))


def error_rate(logits: Tensor, y: Tensor) -> Tensor:
    """Share of wrong classes over `(..., n, classes)` and `(..., n)`, `(...)` in float64."""
    return (logits.argmax(-1) != y).double().mean(-1)


def crop_and_flip(x: Tensor, generator: Generator) -> Tensor:
    """Each image `(n, channels, height, width)` moved by up to 4 pixels and maybe mirrored.

    What comes in from outside is black, the raw value 0.
    """
    n, channels, height, width = x.shape
    offset = torch.randint(2 * PADDING + 1, (n, 2), generator=generator)
    flip = torch.randint(2, (n, 1), generator=generator).bool()
    rows = offset[:, :1] + torch.arange(height)
    columns = offset[:, 1:] + torch.arange(width)
    columns = torch.where(flip, columns.flip(1), columns)
    padded = torch.nn.functional.pad(x, [PADDING] * 4)
    sample, channel = torch.arange(n), torch.arange(channels)
    index = (sample[:, None, None, None], channel[:, None, None], rows[:, None, :, None])
    return padded[tuple(i.to(x.device) for i in (*index, columns[:, None, None, :]))]


def gather(rows: Tensor, data: Dataset, augment: Generator | None) -> tuple[Tensor, Tensor]:
    """Inputs of the given rows, augmented and normalised, and their classes."""
    rows = rows.to(data.x_train.device)
    x = data.x_train.index_select(0, rows)
    if augment is not None:
        x = crop_and_flip(x, augment)
    return data.normalise(x), data.y_train.index_select(0, rows)
