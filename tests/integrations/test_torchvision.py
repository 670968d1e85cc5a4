"""The transforms of torchvision, with optimal pairs."""

import PIL.Image
import pytest
import torch
from laws import same_counts
from scipy import stats
from torchvision import tv_tensors
from torchvision.transforms import v2

import kmixup
from kmixup.integrations.torchvision import CutMix, MixUp

BOTH = pytest.mark.parametrize("kind", [MixUp, CutMix])
N, CLASSES, SIDE = 32, 10, 16


def images(n=N, channels=3):
    return torch.rand(n, channels, SIDE, SIDE)


def labels(n=N):
    return torch.arange(n) % CLASSES


@BOTH
@pytest.mark.parametrize(
    "call",
    [
        lambda t, x, y: t(x, y),
        lambda t, x, y: t((x, y)),
        lambda t, x, y: t({"image": x, "labels": y}).values(),
        lambda t, x, y: t(x, {"labels": y})[::1],
        lambda t, x, y: v2.Compose([t])(x, y),
        lambda t, x, y: v2.RandomChoice([t])(x, y),
        lambda t, x, y: v2.RandomApply([t], p=1.0)(x, y),
    ],
)
def test_every_way_to_call_gives_what_the_mixer_gives(kind, call):
    x, y = images(), labels()
    transform = kind(k=8, num_classes=CLASSES)
    # RandomChoice and RandomApply draw from torch's own generator
    transform.mixer.generator = torch.Generator().manual_seed(7)
    mixed, soft = call(transform, x, y)
    soft = soft["labels"] if isinstance(soft, dict) else soft
    transform.mixer.generator = torch.Generator().manual_seed(7)
    again, soft_again = transform(x, y)
    assert torch.equal(mixed, again)
    assert torch.equal(soft, soft_again)
    assert not torch.equal(mixed, x)
    assert soft.shape == (N, CLASSES)
    assert soft.dtype == torch.float32
    torch.testing.assert_close(soft.sum(1), torch.ones(N))


@pytest.mark.parametrize(("kind", "own"), [(MixUp, kmixup.KMixup), (CutMix, kmixup.CutMix)])
@pytest.mark.parametrize("k", [1, 8])
def test_a_transform_is_the_method_of_the_library(kind, own, k):
    x, y = images(), labels()
    torch.manual_seed(1)
    mixed, soft = kind(k=k, alpha=0.4, num_classes=CLASSES)(x, y)
    torch.manual_seed(1)
    direct, direct_soft = own(k, 0.4, CLASSES)(x, y)
    assert torch.equal(mixed, direct)
    torch.testing.assert_close(soft, direct_soft)


@BOTH
def test_tensors_of_torchvision_keep_their_type_and_plain_ones_beside_them_stay(kind):
    y, extra = labels(), torch.rand(N, 3)
    image = tv_tensors.Image(images())
    video = tv_tensors.Video(torch.rand(N, 2, 3, SIDE, SIDE))
    sample = {"image": image, "video": video, "labels": y, "extra": extra, "name": "a"}
    mixed = kind(k=4, num_classes=CLASSES)(sample)
    assert type(mixed["image"]) is tv_tensors.Image
    assert type(mixed["video"]) is tv_tensors.Video
    assert mixed["extra"] is extra
    assert mixed["name"] == "a"
    assert not torch.equal(mixed["image"], image)
    assert not torch.equal(mixed["video"], video)


@BOTH
def test_soft_labels_are_mixed_as_they_are(kind):
    x = images()
    soft = torch.rand(N, CLASSES).softmax(1)
    mixed = kind(k=4)(x, soft)[1]
    assert not torch.equal(mixed, soft)
    torch.testing.assert_close(mixed.sum(1), torch.ones(N))
    whole = torch.nn.functional.one_hot(labels(), CLASSES)
    assert kind(k=4)(x, whole)[1].dtype == torch.float32


@BOTH
def test_integers_are_cut_and_not_averaged(kind):
    x = (255 * images()).byte()
    if kind is CutMix:
        assert kind(k=4, num_classes=CLASSES)(x, labels())[0].dtype == torch.uint8
    else:
        with pytest.raises(TypeError, match="must be floating point, got torch.uint8"):
            kind(k=4, num_classes=CLASSES)(x, labels())


