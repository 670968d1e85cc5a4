import io
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import kmixup
from kmixup import (
    Choice,
    Coefficient,
    CutMix,
    Draw,
    HiddenMixup,
    Interpolation,
    KMixup,
    Linear,
    Memory,
    Mixer,
    Nearest,
    Pairing,
    Sometimes,
    WithClean,
    match,
)
from oracles import seeded


def batch(n: int = 32, *shape: int, classes: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(n, *(shape or (3, 4))), torch.randint(classes, (n,))


def expand(lam: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return lam if lam.dim() == 0 else lam.view(-1, *[1] * (like.dim() - 1))


def one_hot(y: torch.Tensor) -> torch.Tensor:
    return F.one_hot(y, 5).float()


@given(
    n=st.integers(2, 40),
    k=st.integers(1, 8),
    alpha=st.sampled_from([1e-3, 0.2, 1.0, 1e4]),
    lam_per=st.sampled_from(["batch", "block", "sample"]),
    across=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:a batch of")
def test_row_i_is_sample_i_mixed_with_its_partner(n, k, alpha, lam_per, across):
    (x, y), (x2, y2) = batch(n), batch(n)
    copies = [t.clone() for t in (x, y, x2, y2)]
    m = KMixup(k, alpha, 5, lam_per=lam_per).mix(x, y, other=(x2, y2) if across else None)
    assert all(map(torch.equal, (x, y, x2, y2), copies))
    other, other_y = (x2, y2) if across else (x, y)
    assert torch.equal(m.targets[0], y)
    assert torch.equal(m.targets[1], other_y[m.partner])
    for mixed, first, second in ((m.x, x, other), (m.y, one_hot(y), one_hot(other_y))):
        lam = expand(m.lam, first)
        expected = lam * first + (1 - lam) * second[m.partner]
        torch.testing.assert_close(mixed, expected, atol=1e-5, rtol=0)
    gap = (x - other[m.partner]).flatten(1).norm(dim=1)
    torch.testing.assert_close(m.distance, gap, atol=1e-5, rtol=1e-5)


def test_k_1_pairs_and_lam_have_the_law_of_mixup():
    mix = KMixup(1, 0.4, generator=seeded())
    x, y = torch.zeros(6, 1), torch.zeros(6)
    met, lams = torch.zeros(6, 6), []
    for _ in range(4000):
        m = mix.mix(x, y)
        met[torch.arange(6), m.partner] += 1
        lams.append(float(m.lam))
    expected = (1 - torch.eye(6)) * 4000 / 5
    assert ((met - expected).abs() < 5 * 800**0.5).all()
    lam = torch.tensor(lams)
    assert float(lam.mean()) == pytest.approx(0.5, abs=0.03)
    assert float(lam.var()) == pytest.approx(0.25 / 1.8, rel=0.05)


def test_the_partner_is_the_optimal_match():
    (x, y), (x2, y2) = batch(32), batch(32)
    m = KMixup(16, 1.0, 5).mix(x, y, other=(x2, y2))
    assert torch.equal(m.partner, match(x, x2, k=16))
    assert not torch.equal(
        m.partner, KMixup(16, 1.0, 5, metric="cosine").mix(x, y, other=(x2, y2)).partner
    )


def test_lam_is_one_number_per_batch_block_or_sample():
    x, y = batch(20)
    assert KMixup(8, num_classes=5).mix(x, y).lam.dim() == 0
    each = KMixup(8, num_classes=5, lam_per="sample").mix(x, y).lam
    assert len(each.unique()) == 20
    mix = KMixup(8, num_classes=5, lam_per="block", generator=seeded())
    lam = mix.mix(x, y).lam
    mix.generator = seeded()
    index = torch.from_numpy(mix.draw(20).blocks.index())
    assert len(lam.unique()) == 3
    assert all(len(lam[index == b].unique()) == 1 for b in range(3))


@pytest.mark.parametrize(("n", "alpha", "prob"), [(32, 0.0, 1.0), (32, 1.0, 0.0), (1, 1.0, 1.0)])
def test_alpha_or_prob_zero_and_a_batch_of_one_leave_inputs_unmixed(n, alpha, prob):
    x, y = batch(n)
    mixed_x, mixed_y = KMixup(8, alpha, 5, prob=prob)(x, y)
    assert torch.equal(mixed_x, x)
    assert torch.equal(mixed_y, one_hot(y))


def test_eval_mode_is_the_identity_and_draws_nothing():
    x, y = batch()
    mix = KMixup(8, 1.0, 5, generator=seeded())
    draw, state = mix.draw(32), mix.generator.get_state()
    mix.eval()
    assert mix(x, y)[0] is x
    assert mix(x, y)[1] is y
    m = mix.mix(x, y)
    assert m.x is x
    assert (float(m.lam), float(m.distance.sum())) == (1, 0)
    assert not mix.draw(32).mixes
    assert mix.mix(x, y, draw).x is x
    assert torch.equal(mix.generator.get_state(), state)


def test_prob_is_the_chance_that_a_batch_is_mixed():
    x, y = batch(4)
    mix = KMixup(1, 1.0, 5, prob=0.3, generator=seeded())
    mixed = sum(mix.mix(x, y).x is not x for _ in range(2000))
    assert mixed == pytest.approx(600, abs=4 * (2000 * 0.21) ** 0.5)


def test_alpha_and_prob_do_not_change_who_meets_whom():
    x, y = batch()
    draws = [
        KMixup(8, alpha, 5, prob=prob, generator=seeded())
        for alpha, prob in ((0.1, 1.0), (10.0, 1.0), (1.0, 0.5), (0.0, 1.0))
    ]
    for mix in draws:
        mix.mix(x, y)
    assert len({bytes(mix.generator.get_state().numpy()) for mix in draws}) == 1
    first, second = draws[0].mix(x, y), draws[1].mix(x, y)
    assert torch.equal(first.partner, second.partner)
    assert first.lam != second.lam


def test_a_nest_of_inputs_is_matched_and_mixed_as_one_tensor():
    a, b, c = torch.randn(16, 3, 4, 4), torch.randn(16, 2), torch.randn(16)
    nest = KMixup(4, generator=seeded()).mix({"image": a, "meta": (b, [c])}, None)
    flat = torch.cat([t.flatten(1) if t.dim() > 1 else t[:, None] for t in (a, b, c)], 1)
    whole = KMixup(4, generator=seeded()).mix(flat, None)
    assert torch.equal(nest.partner, whole.partner)
    mixed = nest.x["image"].flatten(1), nest.x["meta"][0], nest.x["meta"][1][0][:, None]
    torch.testing.assert_close(torch.cat(mixed, 1), whole.x)


def test_features_choose_what_is_matched():
    x, x2 = ({"a": torch.randn(16, 3), "b": torch.randn(16, 2)} for _ in range(2))
    y, mix = torch.randn(16), KMixup(8)
    expected = match(x["b"], x2["b"], k=8)
    by_key = mix.mix(x, y, other=(x2, y), features="b")
    by_tensor = mix.mix(x, y, other=(x2, y), features=(x["b"], x2["b"]))
    assert torch.equal(by_key.partner, expected)
    assert torch.equal(by_tensor.partner, expected)
    torch.testing.assert_close(by_key.distance, (x["b"] - x2["b"][expected]).norm(dim=1))
    embedding = torch.randn(16, 7)
    partner = KMixup(8, generator=seeded()).mix(x, y, features=embedding).partner
    assert torch.equal(partner, KMixup(8, generator=seeded()).mix(embedding, y).partner)


def test_gradients_reach_both_samples():
    x = torch.randn(8, 3, requires_grad=True)
    m = KMixup(2, 1.0).mix(x, torch.randn(8))
    m.x[0].sum().backward()
    lam = float(m.lam)
    assert float(x.grad[0, 0]) == pytest.approx(lam)
    assert float(x.grad[m.partner[0], 0]) == pytest.approx(1 - lam)


@pytest.mark.parametrize("lam_per", ["batch", "sample"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_inputs_keep_their_dtype_and_exact_classes(dtype, lam_per):
    x, y = torch.randn(16, 6).to(dtype), torch.randint(900, 1000, (16,))
    m = KMixup(4, 1.0, 1000, lam_per=lam_per).mix(x, y)
    assert m.x.dtype == dtype
    assert m.y.dtype == torch.float32
    lam = expand(m.lam.double(), x)
    exact = lam * x.double() + (1 - lam) * x[m.partner].double()
    assert (m.x.double() - exact).abs().max() <= 2 * torch.finfo(dtype).eps * exact.abs().max()
    torch.testing.assert_close(m.y.sum(1), torch.ones(16), atol=1e-6, rtol=0)
    top = m.y.argsort(1, descending=True)[:, :2].sort(1).values
    both = torch.stack(m.targets, 1).sort(1).values
    differ = both[:, 0] != both[:, 1]
    assert torch.equal(top[differ], both[differ])


def test_float64_inputs_are_mixed_in_float64():
    x = torch.randn(8, 3, dtype=torch.float64)
    m = KMixup(2).mix(x, torch.randn(8, dtype=torch.float64))
    torch.testing.assert_close(m.x, m.lam * x + (1 - m.lam) * x[m.partner], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("lam_per", ["batch", "sample"])
def test_targets_have_one_dtype_whether_a_batch_is_mixed_or_not(lam_per):
    x, y = torch.randn(8, 3, dtype=torch.float64), torch.randint(5, (8,))
    for prob in (0.0, 1.0):
        assert KMixup(2, 1.0, 5, lam_per=lam_per, prob=prob)(x, y)[1].dtype == torch.float64


def test_a_resumed_generator_draws_what_the_unbroken_run_would_have_drawn():
    x, y = batch()
    mix = KMixup(8, 1.0, 5, prob=0.5, generator=seeded(3))
    mix(x, y)
    file = io.BytesIO()
    torch.save(mix.state_dict(), file)
    unbroken = [mix(x, y) for _ in range(5)]
    file.seek(0)
    resumed = KMixup(8, 1.0, 5, prob=0.5, generator=seeded(99))
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for expected in unbroken:
        for a, b in zip(expected, resumed(x, y), strict=True):
            assert torch.equal(a, b)


def test_resuming_warns_if_only_the_checkpoint_or_only_the_mixer_has_a_generator():
    mix = KMixup(8, generator=seeded(3))
    with pytest.warns(UserWarning, match="the checkpoint has no state for this mixer's generator"):
        mix.load_state_dict(KMixup(8).state_dict())
    assert torch.equal(mix.generator.get_state(), seeded(3).get_state())
    with pytest.warns(UserWarning, match="the checkpoint has a generator and this mixer has none"):
        KMixup(8).load_state_dict(mix.state_dict())


class Farthest(Pairing):
    def choose(self, distances, differ=None):
        return distances.argmax(2)


class UpperHalf(Coefficient):
    def lam(self, u, distance=None):
        return 0.5 + u / 2


@dataclass(frozen=True)
class Patch(Interpolation):
    """Replaces one drawn feature by that of the partner."""

    shapes: list = field(default_factory=list)

    def draw(self, n, shape=(), generator=None):
        self.shapes.append(shape)
        return torch.randint(shape[0], (n, 1), generator=generator)

    def settle(self, lam, spot, pair):
        return torch.full_like(lam, 1 - 1 / pair.samples[0].shape[1]), spot

    def __call__(self, x, other, partner, lam, region=None):
        return torch.where(torch.arange(x.shape[1]) == region, other[partner], x)


@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
def test_stages_of_your_own_work_in_a_mixer(lam_per):
    x, y = batch(32, 4)
    m = Mixer(Farthest(8), UpperHalf(), Linear(), num_classes=5, lam_per=lam_per).mix(x, y)
    assert (m.lam >= 0.5).all()
    near = Mixer(Nearest(8), UpperHalf(), Linear(), num_classes=5).mix(x, y)
    assert m.distance.mean() > near.distance.mean()
    patch = Patch()
    m = Mixer(Farthest(8), UpperHalf(), patch, num_classes=5, lam_per=lam_per).mix(x, y)
    assert patch.shapes == [(4,)]
    assert ((m.x != x).sum(1) == 1).all()
    assert (m.lam == 0.75).all()


def test_repr_shows_the_composition():
    assert repr(KMixup(k=8, alpha=0.5, num_classes=3, generator=seeded())) == (
        "KMixup(Optimal(k=8, metric='sqeuclidean') -> Beta(alpha=0.5) -> Linear(), "
        "num_classes=3, lam_per='batch', prob=1.0, generator=torch.Generator())"
    )


X, Y, LABELS = torch.zeros(8, 3), torch.zeros(8), torch.arange(8)
TOKENS, NARROW = torch.ones(8, 3).long(), X.to(torch.float8_e4m3fn)
INTEGERS = "token ids and other integers cannot be averaged"
NO_TENSOR = "x must be a tensor or a nest of tensors, got"
BAD_BATCHES = [
    (LABELS, Y, {}, INTEGERS),
    ({"ids": TOKENS, "mask": Y > 0}, Y, {}, INTEGERS),
    ([1.0, 2.0], Y, {}, NO_TENSOR),
    ({}, Y, {}, NO_TENSOR),
    (X.numpy(), Y, {}, "got ndarray: use torch.as_tensor"),
    ({"wide": X, "narrow": NARROW}, Y, {}, "x must be float16 or wider to be mixed"),
    (X, NARROW, {}, "y must be float16 or wider to be mixed"),
    (X, [0.0] * 8, {}, "y must be a tensor, a nest of tensors, or None"),
    (X, Y[:7], {}, "y must have one target for each of the 8 samples of x"),
    (X, Y[0], {}, "got shape ()"),
    ((X, X[:7]), Y, {}, "share their first dimension"),
    (Y[0], Y[:1], {}, "share their first dimension"),
    (X, LABELS, {}, "e.g. KMixup(num_classes="),
    (X, Y, {"other": X}, "other must be a pair (x2, y2), got Tensor"),
    (X, Y, {"other": (X[:6], Y[:6])},
     "x and the inputs of other must have the same length, got 8 and 6"),
    (X, Y, {"other": (X[:, :2], Y)},
     "x and the inputs of other must have the same sample shape, got (3,) and (2,)"),
    (X, Y, {"other": (X.double(), Y)}, "same dtype, got torch.float32 and torch.float64"),
    (X, Y, {"other": ([X], Y)}, "the inputs of other must be nested like x"),
    (X, Y, {"other": (X, Y.long())}, "y and the targets of other must have the same dtype"),
    (X, Y, {"other": (X, Y), "features": X}, "features must be a pair (features of x, features of"),
    (X, Y, {"features": [X] * 2}, "and one tensor without, got list"),
    (X, Y, {"other": (X, Y), "features": [X] * 3}, "must be a pair (features of x, features of"),
    (X, Y, {"features": X[:7]}, "features must have one row for each of the 8 samples"),
    (X, Y, {"features": X + 1j}, "features must be real numbers"),
    (X, Y, {"features": X.to(torch.float8_e5m2)}, "features must be real numbers"),
    ({"a": X}, Y, {"features": "b"}, "features must name an entry of x, got 'b', but x has"),
    (X, Y, {"features": 1.5}, "features must be a tensor, two with other, "),
    (X, Y, {"features": lambda x: [x]}, "features must return one tensor"),
    (X, Y, {"features": 0}, "features must name an entry of x, got 0, but x has Tensor"),
    ({"a": X, "b": ["text"]}, Y, {"features": "b"}, "got 'b', but x has ['a', 'b']: name one that"),
    (X, Y, {"other": (X, Y), "features": (X, X[:, :2])},
     "features of x and features of other must have the same sample shape, got (3,) and (2,)"),
    (X, Y, {"other": (X, Y), "features": (X, X.double())}, "features of other must have the same"),
    (X, Y, {"other": (X, Y), "features": (X.numpy(), X)}, "must be a pair (features of x, feat"),
    ({"a": X, "b": TOKENS}, Y, {"other": ({"a": X, "b": X}, Y)}, "must have the same dtype, got"),
    (X, Y, {"other": (X, None)}, "the targets of other must be nested like y, got NoneType"),
    (X, LABELS.to(torch.uint16), {}, "y must be uint8, signed integers or floats, got torch.uint"),
]  # fmt: skip


def test_distances_of_a_nest_are_as_precise_as_its_widest_entry():
    x = {"a": X, "b": 1e100 * torch.randn(8, 3, generator=seeded()).double()}
    assert KMixup(2).mix(x, Y).distance.isfinite().all()


def test_entries_that_are_not_mixed_may_differ_in_the_other_batch():
    x = {"x": X, "step": torch.tensor(3), "box": torch.arange(3)}
    other = {"x": X + 1, "step": torch.tensor(4), "box": torch.arange(5)}
    mixed = KMixup(2).mix(x, Y, other=(other, Y))
    assert mixed.x["step"] is x["step"]
    assert mixed.x["box"] is x["box"]


@pytest.mark.parametrize("lam_per", ["sample", "block"])
def test_every_entry_of_a_nest_keeps_its_precision(lam_per):
    x = {"a": X, "b": 1e200 * torch.randn(8, 3, generator=seeded()).double()}
    m = KMixup(2, lam_per=lam_per).mix(x, Y, features="a")
    lam = expand(m.lam, x["b"]).double()
    expected = lam * x["b"] + (1 - lam) * x["b"][m.partner]
    assert torch.allclose(m.x["b"], expected, rtol=1e-12)


@pytest.mark.parametrize(("x", "y", "more", "message"), BAD_BATCHES)
def test_bad_batches_raise_with_argument_and_rule(x, y, more, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        KMixup(2)(x, y, **more)


SOFT = F.one_hot(LABELS, 10)
BAD_TARGETS = [
    (2, LABELS > 3, "got torch.bool: use y.float() for labels of 0 and 1, or y.long() for classes"),
    (10, Y, "got torch.float32 of shape (8,): use y.long()"),
    (10, SOFT, "are ambiguous: use y.float() for one-hot or multi-label rows"),
    (10, {"class": SOFT, "size": Y}, "targets of shape (8, 10) are ambiguous: use y.float"),
    ((10, 10), (LABELS, Y), "soft labels of shape (n, 10), got torch.float32"),
    (np.int64(3), Y, "with num_classes=3 y must be class indices"),
    ((10, 3), [LABELS, Y], "num_classes must be one for all, or nested like y, a list, got a t"),
]  # fmt: skip


@pytest.mark.parametrize(("num_classes", "y", "message"), BAD_TARGETS)
def test_targets_that_contradict_num_classes_raise(num_classes, y, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        KMixup(2, num_classes=num_classes)(X, y)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("k", 0, "k must be a whole number, at least 1, got 0"),
        ("k", True, "k must be a whole number"),
        ("alpha", -1.0, "alpha must be a finite number, 0 .* got -1.0"),
        ("alpha", "1", "alpha must be a finite number"),
        ("alpha", torch.ones(2), "alpha must be a finite number"),
        ("prob", 1.5, r"prob must be a probability in \[0, 1\], got 1.5"),
        ("prob", "1", "prob must be a probability"),
        ("lam_per", "row", "lam_per must be one of batch, block, sample, got 'row'"),
        ("num_classes", 0, "num_classes must be a whole number, at least 1, got 0"),
        ("num_classes", "3", "num_classes must be a whole number, at least 1, got '3'"),
        ("num_classes", 3.0, "num_classes must be a whole number, at least 1, got 3.0"),
        ("generator", 0, r"use torch.Generator\(\).manual_seed\(0\)"),
    ],
)
def test_bad_settings_raise_at_construction_and_when_scheduled(name, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        KMixup(**{name: value})
    if name in ("k", "alpha", "prob"):
        with pytest.raises(ValueError, match=message):
            setattr(KMixup(), name, value)


MIXERS = {
    "kmixup": lambda **more: KMixup(4, 1.0, 3, **more),
    "mixup": lambda **more: KMixup(1, 0.3, 3, **more),
    "per block": lambda **more: KMixup(4, 1.0, 3, lam_per="block", **more),
    "per sample": lambda **more: KMixup(4, 1.0, 3, lam_per="sample", **more),
    "sometimes": lambda **more: KMixup(4, 1.0, 3, prob=0.5, **more),
    "cutmix": lambda **more: CutMix(4, 1.0, 3, **more),
    "cutmix per sample": lambda **more: CutMix(4, 1.0, 3, lam_per="sample", **more),
    "choice": lambda **more: Choice(
        [KMixup(4, 1.0, 3), Choice([CutMix(1, 1.0, 3), KMixup(2, 1.0, 3)])], **more
    ),
}


@pytest.mark.parametrize("name", MIXERS)
@pytest.mark.parametrize("paired", [False, True])
def test_mixing_equals_drawing_and_then_mixing_with_the_draw(name, paired):
    x, y = torch.randn(12, 1, 5, 5), torch.randint(3, (12,))
    other = (torch.randn(12, 1, 5, 5), torch.randint(3, (12,))) if paired else None
    mix, copy = (MIXERS[name](generator=torch.Generator().manual_seed(5)) for _ in range(2))
    for _ in range(8):
        whole = mix.mix(x, y, other=other)
        mixed = copy.mix(x, y, copy.draw(12, within=not paired), other=other)
        assert torch.equal(whole.x, mixed.x)
        assert torch.equal(whole.y, mixed.y)
        assert torch.equal(whole.partner, mixed.partner)


@pytest.mark.parametrize("name", MIXERS)
def test_a_draw_can_be_mixed_again_and_does_not_look_at_values(name):
    mixer = MIXERS[name](generator=torch.Generator().manual_seed(5))
    draw = mixer.draw(12)
    before = mixer.generator.get_state()
    x, y = torch.randn(12, 1, 5, 5), torch.randint(3, (12,))
    first, again = (mixer.mix(x, y, draw) for _ in range(2))
    assert torch.equal(first.x, again.x)
    assert torch.equal(mixer.generator.get_state(), before)
    assert torch.equal(mixer.mix(x + 7, y, draw).lam, first.lam)


def test_a_draw_of_another_batch_or_mixer_is_refused():
    x, y = torch.randn(12, 3), torch.randn(12)
    mix, other = KMixup(4), (torch.randn(12, 3), torch.randn(12))
    with pytest.raises(ValueError, match=r"draw must be for a batch of 12, got one for 10"):
        mix.mix(x, y, mix.draw(10))
    with pytest.raises(ValueError, match=r"draw must be from .* draw\(n, within=True\)"):
        mix.mix(x, y, mix.draw(12, within=False))
    with pytest.raises(ValueError, match=r"draw must be from .* draw\(n, within=False\)"):
        mix.mix(x, y, mix.draw(12), other=other)
    with pytest.raises(ValueError, match="got one for other batches or another lam_per"):
        KMixup(4, lam_per="sample").mix(x, y, mix.draw(12))


WRAPPED = MIXERS | {
    "memory": lambda **more: Memory(KMixup(4, 1.0, 3, **more), 16),
    "with clean": lambda **more: WithClean(KMixup(4, 1.0, 3, **more)),
    "seldom": lambda **more: Sometimes(Choice([CutMix(4, 1.0, 3)], **more), 0.5),
    "hidden": lambda **more: HiddenMixup(nn.Identity(), [""], mixer=KMixup(4, prob=0.5, **more)),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_draw_is_always_a_draw_and_tells_whether_it_mixes(name):
    mixer = WRAPPED[name](generator=seeded())
    draws = [mixer.draw(12) for _ in range(20)]
    assert all(isinstance(draw, Draw) for draw in draws)
    expected = {True, False} if name in ("sometimes", "seldom", "hidden") else {True}
    assert {draw.mixes for draw in draws} == expected
    assert not mixer.eval().draw(12).mixes


def test_a_draw_that_does_not_mix_leaves_the_batch_as_it_is():
    x, y = batch(12)
    for mixer in (KMixup(4, prob=0.0), Sometimes(CutMix(4), 0.0), Choice([KMixup(4, prob=0.0)])):
        draw = mixer.draw(12)
        assert isinstance(draw, Draw)
        assert not draw.mixes
        assert mixer.mix(x, y.float(), draw).x is x


@pytest.mark.parametrize("name", WRAPPED)
def test_to_draw_for_a_batch_raises_and_names_mix(name):
    x, y = batch(12)
    for mixer in (WRAPPED[name](), WRAPPED[name]().eval()):
        for data in (x, {"x": x}, [x], 2.0):
            message = (
                rf"number of samples, got {type(data).__name__}: to mix a batch, use mix\(x, y\)"
            )
            with pytest.raises(TypeError, match=message):
                mixer.draw(data, y)


def test_the_draw_of_a_mixer_of_another_kind_raises():
    x, y = batch(12)
    plain, memory = KMixup(4, num_classes=5), Memory(KMixup(4, num_classes=5), 16)
    for mixer, draw in (
        (plain, memory.draw(12)), (memory, plain.draw(12)), (Choice([plain]), plain.draw(12)),
        (plain, (x, y)),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"draw must be a .*Draw, got .*: use the draw\(n\) of"):
            mixer.mix(x, y, draw)


def test_a_common_call_runs_few_functions():
    mix, (x, y) = KMixup(16, 1.0, 10), (torch.randn(128, 3, 32, 32), torch.arange(128) % 10)
    mix(x, y)  # imports on first use
    package, called = str(Path(kmixup.__file__).parent), set()

    def note(frame, event, _):  # not the `__init__` that dataclasses generate
        if event == "call" and frame.f_code.co_filename.startswith(package):
            called.add(frame.f_code)

    sys.setprofile(note)
    try:
        mix(x, y)
    finally:
        sys.setprofile(None)
    assert len(called) <= 62, "\n".join(sorted(code.co_qualname for code in called))
