"""Batches and settings as people's loops have them: each was once silently wrong, or a riddle."""

import copy
import pickle
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, default_collate

from kmixup import (
    Beta,
    Choice,
    CutMix,
    HiddenMixup,
    KMixup,
    Linear,
    Mixer,
    Optimal,
    Sometimes,
    match,
)
from kmixup.matching.pairing import _warned
from oracles import seeded

# generators: in workers, in copies


class LamCollate:
    """Draws in the loader's worker; picklable, so that spawned workers can have it."""

    def __init__(self, mixer):
        self.mixer = mixer

    def __call__(self, samples):
        x, y = default_collate(samples)
        return self.mixer.mix(x, y).lam


def lams_of(mixer, *, context, epochs=2, persistent=False, seed=0):
    data = TensorDataset(torch.randn(64, 3), torch.randint(4, (64,)))
    loader = DataLoader(
        data,
        batch_size=8,
        num_workers=2,
        collate_fn=LamCollate(mixer),
        multiprocessing_context=context,
        persistent_workers=persistent,
        generator=seeded(seed),
    )
    return [float(lam) for _ in range(epochs) for lam in loader]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_workers_and_epochs_draw_differently_and_a_loader_of_the_same_seed_repeats_them(
    context, persistent
):
    settings = {"context": context, "persistent": persistent}
    lams = lams_of(KMixup(2, 1.0, 4, generator=seeded()), **settings)
    assert len(set(lams)) == len(lams) == 16
    if context == "fork":  # the others start slowly, and read the same code
        assert lams_of(KMixup(2, 1.0, 4, generator=seeded()), **settings) == lams
        assert lams_of(KMixup(2, 1.0, 4, generator=seeded(1)), **settings) != lams
        assert lams_of(KMixup(2, 1.0, 4, generator=seeded()), seed=1, **settings) != lams


COPIES = {"pickle": lambda m: pickle.loads(pickle.dumps(m)), "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: KMixup(2, 1.0, 3, generator=seeded()),
        lambda: Choice([KMixup(2, 1.0, 3), KMixup(1, 0.2, 3)], generator=seeded()),
        lambda: KMixup(2, 1.0, 3),
    ],
)
def test_a_copy_of_a_mixer_draws_what_the_mixer_draws(make, copied):
    mixer, x, y = make(), torch.randn(8, 3), torch.randint(3, (8,))
    mixer(x, y)
    again = copied(mixer)
    for _ in range(5):
        torch.manual_seed(7)
        mixed = mixer.mix(x, y)
        torch.manual_seed(7)
        repeated = again.mix(x, y)
        assert torch.equal(mixed.x, repeated.x)
    if mixer.generator is not None:
        assert again.generator is not mixer.generator


def test_the_generator_of_a_choice_is_still_shared_in_a_copy():
    choice = copy.deepcopy(Choice([KMixup(2), CutMix(2)], generator=seeded()))
    assert len({id(module.generator) for module in (choice, *choice.mixers)}) == 1


# checkpoints


def test_checkpoints_from_before_there_was_a_mixer_load_strictly():
    class Net(nn.Module):
        def __init__(self, mixer=None):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            if mixer is not None:
                self.mixer = mixer

    old = Net().state_dict()
    assert Net(KMixup()).state_dict().keys() == old.keys()
    Net(KMixup()).load_state_dict(old)
    for mixer in (KMixup(generator=seeded()), Choice([KMixup()], generator=seeded())):
        with pytest.warns(UserWarning, match="has no state for this mixer's generator"):
            Net(mixer).load_state_dict(old)
    with_state = Net(KMixup(generator=seeded(5)))
    mixer = KMixup(generator=seeded())
    Net(mixer).load_state_dict(with_state.state_dict())
    assert torch.equal(mixer.generator.get_state(), seeded(5).get_state())


# what a batch may be


def test_inputs_alone_are_mixed_without_targets():
    mix, x = KMixup(2, generator=seeded()), torch.randn(8, 3)
    mixed = mix.mix(x, None)
    assert mixed.y is None
    assert torch.allclose(mixed.x, mixed.lam * x + (1 - mixed.lam) * x[mixed.partner])
    assert mix(x, None)[1] is None
    with pytest.raises(ValueError, match="there are no targets to take a loss of"):
        mixed.loss(F.mse_loss, x)
    again = KMixup(2, generator=seeded()).mix(x, None, other=(x + 1, None))
    assert again.x.shape == x.shape


