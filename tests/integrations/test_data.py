"""Batches mixed by hand and by the collate function of a data loader."""

import copy
import pickle
from collections import UserDict, namedtuple

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

from kmixup import Choice, CutMix, KMixup, LocalMixup, StackMix
from kmixup.integrations import ranks
from kmixup.integrations.data import MixCollate, mix_batch

Triple = namedtuple("Triple", ["image", "label", "path"])


class Named(Dataset):
    """Samples as dicts, with a path each."""

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return {"image": torch.full((3,), float(index)), "label": index % 4, "path": f"{index}.png"}


def batch_of(n=16):
    return torch.randn(n, 3), torch.arange(n) % 4


@pytest.mark.parametrize(
    ("make", "keys"),
    [
        (lambda *entries: entries, (0, -2)),
        (lambda *entries: list(entries), (0, 1)),
        (Triple, (0, 1)),
        (lambda *entries: dict(zip(Triple._fields, entries, strict=True)), ("image", "label")),
        (lambda *entries: UserDict(zip(Triple._fields, entries, strict=True)), ("image", "label")),
    ],
    ids=["tuple", "list", "named tuple", "dict", "mapping"],
)
def test_a_batch_comes_back_as_its_own_type_with_the_rest_untouched(make, keys):
    (x, y), paths = batch_of(), ["a"] * 16
    batch, before = make(x, y, paths), x.clone()
    mixed = mix_batch(KMixup(4, num_classes=4), batch, input_key=keys[0], target_key=keys[1])
    assert type(mixed) is type(batch)
    assert mixed[keys[1]].shape == (16, 4)
    assert mixed["path" if "image" in keys else 2] is paths
    assert not torch.equal(mixed[keys[0]], x)
    assert torch.equal(batch[keys[0]], before)
    assert batch[keys[1]] is y


def test_inputs_alone_are_mixed_without_a_target_key():
    x, y = batch_of()
    mixed = mix_batch(KMixup(4), (x, y), target_key=None)
    assert mixed[1] is y
    assert not torch.equal(mixed[0], x)


def test_the_batch_is_what_the_direct_call_gives():
    x, y = batch_of()
    torch.manual_seed(1)
    direct = KMixup(4, num_classes=4)(x, y)
    torch.manual_seed(1)
    routed = mix_batch(KMixup(4, num_classes=4), (x, y))
    assert torch.equal(direct[0], routed[0])
    assert torch.equal(direct[1], routed[1])


def test_in_eval_mode_batches_come_back_as_they_are():
    mixer = KMixup(4, num_classes=4).eval()
    batch = batch_of()
    assert mix_batch(mixer, batch) == batch
    samples = list(zip(*batch, strict=True))
    x, y = MixCollate(mixer)(samples)
    assert torch.equal(x, batch[0])
    assert torch.equal(y, batch[1])


def test_in_eval_mode_inputs_are_as_the_network_must_see_them():
    x, y = torch.rand(16, 1, 4, 4), torch.arange(16) % 4
    mixer = StackMix(4, num_classes=4).eval()
    expected = mixer(x, y)[0]
    assert expected.shape == (16, 1, 8, 4)
    assert torch.equal(mix_batch(mixer, (x, y))[0], expected)
    assert torch.equal(MixCollate(mixer)(list(zip(x, y, strict=True)))[0], expected)


def test_batches_and_mixers_that_cannot_be_mixed_are_refused():
    mixer = KMixup(4, num_classes=4)
    with pytest.raises(TypeError, match="batch must be a tuple, a list or a mapping.*got Tensor"):
        mix_batch(mixer, torch.randn(4, 3))
    with pytest.raises(ValueError, match="input_key must name an entry.*got 0.*'image', 'label'"):
        mix_batch(mixer, {"image": 1, "label": 2})
    with pytest.raises(ValueError, match="target_key must name an entry.*got 5.*2 entries"):
        mix_batch(mixer, batch_of(), target_key=5)
    with pytest.raises(ValueError, match="cannot carry the weights or the penalty"):
        mix_batch(LocalMixup(4, num_classes=4), batch_of())


def test_a_loader_of_dicts_mixes_what_its_keys_name():
    collate = MixCollate(KMixup(4, num_classes=4), input_key="image", target_key="label")
    batch = next(iter(DataLoader(Named(), batch_size=16, collate_fn=collate)))
    assert batch["label"].shape == (16, 4)
    assert batch["path"] == [f"{i}.png" for i in range(16)]


