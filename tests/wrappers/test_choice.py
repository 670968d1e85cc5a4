"""A choice of the mixer for every sample."""

import copy
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch.nn import functional as F

from kmixup import (
    Beta,
    Choice,
    CoMixup,
    CutMix,
    KMixup,
    Linear,
    LocalMixup,
    Memory,
    Mixer,
    Optimal,
    RegMixup,
    Sometimes,
    StackMix,
    WithClean,
)
from oracles import seeded

N, CLASSES = 24, 5


def batch(n=N, side=8):
    drawn = seeded(1)
    return torch.rand(n, 3, side, side, generator=drawn), torch.arange(n) % CLASSES


def choice(weights=None, seed=0, **options):
    options = {"lam_per": "sample"} | options
    mixers = [KMixup(4, 1.0, CLASSES, **options), CutMix(4, 1.0, CLASSES, **options)]
    return Choice(mixers, weights, per="sample", generator=seeded(seed))


@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
def test_every_row_is_that_of_its_mixer(lam_per):
    x, y = batch()
    mix = choice(lam_per=lam_per)
    draw = mix.draw(N, x.shape[1:])
    m = mix.mix(x, y, draw)
    parts = [mixer.mix(x, y, inner) for mixer, inner in zip(mix.mixers, draw.inner, strict=True)]
    assert set(m.chosen.tolist()) == {0, 1}
    for row, number in enumerate(draw.chosen.tolist()):
        assert torch.equal(m.x[row], parts[number].x[row])
        assert torch.equal(m.y[row], parts[number].y[row])
        assert m.lam[row] == parts[number].lam.expand(N)[row]
        assert m.distance[row] == parts[number].distance[row]


def test_partners_are_shared_where_pairings_are_equal_and_matched_once():
    @dataclass(frozen=True)
    class Counting(Optimal):
        calls: ClassVar[list[int]] = []

        def partners(self, *args):
            self.calls.append(1)
            return super().partners(*args)

    x, y = batch()
    linear, half = (Mixer(Counting(4), Beta(alpha), Linear()) for alpha in (1.0, 0.5))
    m = Choice([linear, half], per="sample").mix(x, y.float())
    assert len(Counting.calls) == 1
    assert torch.equal(m.partner.sort().values, torch.arange(N))
    m = Choice([linear, KMixup(2)], per="sample").mix(x, y.float())
    assert not torch.equal(m.parts[0].partner, m.parts[1].partner)


def test_mixers_of_other_entries_match_on_those_that_they_mix():
    drawn = seeded(2)
    x = {
        "bytes": torch.randint(256, (N, 3, 8, 8), dtype=torch.uint8, generator=drawn),
        "floats": torch.rand(N, 3, 8, 8, generator=drawn),
    }
    mix = choice()
    draw = mix.draw(N)
    mixed = mix.mix(x, torch.arange(N) % CLASSES, draw)
    for number, mixer in enumerate(mix.mixers):
        alone = mixer.mix(x, torch.arange(N) % CLASSES, draw.inner[number])
        rows = draw.chosen == number
        assert rows.any()
        assert torch.equal(mixed.partner[rows], alone.partner[rows])


def test_the_memory_format_of_images_stays():
    x, y = batch()
    mixed = choice().mix(x.contiguous(memory_format=torch.channels_last), y)
    assert mixed.x.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(mixed.x, choice().mix(x, y).x)


def test_mixers_are_chosen_as_often_as_their_weights_say():
    mix = choice([1, 3])
    chosen = torch.cat([mix.draw(100).chosen for _ in range(100)]).float()
    assert float(chosen.mean()) == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / 10_000) ** 0.5)


def test_a_mixer_with_alpha_0_leaves_its_samples_unmixed():
    x, y = batch()
    mix = Choice([KMixup(4, 0.0, CLASSES), KMixup(4, 1.0, CLASSES)], per="sample")
    m = mix.mix(x, y)
    clean = m.chosen == 0
    assert 0 < clean.sum() < N
    assert torch.equal(m.x[clean], x[clean])
    assert (m.lam[clean] == 1).all()
    assert torch.equal(m.partner[clean], torch.arange(N)[clean])
    assert (m.x[~clean] != x[~clean]).flatten(1).any(1).all()