def test_a_nest_of_targets_is_mixed_each_by_its_dtype():
    x, heads = torch.randn(8, 3), {"class": torch.randint(3, (8,)), "size": torch.randn(8, 2)}
    mixed = KMixup(2, 1.0, num_classes=3).mix(x, heads)
    hot = F.one_hot(heads["class"], 3).float()
    for name, target in (("class", hot), ("size", heads["size"])):
        expected = mixed.lam * target + (1 - mixed.lam) * target[mixed.partner]
        assert torch.allclose(mixed.y[name], expected, atol=1e-6)
    logits = {"class": torch.randn(8, 3), "size": torch.randn(8, 2)}

    def criterion(out, y):
        return F.cross_entropy(out["class"], y["class"]) + F.mse_loss(out["size"], y["size"])

    other = {name: target[mixed.partner] for name, target in heads.items()}
    expected = mixed.lam * criterion(logits, heads) + (1 - mixed.lam) * criterion(logits, other)
    assert torch.allclose(mixed.loss(criterion, logits), expected)
    with pytest.raises(TypeError, match="accuracy needs one tensor of targets, got dict"):
        mixed.accuracy(logits["class"])


FORMATS = [
    ((8, 3, 5, 6), torch.contiguous_format),
    ((8, 3, 5, 6), torch.channels_last),
    ((8, 3, 2, 5, 6), torch.channels_last_3d),
]


@pytest.mark.parametrize(("shape", "format"), FORMATS)
@pytest.mark.parametrize(
    "mix",
    [
        KMixup(2),
        KMixup(2, lam_per="sample"),
        CutMix(2),
        CutMix(2, lam_per="sample"),
    ],
    ids=str,
)
def test_the_memory_format_of_images_and_videos_is_kept(mix, shape, format):
    x = torch.randn(shape).to(memory_format=format)
    for _ in range(4):
        assert mix.mix(x, None).x.is_contiguous(memory_format=format)
    lam, partner = torch.tensor(0.3), torch.arange(8).flip(0)
    plain = Linear()(x.contiguous(), x.contiguous(), partner, lam)
    assert torch.equal(Linear()(x, x, partner, lam), plain)


def test_maps_of_numbers_are_pasted_with_the_box_and_labels_are_mixed():
    x = torch.arange(8.0).view(8, 1, 1, 1).expand(8, 1, 6, 5).contiguous()
    heat = CutMix(1, 1.0, 8).mix(x, {"heat": x.clone(), "label": torch.arange(8)})
    assert torch.equal(heat.y["heat"], heat.x)
    assert heat.y["label"].shape == (8, 8)


# settings


def test_k_alpha_and_prob_can_be_scheduled():
    mix, x, y = KMixup(4, 1.0, generator=seeded()), torch.randn(8, 3), torch.randn(8)
    mix.alpha, mix.k, mix.prob = 0.2, 2, 0.5
    assert (mix.alpha, mix.k, mix.prob) == (0.2, 2, 0.5)
    assert (mix.coefficient, mix.pairing) == (Beta(0.2), Optimal(2))
    fresh = KMixup(2, 0.2, prob=0.5, generator=seeded())
    assert torch.equal(mix(x, y)[0], fresh(x, y)[0])
    for around in (HiddenMixup(nn.Linear(2, 2), [""]), Choice([KMixup()]), Sometimes(KMixup())):
        with pytest.raises(AttributeError, match="alpha is a setting of the mixer inside"):
            around.alpha = 1


def test_settings_may_be_torch_scalars():
    mix = KMixup(2, torch.tensor(0.5), num_classes=torch.tensor(3))
    assert (mix.coefficient, mix.num_classes) == (Beta(0.5), 3)
    assert type(mix.coefficient.alpha) is float


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ((16, Beta(1.0), Linear()), r"pairing must be a Pairing, got 16: use Optimal\(k=16\)"),
        ((Optimal(2), 1.0, Linear()), "coefficient must be a Coefficient, got 1.0"),
        ((Optimal(2), Beta(1.0), "linear"), "interpolation must be a Interpolation"),
    ],
)
def test_a_stage_of_the_wrong_kind_raises(stages, message):
    with pytest.raises(TypeError, match=message):
        Mixer(*stages)


@pytest.mark.parametrize("classes", [10, {"size": None, "class": 10}])
def test_a_nest_of_targets_has_one_num_classes_or_one_per_entry(classes):
    x, heads = torch.randn(8, 3), {"class": torch.randint(10, (8,)), "size": torch.randn(8)}
    soft = KMixup(2, num_classes=classes)(x, heads)[1]
    assert soft["class"].shape == (8, 10)
    assert soft["size"].shape == (8,)
    heads = torch.randint(3, (8,)), torch.randint(7, (8,))
    three, seven = KMixup(2, num_classes=(3, 7))(x, heads)[1]
    assert three.shape == (8, 3)
    assert seven.shape == (8, 7)


