"""Mixers inside wrappers, nested in any order."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from kmixup import (
    Choice,
    CutMix,
    HiddenMixup,
    KMixup,
    LocalMixup,
    Memory,
    RegMixup,
    Sometimes,
    StackMix,
    WithClean,
    Wrapper,
)

N, CLASSES = 6, 3
LEAVES = {
    "kmixup": lambda: KMixup(4, 1.0, CLASSES),
    "per sample": lambda: KMixup(2, 1.0, CLASSES, lam_per="sample", prob=0.7),
    "cutmix": lambda: CutMix(2, 1.0, CLASSES, lam_per="block"),
    "local": lambda: LocalMixup(2, 1.0, CLASSES),
    "regmixup": lambda: RegMixup(2, 1.0, CLASSES),
    "stackmix": lambda: StackMix(2, CLASSES),
}
AROUND = {
    "memory": lambda mixer: Memory(mixer, 16),
    "clean": WithClean,
    "sometimes": lambda mixer: Sometimes(mixer, 0.6),
    "choice": lambda mixer: (
        Choice([mixer, StackMix(2, CLASSES)])
        if mixer.encodes_clean
        else Choice([mixer, KMixup(2, 1.0, CLASSES)])
    ),
}


def build(leaf, names, seed):
    mixer = LEAVES[leaf]()
    for name in names:
        mixer = AROUND[name](mixer)
    return Choice([mixer], generator=torch.Generator().manual_seed(seed))


def batches(count=4):
    drawn = torch.Generator().manual_seed(1)
    for _ in range(count):
        x = torch.randn(N, 1, 4, 4, generator=drawn)
        yield x, torch.randint(CLASSES, (N,), generator=drawn)


def assert_same(first, second):
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.y, second.y)
    assert torch.equal(first.partner, second.partner)


@pytest.mark.filterwarnings("ignore:a batch of")
@settings(max_examples=40, deadline=None)
@given(
    leaf=st.sampled_from(list(LEAVES)),
    around=st.lists(st.sampled_from(list(AROUND)), max_size=4),  # inside first
    seed=st.integers(0, 5),
)
def test_wrappers_nest_in_any_order(leaf, around, seed):
    mix, same, by_hand = (build(leaf, around, seed) for _ in range(3))
    each = torch.nn.CrossEntropyLoss(reduction="none")
    for x, y in batches():
        copies = x.clone(), y.clone()
        mixed = mix.mix(x, y)
        assert_same(mixed, same.mix(x, y))
        assert_same(mixed, by_hand.mix(x, y, by_hand.draw(N, tuple(x.shape[1:]))))
        assert torch.equal(x, copies[0])
        assert torch.equal(y, copies[1])
        rows = len(mixed.x)
        assert rows in (N, 2 * N)
        assert mixed.x.shape[1:] == mix.encode_clean(x).shape[1:]
        assert len(mixed.partner) == len(mixed.distance) == rows
        assert mixed.y.shape == (rows, CLASSES)
        torch.testing.assert_close(mixed.y.sum(1), torch.ones(rows))
        logits = torch.randn(rows, CLASSES)
        expected = F.cross_entropy(logits, mixed.y, reduction="none")
        weight = torch.ones(()) if mixed.weight is None else mixed.weight
        torch.testing.assert_close(mixed.loss(each, logits), weight * expected)
        assert mixed.agreement(logits).shape == (rows,)
    resumed = build(leaf, around, seed + 1)
    resumed.load_state_dict(mix.state_dict())
    for x, y in batches(2):
        assert_same(mix.mix(x, y), resumed.mix(x, y))
    state = mix.generator.get_state()
    clean, labels = mix.eval()(x, y)
    assert torch.equal(clean, mix.encode_clean(x))
    assert labels is y
    assert torch.equal(mix.generator.get_state(), state)
    assert torch.equal(mix.mix(x, y).y, F.one_hot(y, CLASSES).float())


class Scaled(Wrapper):
    def mix_batch(self, batch, draw):
        mixed = self.mixer.mix_batch(batch, draw)
        return replace(mixed, x=2 * mixed.x)


def test_a_wrapper_of_your_own_works_inside_and_around_others():
    ((x, y),) = batches(1)

    def mixer():
        return KMixup(2, 1.0, CLASSES, generator=torch.Generator().manual_seed(0))

    expected = 2 * WithClean(mixer())(x, y)[0]
    assert torch.equal(Scaled(WithClean(mixer()))(x, y)[0], expected)
    assert torch.equal(WithClean(Scaled(mixer()))(x, y)[0], expected)
    with pytest.raises(TypeError, match="mixer must be a mixer, got 3"):
        Scaled(3)


def test_sometimes_mixes_the_given_share_of_batches():
    ((x, y),) = batches(1)
    mix = Sometimes(KMixup(2, 1.0, CLASSES, generator=torch.Generator().manual_seed(0)), 0.3)
    mixed = sum(not torch.equal(mix.mix(x, y).x, x) for _ in range(500))
    assert mixed == pytest.approx(150, abs=4 * (500 * 0.21) ** 0.5)
    mix.prob = 0.0
    assert torch.equal(mix.mix(x, y).x, x)


def test_a_choice_passes_a_new_generator_to_its_mixers():
    x, y = torch.randn(16, 3, 4, 4), torch.zeros(16)
    own = torch.Generator()
    mix = Sometimes(Choice([KMixup(2), CutMix(2), KMixup(2, generator=own)]), 1.0)
    seen = []
    for _ in range(2):
        mix.generator = torch.Generator().manual_seed(0)
        own.manual_seed(5)
        seen.append([mix.mix(x, y).lam.item() for _ in range(8)])
    assert seen[0] == seen[1]
    assert mix.mixer.mixers[2].generator is own


def test_a_wrapper_draws_from_a_generator_that_the_mixer_inside_was_given_later():
    x, y = torch.randn(16, 3), torch.zeros(16)
    inner = KMixup(2)
    mix, seen = Sometimes(inner, 0.5), []
    for _ in range(2):
        inner.generator = torch.Generator().manual_seed(0)
        seen.append([torch.equal(mix.mix(x, y).x, x) for _ in range(16)])
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 2


class Learning(KMixup):
    learns = True


@pytest.mark.parametrize("wrap", [Sometimes, WithClean, lambda mixer: Choice([KMixup(), mixer])])
def test_wrappers_take_over_the_flags_of_mixers(wrap):
    assert wrap(Memory(KMixup(), 64)).has_memory
    assert wrap(Learning()).learns
    assert not wrap(KMixup()).has_memory
    assert not wrap(KMixup()).learns
    with pytest.raises(ValueError, match="mixer must mix the outputs of a layer as they are"):
        HiddenMixup(torch.nn.Sequential(torch.nn.Linear(2, 2)), ["0"], mixer=wrap(Learning()))
