"""Every type of target, with every method and every wrapper, against plain formulas."""

import pytest
import torch
from torch.nn import functional as F

import kmixup
from kmixup import Choice, CutMix, KMixup, Memory, Sometimes, WithClean
from kmixup.methods.kmixup import PairMixer
from methods.test_all_methods import CLASSES, DOUBLE, METHODS, SHAPE, made, seeded

N, SIDE = 12, SHAPE[1]
PASTE = {"CutMix", "ResizeMix", "SaliencyMix"}  # maps with their box
WHOLE = {"AutoMix", "CoMixup", "FMix", "GuidedMixup", "PuzzleMix", "StackMix"}  # no maps


def target(kind, side=SIDE):
    generator = torch.Generator().manual_seed(2)
    return {
        "classes": torch.randint(CLASSES, (N,), generator=generator),
        "soft": torch.rand(N, CLASSES, generator=generator),
        "regression": torch.randn(N, generator=generator),
        "map": torch.randint(CLASSES, (N, side, side), generator=generator),
        "dense": torch.randn(N, 3, side, side, generator=generator),
        "pass": torch.randn(N, 7, generator=generator),
    }[kind]


WRAPPERS = {
    "bare": lambda mixer: mixer,
    "memory": lambda mixer: Memory(mixer, 32),
    "sometimes": lambda mixer: Sometimes(mixer, 1.0),
    "choice": lambda mixer: Choice([mixer, KMixup(4, targets=mixer.targets)], [1, 0]),
    "choice per sample": lambda mixer: Choice(
        [mixer, KMixup(4, targets=mixer.targets)], [1, 0], per="sample"
    ),
    "clean": WithClean,
}


def soft_of(y):
    """Targets as floats: one-hot where they are integers."""
    return y if y.is_floating_point() else F.one_hot(y, CLASSES).movedim(-1, 1).float()


def pasted(m, y):
    """Maps with the box of CutMix: each pixel is the partner's if its center is in the box."""
    (m,) = getattr(m, "parts", [m])  # of a choice
    inside = torch.zeros(N, 1, SIDE, SIDE)
    for row, (top, left, bottom, right) in enumerate(m.region.expand(N, 4).tolist()):
        inside[row, :, top:bottom, left:right] = 1
    inside = F.interpolate(inside, y.shape[-2:], mode="nearest-exact") > 0
    return inside, torch.where(inside, soft_of(y)[m.partner[:N]], soft_of(y))


def expected(name, kind, m, y):
    """The mixed targets of the first N rows."""
    if kind == "pass":
        return y
    soft = soft_of(y)
    if name == "CoMixup":
        return torch.einsum("ij,j...->i...", m.shares, soft)
    if kind in ("map", "dense") and name in PASTE:
        return pasted(m, y)[1]
    lam = m.lam.expand(len(m.lam) if m.lam.dim() else N)[:N].view(-1, *[1] * (soft.dim() - 1))
    return lam * soft + (1 - lam) * soft[m.partner[:N]]


