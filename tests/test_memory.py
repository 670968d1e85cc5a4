"""k larger than the batch: batches that are filled up from a memory."""

import io
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from kmixup import (
    Beta,
    Choice,
    CoMixup,
    CutMix,
    HiddenMixup,
    KMixup,
    Linear,
    Memory,
    Mixer,
    Optimal,
)

CLASSES = 3


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def stream(batches, n, *, d=2, seed=0):
    """Independent samples of one law: three clusters, one for each class."""
    drawn = generator(seed)
    for _ in range(batches):
        y = torch.randint(CLASSES, (n,), generator=drawn)
        x = torch.randn(n, d, dtype=torch.float64, generator=drawn)
        yield x + 3 * torch.nn.functional.one_hot(y, d + CLASSES)[:, :d], y


def mixer(k=8, memory=40, **options):
    return KMixup(k, 1.0, CLASSES, memory=memory, generator=generator(7), **options)


def pool_of(mix, rows, draw, name="x"):
    """Inputs or targets of the batch, and below them what the draw takes from the memory."""
    if draw.fill is None:
        return rows
    return torch.cat([rows, mix.memory.take(draw.fill[0])[name][0]])


def test_the_memory_holds_the_last_samples():
    memory, seen = Memory(10), []
    for x, _ in stream(7, 4):
        memory.add({"x": [x]})
        seen += x.tolist()
        assert len(memory) == min(10, len(seen))
        kept = memory.take(torch.arange(len(memory)))["x"][0].tolist()
        assert sorted(kept) == sorted(seen[-10:])
    memory.add({"x": [torch.arange(50.0).view(25, 2).double()]})
    assert sorted(memory.take(torch.arange(10))["x"][0].tolist()) == [
        [2.0 * i, 2.0 * i + 1] for i in range(15, 25)
    ]
    memory.clear()
    assert len(memory) == 0


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 40), k=st.integers(1, 12), held=st.integers(0, 60), within=st.booleans())
def test_batches_are_filled_up_to_whole_blocks(n, k, held, within):
    memory = Memory(60)
    if held:
        memory.add({"x": [torch.zeros(held, 1)]})
    places = memory.draw(n, k, within=within, generator=generator(n))
    f = 0 if places is None else places.shape[1]
    assert places is None or places.unique().numel() == places.numel()
    assert places is None or int(places.max()) < held
    missing = max(2 * k, -(-n // k) * k) - n if within else -n % k
    assert f == min(missing, held // (1 if within else 2))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 9), k=st.sampled_from([4, 8]), labels=st.sampled_from([0.0, 0.7]))
def test_the_match_is_optimal_in_blocks_of_the_filled_batch(n, k, labels):
    mix = mixer(k, labels=labels)
    for x, y in stream(20, n, seed=n):
        draw = mix.sample(n)
        mixed = mix.mix(x, y, draw)
        if len(mix.memory) >= 2 * k:
            assert draw.blocks.n == max(2 * k, -(-n // k) * k)
            pool = pool_of(mix, x, draw)
            pool_y = pool_of(mix, y, draw, "y")
            first, second = draw.blocks.sides()
            for block in range(draw.blocks.count):
                own = torch.from_numpy(first[k * block : k * block + k])
                facing = torch.from_numpy(second[k * block : k * block + k])
                cost = torch.cdist(pool[own], pool[facing]).square()
                differ = pool_y[own][:, None] != pool_y[facing][None]
                cost = cost + labels * cost.mean() * differ
                rows, columns = linear_sum_assignment(cost.numpy())
                # random samples have no ties, so the optimum is one
                for row, column in zip(rows, columns, strict=True):
                    if own[row] < n:
                        assert mixed.partner[own[row]] == facing[column]
        mix.remember(x, y)


def test_only_the_batch_comes_out_and_partners_may_come_from_the_memory():
    mix, from_memory, from_batch = mixer(), 0, 0
    for x, y in stream(30, 6):
        draw = mix.sample(6)
        mixed = mix.mix(x, y, draw)
        if draw.fill is not None:
            pool = pool_of(mix, x, draw)
            assert torch.allclose(mixed.x, mixed.lam * x + (1 - mixed.lam) * pool[mixed.partner])
            assert torch.allclose(mixed.distance, (x - pool[mixed.partner]).norm(dim=1))
            labels = pool_of(mix, y, draw, "y")
            assert torch.equal(mixed.targets[1], labels[mixed.partner])
            assert (mixed.partner != torch.arange(6)).all()
            from_memory += int((mixed.partner >= 6).sum())
            from_batch += int((mixed.partner < 6).sum())
        assert mixed.x.shape == x.shape
        assert mixed.y.shape == (6, CLASSES)
        mix.remember(x, y)
    assert from_memory > 0
    assert from_batch > 0


def distances(mix, batches, n, *, other=False, seed=0):
    """Mean squared distance and share of crossings of pairs, batch by batch."""
    far, crossing = [], []
    facing = stream(batches, n, seed=seed + 1) if other else [None] * batches
    for (x, y), second in zip(stream(batches, n, seed=seed), facing, strict=True):
        mixed = mix.draw(x, y, other=second)
        far.append(mixed.distance.square().mean())
        crossing.append((mixed.targets[0] != mixed.targets[1]).double().mean())
    return torch.stack([torch.stack(far), torch.stack(crossing)])


@pytest.mark.parametrize("other", [False, True])
def test_pairs_have_the_law_of_two_loaders_on_a_stationary_stream(other):
    k, n, batches, start = 32, 8, 500, 64
    loaders = distances(KMixup(k, generator=generator(1)), 160, k, other=True, seed=50)
    small = distances(KMixup(n, generator=generator(1)), 500, n, other=True, seed=70)
    mix = KMixup(k, memory=256, generator=generator(2))
    measured = distances(mix, batches, n, other=other, seed=90)[:, start:]
    for kind in range(2):
        # batches share samples of the memory, so groups of 32 batches, its age, are one sample
        groups = measured[kind][: len(measured[kind]) // 32 * 32].view(-1, 32).mean(1)
        error = (groups.var() / len(groups) + loaders[kind].var() / loaders.shape[1]).sqrt()
        assert abs(groups.mean() - loaders[kind].mean()) < 4 * error
        assert abs(small[kind].mean() - loaders[kind].mean()) > 8 * error


def test_a_small_memory_is_a_batch_as_large():
    """With all the memory in the block, pairs are those of one batch of all samples."""
    mix = mixer(k=8, memory=16)
    plain = KMixup(8, 1.0, CLASSES)
    (a, ya), (b, yb) = stream(2, 8)
    mix.draw(a, ya)
    draw = mix.sample(8)
    assert draw.fill.shape == (1, 8)
    order = draw.fill[0]
    mixed = mix.mix(b, yb, draw)
    whole = plain.mix(
        torch.cat([b, a[order]]), torch.cat([yb, ya[order]]), replace(draw, fill=None)
    )
    assert torch.equal(mixed.partner, whole.partner[:8])
    assert torch.equal(mixed.x, whole.x[:8])
    assert torch.equal(mixed.y, whole.y[:8])


def test_mixing_can_be_repeated_and_drawing_remembers():
    mix = mixer()
    for x, y in stream(5, 6):
        mix.draw(x, y)
    held = len(mix.memory)
    draw = mix.sample(6)
    first, second = mix.mix(x, y, draw), mix.mix(x, y, draw)
    assert torch.equal(first.x, second.x)
    assert len(mix.memory) == held == 30
    mix(x, y)
    assert len(mix.memory) == 36
    mix.eval()
    mix(x, y)
    mix.draw(x, y)
    mix.remember(x, y)
    assert len(mix.memory) == 36


def test_a_run_goes_on_as_it_would_have():
    whole, first = mixer(), mixer()
    batches = list(stream(12, 6))
    expected = [whole(x, y) for x, y in batches]
    for x, y in batches[:5]:
        first(x, y)
    stored = io.BytesIO()
    torch.save(first.state_dict(), stored)
    stored.seek(0)
    again = mixer()
    again.load_state_dict(torch.load(stored, weights_only=True))
    assert len(again.memory) == 30
    for (x, y), (mixed_x, mixed_y) in zip(batches[5:], expected[5:], strict=True):
        found_x, found_y = again(x, y)
        assert torch.equal(found_x, mixed_x)
        assert torch.equal(found_y, mixed_y)


def test_checkpoints_without_a_memory_are_whole():
    plain = KMixup(4, generator=generator())
    mix = KMixup(4, generator=generator(), memory=8)
    mix.load_state_dict(plain.state_dict())
    assert len(mix.memory) == 0
    assert "memory._extra_state" not in mix.state_dict()
    mix(torch.randn(4, 2), torch.randn(4))
    with pytest.raises(ValueError, match="memory must have the size of the checkpoint, 8, got 9"):
        Memory(9).load_state_dict(mix.memory.state_dict())
    mix.load_state_dict(plain.state_dict())  # of before the first batch
    assert len(mix.memory) == 0


def test_a_checkpoint_stays_as_it_was():
    mix = mixer(memory=16)
    batches = list(stream(6, 6))
    mix(*batches[0])
    state = mix.state_dict()
    expected = [mix(x, y)[0] for x, y in batches[1:]]
    mix.load_state_dict(state)
    for (x, y), found in zip(batches[1:], expected, strict=True):
        assert torch.equal(mix(x, y)[0], found)


def test_checkpoints_hold_nothing_but_samples():
    for _ in range(20):
        torch.full((40, 2), 7.0)  # what the allocator may give again
        memory = Memory(40)
        memory.add({"x": [torch.ones(3, 2)]})
        (rows,) = memory.state_dict()["_extra_state"]["rows"]["x"]
        assert not rows[3:].any()


def test_processes_exchange_nothing_of_it():
    mix = mixer()
    mix.draw(*next(stream(1, 6)))
    assert list(mix.buffers()) == list(mix.parameters()) == []


def test_while_the_memory_fills_blocks_are_as_large_as_they_can_be():
    mix, sizes = mixer(k=8), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, y in stream(6, 4):
            draw = mix.sample(4)
            sizes.append((draw.blocks.n, draw.blocks.k))
            mix.remember(x, y)
            mix.mix(x, y, draw)
    assert sizes == [(4, 2), (8, 4), (12, 6), (16, 8), (16, 8), (16, 8)]


def test_single_samples_have_partners_in_the_memory():
    mix, batches = mixer(k=4), stream(12, 1)
    first, y = next(batches)
    assert torch.equal(mix.draw(first, y).x, first)  # nobody is there yet
    for x, y in batches:
        draw = mix.sample(1)
        pool = pool_of(mix, x, draw)
        mixed = mix.mix(x, y, draw)
        mix.remember(x, y)
        assert mixed.partner.item() > 0
        expected = mixed.lam * x + (1 - mixed.lam) * pool[mixed.partner]
        torch.testing.assert_close(mixed.x, expected)


def test_batches_that_need_no_filling_are_as_without():
    plain, mix = KMixup(4, generator=generator(3)), KMixup(4, memory=8, generator=generator(3))
    for x, _ in stream(4, 16):
        assert torch.equal(plain.draw(x, None).x, mix.draw(x, None).x)


@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
@pytest.mark.parametrize("other", [False, True])
def test_every_sample_has_its_lam(lam_per, other):
    mix = mixer(lam_per=lam_per)
    facing = stream(8, 6, seed=5)
    for x, y in stream(8, 6):
        mixed = mix.draw(x, y, other=next(facing) if other else None)
        assert mixed.lam.shape == (() if lam_per == "batch" else (6,))
        assert mixed.y.sum(1).allclose(torch.ones(6, dtype=mixed.y.dtype))
    assert mixed.features[1].shape[0] == (16 if not other else 8)


def test_nests_keep_what_is_not_mixed():
    mix = mixer(k=4)
    for x, y in stream(5, 4):
        batch = {"a": x.float(), "id": torch.arange(4), "b": [x[:, :1].float(), "name"]}
        mixed = mix.draw(batch, y)
    assert torch.equal(mixed.x["id"], torch.arange(4))
    assert mixed.x["b"][1] == "name"
    kept = mix.memory.take(torch.arange(2))
    assert [name for name, rows in kept.items() if rows] == ["x['a']", "x['b'][0]", "y"]
    keyed = KMixup(4, memory=8, generator=generator())
    for x, _ in stream(4, 4):
        result = keyed.draw({"a": x, "b": x[:, :1]}, {"p": x[:, 0], "q": x}, features="b")
    assert result.features[1].shape == (8, 1)
    assert result.y["q"].shape == (4, 2)


def test_entries_of_nests_meet_by_their_names():
    mix = KMixup(4, memory=8, generator=generator())
    one, many = torch.ones(2, 1), torch.full((2, 1), 100.0)
    for turn in range(6):
        parts = [("a", one), ("b", many)]
        x = dict(parts if turn % 2 else parts[::-1])
        mixed = mix.draw(x, dict(x))
        for found in (mixed.x, mixed.y):
            assert torch.equal(found["a"], one)
            assert torch.equal(found["b"], many)
    with pytest.raises(ValueError, match="a batch must be like those in the memory"):
        mix.draw((one, many), (one, many))


def test_features_may_be_an_entry_that_is_not_mixed():
    mix = KMixup(4, memory=8, generator=generator())
    for x, _ in stream(5, 4):
        tokens = torch.arange(8).view(4, 2)
        mixed = mix.draw({"x": x, "tokens": tokens}, None, features="tokens")
    assert torch.equal(mixed.features[0], tokens.float())
    assert mixed.features[1].shape == (8, 2)
    assert torch.equal(mixed.x["tokens"], tokens)
    with pytest.raises(ValueError, match="features must name an entry of x, got 'token'"):
        mix.draw({"x": x, "tokens": tokens}, None, features="token")


def test_features_are_kept_with_their_samples():
    mix, calls = mixer(k=4), []

    def embed(x):
        calls.append(len(x))
        return x[:, :1].square()

    for x, y in stream(5, 4):
        mixed = mix.draw(x, y, features=embed)
    assert calls == [4] * 5  # once for each batch, none for the memory
    assert mixed.features[1].shape == (8, 1)
    assert torch.equal(mixed.features[0], x[:, :1].square())
    with pytest.raises(ValueError, match="a batch must be like those in the memory"):
        mix.draw(x, y)
    with pytest.raises(ValueError, match="one row for each of the 4 samples, got shape \\(3, 1\\)"):
        mix.draw(x, y, features=x[:3, :1])


@pytest.mark.parametrize("other", [False, True])
def test_the_memory_format_of_images_is_kept(other):
    mix = KMixup(4, memory=8, generator=generator())
    for _ in range(4):
        x = torch.randn(3, 2, 5, 5).contiguous(memory_format=torch.channels_last)
        mixed = mix.draw(x, None, other=(x, None) if other else None)
        assert mixed.x.is_contiguous(memory_format=torch.channels_last)
    assert mixed.features[1].shape == ((4, 2, 5, 5) if other else (8, 2, 5, 5))


def test_images_are_cut_and_clean_batches_stand_below():
    mix = CutMix(8, 1.0, CLASSES, memory=16, generator=generator())
    clean = Mixer(
        Optimal(8), Beta(1.0), Linear(), num_classes=CLASSES, clean=True, memory=16,
        generator=generator(),
    )  # fmt: skip
    for _, y in stream(5, 4):
        x = torch.randn(4, 1, 6, 6)
        mixed, both = mix.draw(x, y), clean.draw(x, y)
    assert mixed.x.shape == x.shape
    assert torch.equal(both.x[4:], x)
    assert torch.equal(both.distance[4:], torch.zeros(4))


def test_a_choice_lets_all_its_mixers_remember():
    mix = Choice([mixer(k=4), CutMix(4, memory=16)], [1, 0], generator=generator())
    mix.draw(torch.randn(4, 1, 3, 3), torch.zeros(4).long())
    assert [len(part.memory) for part in mix.mixers] == [4, 4]
    with pytest.raises(ValueError, match='per="sample" takes all partners from one batch'):
        Choice([mixer(), mixer()], per="sample")


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="memory must hold at least 2k = 32 samples, got 20"):
        KMixup(16, memory=20)
    with pytest.raises(ValueError, match="memory must be a number of samples, at least 2, got 0"):
        KMixup(1, memory=0)
    mix = mixer(k=8)
    with pytest.raises(ValueError, match="memory must hold at least 2k = 64"):
        mix.k = 32
    for x, y in stream(5, 6):
        mix.draw(x, y)
    with pytest.raises(ValueError, match="a batch must be like those in the memory, got samples"):
        mix.draw(x.float(), y)
    draw = mix.sample(6)
    with pytest.raises(ValueError, match="draw takes samples from a memory of .* has 0"):
        mixer().mix(x, y, draw)
    with pytest.raises(ValueError, match="mixer must have no memory inside of a network"):
        HiddenMixup(torch.nn.Linear(2, 2), [""], mixer=mix)
    with pytest.raises(ValueError, match="memory must go with a method that mixes pairs"):
        Mixer(Optimal(1), Beta(1.0), CoMixup(1, 1.0, 3).interpolation, memory=8)
    assert "memory=Memory(40)" in repr(mix)
    assert Memory(np.int64(4)).size == 4
    assert repr(Memory(4, device="cpu")) == "Memory(4, device='cpu')"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(2, 3)
        self.norm = torch.nn.BatchNorm1d(3).eval()
        self.modes = []

    def embed(self, x, scale=1.0):
        self.modes.append((self.training, self.norm.training, torch.is_grad_enabled()))
        return scale * self.body(x)

    def forward(self, x):
        return self.embed(x)


def test_features_of_a_network_have_no_gradient_and_leave_its_modes():
    net = Net()
    x, y = torch.randn(16, 2), torch.zeros(16).long()
    for embed in (net.embed, net, partial(net.embed, scale=2.0)):
        mixed = KMixup(4, 1.0, CLASSES).draw(x, y, features=embed)
        assert not mixed.features[0].requires_grad
    mixed = KMixup(4, 1.0, CLASSES).draw(x, y, other=(-x, y), features=net.embed)
    assert torch.equal(mixed.features[1], net.body(-x).detach())
    mix = KMixup(4, 1.0, CLASSES)
    again = mix.mix(x, y, mix.sample(16), features=net.embed)
    assert torch.equal(again.features[0], net.body(x).detach())
    assert set(net.modes) == {(False, False, False)}
    assert net.training
    assert not net.norm.training


def test_matching_by_a_function_is_matching_by_its_values():
    x = torch.randn(32, 2)
    by_function, by_tensor = (
        KMixup(8, generator=generator(4)).draw(x, None, features=features)
        for features in (torch.sin, torch.sin(x))
    )
    assert torch.equal(by_function.partner, by_tensor.partner)


def test_nothing_is_computed_where_nothing_is_mixed():
    def embed(x):
        raise AssertionError

    x = torch.randn(8, 2)
    mix = KMixup(2).eval()
    assert torch.equal(mix.draw(x, None, features=embed).x, x)
    off = KMixup(2, alpha=0)
    assert torch.equal(off.mix(x, None, off.sample(8), features=embed).x, x)


def test_what_is_no_feature_is_refused():
    x = torch.randn(8, 2)
    with pytest.raises(TypeError, match="features must be a tensor, two with other, .* got float"):
        KMixup(2).draw(x, None, features=1.5)
    with pytest.raises(TypeError, match="features must give one tensor .* gave list"):
        KMixup(2).draw(x, None, features=lambda x: [x])
