"""k larger than the batch: batches that are filled up from a memory."""

import copy
import io
import time
import warnings
from functools import partial
from threading import Thread

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from kmixup import Choice, CutMix, HiddenMixup, KMixup, Memory, RegMixup, WithClean
from kmixup.wrappers import memory
from oracles import seeded

CLASSES = 3


def stream(batches, n, *, d=2, seed=0):
    """Independent samples of one law: three clusters, one for each class."""
    drawn = seeded(seed)
    for _ in range(batches):
        y = torch.randint(CLASSES, (n,), generator=drawn)
        x = torch.randn(n, d, dtype=torch.float64, generator=drawn)
        yield x + 3 * torch.nn.functional.one_hot(y, d + CLASSES)[:, :d], y


def mixer(k=8, size=40, **options):
    return Memory(KMixup(k, 1.0, CLASSES, generator=seeded(7), **options), size)


def pool_of(mix, rows, draw, name="x"):
    """Inputs or targets of the batch, and below them what the draw takes from the memory."""
    if draw.places is None:
        return rows
    return torch.cat([rows, mix._rows[name][draw.places[0]]])


def test_the_memory_holds_the_last_samples():
    memory, seen = Memory(KMixup(1), 10), []
    for x, _ in stream(7, 4):
        memory.mix(x)
        seen += x.tolist()
        assert len(memory) == min(10, len(seen))
        assert sorted(memory._rows["x"][: len(memory)].tolist()) == sorted(seen[-10:])
    memory.mix(torch.arange(50.0).view(25, 2).double())
    assert sorted(memory._rows["x"].tolist()) == [[2.0 * i, 2.0 * i + 1] for i in range(15, 25)]
    memory.clear()
    assert len(memory) == 0


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 40), k=st.integers(1, 12), held=st.integers(0, 60), within=st.booleans())
def test_batches_are_filled_up_to_whole_blocks(n, k, held, within):
    memory = Memory(KMixup(k, generator=seeded(n)), 60)
    if held:
        memory.mix(torch.zeros(held, 1))
    places = memory.draw(n, within=within).places
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
        draw, held = mix.draw(n), len(mix)
        pool, pool_y = pool_of(mix, x, draw), pool_of(mix, y, draw, "y")
        mixed = mix.mix(x, y, draw)
        if held >= 2 * k:
            assert draw.inner.blocks.n == max(2 * k, -(-n // k) * k)
            ((first, second),) = draw.inner.blocks.pairs()
            for own, facing in zip(torch.tensor(first), torch.tensor(second), strict=True):
                cost = torch.cdist(pool[own], pool[facing]).square()
                differ = pool_y[own][:, None] != pool_y[facing][None]
                cost = cost + labels * cost.mean() * differ
                rows, columns = linear_sum_assignment(cost.numpy())
                # random samples have no ties, so the optimum is one
                for row, column in zip(rows, columns, strict=True):
                    if own[row] < n:
                        assert mixed.partner[own[row]] == facing[column]


@pytest.mark.parametrize(("n", "k"), [(6, 8), (1, 4)])
def test_only_the_batch_comes_out_and_partners_may_come_from_the_memory(n, k):
    mix, partners = mixer(k), []
    for x, y in stream(30, n):
        draw = mix.draw(n)
        pool, labels = pool_of(mix, x, draw), pool_of(mix, y, draw, "y")
        mixed = mix.mix(x, y, draw)
        if draw.places is not None:
            expected = mixed.lam * x + (1 - mixed.lam) * pool[mixed.partner]
            torch.testing.assert_close(mixed.x, expected)
            assert torch.allclose(mixed.distance, (x - pool[mixed.partner]).norm(dim=1))
            assert torch.equal(mixed.targets[1], labels[mixed.partner])
            assert (mixed.partner != torch.arange(n)).all()
            partners += mixed.partner.tolist()
        elif n == 1:
            assert torch.equal(mixed.x, x)  # the memory is still empty
        assert mixed.x.shape == x.shape
        assert mixed.y.shape == (n, CLASSES)
    assert max(partners) >= n
    assert n == 1 or min(partners) < n


def distances(mix, batches, n, *, other=False, seed=0):
    """Mean squared distance and share of crossings of pairs, batch by batch."""
    far, crossing = [], []
    facing = stream(batches, n, seed=seed + 1) if other else [None] * batches
    for (x, y), second in zip(stream(batches, n, seed=seed), facing, strict=True):
        mixed = mix.mix(x, y, other=second)
        far.append(mixed.distance.square().mean())
        crossing.append((mixed.targets[0] != mixed.targets[1]).double().mean())
    return torch.stack([torch.stack(far), torch.stack(crossing)])


@pytest.mark.parametrize("other", [False, True])
def test_pairs_have_the_law_of_two_loaders_on_a_stationary_stream(other):
    k, n, batches, start = 32, 8, 500, 64
    loaders = distances(KMixup(k, generator=seeded(1)), 160, k, other=True, seed=50)
    small = distances(KMixup(n, generator=seeded(1)), 500, n, other=True, seed=70)
    mix = Memory(KMixup(k, generator=seeded(2)), 256)
    measured = distances(mix, batches, n, other=other, seed=90)[:, start:]
    for kind in range(2):
        # batches share samples of the memory, so groups of 32 batches, its age, are one sample
        groups = measured[kind][: len(measured[kind]) // 32 * 32].view(-1, 32).mean(1)
        error = (groups.var() / len(groups) + loaders[kind].var() / loaders.shape[1]).sqrt()
        assert abs(groups.mean() - loaders[kind].mean()) < 4 * error
        assert abs(small[kind].mean() - loaders[kind].mean()) > 8 * error


@pytest.mark.parametrize("wrap", [lambda mix: mix, WithClean, lambda mix: Choice([mix, mix])])
def test_every_call_adds_its_batch_once_with_or_without_a_draw(wrap):
    memory = mixer()
    mix = wrap(memory)
    for count, (x, y) in enumerate(stream(6, 6), 1):
        if count == 4:
            state, draw = copy.deepcopy(memory.state_dict()), mix.draw(6)
            first = mix.mix(x, y, draw)
            memory.load_state_dict(state)  # the same draw and memory give the same batch
            assert torch.equal(mix.mix(x, y, draw).x, first.x)
        elif count % 2:
            mix.mix(x, y)
        else:
            mix(x, y)
        assert memory._seen == 6 * count
    mix.eval()
    mix(x, y)
    mix.mix(x, y)
    mix.mix(x, y, draw)
    assert memory._seen == 36


def test_a_resumed_run_equals_the_unbroken_one():
    whole, first = mixer(), mixer()
    batches = list(stream(12, 6))
    expected = [whole(x, y) for x, y in batches]
    for x, y in batches[:5]:
        first(x, y)
    stored, state = io.BytesIO(), first.state_dict()
    torch.save(state, stored)
    stored.seek(0)
    again = mixer()
    again.load_state_dict(torch.load(stored, weights_only=True))
    assert len(again) == 30
    for x, y in batches[5:]:
        first(x, y)  # must not change the checkpoint taken before
    first.load_state_dict(state)
    for (x, y), (mixed_x, mixed_y) in zip(batches[5:], expected[5:], strict=True):
        for resumed in (again, first):
            found_x, found_y = resumed(x, y)
            assert torch.equal(found_x, mixed_x)
            assert torch.equal(found_y, mixed_y)


def test_an_empty_memory_adds_nothing_to_a_checkpoint():
    mix = mixer(k=4, size=8)
    empty = mix.state_dict()
    assert list(empty) == ["mixer._extra_state"]
    mix(*next(stream(1, 4)))
    assert list(mix.buffers()) == []  # distributed training would exchange them
    with pytest.raises(ValueError, match="size must be that of the checkpoint, 8, got 9"):
        mixer(k=4, size=9).load_state_dict(mix.state_dict())
    mix.load_state_dict(empty)
    assert len(mix) == 0


def test_while_the_memory_fills_blocks_are_as_large_as_they_can_be():
    mix, sizes = mixer(k=8), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, y in stream(6, 4):
            draw = mix.draw(4)
            sizes.append((draw.inner.blocks.n, draw.inner.blocks.k))
            mix.mix(x, y, draw)
    assert sizes == [(4, 2), (8, 4), (12, 6), (16, 8), (16, 8), (16, 8)]


def test_batches_that_need_no_filling_are_as_without():
    plain, mix = KMixup(4, generator=seeded(3)), Memory(KMixup(4, generator=seeded(3)), 8)
    for x, _ in stream(4, 16):
        assert torch.equal(plain.mix(x, None).x, mix.mix(x, None).x)


@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
@pytest.mark.parametrize("other", [False, True])
def test_every_sample_has_its_lam(lam_per, other):
    mix = mixer(lam_per=lam_per)
    facing = stream(8, 6, seed=5)
    for x, y in stream(8, 6):
        mixed = mix.mix(x, y, other=next(facing) if other else None)
        assert mixed.lam.shape == (() if lam_per == "batch" else (6,))
        assert mixed.y.sum(1).allclose(torch.ones(6, dtype=mixed.y.dtype))
    assert mixed.points[1][0].shape[0] == (16 if not other else 8)


def test_nests_keep_what_is_not_mixed():
    mix = mixer(k=4)
    for x, y in stream(5, 4):
        batch = {"a": x.float(), "id": torch.arange(4), "b": [x[:, :1].float(), "name"]}
        mixed = mix.mix(batch, y)
    assert torch.equal(mixed.x["id"], torch.arange(4))
    assert mixed.x["b"][1] == "name"
    assert list(mix._rows) == ["x['a']", "x['b'][0]", "y"]
    keyed = Memory(KMixup(4, generator=seeded()), 8)
    for x, _ in stream(4, 4):
        tokens = torch.arange(8).view(4, 2)  # matched, not mixed
        result = keyed.mix({"a": x, "b": tokens}, {"p": x[:, 0], "q": x}, features="b")
    assert torch.equal(result.points[0][0][:4], tokens.float())
    assert result.points[1][0].shape == (8, 2)
    assert torch.equal(result.x["b"], tokens)
    assert result.y["q"].shape == (4, 2)


def test_entries_of_nests_meet_by_their_names():
    mix = Memory(KMixup(4, alpha=1.0, generator=seeded()), 8)
    one, many = torch.ones(2, 1), torch.full((2, 1), 100.0)
    for turn in range(6):
        parts = [("a", one), ("b", many)]
        x = dict(parts if turn % 2 else parts[::-1])
        mixed = mix.mix(x, dict(x))
        for found in (mixed.x, mixed.y):
            assert torch.equal(found["a"], one)
            assert torch.equal(found["b"], many)
    with pytest.raises(ValueError, match="a batch must be like those in the memory"):
        mix.mix((one, many), (one, many))


def test_features_are_kept_with_their_samples():
    mix, calls = mixer(k=4), []

    def embed(x):
        calls.append(len(x))
        return x[:, :1].square()

    for x, y in stream(5, 4):
        mixed = mix.mix(x, y, features=embed)
    assert calls == [4] * 5  # once for each batch, none for the memory
    assert mixed.points[1][0].shape == (8, 1)
    assert torch.equal(mixed.points[0][0][:4], x[:, :1].square())
    with pytest.raises(ValueError, match="a batch must be like those in the memory"):
        mix.mix(x, y)
    with pytest.raises(ValueError, match="one row for each of the 4 samples, got shape \\(3, 1\\)"):
        mix.mix(x, y, features=x[:3, :1])


@pytest.mark.parametrize("other", [False, True])
def test_the_memory_format_of_images_is_kept(other):
    mix = Memory(KMixup(4, generator=seeded()), 8)
    for _ in range(4):
        x = torch.randn(3, 2, 5, 5).contiguous(memory_format=torch.channels_last)
        mixed = mix.mix(x, None, other=(x, None) if other else None)
        assert mixed.x.is_contiguous(memory_format=torch.channels_last)
    assert mixed.points[1][0].shape == (4 if other else 8, 50)


def test_images_are_cut_and_clean_rows_come_below():
    mix = Memory(CutMix(8, 1.0, CLASSES, generator=seeded()), 16)
    both = [
        Memory(WithClean(KMixup(8, 1.0, CLASSES, generator=seeded())), 16),
        WithClean(Memory(KMixup(8, 1.0, CLASSES, generator=seeded()), 16)),
        Memory(RegMixup(8, 1.0, CLASSES, generator=seeded()), 16),
    ]
    for _, y in stream(5, 4):
        x = torch.randn(4, 1, 6, 6)
        assert mix.mix(x, y).x.shape == x.shape
        first, *others = (each.mix(x, y) for each in both)
        assert torch.equal(first.x[4:], x)
        assert torch.equal(first.distance[4:], torch.zeros(4))
        assert all(torch.equal(first.x, other.x) for other in others)
        assert all(torch.equal(first.y, other.y) for other in others)


def test_all_mixers_of_a_choice_remember():
    mix = Choice([mixer(k=4), Memory(CutMix(4, 1.0, CLASSES), 16)], generator=seeded())
    for count in range(1, 4):
        x = torch.randn(4, 1, 3, 3)
        mixed = mix.mix(x, torch.zeros(4).long())
        assert mixed.x.shape == x.shape
        assert [len(part) for part in mix.mixers] == [4 * count] * 2


def test_bad_sizes_batches_and_draws_raise():
    with pytest.raises(ValueError, match="size must be at least 2k = 32 samples, got 20"):
        Memory(KMixup(16), 20)
    with pytest.raises(ValueError, match="size must be a whole number, at least 1, got 4.5"):
        Memory(KMixup(1), 4.5)
    mix = mixer(k=8)
    for x, y in stream(5, 6):
        mix.mix(x, y)
    with pytest.raises(ValueError, match="a batch must be like those in the memory, got samples"):
        mix.mix(x.float(), y)
    draw = mix.draw(6)
    with pytest.raises(ValueError, match="draw uses samples of a memory .* holds 0"):
        mixer().mix(x, y, draw)
    mix.mixer.k = 32
    with pytest.raises(ValueError, match="size must be at least 2k = 64"):
        mix.mix(x, y)
    with pytest.raises(ValueError, match="mixer must mix the outputs of a layer as they are"):
        HiddenMixup(torch.nn.Linear(2, 2), [""], mixer=mix)
    assert Memory(KMixup(1), np.int64(4)).size == 4
    assert repr(Memory(KMixup(1), 4)).endswith("size=4)")


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
    net, mix = Net(), KMixup(4, 1.0, CLASSES)
    x, y = torch.randn(16, 2), torch.zeros(16).long()
    for embed in (net.embed, net, partial(net.embed, scale=2.0)):
        assert not mix.mix(x, y, features=embed).points[0][0].requires_grad
    mixed = mix.mix(x, y, mix.draw(16, within=False), other=(-x, y), features=net.embed)
    assert torch.equal(mixed.points[0][0], net.body(x).detach())
    assert torch.equal(mixed.points[1][0], net.body(-x).detach())
    assert set(net.modes) == {(False, False, False)}
    assert net.training
    assert not net.norm.training
    calls = len(net.modes)
    mix.eval().mix(x, y, features=net.embed)
    assert len(net.modes) == calls


def test_threads_that_share_a_memory_keep_inputs_and_targets_together(monkeypatch):
    joined = memory.joined

    def slowly(own, below):
        time.sleep(0.001)  # another thread goes on here
        return joined(own, below)

    monkeypatch.setattr(memory, "joined", slowly)
    mix, apart = Memory(KMixup(k=8), size=16), []

    def work(number: int) -> None:
        for step in range(20):
            value = torch.full((8,), 20.0 * number + step)
            mixed = mix.mix(value[:, None], value)
            apart.append(not torch.allclose(mixed.x[:, 0], mixed.y))

    threads = [Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(apart) == 40
    assert not any(apart)


def test_images_of_16_bit_are_kept():
    mix = Memory(CutMix(2), size=8)
    for _ in range(3):
        x = torch.randint(60_000, (6, 1, 4, 4)).to(torch.uint16)
        assert mix.mix(x, torch.zeros(6)).x.dtype == torch.uint16