@pytest.mark.parametrize("kind", ["classes", "soft", "regression", "map", "dense", "pass"])
@pytest.mark.parametrize("name", [name for name in METHODS if name != "Choice"])
def test_targets_of_every_type_are_mixed_as_their_type_says(name, kind):
    drawn = torch.Generator().manual_seed(1)
    x, importance = torch.rand(N, *SHAPE, generator=drawn), torch.rand(N, SIDE, SIDE) ** 12
    y = target(kind)
    for wrapper, wrap in WRAPPERS.items():
        _, mixer = made(name, generator=seeded(), targets=kind)
        mixer.criterion = lambda outputs, y: outputs.square().mean()  # of AutoMix, for any targets
        mix = wrap(mixer)
        unfit = name in WHOLE and kind in ("map", "dense")
        if unfit or (name == "CMixup" and kind in ("classes", "map")):
            with pytest.raises((TypeError, ValueError), match="by one number|by their targets"):
                mix.mix(x, y, importance=importance)
            continue
        if wrapper == "choice per sample" and name in {"CoMixup", "LocalMixup"} | DOUBLE:
            with pytest.raises(TypeError, match="mixers that give each sample one partner"):
                mix.mix(x, y, importance=importance)
            continue
        m = mix.mix(x, y, importance=importance)
        if name == "ResizeMix" and kind in ("map", "dense"):
            inside, _ = pasted(m, y)
            assert (m.y[:N] == soft_of(y))[~inside.expand_as(m.y[:N])].all()
            assert inside.any()
        else:
            torch.testing.assert_close(m.y[:N], expected(name, kind, getattr(m, "mixed", m), y))
        assert len(m.y) == (2 * N if wrapper == "clean" or name in DOUBLE else N)
        torch.testing.assert_close(m.y[N:], (y if kind == "pass" else soft_of(y))[: len(m.y) - N])


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", [name for name in METHODS if name != "Choice"])
def test_no_output_shares_memory_with_another_one(name, wrapper):
    x, importance = torch.rand(N, *SHAPE), torch.rand(N, SIDE, SIDE) ** 12
    y = target("soft" if name == "CMixup" else "classes")
    _, mixer = made(name, generator=seeded())
    mix, outputs = WRAPPERS[wrapper](mixer), [x, y, importance]
    if wrapper == "choice per sample" and name in {"CoMixup", "LocalMixup"} | DOUBLE:
        return  # these raise
    for _ in range(3):
        mixed = mix.mix(x, y, importance=importance)
        outputs += [mixed.x, mixed.y, mixed.partner, mixed.lam, mixed.distance]
    before = [output.detach().clone() for output in outputs]
    mix.mix(x, y, importance=importance)
    assert len({output.untyped_storage().data_ptr() for output in outputs}) == len(outputs)
    assert all(map(torch.equal, outputs, before))


