import io
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

import kmixup
from kmixup import (
    Beta,
    Choice,
    Coefficient,
    CutMix,
    Draw,
    Interpolation,
    KMixup,
    LatentMixup,
    Linear,
    LocalMixup,
    Mixer,
    Nearest,
    Pairing,
    RegMixup,
    SimilarMixup,
    StackMix,
    match,
)
from kmixup.matching import Blocks


def batch(n: int = 32, *shape: int, classes: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(n, *(shape or (3, 4))), torch.randint(classes, (n,))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def expand(lam: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return lam if lam.dim() == 0 else lam.view(-1, *[1] * (like.dim() - 1))


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
    m = KMixup(k, alpha, 5, lam_per=lam_per).draw(x, y, other=(x2, y2) if across else None)
    other, other_y = (x2, y2) if across else (x, y)
    lam = expand(m.lam, x)
    torch.testing.assert_close(m.x, lam * x + (1 - lam) * other[m.partner], atol=1e-5, rtol=0)
    assert torch.equal(m.targets[0], y)
    assert torch.equal(m.targets[1], other_y[m.partner])
    gap = (x - other[m.partner]).flatten(1).norm(dim=1)
    torch.testing.assert_close(m.distance, gap, atol=1e-5, rtol=1e-5)
    assert m.x.isfinite().all()
    assert m.y.isfinite().all()


def test_k_1_draws_what_mixup_draws():
    x, y = batch(64)
    m = KMixup(1, 1.0, 5).draw(x, y)
    assert sorted(m.partner.tolist()) == list(range(64))
    lam = float(m.lam)
    torch.testing.assert_close(m.x, lam * x + (1 - lam) * x[m.partner])
    one_hot = F.one_hot(y, 5).float()
    torch.testing.assert_close(m.y, lam * one_hot + (1 - lam) * one_hot[m.partner])


def test_k_1_pairs_and_lam_have_the_law_of_mixup():
    mix = KMixup(1, 0.4, generator=seeded())
    x, y = torch.zeros(6, 1), torch.zeros(6)
    met, lams = torch.zeros(6, 6), []
    for _ in range(4000):
        m = mix.draw(x, y)
        met[torch.arange(6), m.partner] += 1
        lams.append(float(m.lam))
    expected = (1 - torch.eye(6)) * 4000 / 5
    assert ((met - expected).abs() < 5 * 800**0.5).all()
    lam = torch.tensor(lams)
    assert float(lam.mean()) == pytest.approx(0.5, abs=0.03)
    assert float(lam.var()) == pytest.approx(0.25 / 1.8, rel=0.05)


def test_the_partner_is_the_optimal_match():
    (x, y), (x2, y2) = batch(32), batch(32)
    m = KMixup(16, 1.0, 5).draw(x, y, other=(x2, y2))
    assert torch.equal(m.partner, match(x, x2, k=16))
    assert not torch.equal(
        m.partner, KMixup(16, 1.0, 5, metric="cosine").draw(x, y, other=(x2, y2)).partner
    )


def test_mixed_loss_and_soft_targets_agree():
    x, y = batch()
    m = KMixup(8, 1.0, 5).draw(x, y)
    logits = torch.randn(32, 5)
    torch.testing.assert_close(
        m.loss(F.cross_entropy, logits), F.cross_entropy(logits, m.y), atol=1e-6, rtol=0
    )
    assert 0 <= float(m.accuracy(logits)) <= 1


def test_lam_is_one_number_per_batch_block_or_sample():
    x, y = batch(20)
    assert KMixup(8, num_classes=5).draw(x, y).lam.dim() == 0
    each = KMixup(8, num_classes=5, lam_per="sample").draw(x, y).lam
    assert len(each.unique()) == 20
    mix = KMixup(8, num_classes=5, lam_per="block", generator=seeded())
    lam = mix.draw(x, y).lam
    mix.generator = seeded()
    index = torch.from_numpy(mix.sample(20).blocks.index())
    assert len(lam.unique()) == 3
    assert all(len(lam[index == b].unique()) == 1 for b in range(3))


def test_alpha_zero_is_plain_training_with_soft_targets():
    x, y = batch()
    mixed_x, mixed_y = KMixup(8, 0.0, 5)(x, y)
    assert torch.equal(mixed_x, x)
    assert torch.equal(mixed_y, F.one_hot(y, 5).float())


def test_eval_mode_is_the_identity():
    x, y = batch()
    mix = KMixup(8, 1.0, 5).eval()
    assert mix(x, y)[0] is x
    assert mix(x, y)[1] is y
    m = mix.draw(x, y)
    assert m.x is x
    assert (float(m.lam), float(m.distance.sum())) == (1, 0)


def test_eval_mode_draws_nothing():
    mix = KMixup(8, 1.0, 5, generator=seeded()).eval()
    mix.draw(*batch())
    assert torch.equal(mix.generator.get_state(), seeded().get_state())


def test_features_do_not_decide_the_precision_of_the_targets():
    x, y = batch(16)
    m = KMixup(4, 1.0, 5, lam_per="sample").draw(x, y, features=torch.randn(16, 2).double())
    assert m.x.dtype == m.y.dtype == torch.float32


def test_prob_is_the_chance_that_a_batch_is_mixed():
    x, y = batch(4)
    mix = KMixup(1, 1.0, 5, prob=0.3, generator=seeded())
    mixed = sum(mix.draw(x, y).x is not x for _ in range(2000))
    assert mixed == pytest.approx(600, abs=4 * (2000 * 0.21) ** 0.5)
    assert KMixup(1, 1.0, 5, prob=0.0).draw(x, y).x is x


def test_alpha_and_prob_do_not_change_who_meets_whom():
    x, y = batch()
    draws = [
        KMixup(8, alpha, 5, prob=prob, generator=seeded())
        for alpha, prob in ((0.1, 1.0), (10.0, 1.0), (1.0, 0.5), (0.0, 1.0))
    ]
    for mix in draws:
        mix.draw(x, y)
    assert len({bytes(mix.generator.get_state().numpy()) for mix in draws}) == 1
    first, second = draws[0].draw(x, y), draws[1].draw(x, y)
    assert torch.equal(first.partner, second.partner)
    assert first.lam != second.lam


def test_nothing_is_changed_in_place():
    x, y = batch()
    x2, y2 = batch()
    copies = [t.clone() for t in (x, y, x2, y2)]
    KMixup(8, 1.0, 5, lam_per="sample")(x, y, other=(x2, y2))
    assert all(torch.equal(a, b) for a, b in zip((x, y, x2, y2), copies, strict=True))


def test_a_batch_of_one_comes_back_unmixed():
    x, y = batch(1)
    mixed_x, mixed_y = KMixup(16, 1.0, 5)(x, y)
    assert torch.equal(mixed_x, x)
    assert torch.equal(mixed_y, F.one_hot(y, 5).float())


def test_nested_inputs_share_partner_and_lam():
    x = {"image": torch.randn(16, 3, 4, 4), "meta": (torch.randn(16, 2), [torch.randn(16)])}
    m = KMixup(4, 1.0).draw(x, torch.randn(16))
    lam, p = float(m.lam), m.partner
    for mixed, leaf in (
        (m.x["image"], x["image"]),
        (m.x["meta"][0], x["meta"][0]),
        (m.x["meta"][1][0], x["meta"][1][0]),
    ):
        torch.testing.assert_close(mixed, lam * leaf + (1 - lam) * leaf[p])


def test_a_nest_is_matched_on_all_its_tensors():
    a, b, y = torch.randn(16, 3), torch.randn(16, 2, 2), torch.randn(16)
    m = KMixup(4, generator=seeded()).draw((a, b), y)
    flat = torch.cat([a, b.flatten(1)], 1)
    assert torch.equal(m.partner, KMixup(4, generator=seeded()).draw(flat, y).partner)


def test_features_choose_what_is_matched():
    x, x2 = ({"a": torch.randn(16, 3), "b": torch.randn(16, 2)} for _ in range(2))
    y, mix = torch.randn(16), KMixup(8)
    expected = match(x["b"], x2["b"], k=8)
    by_key = mix.draw(x, y, other=(x2, y), features="b")
    by_tensor = mix.draw(x, y, other=(x2, y), features=(x["b"], x2["b"]))
    assert torch.equal(by_key.partner, expected)
    assert torch.equal(by_tensor.partner, expected)
    torch.testing.assert_close(by_key.distance, (x["b"] - x2["b"][expected]).norm(dim=1))
    embedding = torch.randn(16, 7)
    partner = KMixup(8, generator=seeded()).draw(x, y, features=embedding).partner
    assert torch.equal(partner, KMixup(8, generator=seeded()).draw(embedding, y).partner)


def test_gradients_reach_both_samples():
    x = torch.randn(8, 3, requires_grad=True)
    m = KMixup(2, 1.0).draw(x, torch.randn(8))
    m.x[0].sum().backward()
    lam = float(m.lam)
    assert float(x.grad[0, 0]) == pytest.approx(lam)
    assert float(x.grad[m.partner[0], 0]) == pytest.approx(1 - lam)


@pytest.mark.parametrize("lam_per", ["batch", "sample"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_inputs_keep_their_dtype_and_exact_classes(dtype, lam_per):
    x, y = torch.randn(16, 6).to(dtype), torch.randint(900, 1000, (16,))
    m = KMixup(4, 1.0, 1000, lam_per=lam_per).draw(x, y)
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
    m = KMixup(2).draw(x, torch.randn(8, dtype=torch.float64))
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

    def sample(self, size, shape=(), generator=None):
        self.shapes.append(shape)
        return torch.randint(shape[0], (*size, 1), generator=generator)

    def settle(self, lam, spot, pair):
        return torch.full_like(lam, 1 - 1 / pair.samples[0].shape[1]), spot

    def __call__(self, x, other, partner, lam, region=None):
        return torch.where(torch.arange(x.shape[1]) == region, other[partner], x)


def test_any_stages_compose():
    x, y = batch(32, 2)
    m = Mixer(Nearest(8), Beta(2.0), Linear(), num_classes=5, lam_per="sample").draw(x, y)
    assert len(set(m.partner.tolist())) < 32


@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
def test_stages_of_your_own_work_in_a_mixer(lam_per):
    x, y = batch(32, 4)
    m = Mixer(Farthest(8), UpperHalf(), Linear(), num_classes=5, lam_per=lam_per).draw(x, y)
    assert (m.lam >= 0.5).all()
    near = Mixer(Nearest(8), UpperHalf(), Linear(), num_classes=5).draw(x, y)
    assert m.distance.mean() > near.distance.mean()
    patch = Patch()
    m = Mixer(Farthest(8), UpperHalf(), patch, num_classes=5, lam_per=lam_per).draw(x, y)
    assert patch.shapes == [(4,)]
    assert ((m.x != x).sum(1) == 1).all()
    assert (m.lam == 0.75).all()


def test_repr_shows_the_composition():
    assert repr(KMixup(k=8, alpha=0.5, num_classes=3, generator=seeded())) == (
        "KMixup(Optimal(k=8, metric='sqeuclidean') -> Beta(alpha=0.5) -> Linear(), "
        "num_classes=3, lam_per='batch', prob=1.0, generator=torch.Generator())"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be a whole number, at least 1, got 0"),
        ({"alpha": -1.0}, "alpha must be a finite number, 0 .* got -1.0"),
        ({"lam_per": "row"}, r"lam_per must be one of \('batch', 'block', 'sample'\), got 'row'"),
        ({"prob": 1.5}, r"prob must be a probability in \[0, 1\], got 1.5"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        KMixup(**arguments)


def test_integer_inputs_are_refused_with_the_reason():
    for x in (torch.arange(8), {"ids": torch.ones(8, 3).long(), "mask": torch.ones(8) > 0}):
        with pytest.raises(TypeError, match="token ids and other integers cannot be averaged"):
            KMixup(2)(x, torch.randn(8))


@pytest.mark.parametrize("x", [[1.0, 2.0], {}, "text", None])
def test_inputs_that_are_not_tensors_are_refused(x):
    with pytest.raises(TypeError, match="x must be a tensor or a nest of tensors, got"):
        KMixup(2)(x, torch.randn(2))


def test_integer_targets_without_num_classes_say_what_to_write():
    x, y = batch(8)
    y[0] = 4
    with pytest.raises(ValueError, match=r"e.g. KMixup\(num_classes="):
        KMixup(2)(x, y)
    KMixup(2).draw(x, y).loss(F.cross_entropy, torch.randn(8, 5))  # needs no soft targets


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (
            torch.zeros(8, 2),
            torch.zeros(7),
            "y must have one target for each of the 8 samples of x",
        ),
        (torch.zeros(8, 2), torch.tensor(1.0), r"got shape \(\)"),
        ((torch.zeros(8, 2), torch.zeros(7, 2)), torch.zeros(8), "share their first dimension"),
        (torch.tensor(1.0), torch.zeros(1), "share their first dimension"),
    ],
)
def test_batches_without_a_common_length_are_refused(x, y, message):
    with pytest.raises(ValueError, match=message):
        KMixup(2)(x, y)


@pytest.mark.parametrize(
    ("x2", "message"),
    [
        (torch.zeros(6, 3), "x and the inputs of other must have the same length, got 8 and 6"),
        (torch.zeros(8, 4), "x and the inputs of other must have the same sample shape, "
         "got (3,) and (4,)"),
        (torch.zeros(8, 3, device="meta"), "the inputs of other must hold values to be matched"),
        (torch.zeros(8, 3).double(), "same dtype, got torch.float32 and torch.float64"),
        ([torch.zeros(8, 3)], "the inputs of other must be nested like x"),
    ],
)  # fmt: skip
def test_another_batch_that_does_not_fit_is_refused_with_both_named(x2, message):
    n = 6 if isinstance(x2, torch.Tensor) and len(x2) == 6 else 8
    with pytest.raises(ValueError, match=re.escape(message)):
        KMixup(2)(torch.zeros(8, 3), torch.zeros(8), other=(x2, torch.zeros(n)))


def test_targets_of_another_batch_must_fit_too():
    with pytest.raises(ValueError, match="y and the targets of other must have the same dtype"):
        KMixup(2)(
            torch.zeros(8, 3), torch.zeros(8), other=(torch.zeros(8, 3), torch.zeros(8).long())
        )


def test_features_for_two_batches_come_as_a_pair():
    x, y = torch.zeros(8, 3), torch.zeros(8)
    with pytest.raises(ValueError, match=r"features must be a pair \(features of x, features of"):
        KMixup(2)(x, y, other=(x, y), features=torch.zeros(8, 2))


@pytest.mark.parametrize(
    ("count", "paired", "message"),
    [(2, False, "got 2 without other"), (1, True, "got 1 with other"), (3, True, "got 3 with")],
)
def test_features_are_as_many_as_there_are_batches(count, paired, message):
    x, y = torch.randn(8, 3), torch.zeros(8)
    other = (x.flip(0), y) if paired else None
    with pytest.raises(
        ValueError, match=f"features must be one tensor without other, .* {message}"
    ):
        KMixup(2)(x, y, other=other, features=[x] * count)


@pytest.mark.parametrize("features", [torch.zeros(7, 2), torch.tensor(1.0)])
def test_features_need_a_row_for_every_sample(features):
    with pytest.raises(ValueError, match="features must have one row for each of the 8 samples"):
        KMixup(2)(torch.zeros(8, 3), torch.zeros(8), features=features)


@pytest.mark.parametrize(("x", "key"), [({"a": torch.zeros(8, 3)}, "b"), (torch.zeros(8, 3), "a")])
def test_features_must_name_an_entry_of_the_inputs(x, key):
    with pytest.raises(
        ValueError, match=f"features must name an entry of x, got '{key}', but x has"
    ):
        KMixup(2)(x, torch.zeros(8), features=key)


MIXERS = {
    "kmixup": lambda **more: KMixup(4, 1.0, 3, **more),
    "mixup": lambda **more: KMixup(1, 0.3, 3, **more),
    "per block": lambda **more: KMixup(4, 1.0, 3, lam_per="block", **more),
    "per sample": lambda **more: KMixup(4, 1.0, 3, lam_per="sample", **more),
    "sometimes": lambda **more: KMixup(4, 1.0, 3, prob=0.5, **more),
    "cutmix": lambda **more: CutMix(4, 1.0, 3, **more),
    "cutmix per sample": lambda **more: CutMix(4, 1.0, 3, lam_per="sample", **more),
    "local": lambda **more: LocalMixup(4, 1.0, 3, **more),
    "regmixup": lambda **more: RegMixup(4, 10.0, 3, **more),
    "similar": lambda **more: SimilarMixup(4, 1.0, 3, **more),
    "stackmix": lambda **more: StackMix(4, 3, **more),
    "latent": lambda **more: LatentMixup(torch.sin, torch.cos, 4, 1.0, 3, **more),
    "choice": lambda **more: Choice(
        [KMixup(4, 1.0, 3), Choice([CutMix(1, 1.0, 3), KMixup(2, 1.0, 3)])], **more
    ),
}


@pytest.mark.parametrize("name", MIXERS)
@pytest.mark.parametrize("paired", [False, True])
def test_to_draw_is_to_sample_and_then_to_mix(name, paired):
    x, y = torch.randn(12, 1, 5, 5), torch.randint(3, (12,))
    other = (torch.randn(12, 1, 5, 5), torch.randint(3, (12,))) if paired else None
    mix, copy = (MIXERS[name](generator=torch.Generator().manual_seed(5)) for _ in range(2))
    for _ in range(8):
        drawn = mix.draw(x, y, other=other)
        mixed = copy.mix(x, y, copy.sample(12, within=not paired), other=other)
        assert torch.equal(drawn.x, mixed.x)
        assert torch.equal(drawn.y, mixed.y)
        assert torch.equal(drawn.partner, mixed.partner)


@pytest.mark.parametrize("name", MIXERS)
def test_a_draw_can_be_mixed_again_and_does_not_look_at_values(name):
    mixer = MIXERS[name](generator=torch.Generator().manual_seed(5))
    draw = mixer.sample(12)
    before = mixer.generator.get_state()
    x, y = torch.randn(12, 1, 5, 5), torch.randint(3, (12,))
    first, again = (mixer.mix(x, y, draw) for _ in range(2))
    assert torch.equal(first.x, again.x)
    assert torch.equal(mixer.generator.get_state(), before)
    if name != "similar":  # its lam follows the distances
        assert torch.equal(mixer.mix(x + 7, y, draw).lam, first.lam)


def test_a_draw_of_another_batch_or_mixer_is_refused():
    x, y = torch.randn(12, 3), torch.randn(12)
    mix, other = KMixup(4), (torch.randn(12, 3), torch.randn(12))
    with pytest.raises(ValueError, match=r"draw must be for a batch of 12, got one for 10"):
        mix.mix(x, y, mix.sample(10))
    with pytest.raises(ValueError, match=r"draw must be from .* sample\(n, within=True\)"):
        mix.mix(x, y, mix.sample(12, within=False))
    with pytest.raises(ValueError, match=r"draw must be from .* sample\(n, within=False\)"):
        mix.mix(x, y, mix.sample(12), other=other)
    with pytest.raises(ValueError, match="got one for other batches or another lam_per"):
        KMixup(4, lam_per="sample").mix(x, y, mix.sample(12))


def test_in_eval_mode_nothing_is_drawn_and_nothing_mixed():
    x, y = torch.randn(12, 3), torch.randn(12)
    mix = KMixup(4, generator=torch.Generator().manual_seed(0))
    draw, before = mix.sample(12), mix.generator.get_state()
    mix.eval()
    assert mix.sample(12) is None
    assert torch.equal(mix.generator.get_state(), before)
    assert torch.equal(mix.mix(x, y, draw).x, x)


def test_several_batches_are_mixed_at_once_as_they_would_be_alone():
    """What fleets of small networks are made of."""
    mix = KMixup(4, 1.0, 3)
    x, x2 = torch.randn(2, 5, 10, 3)
    y, y2 = torch.randint(3, (2, 5, 10))
    u = torch.rand(5, dtype=torch.float64)
    together = mix.mix(
        x.flatten(0, 1),
        y.flatten(),
        Draw(Blocks(50, 4, batches=5), u),
        other=(x2.flatten(0, 1), y2.flatten()),
    )
    for i in range(5):
        draw = Draw(Blocks(10, 4), u[i])
        alone = mix.mix(x[i], y[i], draw, other=(x2[i], y2[i]))
        assert torch.equal(together.x.view(5, 10, 3)[i], alone.x)
        assert torch.equal(together.y.view(5, 10, 3)[i], alone.y)


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
    assert len(called) <= 45, "\n".join(sorted(code.co_qualname for code in called))
