"""Mixing on a GPU, without one: outputs stay on the device, and the host waits at most once.

Fake tensors claim to be on "cuda" and have no values. Reading one raises, unless it is a copy to
the CPU, which is counted: on a real GPU each such copy waits for all work before it.
"""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._mode_utils import no_dispatch

from kmixup import (
    AdaMixup,
    AutoMix,
    Beta,
    Choice,
    CMixup,
    CoMixup,
    CutMix,
    FMix,
    GuidedMixup,
    KMixup,
    LatentMixup,
    Linear,
    LocalMixup,
    Memory,
    Mixer,
    Nearest,
    PuzzleMix,
    RegMixup,
    SaliencyMix,
    SimilarMixup,
    Sometimes,
    StackMix,
    WithClean,
)

N, SHAPE, CLASSES = 32, (3, 8, 8), 10


class FakeDevice(FakeTensorMode):
    """Run what touches "cuda" on fake tensors, all else for real; count copies to the CPU."""

    def __init__(self):
        super().__init__(allow_non_fake_inputs=True)
        self.copies, self.inside = 0, False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, device = kwargs or {}, (kwargs or {}).get("device")
        on_device = any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves((args, kwargs)))
        on_device = on_device or torch.device(device or "cpu").type == "cuda"
        if not (on_device or self.inside):
            with no_dispatch():
                return func(*args, **kwargs)
        outermost, self.inside = not self.inside, True
        try:
            result = super().__torch_dispatch__(func, types, args, kwargs)
        finally:
            self.inside = not outermost
        if not outermost or func is not torch.ops.aten._to_copy.default or result.is_cuda:
            return result
        self.copies += 1
        with no_dispatch():  # squared distances and norms of points that are far apart
            return torch.ones(result.shape, dtype=result.dtype)


def identity(x):
    return x


def mixers(k):
    return {
        "KMixup": KMixup(k, 1.0, CLASSES),
        "KMixup, a lam per block": KMixup(k, 1.0, CLASSES, lam_per="block"),
        "KMixup, a lam per sample": KMixup(k, 1.0, CLASSES, lam_per="sample"),
        "Nearest": Mixer(Nearest(k), Beta(1.0), Linear(), num_classes=CLASSES),
        "CutMix": CutMix(k, 1.0, CLASSES),
        "CutMix, a lam per sample": CutMix(k, 1.0, CLASSES, lam_per="sample"),
        "FMix": FMix(k, 1.0, CLASSES),
        "RegMixup": RegMixup(k, 1.0, CLASSES),
        "LocalMixup": LocalMixup(k, 1.0, CLASSES),
        "StackMix": StackMix(k, CLASSES),
        "LatentMixup": LatentMixup(identity, identity, k, 1.0, CLASSES),
        "Choice": Choice([KMixup(k, 1.0, CLASSES), CutMix(k, 1.0, CLASSES)]),
        "Choice per sample": Choice(
            [KMixup(k, 1.0, CLASSES), CutMix(k, 1.0, CLASSES)], per="sample"
        ),
        "Memory": Memory(KMixup(k, 1.0, CLASSES), 64),
        "WithClean": WithClean(CutMix(k, 1.0, CLASSES)),
        "Sometimes": Sometimes(KMixup(k, 1.0, CLASSES), 1.0),
    }


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("name", mixers(1))
def test_outputs_stay_on_the_device_and_the_host_waits_at_most_once(name, k):
    mixer = mixers(k)[name]
    draw = mixer.draw(N, SHAPE)
    with FakeDevice() as device:
        x = torch.empty(N, *SHAPE, device="cuda")
        y = torch.empty(N, dtype=torch.long, device="cuda")
        mixed = mixer.mix(x, y, draw)
        outputs = [mixed.x, mixed.y, mixed.partner, mixed.distance]
        logits = torch.empty(len(mixed.x), CLASSES, device="cuda")
        outputs.append(mixed.loss(torch.nn.CrossEntropyLoss(reduction="none"), logits))
    assert {output.device.type for output in outputs} == {"cuda"}
    assert device.copies == (0 if k == 1 else 1)


# copies to the CPU at k = 1 and k = 4 of methods that compute there: the check of importance,
# saliency and images for the solvers of PuzzleMix and Co-Mixup, distances for SimilarMixup
ON_THE_HOST = {
    "SimilarMixup": (lambda k: SimilarMixup(k, 1.0, CLASSES), 1, 2),
    "CMixup": (lambda k: CMixup(k), 1, 1),
    "GuidedMixup": (lambda k: GuidedMixup(k, 1.0, CLASSES), 1, 2),
    "SaliencyMix": (lambda k: SaliencyMix(k, 1.0, CLASSES), 1, 2),
    "PuzzleMix": (lambda k: PuzzleMix(k, 1.0, CLASSES), 5, 6),
    "CoMixup": (lambda k: CoMixup(k, 2.0, CLASSES), 3, 4),
    "labels": (lambda k: KMixup(k, 1.0, CLASSES, labels=1.0), 0, 3),
}


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("name", ON_THE_HOST)
def test_methods_that_compute_on_the_host_copy_a_known_number_of_times(name, k):
    build, *copies = ON_THE_HOST[name]
    mixer = build(k)
    draw = mixer.draw(N, SHAPE)
    with FakeDevice() as device:
        x = torch.empty(N, *SHAPE, device="cuda")
        y = torch.empty(N, dtype=torch.float32 if name == "CMixup" else torch.long, device="cuda")
        needs_pixels = isinstance(mixer, (GuidedMixup, PuzzleMix, CoMixup))
        pixels = torch.empty(N, *SHAPE[1:], device="cuda") if needs_pixels else None
        mixed = mixer.mix(x, y, draw, importance=pixels)
        assert {mixed.x.device.type, mixed.y.device.type, mixed.partner.device.type} == {"cuda"}
    assert device.copies == copies[k > 1]


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(("kind", "least"), [(AdaMixup, 0), (AutoMix, 2)])
def test_methods_that_learn_wait_for_the_match_and_for_the_steps_of_their_copy(kind, least, k):
    """Without gradients, which fake tensors on "cuda" do not have here."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Flatten(), nn.Linear(256, CLASSES))
    mixer = kind(net, SHAPE, k, num_classes=CLASSES)
    draw = mixer.draw(N, SHAPE)
    with FakeDevice() as device, torch.no_grad():
        for module in [*net.modules(), *mixer.modules()]:
            for held in (module._parameters, module._buffers):
                for name, value in held.items():
                    empty = torch.empty_like(value, device="cuda")
                    held[name] = nn.Parameter(empty, False) if name in module._parameters else empty
        x = torch.empty(N, *SHAPE, device="cuda")
        mixed = mixer.mix(x, torch.empty(N, dtype=torch.long, device="cuda"), draw)
        logits = torch.empty(2 * N, CLASSES, device="cuda")
        loss = mixed.loss(nn.CrossEntropyLoss(reduction="none"), logits)
        assert {mixed.x.device.type, mixed.y.device.type, loss.device.type} == {"cuda"}
    assert device.copies == least + (k > 1)
