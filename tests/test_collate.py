"""Packed batches, mixed by a call with keys or by the collate function of a loader; and ranks."""

import pickle
import subprocess
import sys
from collections import UserDict, namedtuple
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

from kmixup import Choice, CutMix, HiddenMixup, KMixup, LocalMixup, MixCollate, StackMix
from kmixup import _randomness as randomness
from kmixup._randomness import current_rank

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
    mixed = KMixup(4, num_classes=4)(batch, keys=keys)
    assert type(mixed) is type(batch)
    assert mixed[keys[1]].shape == (16, 4)
    assert mixed["path" if "image" in keys else 2] is paths
    assert not torch.equal(mixed[keys[0]], x)
    assert torch.equal(batch[keys[0]], before)
    assert batch[keys[1]] is y


def test_inputs_alone_are_mixed_without_a_target_key():
    x, y = batch_of()
    mixed = KMixup(4)((x, y), keys=(0, None))
    assert mixed[1] is y
    assert not torch.equal(mixed[0], x)


def test_the_batch_is_what_the_direct_call_gives():
    x, y = batch_of()
    torch.manual_seed(1)
    direct = KMixup(4, num_classes=4)(x, y)
    torch.manual_seed(1)
    routed = KMixup(4, num_classes=4)((x, y), keys=(0, 1))
    assert torch.equal(direct[0], routed[0])
    assert torch.equal(direct[1], routed[1])


def test_in_eval_mode_batches_come_back_as_they_are():
    mixer = KMixup(4, num_classes=4).eval()
    batch = batch_of()
    assert mixer(batch, keys=(0, 1)) == batch
    samples = list(zip(*batch, strict=True))
    x, y = MixCollate(mixer)(samples)
    assert torch.equal(x, batch[0])
    assert torch.equal(y, batch[1])


def test_in_eval_mode_inputs_are_as_the_network_must_see_them():
    x, y = torch.rand(16, 1, 4, 4), torch.arange(16) % 4
    mixer = StackMix(4, num_classes=4).eval()
    expected = mixer(x, y)[0]
    assert expected.shape == (16, 1, 8, 4)
    assert torch.equal(mixer((x, y), keys=(0, 1))[0], expected)
    assert torch.equal(MixCollate(mixer)(list(zip(x, y, strict=True)))[0], expected)


def test_a_way_of_keys_leads_into_a_nested_sample():
    x, y = batch_of()
    batch = {"views": [x, x + 1], "meta": {"label": y, "path": ["a"] * 16}}
    mixed = KMixup(4, num_classes=4)(batch, keys=(("views", 0), ("meta", "label")))
    assert mixed["meta"]["label"].shape == (16, 4)
    assert not torch.equal(mixed["views"][0], x)
    assert mixed["views"][1] is batch["views"][1]
    assert batch["views"][0] is x
    assert batch["meta"]["label"] is y
    both = KMixup(4, num_classes=4)(batch, keys=("views", ("meta", "label")))
    torch.testing.assert_close(both["views"][1], both["views"][0] + 1)


def test_the_other_arguments_of_mix_may_be_given_with_keys():
    x, y = batch_of()
    features = torch.arange(16.0)[:, None]
    torch.manual_seed(1)
    direct = KMixup(4, num_classes=4)(x, y, features=features)
    torch.manual_seed(1)
    routed = KMixup(4, num_classes=4)((x, y), keys=(0, 1), features=features)
    assert torch.equal(direct[0], routed[0])


@pytest.mark.parametrize(
    ("batch", "keys"),
    [
        (lambda x, y: (x, y), "(0, 1)"),
        (lambda x, y: [x, y, ["a"] * 16], "(0, 1)"),
        (lambda x, y: {"pixel_values": x, "labels": y}, "('pixel_values', 'labels')"),
        (lambda x, y: {"labels": y, "in": {"a": x}}, "(('in', 'a'), 'labels')"),
        (lambda x, y: Triple(x, y.to(torch.uint8), None), "(0, 1)"),
    ],
)
def test_a_packed_batch_without_keys_raises_and_names_them(batch, keys):
    for mix in (KMixup(4, 1.0, 4), Choice([CutMix(4, 1.0, 4), KMixup(4, 1.0, 4)])):
        for call in (mix, mix.mix):
            with pytest.raises(ValueError, match="integers of shape .16,.*pass keys=") as error:
                call(batch(*batch_of()))
            assert f"keys={keys}" in str(error.value)