def test_another_collate_function_makes_the_batch():
    def doubled(samples):
        x, y = default_collate(samples)
        return 2 * x, y

    x, y = batch_of()
    collate = MixCollate(KMixup(4, num_classes=4, prob=0.0), doubled)
    assert torch.equal(collate(list(zip(x, y, strict=True)))[0], 2 * x)


def strengths(context, *, seed=0, generator=True, persistent=False):
    """max(lam, 1 - lam) of every batch, over two epochs of a loader with two workers."""
    source = torch.Generator().manual_seed(3) if generator else None
    mixer = Choice([KMixup(2, 1.0, 64), CutMix(2, 1.0, 64)], weights=[1, 0], generator=source)
    data = TensorDataset(torch.randn(64, 2), torch.arange(64))
    torch.manual_seed(seed)
    loader = DataLoader(
        data,
        batch_size=8,
        collate_fn=MixCollate(mixer),
        num_workers=2 if context else 0,
        multiprocessing_context=context,
        persistent_workers=persistent,
    )
    return [float(y.max()) for _ in range(2) for _, y in loader]


@pytest.mark.parametrize("context", [None, "fork"])
@pytest.mark.parametrize("generator", [True, False])
def test_draws_differ_over_workers_and_epochs_and_are_repeated_by_the_seed(context, generator):
    lam = strengths(context, generator=generator)
    assert len(set(lam)) == len(lam) == 16
    assert strengths(context, generator=generator) == lam
    if context or not generator:
        assert strengths(context, generator=generator, seed=1) != lam


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_draws_differ_over_the_epochs_of_workers_that_stay(context):
    lam = strengths(context, persistent=True)
    assert len(set(lam)) == 16
    assert strengths(context, persistent=True) == lam


def test_every_rank_draws_differently_and_one_process_draws_as_the_direct_call(monkeypatch):
    x, y = batch_of()

    def lam_of(rank, size, generator=None):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(size))
        torch.manual_seed(0)
        mixer = Choice([KMixup(4, 1.0, 4), KMixup(2, 1.0, 4)], generator=generator)
        return [float(mix_batch(mixer, (x, y))[0][0, 0]) for _ in range(4)]

    lam = [lam_of(rank, 4) for rank in range(4)]
    assert len({value for row in lam for value in row}) == 16
    assert lam == [lam_of(rank, 4) for rank in range(4)]
    seeded = [lam_of(rank, 2, torch.Generator().manual_seed(5)) for rank in range(2)]
    assert len({value for row in seeded for value in row}) == 8
    alone = lam_of(0, 1)
    torch.manual_seed(0)
    mixer = Choice([KMixup(4, 1.0, 4), KMixup(2, 1.0, 4)])
    assert alone == [float(mixer(x, y)[0][0, 0]) for _ in range(4)]


def test_ranks_with_one_seed_keep_one_state():
    states = []
    for rank in range(2):
        generator = torch.Generator().manual_seed(5)
        mixer = Choice([KMixup(4, 1.0, 4), CutMix(2, 1.0, 4)], weights=[1, 0], generator=generator)
        before = [module._source for module in mixer.mixers]
        with ranks.draws_of_rank(mixer, rank):
            mixer.mix(*batch_of())
        assert [module._source for module in mixer.mixers] == before
        states.append(generator.get_state())
    assert torch.equal(*states)


def test_a_collate_function_takes_its_rank_to_workers_that_cannot_ask(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    stored = pickle.dumps(MixCollate(KMixup(4, num_classes=4)))
    monkeypatch.delenv("WORLD_SIZE")
    assert ranks.current_rank() is None
    collate = pickle.loads(stored)
    assert collate.saved_rank == copy.deepcopy(collate).saved_rank == 3
    samples = list(zip(*batch_of(), strict=True))
    torch.manual_seed(0)
    of_rank = collate(samples)[1]
    torch.manual_seed(0)
    assert not torch.equal(MixCollate(KMixup(4, num_classes=4))(samples)[1], of_rank)


def test_transforms_and_collate_functions_of_frameworks_take_their_rank_too():
    from kmixup.integrations import timm, torchvision

    for kind in (timm.Mixup, timm.FastCollateMixup, torchvision.MixUp, torchvision.CutMix):
        assert issubclass(kind, ranks.TakesRank)


def test_what_the_process_group_says_goes_before_what_was_saved(monkeypatch):
    assert ranks.current_rank(saved=3) == 3
    monkeypatch.setattr(ranks.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(ranks.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(ranks.distributed, "get_world_size", lambda: 2)
    assert ranks.current_rank(saved=3) == 1
