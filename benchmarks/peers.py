"""Mixing methods against other libraries, which pair at random."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

import kmixup
from benchmarks.calls import CLASSES, HEAPS, measured
from benchmarks.tables import table
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved
from tests.integrations.torchvision_operators import define_missing

Call = Callable[[], object]
BATCHES = [(128, 3, 32, 32), (64, 3, 224, 224)]
K = 16
OURS: dict[str, Callable[..., kmixup.Mixing]] = {
    "MixUp": kmixup.KMixup,
    "CutMix": kmixup.CutMix,
    "ResizeMix": kmixup.ResizeMix,
    "FMix": kmixup.FMix,
    "SaliencyMix": kmixup.SaliencyMix,
}


def torchvision(method: str, x: Tensor, y: Tensor) -> Call:
    define_missing()
    from torchvision.transforms import v2

    transforms = {"MixUp": v2.MixUp, "CutMix": v2.CutMix}
    return partial(transforms[method](num_classes=CLASSES), x, y)


def timm(method: str, x: Tensor, y: Tensor) -> Call:
    """On a clone, because timm mixes in place."""
    define_missing()
    from timm.data.mixup import Mixup

    alphas = {"MixUp": (1.0, 0.0), "CutMix": (0.0, 1.0)}
    mixup, cutmix = alphas[method]
    mix = Mixup(mixup, cutmix, label_smoothing=0.0, num_classes=CLASSES)
    return lambda: mix(x.clone(), y)


def kornia(method: str, x: Tensor, y: Tensor) -> Call:
    from kornia import augmentation

    mixes = {"MixUp": augmentation.RandomMixUpV2, "CutMix": augmentation.RandomCutMixV2}
    return partial(mixes[method](p=1.0, data_keys=["input", "class"]), x, y)


def pypi_mixup(method: str, x: Tensor, y: Tensor) -> Call:
    """The package `mixup`, which needs one-hot targets."""
    import mixup

    names = {"MixUp": "VanillaMixUp"}
    mix = getattr(mixup, names.get(method, method))(alpha=1.0)
    return lambda: mix(x, F.one_hot(y, CLASSES).float())


PEERS = {"torchvision": torchvision, "timm": timm, "kornia": kornia, "mixup 0.2": pypi_mixup}


def peers(seconds: float) -> None:
    """CPU time of a call relative to peers; below 1 is faster."""
    rows = []
    for shape in BATCHES:
        for method in OURS:
            for heap, settings in HEAPS.items():
                call = f"ratios({shape}, {method!r}, {seconds})"
                rows.append([str(shape), method, heap, *measured("peers", call, settings)])
    table(
        f"CPU time of methods on one thread, and as a multiple of their peers', which pair at "
        f"random: at k = 1, and at k = {K} with optimal pairs",
        ["batch", "method", "memory", "k = 1", f"k = {K}"]
        + [f"/ {peer}, {k}" for peer in PEERS for k in ("k = 1", f"k = {K}")],
        rows,
    )


def ratios(shape: tuple[int, ...], method: str, seconds: float) -> None:
    """Print the times of a method, and their ratios to those of its peers, one to a line."""
    torch.set_num_threads(1)
    x, y = torch.rand(shape), torch.randint(CLASSES, shape[:1])
    ours: dict[str, Call] = {
        str(k): partial(OURS[method](k, num_classes=CLASSES), x, y) for k in (1, K)
    }
    theirs = {}
    for name, build in PEERS.items():
        try:
            theirs[name] = build(method, x, y)
        except (ImportError, KeyError):  # not installed, or without this method
            continue
    timed = interleaved(ours | theirs, seconds=seconds, clock=time.process_time)
    print(*(stopwatch(timed.best(k)) for k in ours), sep="\n")
    for name in PEERS:
        print(*(f"{timed.ratio(k, name):.2f}" if name in theirs else "–" for k in ours), sep="\n")
