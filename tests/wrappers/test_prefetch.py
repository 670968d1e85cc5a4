"""Batches that are mixed in a thread beside the loop."""

import threading
import time
from functools import partial

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from kmixup import Choice, CutMix, HiddenMixup, KMixup, Prefetch


def mixer(seed=0, **settings):
    return KMixup(k=4, num_classes=3, generator=torch.Generator().manual_seed(seed), **settings)


def batches(count=6, n=16):
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(n, 5, generator=generator), torch.randint(3, (n,), generator=generator))
        for _ in range(count)
    ]


def running():
    return [thread for thread in threading.enumerate() if thread.name.startswith("kmixup-prefetch")]


def test_batches_are_those_of_the_plain_loop_in_order():
    direct, ahead = mixer(), mixer()
    for epoch in range(3):
        plain = [direct(x, y) for x, y in batches()]
        fetched = list(Prefetch(batches(), ahead))
        assert len(plain) == len(fetched) == 6, epoch
        for (x, y), (x2, y2) in zip(plain, fetched, strict=True):
            assert torch.equal(x, x2)
            assert torch.equal(y, y2)
    assert not running()


def test_a_shuffling_loader_gives_the_same_batches_as_without():
    data = TensorDataset(*batches(1, 64)[0])
    seen = []
    for fetch in (False, True):
        torch.manual_seed(5)
        loader = DataLoader(data, batch_size=16, shuffle=True)
        mix = mixer()
        pairs = Prefetch(loader, mix) if fetch else (mix(*batch) for batch in loader)
        # the loop draws from the global generator meanwhile, as dropout does
        seen.append([(x, torch.rand(3)) for x, _ in pairs])
        assert len(Prefetch(loader, mix)) == 4
    for (x, noise), (x2, noise2) in zip(*seen, strict=True):
        assert torch.equal(x, x2)
        assert torch.equal(noise, noise2)


def test_leaving_the_loop_ends_the_thread():
    for x, _ in Prefetch(batches(100), mixer()):
        assert x.shape == (16, 5)
        break
    assert not running()
    loop = iter(Prefetch(batches(), mixer()))
    next(loop)
    with pytest.raises(KeyError):
        loop.throw(KeyError())
    assert not running()


def choice():
    own = mixer()
    return Choice([own, mixer(1)], generator=own.generator)


@pytest.mark.parametrize(
    ("make", "called"),
    [(mixer, lambda mix: mix), (mixer, lambda mix: mix.mix), (mixer, partial), (choice, partial)],
)
def test_leaving_the_loop_takes_back_what_was_drawn_beyond_it(make, called):
    direct, ahead = make(), make()
    for count, batch in enumerate(batches(9), 1):
        direct(*batch)
        if count == 3:
            break
    for count, _ in enumerate(Prefetch(batches(9), called(ahead)), 1):
        time.sleep(0.02)  # the thread is ahead by now
        if count == 3:
            break
    plain, fetched = direct.state_dict(), ahead.state_dict()
    assert plain.keys() == fetched.keys() != set()
    assert all(torch.equal(plain[name], fetched[name]) for name in plain)


def test_the_thread_is_at_most_two_batches_ahead():
    taken = []

    def counted():
        for batch in batches():
            taken.append(len(taken))
            yield batch

    loop = iter(Prefetch(counted(), mixer()))
    next(loop)
    time.sleep(0.3)
    assert 1 <= len(taken) <= 3
    loop.close()
    assert not running()


def test_errors_of_the_loader_and_of_the_mixer_surface_in_the_loop():
    def broken():
        yield batches(1)[0]
        raise OSError("the disk is gone")

    loop = iter(Prefetch(broken(), mixer()))
    next(loop)
    with pytest.raises(OSError, match="the disk is gone"):
        next(loop)
    x, y = batches(1)[0]
    with pytest.raises(ValueError, match="sample 3 has a NaN"):
        list(Prefetch([(x.index_fill(0, torch.tensor(3), torch.nan), y)], mixer()))
    assert not running()


def test_functions_and_batches_of_any_kind_will_do():
    rows = [{"image": x} for x, _ in batches(2)]
    threads = []

    def doubled(batch):
        threads.append(threading.current_thread().name)
        return 2 * batch["image"]

    assert torch.equal(list(Prefetch(rows, doubled))[1], 2 * rows[1]["image"])
    assert threads == ["kmixup-prefetch_0"] * 2
    assert list(Prefetch([], doubled)) == []


def test_a_mixer_without_a_generator_is_refused():
    for mix in (
        KMixup(k=4),
        Choice([KMixup(), CutMix()]),
        KMixup().mix,
        partial(KMixup(), features=None),
        partial(KMixup(), keys=(0, 1)),
        HiddenMixup(torch.nn.Sequential(torch.nn.Linear(5, 3)), ["0"], k=4),
    ):
        with pytest.raises(ValueError, match="mix must have its own generator"):
            Prefetch(batches(), mix)
    with pytest.raises(TypeError, match="mix must be a mixer or a function, got int"):
        Prefetch(batches(), 3)
