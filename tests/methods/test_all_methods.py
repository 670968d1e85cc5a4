"""What holds for every method, by one table of them."""

import copy
import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import kmixup
from kmixup import Mixer

CLASSES, SHAPE = 5, (2, 16, 16)


def network():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, CLASSES),
    )


def identity(x):
    return x


SPECIAL = {  # arguments by network and k, where they are not k, alpha and the number of classes
    "AdaMixup": lambda net, k: (net, SHAPE, k, CLASSES),
    "AutoMix": lambda net, k: (net, SHAPE, k, 1.0, CLASSES),
    "CMixup": lambda net, k: (k,),
    "Choice": lambda net, k: ([kmixup.KMixup(k, 1.0, CLASSES), kmixup.CutMix(k, 1.0, CLASSES)],),
    "LatentMixup": lambda net, k: (identity, identity, k, 1.0, CLASSES),
    "ResizeMix": lambda net, k: (k, CLASSES),
    "StackMix": lambda net, k: (k, CLASSES),
}
PUBLIC = [getattr(kmixup, name) for name in kmixup.__all__]
MIXERS = {one.__name__ for one in PUBLIC if inspect.isclass(one) and issubclass(one, Mixer)}
METHODS = sorted(MIXERS - {"Mixer"} | {"Choice"})
LEARN = {"AdaMixup", "AutoMix"}  # their mixers are trained with the network
DOUBLE = {"AdaMixup", "AutoMix", "RegMixup"}
BY_IMPORTANCE = {"CoMixup", "GuidedMixup", "PuzzleMix", "SaliencyMix"}
OF_IMAGES = BY_IMPORTANCE | {"CutMix", "FMix", "ResizeMix"}
every = pytest.mark.parametrize("name", METHODS)
every_k = pytest.mark.parametrize("k", [1, 4])


def made(name, k=4, **options):
    """A network and a mixer for it, the same whenever asked for."""
    torch.manual_seed(0)
    net = network()
    arguments = SPECIAL[name](net, k) if name in SPECIAL else (k, 1.0, CLASSES)
    return net, getattr(kmixup, name)(*arguments, **options)


def batch(name, n=12, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(n, *SHAPE, generator=generator).to(dtype)
    importance = torch.rand(n, *SHAPE[1:], generator=generator) ** 12  # few salient places
    if name == "CMixup":
        return x, torch.randn(n, CLASSES, generator=generator), importance
    return x, torch.randint(CLASSES, (n,), generator=generator), importance


def seeded():
    return torch.Generator().manual_seed(7)


@every
@every_k
def test_mixing_equals_drawing_and_then_mixing_with_the_draw(name, k):
    x, y, importance = batch(name)
    kept = x.clone()
    _, mixer = made(name, k, generator=seeded())
    again = copy.deepcopy(mixer)
    whole = mixer.mix(x, y, importance=importance)
    draw = again.draw(len(x))
    for _ in range(1 if name in LEARN else 2):  # what learns may have moved
        mixed = again.mix(x, y, draw, importance=importance)
        assert torch.equal(mixed.x, whole.x)
        assert torch.equal(mixed.y, whole.y)
        assert torch.equal(mixed.partner, whole.partner)
        assert torch.equal(mixed.lam, whole.lam)
    assert torch.equal(x, kept)
    assert not torch.equal(whole.x[: len(x), :, : SHAPE[1]], x) or name == "StackMix"


@every
def test_a_resumed_mixer_goes_on_as_the_unbroken_one_would(name):
    x, y, importance = batch(name)
    _, mixer = made(name, generator=seeded())
    mixer.mix(x, y, importance=importance)
    saved = copy.deepcopy(mixer.state_dict())
    _, resumed = made(name, generator=torch.Generator())
    resumed.load_state_dict(saved)
    for _ in range(2):
        one, two = (m.mix(x, y, importance=importance) for m in (mixer, resumed))
        assert torch.equal(one.x, two.x)
        assert torch.equal(one.y, two.y)


@every
@every_k
def test_the_loss_and_its_gradients_are_those_of_soft_targets(name, k):
    x, y, importance = batch(name)
    net, mixer = made(name, k, generator=seeded())
    mixed = mixer.mix(x, y, importance=importance)
    logits = net(mixed.x)
    if name == "CMixup":
        # the square is not linear in the target: it exceeds that of the mixed targets by a spread
        loss = mixed.loss(nn.MSELoss(reduction="none"), logits).mean()
        own, partner = mixed.targets
        spread = mixed.lam * (1 - mixed.lam) * (own - partner).square().mean()
        by_hand = F.mse_loss(logits, mixed.y) + spread
    else:
        loss = mixed.loss(nn.CrossEntropyLoss(reduction="none"), logits).mean()
        each = -(mixed.y * logits.log_softmax(1)).sum(1)
        by_hand = (each if mixed.weight is None else mixed.weight * each).mean()
        by_hand = by_hand if mixed.penalty is None else by_hand + mixed.penalty
    assert torch.allclose(loss, by_hand, atol=1e-6)
    first, second = (
        torch.autograd.grad(value, [*net.parameters()], retain_graph=True)
        for value in (loss, by_hand)
    )
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(first, second, strict=True))
    if name != "CMixup":
        assert torch.allclose(mixed.y.sum(1), torch.ones(len(mixed.y)), atol=1e-5)
        assert 0 <= float(mixed.accuracy(logits).detach()) <= 1