def test_batches_and_mixers_that_cannot_be_mixed_raise():
    mixer = KMixup(4, num_classes=4)
    with pytest.raises(TypeError, match="a batch with keys must be a tuple, a list or a mapping"):
        mixer(torch.randn(4, 3), keys=(0, 1))
    with pytest.raises(ValueError, match="keys must name entries.*got 0.*'image', 'label'"):
        mixer({"image": 1, "label": 2}, keys=(0, 1))
    with pytest.raises(ValueError, match="keys must name entries.*got 5.*2 entries"):
        mixer(batch_of(), keys=(0, 5))
    for keys in ("image", ("image",), 0):
        with pytest.raises(ValueError, match="keys must be the key of the inputs and that of"):
            mixer(batch_of(), keys=keys)
    with pytest.raises(ValueError, match=r"y must be left out with keys=\(0, 1\)"):
        mixer(batch_of(), torch.arange(16), keys=(0, 1))
    with pytest.raises(ValueError, match="cannot carry the weights or the penalty"):
        LocalMixup(4, num_classes=4)(batch_of(), keys=(0, 1))


def test_a_loader_of_dicts_mixes_what_its_keys_name():
    collate = MixCollate(KMixup(4, num_classes=4), keys=("image", "label"))
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


# ranks


def process_group(monkeypatch, rank, size):
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: rank)
    monkeypatch.setattr(distributed, "get_world_size", lambda: size)


@pytest.mark.parametrize("generator", [True, False])
def test_every_rank_draws_differently_and_one_process_draws_as_without_a_group(
    monkeypatch, generator
):
    x, y = batch_of()

    def lam_of(rank, size):
        torch.manual_seed(0)
        source = torch.Generator().manual_seed(5) if generator else None
        mixer = Choice([KMixup(4, 1.0, 4), KMixup(2, 1.0, 4)], generator=source)
        with monkeypatch.context() as patch:
            if size is not None:
                process_group(patch, rank, size)
            return [float(mixer(x, y)[0][0, 0]) for _ in range(4)]

    lam = [lam_of(rank, 4) for rank in range(4)]
    assert len({value for row in lam for value in row}) == 16
    assert lam == [lam_of(rank, 4) for rank in range(4)]
    assert lam_of(0, 1) == lam_of(0, None)


def test_ranks_with_one_seed_keep_one_state(monkeypatch):
    states = []
    for rank in range(2):
        process_group(monkeypatch, rank, 2)
        generator = torch.Generator().manual_seed(5)
        mixer = Choice([KMixup(4, 1.0, 4), CutMix(2, 1.0, 4)], weights=[1, 0], generator=generator)
        mixer.mix(*batch_of())
        states.append(generator.get_state())
    assert torch.equal(*states)


def test_ranks_draw_the_layer_of_manifold_mixup_differently(monkeypatch):
    def layers(rank):
        process_group(monkeypatch, rank, 2)
        generator = torch.Generator().manual_seed(5)
        hidden = HiddenMixup(nn.Linear(3, 3), ["", ""], k=2, generator=generator)
        return [hidden.draw(8).layer for _ in range(16)]

    assert layers(0) != layers(1)
    assert layers(0) == layers(0)


def test_a_pickled_mixer_takes_its_rank_to_workers_that_have_no_group(monkeypatch):
    with monkeypatch.context() as patch:
        process_group(patch, 3, 4)
        stored = pickle.dumps(MixCollate(KMixup(4, num_classes=4)))
    samples = list(zip(*batch_of(), strict=True))

    def targets(collate):
        torch.manual_seed(0)
        return collate(samples)[1]

    plain = targets(MixCollate(KMixup(4, num_classes=4)))
    assert torch.equal(targets(pickle.loads(stored)), plain)  # no worker: one process of its own
    monkeypatch.setattr(randomness, "get_worker_info", lambda: SimpleNamespace(seed=1))
    assert current_rank() is None
    assert current_rank(saved=3) == 3
    assert not torch.equal(targets(pickle.loads(stored)), plain)
    process_group(monkeypatch, 1, 2)
    assert current_rank(saved=3) == 1  # the group knows better


def test_two_processes_of_a_group_draw_differently_in_loop_and_workers(tmp_path):
    script = Path(__file__).parent / "two_ranks.py"
    ranks = [subprocess.Popen([sys.executable, script, str(r), tmp_path]) for r in range(2)]
    assert [process.wait(timeout=120) for process in ranks] == [0, 0]
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert first.keys() == second.keys()
    for route, lam in first.items():
        if route != "state":
            both = torch.cat([lam, second[route]])
            assert len(both.unique()) == len(both) == 8, route
    assert torch.equal(first["state"], second["state"])