REFUSED = {
    "PIL": lambda: (PIL.Image.new("RGB", (4, 4)), labels()),
    "mask": lambda: (tv_tensors.Mask(torch.zeros(N, SIDE, SIDE)), labels()),
    "boxes": lambda: (
        images(),
        labels(),
        tv_tensors.BoundingBoxes([[0, 0, 1, 1]], format="XYXY", canvas_size=(SIDE, SIDE)),
    ),
    "labels that are no tensor": lambda: {"image": images(), "labels": "cat"},
    "labels with three dimensions": lambda: (images(), torch.zeros(N, 2, 2)),
    "labels of another width": lambda: (images(), torch.rand(N, CLASSES + 1)),
    "one image": lambda: (images()[0], labels()),
    "fewer labels": lambda: (images(), labels(N - 1)),
    "no labels": lambda: {"image": images()},
    "a class too many": lambda: (images(), labels() + 1),
}


@BOTH
@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_what_torchvision_refuses_is_refused_in_the_same_words(kind, make):
    sample = make()
    theirs = getattr(v2, kind.__name__)(num_classes=CLASSES)
    with pytest.raises((ValueError, RuntimeError, TypeError)) as refused:
        theirs(sample)
    with pytest.raises(type(refused.value)) as ours:
        kind(num_classes=CLASSES, k=4)(sample)
    assert str(ours.value) == str(refused.value)


@BOTH
def test_alpha_0_mixes_nothing(kind):
    x, y = images(), labels()
    mixed, soft = kind(alpha=0, num_classes=CLASSES)(x, y)
    assert torch.equal(mixed, x)
    assert torch.equal(soft, torch.eye(CLASSES)[y])


@BOTH
def test_class_indices_need_their_number_and_alpha_must_be_positive(kind):
    with pytest.raises(ValueError, match="num_classes must be passed"):
        kind()(images(), labels())
    with pytest.raises(ValueError, match="labels_getter should either be"):
        kind(labels_getter="first")
    with pytest.raises(ValueError, match="alpha must be"):
        kind(alpha=-1.0)
    with pytest.raises(ValueError, match="k must be a whole number"):
        kind(k=0)


@BOTH
def test_the_transforms_are_torchvisions_and_say_what_they_are(kind):
    transform = kind(k=8, num_classes=CLASSES)
    assert isinstance(transform, getattr(v2, kind.__name__))
    assert "k=8, alpha=1.0, num_classes=10" in repr(transform)
    assert transform.k == 8
    assert transform.state_dict() == {}


@BOTH
def test_in_eval_mode_images_stay_and_labels_are_one_hot(kind):
    x, y = images(), labels()
    mixed, soft = kind(k=8, num_classes=CLASSES).eval()(x, y)
    assert torch.equal(mixed, x)
    assert torch.equal(soft.argmax(1), y)


def account(transform, draws=1500):
    """lam, and top, left, bottom and right of the box, of every draw."""
    x = torch.arange(2.0)[:, None, None, None].expand(2, 1, 12, 20).contiguous()
    rows = []
    for _ in range(draws):
        mixed, soft = transform(x, torch.arange(2))
        inside = (mixed[0, 0] != 0).nonzero() if isinstance(transform, v2.CutMix) else []
        box = [*inside.amin(0).tolist(), *inside.amax(0).tolist()] if len(inside) else [-1] * 4
        rows.append([float(soft[0, 0]), *box])
    return torch.tensor(rows, dtype=torch.float64).numpy()


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_at_k_1_lam_and_box_have_the_law_of_torchvision(name, alpha):
    """Two samples of 1,500: Kolmogorov and Smirnov for lam, chi² for every side of the box.

    The seeds are fixed. A right law fails at 0.1 % for each of the (at most six) figures.
    """
    kinds = {"MixUp": MixUp, "CutMix": CutMix}
    torch.manual_seed(0)
    theirs = account(getattr(v2, name)(alpha=alpha, num_classes=2))
    ours = account(kinds[name](k=1, alpha=alpha, num_classes=2))
    assert stats.ks_2samp(theirs[:, 0], ours[:, 0]).pvalue > 1e-3
    if name == "CutMix":
        for side in range(1, 5):
            assert same_counts(theirs[:, side], ours[:, side]) > 1e-3
        area = [(rows[:, 3] - rows[:, 1]) * (rows[:, 4] - rows[:, 2]) for rows in (theirs, ours)]
        assert stats.ks_2samp(*area).pvalue > 1e-3


def test_mixers_recognize_the_boxes_of_torchvision():
    x = torch.rand(4, 3, 8, 8)
    boxes = tv_tensors.BoundingBoxes(torch.rand(4, 4), format="XYXY", canvas_size=(8, 8))
    for y in (boxes, {"where": boxes}):
        with pytest.raises(TypeError, match="y has bounding boxes, which cannot be mixed"):
            kmixup.KMixup(2)(x, y)
        assert kmixup.KMixup(2, targets="pass")(x, y)[1] is not None