@every
@every_k
def test_targets_are_those_of_the_samples_that_are_in_the_image(name, k):
    x, y, importance = batch(name)
    _, mixer = made(name, k, generator=seeded())
    mixed = mixer.mix(x, y, importance=importance)
    n = len(x)
    assert len(mixed.x) == len(mixed.y) == (2 * n if name in DOUBLE else n)
    if name == "CoMixup":
        shares = mixed.shares
    else:
        lam = mixed.lam.expand(len(mixed.y))[:n, None]
        shares = torch.eye(n) * lam + torch.eye(n)[mixed.partner[:n]] * (1 - lam)
    soft = y if name == "CMixup" else F.one_hot(y, CLASSES).float()
    assert torch.allclose(mixed.y[:n], shares @ soft, atol=1e-5)
    if name in DOUBLE:
        assert torch.equal(mixed.x[n:], x)
        assert torch.allclose(mixed.y[n:], soft)


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_kept(name, dtype):
    x, y, importance = batch(name, dtype=dtype)
    y = y.to(dtype) if name == "CMixup" else y
    _, mixer = made(name, generator=seeded())
    mixed = mixer.mix(x, y, importance=importance)
    assert mixed.x.dtype == dtype
    assert mixed.x.isfinite().all()
    assert mixed.y.dtype == (dtype if dtype == torch.float64 or name == "CMixup" else torch.float32)
    if name in LEARN:
        mixed.penalty.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in mixer.parameters())


@pytest.mark.parametrize("name", sorted(LEARN | {"LocalMixup"}))
def test_a_loss_with_weights_or_a_penalty_raises_where_only_targets_are_returned(name):
    x, y, _ = batch(name)
    _, mixer = made(name)
    for mix in (mixer, kmixup.Choice([kmixup.KMixup(1), mixer], [1, 0])):
        with pytest.raises(ValueError, match="cannot carry the weights or the penalty"):
            mix(x, y)


@every
def test_entries_of_a_dict_are_mixed_as_one_or_refused_in_a_sentence(name):
    x, y, importance = batch(name)
    nest = {"image": x, "id": torch.arange(len(x)), "known": torch.ones(len(x), 2) > 0}
    if name not in DOUBLE:
        nest["name"] = list("abcdefghijkl")
    _, mixer = made(name, generator=seeded())
    if name in LEARN:
        with pytest.raises(TypeError, match=r"learns from one tensor of .*, got dict"):
            mixer.mix(nest, y, importance=importance)
        return
    mixed = mixer.mix(nest, y, importance=importance)
    _, alone = made(name, generator=seeded())
    assert torch.equal(mixed.x["image"], alone.mix(x, y, importance=importance).x)
    for key in ("id", "known"):
        assert torch.equal(mixed.x[key][: len(x)], nest[key])
    assert mixed.x.get("name") == nest.get("name")


@pytest.mark.parametrize(
    "name", ["AutoMix", "CoMixup", "FMix", "GuidedMixup", "PuzzleMix", "StackMix"]
)
def test_masks_and_stacks_refuse_a_target_for_every_pixel(name):
    x, _, importance = batch(name)
    dense = torch.randint(CLASSES, (len(x), *SHAPE[1:]))
    _, mixer = made(name)
    with pytest.raises(ValueError, match=f"{name} weights targets by one number for each image"):
        mixer.mix(x, dense, importance=importance)