def test_the_loss_is_that_of_the_soft_targets():
    x, y = batch()
    m = choice().mix(x, y)
    one = F.one_hot(y, CLASSES).float()
    lam = m.lam[:, None].float()
    torch.testing.assert_close(m.y, lam * one + (1 - lam) * one[m.partner])
    logits = torch.randn(N, CLASSES)
    loss = m.loss(torch.nn.CrossEntropyLoss(reduction="none"), logits)
    torch.testing.assert_close(loss, F.cross_entropy(logits, m.y, reduction="none"))
    assert 0 <= m.accuracy(logits) <= 1


def test_maps_are_averaged_or_pasted_as_their_row_is():
    x, _ = batch()
    y = torch.randint(CLASSES, (N, 8, 8), generator=seeded(2))
    m = choice().mix(x, y)
    one = F.one_hot(y, CLASSES).movedim(-1, 1).float()
    lam = m.lam.view(-1, 1, 1, 1).float()
    linear = lam * one + (1 - lam) * one[m.partner]
    cut = m.chosen == 1
    torch.testing.assert_close(m.y[~cut], linear[~cut])
    assert (m.y[cut].amax(1) > 0.999).all()


def test_nests_keep_what_is_passed_through():
    x, y = batch()
    nest, targets = {"image": x, "id": torch.arange(N), "path": ["a"] * N}, {"class": y, "row": "r"}
    mix = choice(targets={"class": None, "row": "pass"})
    m = mix.mix(nest, targets)
    assert m.x["id"] is nest["id"]
    assert m.x["path"] == nest["path"]
    assert m.y["row"] == "r"
    assert m.y["class"].shape == (N, CLASSES)


def test_the_same_seed_and_the_same_draw_give_the_same_batch():
    x, y = batch()
    mix = choice()
    again, saved = copy.deepcopy(mix), copy.deepcopy(mix.state_dict())
    first, second = mix.mix(x, y), again.mix(x, y)
    assert torch.equal(first.x, second.x)
    resumed = choice(seed=9)
    resumed.load_state_dict(saved)
    assert torch.equal(resumed.mix(x, y).x, first.x)
    draw = mix.draw(N, x.shape[1:])
    assert torch.equal(mix.mix(x, y, draw).x, mix.mix(x, y, draw).x)
    assert torch.equal(mix.eval()(x, y)[0], x)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda mix: Sometimes(mix, 1.0),
        lambda mix: Memory(mix, 64),
        lambda mix: Choice([mix, mix], per="sample"),
        lambda mix: Choice([mix, mix]),
    ],
    ids=["sometimes", "memory", "nested", "choice"],
)
def test_other_wrappers_work_around_it(wrap):
    mix = wrap(choice())
    for size in (N, 10, 8):
        x, y = batch(size)
        m = mix.mix(x, y)
        assert m.x.shape == x.shape
        torch.testing.assert_close(m.y.sum(1), torch.ones(size))
        assert m.distance.shape == (size,)
    other = batch(8)
    assert mix.mix(x, y, other=other).x.shape == x.shape


def test_a_batch_of_one_and_clean_rows():
    x, y = batch(1)
    assert torch.equal(choice().mix(x, y).x, x)
    x, y = batch()
    m = WithClean(choice()).mix(x, y)
    assert torch.equal(m.x[N:], x)
    assert m.y.shape == (2 * N, CLASSES)


@pytest.mark.parametrize("one", [RegMixup, LocalMixup, CoMixup])
def test_mixers_whose_rows_are_no_pairs_with_a_plain_loss_raise(one):
    x, y = batch()
    mix = Choice([one(4, num_classes=CLASSES), KMixup(4, 1.0, CLASSES)], per="sample")
    with pytest.raises(TypeError, match='give each sample one partner .* use per="batch"'):
        mix.mix(x, y, importance=torch.rand(N, 8, 8))


def test_mixers_that_return_other_shapes_raise():
    x, y = batch()
    mix = Choice([StackMix(4, CLASSES), KMixup(4, 1.0, CLASSES)], per="sample")
    with pytest.raises(ValueError, match=r"one shape, got \(24, 3, 16, 8\) and \(24, 3, 8, 8\)"):
        mix.mix(x, y)
    with pytest.raises(ValueError, match="per must be one of batch, sample, got 'elem'"):
        Choice([KMixup()], per="elem")
    with pytest.raises(TypeError, match="draw must be a SampleChoiceDraw, got ChoiceDraw"):
        choice().mix(x, y, Choice([KMixup(4)]).draw(N))