@pytest.mark.parametrize("nothing", [(), {}, []])
def test_an_empty_nest_of_targets_stays_empty(nothing):
    x = torch.randn(8, 3)
    mixed, targets = KMixup(2)(x, nothing)
    assert not torch.equal(mixed, x)
    assert targets == nothing


@pytest.mark.parametrize("paired", [False, True])
def test_the_warning_of_a_short_batch_names_the_line_of_the_user(paired):
    _warned[:] = bytes(len(_warned))
    x, y = torch.randn(3, 2), torch.randn(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KMixup(8)(x, y, other=(x, y) if paired else None)
    (warning,) = caught
    assert warning.filename == __file__
    assert "a batch of 3 is too small for k=8" in str(warning.message)


def test_loader_workers_warn_of_short_batches_once_in_all_epochs(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """import torch
from torch.utils.data import DataLoader, TensorDataset
from kmixup import KMixup
from kmixup.collate import MixCollate

data = TensorDataset(torch.randn(40, 3), torch.randint(10, (40,)))
collate = MixCollate(KMixup(16, num_classes=10))
loader = DataLoader(data, 16, collate_fn=collate, num_workers=2, multiprocessing_context="fork")
for epoch in range(3):
    for x, y in loader:
        pass
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stderr.count("is too small for k=16") == 1
    assert f"{script}:10: UserWarning: a batch of " in done.stderr


# numbers of eight bits


@pytest.mark.parametrize("matched", [None, torch.randn(16, 3)], ids=["inputs", "features"])
def test_inputs_of_eight_bits_raise(matched):
    x, y = torch.randn(16, 3, 4, 4).to(torch.float8_e4m3fn), torch.randint(10, (16,))
    for mixer in (KMixup(4, 1.0, 10), CutMix(4, 1.0, 10), Choice([KMixup(4, 1.0, 10)])):
        with pytest.raises(TypeError, match=r"must be float16 or wider.* got torch.float8_e4m3fn"):
            mixer.mix(x, y, features=matched)


# tensors that have no values, or not in one block

DENSE = torch.rand(16, 3)
STRANGE = {
    "meta": (DENSE.to("meta"), "must have values, got a tensor on the device meta"),
    "sparse": (DENSE.to_sparse(), r"must be a dense tensor, got torch.sparse_coo: use .*to_dense"),
    "nested": (
        torch.nested.nested_tensor([torch.rand(2), torch.rand(3)] * 8, layout=torch.jagged),
        "must be a dense tensor, got a nested one: use torch.nested.to_padded_tensor",
    ),
}
strange = pytest.mark.parametrize(("tensor", "problem"), STRANGE.values(), ids=STRANGE)


@strange
def test_tensors_without_values_in_one_block_are_named_with_a_remedy(tensor, problem):
    mix = KMixup(4, 1.0)
    for call, name in (
        (lambda: mix(tensor), "x"),
        (lambda: mix({"a": DENSE, "b": tensor}), "x"),
        (lambda: mix(DENSE, tensor), "y"),
        (lambda: mix(DENSE, other=(tensor, None)), "the inputs of other"),
        (lambda: mix(DENSE, features=tensor), "features"),
        (lambda: match(tensor, k=4), "x"),
        (lambda: match(DENSE, tensor, k=4), "x2"),
    ):
        with pytest.raises(TypeError, match=f"^{name} {problem}"):
            call()


class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.layer = KMixup(4, 1.0, 5), nn.Linear(3, 5)

    def forward(self, x, y):
        x, y = self.mix(x, y)
        return self.layer(x), y


def test_a_network_is_exported_with_its_mixer_in_eval_mode_only():
    batch = DENSE, torch.randint(5, (16,))
    with pytest.raises(RuntimeError, match=r"a mixer cannot be exported, .*: call .eval\(\) on it"):
        torch.export.export(Training(), batch, strict=False)
    for strict in (True, False):
        net = Training().eval()
        exported = torch.export.export(net, batch, strict=strict).module()
        torch.testing.assert_close(exported(*batch), net(*batch))


@pytest.mark.slow
def test_a_step_compiled_as_a_full_graph_is_told_that_mixers_are_outside():
    batch = DENSE, torch.randint(5, (16,))
    torch.compiler.reset()
    with pytest.raises(RuntimeError, match="mixers run outside the graph: no fullgraph=True"):
        torch.compile(Training(), fullgraph=True, backend="eager")(*batch)
    net = Training().eval()
    compiled = torch.compile(net, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*batch), net(*batch))