@pytest.mark.parametrize("kind", ["map", "dense"])
@pytest.mark.parametrize("name", sorted(PASTE))
@pytest.mark.parametrize("lam_per", ["batch", "sample"])
@pytest.mark.parametrize("side", [SIDE // 2, 2 * SIDE, 5, 1])
def test_boxes_scale_to_the_resolution_of_a_map(name, kind, lam_per, side):
    x, y = torch.rand(N, *SHAPE), target(kind, side)
    for _ in range(4):
        _, mixer = made(name, lam_per=lam_per, targets=kind)
        m = mixer.mix(x, y, importance=torch.rand(N, SIDE, SIDE) ** 12)
        inside, whole = pasted(m, y)
        if name == "ResizeMix":  # which pastes all of the partner, not what it has in the box
            inside, same = inside.expand_as(whole), m.y.isclose(soft_of(y))
            assert same[~inside].all()
        else:
            torch.testing.assert_close(m.y, whole)
        assert torch.equal(*m.targets)


def test_every_method_takes_types_and_other_types_raise():
    for name in METHODS:
        if name != "Choice":
            assert made(name, targets={"a": "pass"})[1].targets == {"a": "pass"}
    with pytest.raises(ValueError, match="targets must be one of classes, .*got 'box'"):
        KMixup(targets={"a": "box"})
    with pytest.raises(ValueError, match="mixers of a Choice must have the same targets"):
        Choice([KMixup(), CutMix(targets="pass")])
    assert issubclass(CutMix, PairMixer)
    assert WithClean(KMixup(targets="pass")).targets == "pass"


def test_targets_that_may_or_may_not_be_maps_raise_where_a_region_is_mixed():
    x, points = torch.rand(N, 3, 32, 32), torch.rand(N, 17, 2)
    m = KMixup(4, 1.0).mix(x, points)
    torch.testing.assert_close(m.y, m.lam * points + (1 - m.lam) * points[m.partner])
    for mix in (CutMix(4), kmixup.FMix(4), kmixup.ResizeMix(4)):
        with pytest.raises(ValueError, match=r"got \(12, 17, 2\) for images of \(32, 32\): give t"):
            mix.mix(x, points)
    m = CutMix(4, targets="regression").mix(x, points)
    torch.testing.assert_close(m.y, m.lam * points + (1 - m.lam) * points[m.partner])
    depth = torch.rand(N, 16, 16)
    with pytest.raises(ValueError, match="give targets='dense' or targets='regression'"):
        CutMix(4)(x, depth)
    assert torch.equal(*CutMix(4, targets="dense").mix(x, depth).targets)
    with pytest.raises(ValueError, match="give targets='map' or targets='classes'"):
        CutMix(4, 1.0, 5)(x, torch.randint(5, (N, 3, 7)))


def test_several_classes_in_each_sample_are_mixed_like_one():
    x, y = torch.rand(N, 3, 8, 8), torch.randint(CLASSES, (N, 7))
    for kind in (KMixup, CutMix):
        m = kind(4, 1.0, CLASSES, targets="classes").mix(x, y)
        one = F.one_hot(y, CLASSES).movedim(-1, 1).float()
        torch.testing.assert_close(m.y, m.lam * one + (1 - m.lam) * one[m.partner])


def test_what_is_passed_through_may_be_anything():
    x, y = torch.rand(N, 3, 8, 8), torch.arange(N) % CLASSES
    boxes = [{"boxes": torch.rand(row % 3, 4)} for row in range(N)]
    given = {"label": None, "objects": "pass", "weights": "pass"}
    nest = {"label": y, "objects": boxes, "weights": torch.rand(CLASSES)}
    for mix in (
        KMixup(4, 1.0, CLASSES, targets=given),
        Memory(CutMix(16, 1.0, CLASSES, targets=given), 64),
        Sometimes(KMixup(4, 1.0, CLASSES, targets=given), 0.0),
        KMixup(4, 1.0, {"label": CLASSES, "objects": None, "weights": None}, targets=given),
    ):
        for _ in range(2):
            soft = mix(x, nest)[1]
            assert soft["label"].shape == (N, CLASSES)
            assert soft["weights"] is nest["weights"]
            kept = zip(boxes, soft["objects"], strict=True)
            assert all(one["boxes"] is other["boxes"] for one, other in kept)
    with pytest.raises(
        TypeError, match="one row for each of the 12 samples in all entries of x and"
    ):
        WithClean(KMixup(4, 1.0, CLASSES, targets=given)).mix(x, nest)


# traps


class BoundingBoxes(torch.Tensor):
    """Stands for torchvision's, which need not be installed."""


BoundingBoxes.__module__ = "torchvision.tv_tensors._bounding_boxes"
BOXES = torch.rand(N, 5, 4)
OBJECTS = [{"boxes": torch.rand(3, 4), "labels": torch.arange(3)} for _ in range(N)]


@pytest.mark.parametrize(
    ("x", "y", "problem"),
    [
        (
            None,
            {"boxes": BOXES},
            "y has bounding boxes.*pass them through with targets=.pass.*only",
        ),
        (None, {"a": {"boxes": BOXES}}, "y has bounding boxes, which cannot be mixed"),
        (None, BOXES.as_subclass(BoundingBoxes), "y has bounding boxes, which cannot be mixed"),
        (None, [BOXES.as_subclass(BoundingBoxes)], "y has bounding boxes, which cannot be mixed"),
        (None, OBJECTS, "y has a list of dicts, as in object detection"),
        (None, {"objects": OBJECTS}, "y has a list of dicts, as in object detection"),
        (
            {"image": torch.rand(N, 3, 8, 8), "boxes": BOXES},
            torch.rand(N),
            "x has bounding boxes.*",
        ),
        (OBJECTS, None, "x has a list of dicts"),
    ],
)
@pytest.mark.parametrize("mix", [KMixup(4), CutMix(4), Choice([KMixup(4), CutMix(4)])], ids=str)
def test_boxes_and_lists_of_dicts_raise_with_what_to_do(mix, x, y, problem):
    with pytest.raises(TypeError, match=problem):
        mix(torch.rand(N, 3, 8, 8) if x is None else x, y)


def test_integer_rows_and_columns_raise_with_the_remedy():
    x = torch.rand(32, 3)
    with pytest.raises(
        ValueError, match=r"shape \(32, 7\) are ambiguous: use y.float\(\) for one-"
    ):
        KMixup(4, 1.0, 10)(x, torch.randint(2, (32, 7)))
    with pytest.raises(
        ValueError, match=r"must have the shape \(32,\), got \(32, 1\): use y\[:, 0\]"
    ):
        KMixup(4, 1.0, 10)(x, torch.randint(10, (32, 1)))