@pytest.mark.parametrize("name", sorted(BY_IMPORTANCE))
def test_importance_must_be_given_and_fit_the_images(name):
    x, y, importance = batch(name)
    _, mixer = made(name)
    with pytest.raises(ValueError, match=r"height and width of the images, got \(4, 4\)"):
        mixer.mix(x, y, importance=importance[:, :4, :4])
    if name in {"CoMixup", "PuzzleMix"}:  # the others have a default
        with pytest.raises(ValueError, match=f"{name} needs the importance of pixels, got none"):
            mixer.mix(x, y)


@pytest.mark.parametrize("name", sorted(OF_IMAGES))
def test_frames_of_a_video_are_mixed_alike_and_inputs_that_are_no_images_raise(name):
    x, y, importance = batch(name)
    _, mixer = made(name, generator=seeded())
    film = mixer.mix(x[:, :, None].expand(-1, -1, 3, -1, -1), y, importance=importance)
    assert torch.equal(film.x[:, :, :1].expand_as(film.x), film.x)
    _, mixer = made(name, generator=seeded())
    torch.testing.assert_close(film.x[:, :, 0], mixer.mix(x, y, importance=importance).x)
    with pytest.raises(ValueError, match=rf"{name} needs images of shape \(n, channels"):
        mixer.mix(x.flatten(1), y, importance=importance)
    if name not in {"CoMixup", "PuzzleMix"}:
        with pytest.raises(ValueError, match=rf"{name} needs images of shape \(n, channels"):
            mixer.mix(x.flatten(1), y)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"CMixup", "Choice", "GuidedMixup"}))
@every_k
@pytest.mark.parametrize("paired", [False, True])
def test_partners_are_those_of_kmixup(name, k, paired):
    x, y, importance = batch(name)
    more = {"importance": importance}
    if paired and name != "CoMixup":  # which takes partners from the batch only
        more = {"other": (x.flip(0), y.flip(0)), "importance": (importance, importance.flip(0))}
    _, mixer = made(name, k, generator=seeded())
    _, plain = made("KMixup", k, generator=seeded())
    partner = mixer.mix(x, y, **more).partner[: len(x)]
    assert torch.equal(partner, plain.mix(x, y, **more).partner)


@every
def test_in_evaluation_nothing_is_mixed(name):
    x, y, importance = batch(name)
    _, mixer = made(name)
    same, targets = mixer.eval()(x, y, importance=importance)
    assert torch.equal(same[..., : SHAPE[1], :], x)
    assert torch.equal(targets, y)
    assert torch.equal(mixer.mix(x, y).x, mixer.encode_clean(x))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "Choice"])
def test_an_unmixed_batch_is_clean_and_needs_neither_importance_nor_a_loss_of_its_own(name):
    x, y, _ = batch(name)
    for mixer, rows in ((made(name, prob=0.0)[1], 12), (made(name)[1], 1)):
        mixed = mixer.mix(x[:rows], y[:rows])
        assert torch.equal(mixed.x, mixer.encode_clean(x[:rows]))
        assert mixed.weight is None
        assert mixed.penalty is None


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("CMixup", {"sigma": 0.0}, "sigma must be a positive number, got 0.0"),
        ("CoMixup", {"alpha": -1.0}, "alpha must be a finite number"),
        ("LocalMixup", {"scale": 0.0}, "scale must be a finite number above 0, got 0.0"),
        ("LocalMixup", {"scale": float("inf")}, "scale must be a finite number above 0, got inf"),
        ("ResizeMix", {"scale": (0.5, 0.1)}, "scale must be two rising fractions"),
        ("ResizeMix", {"scale": 0.5}, "scale must be two rising fractions"),
        ("CutMix", {"sides": 0.5}, "sides must be two rising fractions"),
        ("SimilarMixup", {"tau_std": 0.0}, "tau_std must be a positive number, got 0.0"),
        ("SimilarMixup", {"alpha": -1.0}, "alpha must be a finite number"),
    ],
)
def test_settings_out_of_range_raise(name, settings, message):
    with pytest.raises(ValueError, match=message):
        getattr(kmixup, name)(**settings)
