"""The cost of mixing through a framework, beside the direct call and the framework's own mixup."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import Dataset, default_collate

from benchmarks.tables import table
from kmixup import KMixup, MixCollate
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved
from tests.integrations.torchvision_operators import define_missing

SHAPE, K, CLASSES = (128, 3, 32, 32), 16, 10
Call = Callable[[], object]


@dataclass(frozen=True)
class Route:
    """One way to mix a batch.

    Attributes:
        ours: the call that goes through the integration.
        direct: the same work with `KMixup` called by hand.
        own: what the framework has itself, with random pairs; None where it has nothing.
    """

    ours: Call
    direct: Call
    own: Call | None = None


def mixer() -> KMixup:
    return KMixup(K, 1.0, CLASSES)


def collate(x: Tensor, y: Tensor) -> Route:
    samples, mix = list(zip(x, y, strict=True)), mixer()
    return Route(
        partial(MixCollate(mixer()), samples),
        lambda: mix(*default_collate(samples)),
        partial(default_collate, samples),
    )


def torchvision(x: Tensor, y: Tensor) -> Route:
    from torchvision.transforms import v2

    from kmixup.integrations.torchvision import MixUp

    transform = MixUp(k=K, num_classes=CLASSES)
    return Route(
        lambda: transform(x, y),
        partial(mixer(), x, y),
        partial(v2.MixUp(num_classes=CLASSES), x, y),
    )


def timm(x: Tensor, y: Tensor) -> Route:
    from timm import data

    from kmixup.integrations.timm import Mixup

    theirs, scratch = data.Mixup(num_classes=CLASSES), x.clone()  # it mixes in place
    return Route(
        partial(Mixup(num_classes=CLASSES, k=K), x, y),
        partial(mixer(), x, y),
        partial(theirs, scratch, y),
    )


def timm_prefetcher(x: Tensor, y: Tensor) -> Route:
    from timm import data

    from kmixup.integrations.timm import FastCollateMixup

    images = (x.sigmoid() * 255).byte().numpy()
    samples, mix = list(zip(images, y.tolist(), strict=True)), mixer()

    def by_hand() -> tuple[Tensor, Tensor]:
        stacked = torch.stack([torch.from_numpy(image) for image, _ in samples]).float()
        mixed, soft = mix(stacked, torch.tensor([label for _, label in samples]))
        return mixed.round().byte(), soft

    return Route(
        partial(FastCollateMixup(num_classes=CLASSES, k=K), samples),
        by_hand,
        partial(data.FastCollateMixup(num_classes=CLASSES), samples),
    )


def lightning(x: Tensor, y: Tensor) -> Route:
    from kmixup.integrations.lightning import MixCallback

    callback = MixCallback(mixer())
    return Route(partial(callback._mix, x, y), partial(mixer(), x, y))


def transformers(x: Tensor, y: Tensor) -> Route:
    from transformers import TrainingArguments, ViTConfig, ViTForImageClassification

    from kmixup.integrations.transformers import MixTrainer

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = ViTConfig(image_size=32, num_attention_heads=2, num_labels=CLASSES, **sizes)
    model = ViTForImageClassification(config)
    arguments = TrainingArguments(use_cpu=True, report_to=[])
    trainer = MixTrainer(model, arguments, mixer=KMixup(K, 1.0))
    batch = {"pixel_values": x, "labels": y}
    return Route(lambda: trainer._mixed(model, batch), partial(mixer(), x, y))


def fastai(x: Tensor, y: Tensor) -> Route:
    from fastai.callback.mixup import MixUp

    from kmixup.integrations.fastai import KMixUp

    def step(callback: MixUp | KMixUp) -> Call:
        callback.learn = SimpleNamespace(x=x, y=y)
        callback.stack_y = True

        def before_batch() -> None:
            callback.learn.xb, callback.learn.yb = (x,), (y,)
            callback.before_batch()

        return before_batch

    direct = KMixup(K, 0.4, CLASSES, lam_per="sample")
    return Route(step(KMixUp(0.4, k=K)), partial(direct.mix, x, y), step(MixUp(0.4)))


def keras(x: Tensor, y: Tensor) -> Route:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    from keras import layers

    from kmixup.integrations.keras import KMixUp

    batch = {"images": x.permute(0, 2, 3, 1).contiguous(), "labels": F.one_hot(y, CLASSES).float()}
    direct = KMixup(K, 0.2, lam_per="sample")
    layer: Any = KMixUp(0.2, k=K, seed=0)
    return Route(
        partial(layer, batch),
        partial(direct, batch["images"], batch["labels"]),
        partial(layers.MixUp(0.2, seed=0), batch),
    )


ROUTES: Mapping[str, Callable[[Tensor, Tensor], Route]] = {
    "MixCollate, beside default_collate": collate,
    "torchvision MixUp": torchvision,
    "timm Mixup": timm,
    "timm FastCollateMixup": timm_prefetcher,
    "lightning MixCallback": lightning,
    "transformers MixTrainer": transformers,
    "fastai KMixUp": fastai,
    "Keras KMixUp": keras,
}


def integrations(seconds: float) -> None:
    define_missing()
    rows, missing = [], []
    x, y = torch.randn(SHAPE), torch.randint(CLASSES, SHAPE[:1])
    for name, build in ROUTES.items():
        try:
            route = build(x, y)
        except ImportError as error:
            missing.append(f"{name} is left out: {error}. `make integrations` installs it.")
            continue
        contenders = {"direct": route.direct, "ours": route.ours}
        if route.own is not None:
            contenders["own"] = route.own
        timed = interleaved(contenders, seconds=seconds)
        own = "" if route.own is None else f"{timed.ratio('own', 'direct'):.2f} x"
        direct, ours = stopwatch(timed.best("direct")), timed.ratio("ours", "direct")
        rows.append([name, direct, f"{ours:.2f} x", own])
    table(
        f"A batch {SHAPE} mixed with k = {K}: by hand, through a framework, and by what the "
        "framework has itself",
        ["route", "direct call", "route : direct", "the framework's own : direct"],
        rows,
    )
    for sentence in missing:
        print(sentence)
    loaders(seconds)


class Pictures(Dataset[tuple[Any, int]]):
    """Smooth random JPEGs in memory, a seventh larger than `side`."""

    transform: Callable[[Image.Image], Any] | None = None

    def __init__(self, n: int, side: int) -> None:
        random, size = np.random.default_rng(0), side * 8 // 7
        self.files = []
        for _ in range(n):
            small = random.integers(0, 256, (9, 9, 3), dtype=np.uint8)
            file = BytesIO()
            Image.fromarray(small).resize((size, size), Image.Resampling.BICUBIC).save(file, "JPEG")
            self.files.append(file.getvalue())

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = Image.open(BytesIO(self.files[index])).convert("RGB")
        return self.transform(image) if self.transform else image, index % CLASSES


def loaders(seconds: float) -> None:
    """timm's loader with its FastCollateMixup and with ours: decoding, augmenting and mixing."""
    try:
        from timm import data

        from kmixup.integrations.timm import FastCollateMixup
    except ImportError as error:
        print(f"timm's loader is left out: {error}. `make integrations` installs it.")
        return
    rows = []
    for side in (32, 224):
        pictures = Pictures(SHAPE[0], side)
        options: dict[str, Any] = {"mixup_alpha": 0.8, "num_classes": CLASSES}
        kinds = {
            "timm": data.FastCollateMixup(**options),
            "k = 1": FastCollateMixup(**options, k=1),
            "k = 16": FastCollateMixup(**options, k=K),
        }
        loading = {
            name: data.create_loader(
                pictures,
                input_size=(3, side, side),
                batch_size=SHAPE[0],
                is_training=True,
                collate_fn=collate_fn,
                num_workers=0,
                persistent_workers=False,
                pin_memory=False,
                device=torch.device("cpu"),
            )
            for name, collate_fn in kinds.items()
        }
        samples = [pictures[index] for index in range(len(pictures))]  # the loader set a transform
        collating: dict[str, Call] = {
            name: partial(collate_fn, samples) for name, collate_fn in kinds.items()
        }
        whole: dict[str, Call] = {name: partial(list, loader) for name, loader in loading.items()}
        for what, contenders in (("collate", collating), ("loader", whole)):
            timed = interleaved(contenders, seconds=seconds, clock=time.process_time)
            ratios = [f"{timed.ratio(name, 'timm'):.2f} x" for name in ("k = 1", "k = 16")]
            rows.append([f"{side}²", what, stopwatch(timed.best("timm")), *ratios])
    table(
        f"A batch of {SHAPE[0]} JPEGs in timm's loader, mixed, in CPU time",
        ["image", "what", "timm", "k = 1 : timm", "k = 16 : timm"],
        rows,
    )
