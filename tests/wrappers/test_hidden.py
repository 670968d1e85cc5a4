"""Mixing inside networks, against forward passes written by hand."""

import copy
import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import distributed, nn
from torch.nn import functional as F

from kmixup import (
    AdaMixup,
    Beta,
    Choice,
    CutMix,
    HiddenMixup,
    KMixup,
    LatentMixup,
    Linear,
    LocalMixup,
    Mixer,
    Optimal,
    PuzzleMix,
    match,
)
from kmixup._networks import unwrapped
from kmixup.lab.models import build
from kmixup.lab.models.mlp import mlp
from kmixup.wrappers import hidden as hidden_module
from oracles import seeded


def batch(n: int = 12, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(n, *(shape or (4,))), torch.randint(3, (n,))


def hooks(net: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in net.modules())


class Net(nn.Module):
    """Straight code, with layers by name."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(torch.relu(self.b(torch.relu(self.a(x)))))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor, padding: torch.Tensor | None = None) -> torch.Tensor:
        hidden = self.encoder(self.embedding(tokens), src_key_padding_mask=padding)
        return self.head(hidden.mean(1))


# the same as a forward pass by hand


def by_hand(part1, part2, x, y, m):
    """Loss of a network in two parts, mixed in between with the partners and lam of `m`."""
    h = part1(x)
    lam = float(m.lam)
    logits = part2(lam * h + (1 - lam) * h[m.partner])
    soft = lam * F.one_hot(y, 3) + (1 - lam) * F.one_hot(y, 3)[m.partner]
    return logits, F.cross_entropy(logits, soft)


def sequential_case(net, x, at):
    return net, str(at), net[: at + 1], net[at + 1 :], x


def lenet_case(at):
    net = build("lenet", in_shape=(1, 12, 12), num_classes=3)
    return sequential_case(net, torch.randn(12, 1, 12, 12), at)


def mlp_case(at):
    return sequential_case(mlp(in_shape=(4,), num_classes=3, hidden=(16, 8)), batch()[0], at)


def resnet_case(stage):
    net = build("preact-resnet18", in_shape=(3, 8, 8), num_classes=3)
    stages = [net.get_submodule(f"layer{i}") for i in range(1, 5)]
    part1 = nn.Sequential(net.stem, *stages[:stage])
    part2 = nn.Sequential(*stages[stage:], net.act, net.pool, nn.Flatten(), net.linear)
    return net, f"layer{stage}", part1, part2, torch.randn(12, 3, 8, 8)


def transformer_case(layer):
    net = Transformer()
    first, second = net.encoder.layers
    split = 1 if layer == "embedding" else 2
    modules = [net.embedding, first, second]
    part1, rest = nn.Sequential(*modules[:split]), nn.Sequential(*modules[split:])
    return net, layer, part1, lambda h: net.head(rest(h).mean(1)), torch.randint(20, (12, 5))


@pytest.mark.parametrize(
    ("case", "where"),
    [
        (lenet_case, 1), (lenet_case, 6), (lenet_case, 10),
        (mlp_case, 1), (mlp_case, 2),
        (resnet_case, 1), (resnet_case, 3),
        (transformer_case, "embedding"), (transformer_case, "encoder.layers.0"),
    ],
)  # fmt: skip
def test_gradients_are_those_of_a_forward_pass_by_hand(case, where):
    net, layer, part1, part2, x = case(where)
    y = torch.randint(3, (12,))
    state = copy.deepcopy(net.state_dict())
    hidden = HiddenMixup(net, [layer], k=4, num_classes=3)
    logits, m = hidden.mix(x, y)
    F.cross_entropy(logits, m.y).backward()
    gradients = {name: p.grad.clone() for name, p in net.named_parameters()}
    running = {name: b.clone() for name, b in net.named_buffers()}

    net.load_state_dict(state)
    net.zero_grad()
    expected, loss = by_hand(part1, part2, x, y, m)
    loss.backward()
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    for name, p in net.named_parameters():
        torch.testing.assert_close(gradients[name], p.grad, rtol=1e-3, atol=1e-5)
    for name, b in net.named_buffers():  # batch norm has seen one batch
        torch.testing.assert_close(running[name], b)


@pytest.mark.parametrize("settings", [{"alpha": 0.7}, {"alpha": 0.0}, {"prob": 0.0}])
def test_mixing_the_input_is_k_mixup(settings):
    net, (x, y) = Net(), batch()
    hidden = HiddenMixup(net, [""], k=4, num_classes=3, generator=seeded(), **settings)
    mix = KMixup(k=4, num_classes=3, generator=seeded(), **settings)
    for _ in range(3):
        logits, soft = hidden(x, y)
        mixed, expected = mix(x, y)
        assert torch.equal(soft, expected)
        assert torch.equal(logits, net(mixed))


def test_the_match_is_that_of_the_layers_detached_output():
    net, (x, y) = Net(), batch()
    _, m = HiddenMixup(net, ["b"], k=4, generator=seeded()).mix(x, y)
    out = net.b(torch.relu(net.a(x)))
    expected = KMixup(4, generator=seeded()).mix(out, y)
    assert torch.equal(m.partner, expected.partner)
    torch.testing.assert_close(m.x, expected.x)
    torch.testing.assert_close(m.distance, (out - out[m.partner]).norm(dim=1))
    assert not m.distance.requires_grad
    assert not torch.equal(m.partner, match(x, k=4, generator=seeded()))


def test_layers_are_drawn_alike_and_from_the_generator():
    net, (x, y) = Net(), batch(4)

    def run(seed):
        hidden = HiddenMixup(net, ["", "a", "b"], k=1, generator=seeded(seed))
        draws = [hidden.draw(len(y)) for _ in range(600)]
        mixed = [(hidden.mix(x, y, draw)[1], hidden.layers[draw.layer]) for draw in draws]
        return [m.x.shape[1] + (layer == "b") for m, layer in mixed]

    sizes = run(0)
    assert [sizes.count(s) for s in (4, 8, 9)] == pytest.approx([200] * 3, abs=5 * 12)
    assert sizes == run(0)
    assert sizes != run(1)


def test_there_is_one_forward_pass_and_no_hook_is_left():
    net, (x, y), calls = Net(), batch(), []
    net.register_forward_pre_hook(lambda module, inputs: calls.append(module))
    hidden = HiddenMixup(net, ["", "a", "b"], k=4, num_classes=3)
    for count in range(1, 20):
        draw = hidden.draw(len(y))
        output, mixed = hidden.mix(x, y, draw)
        assert len(calls) == count
        assert hooks(net) == 0
    again, repeated = hidden.mix(x, y, draw)
    assert torch.equal(output, again)
    assert torch.equal(mixed.y, repeated.y)


def test_no_hook_is_left_when_the_forward_pass_fails():
    class Failing(Net):
        def forward(self, x):
            self.a(x)
            raise ZeroDivisionError

    net, (x, y) = Failing(), batch()
    hidden = HiddenMixup(net, ["a"], k=4, num_classes=3)
    with pytest.raises(ZeroDivisionError):
        hidden(x, y)
    assert hooks(net) == 0
    assert hidden_module._CALL.get() is None
    with pytest.raises(ValueError, match="must be finite to be matched"):
        HiddenMixup(Net(), ["a"], k=4, num_classes=3)(x * torch.nan, y)


def test_hooks_of_the_user_stay_and_see_the_layer_as_it_is():
    net, (x, y) = Net(), batch()
    seen = []
    net.a.register_forward_hook(lambda module, inputs, output: seen.append(output))
    _, m = HiddenMixup(net, ["a"], k=4, num_classes=3).mix(x, y)
    assert hooks(net) == 1
    assert torch.equal(seen[0], net.a(x))
    assert not torch.equal(seen[0], m.x)


def test_eval_mode_is_the_identity():
    net, (x, y) = Net(), batch()
    hidden = HiddenMixup(net, ["a", "b"], k=4, num_classes=3, generator=seeded()).eval()
    assert not net.training
    for _ in range(2):
        logits, same = hidden(x, y)
        assert torch.equal(logits, net(x))
        assert same is y
    assert torch.equal(hidden(x)[0], net(x))
    logits, m = hidden.mix(x, y)
    assert torch.equal(logits, net(x))
    assert float(m.lam) == 1
    assert torch.equal(hidden.mixer.generator.get_state(), seeded().get_state())
    hidden.train().mixer.eval()
    assert net.training
    assert torch.equal(hidden(x, y)[0], net(x))


# what layers put out


class Split(nn.Module):
    """Puts out a nest with more in it than can be mixed."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 8)

    def forward(self, x: torch.Tensor) -> dict:
        left, right = self.linear(x).split([3, 5], 1)
        return {"left": left, "rest": (right, None), "index": torch.arange(len(x))}


class Joined(nn.Module):
    def forward(self, out: dict) -> torch.Tensor:
        right, nothing = out["rest"]
        assert nothing is None
        assert out["index"].tolist() == list(range(len(right)))
        return torch.cat([out["left"], right], 1)


def test_tuples_and_dicts_are_mixed_as_one():
    net, (x, y) = nn.Sequential(Split(), Joined(), nn.Linear(8, 3)), batch()
    logits, m = HiddenMixup(net, ["0"], k=4, num_classes=3, generator=seeded()).mix(x, y)
    flat = KMixup(4, num_classes=3, generator=seeded()).mix(net[0].linear(x), y)
    assert torch.equal(m.partner, flat.partner)
    torch.testing.assert_close(logits, net[2](flat.x))
    torch.testing.assert_close(m.x["left"], flat.x[:, :3])


@pytest.mark.parametrize("name", ["0", "1"])
def test_a_shared_module_is_mixed_once(name):
    layer, (x, y) = nn.Linear(4, 4), batch()
    logits, m = HiddenMixup(nn.Sequential(layer, layer), [name], k=4).mix(x, y)
    h, lam = layer(x), float(m.lam)
    torch.testing.assert_close(logits, layer(lam * h + (1 - lam) * h[m.partner]))


def test_token_ids_are_fine_where_the_embedding_is_mixed():
    net, y = Transformer(), torch.randint(3, (12,))
    tokens = torch.randint(20, (12, 5))
    padding = torch.zeros(12, 5, dtype=torch.bool)
    padding[:, 4] = True
    hidden = HiddenMixup(net, ["embedding"], k=4, num_classes=3)
    logits, m = hidden.mix(tokens, y, padding=padding)
    embedded = KMixup().eval().mix(net.embedding(tokens), y).x
    lam = float(m.lam)
    mixed = lam * embedded + (1 - lam) * embedded[m.partner]
    expected = net.head(net.encoder(mixed, src_key_padding_mask=padding).mean(1))
    torch.testing.assert_close(logits, expected)
    assert hidden(tokens, y, padding)[0].shape == (12, 3)  # by position too
    with pytest.raises(TypeError, match="token ids and other integers cannot be averaged"):
        HiddenMixup(net, [""], k=4, num_classes=3)(tokens, y)


class Index(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.argmax(1)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.Flatten(0), r"must return .* the batch of 12, got shapes .*\[\(48,\)\]"),
        (nn.LSTM(4, 3), r"must return .* the batch of 12, got shapes .*\(1, 3\)"),
        (Index(), r"must return floating-point tensors .*\[\]"),
    ],
)
def test_outputs_without_rows_of_floats_raise(layer, message):
    with pytest.raises(ValueError, match=f"layer '0' {message}"):
        HiddenMixup(nn.Sequential(layer), ["0"], k=4, num_classes=3)(*batch())


# other mixers, and settings


def test_any_mixer_will_do_inside():
    x, y = torch.randn(12, 1, 8, 8), torch.randint(3, (12,))
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 3))
    _, m = HiddenMixup(net, ["0"], mixer=CutMix(4, num_classes=3)).mix(x, y)
    out = net[0](x)
    assert ((m.x == out) | (m.x == out[m.partner])).all()
    mixer = Choice([KMixup(4, num_classes=3), CutMix(4, num_classes=3)], generator=seeded())
    assert HiddenMixup(net, ["", "0"], mixer=mixer)(x, y)[1].shape == (12, 3)
    local = HiddenMixup(net, ["0"], mixer=LocalMixup(4))
    logits, m = local.mix(x, y)
    each = nn.CrossEntropyLoss(reduction="none")
    torch.testing.assert_close(m.loss(each, logits).mean(), (m.weight * (
        m.lam * each(logits, y) + (1 - m.lam) * each(logits, y[m.partner]))).mean())  # fmt: skip
    with pytest.raises(ValueError, match="cannot carry the weights or the penalty"):
        local(x, y)


def test_a_layer_with_one_output_is_encoded_as_one_tensor():
    x, y = torch.randn(12, 4), torch.randint(3, (12,))
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    latent, plain = (
        HiddenMixup(net, ["0"], mixer=mixer).mix(x, y)
        for mixer in (
            LatentMixup(lambda h: 2 * h, lambda z: z / 2, 4, 1.0, 3, generator=seeded()),
            KMixup(4, 1.0, 3, generator=seeded()),
        )
    )
    assert torch.equal(latent[1].partner, plain[1].partner)
    torch.testing.assert_close(latent[0], plain[0])


@pytest.mark.parametrize("mixer", [PuzzleMix, lambda: Choice([PuzzleMix()])])
def test_mixers_that_need_importance_do_not_mix_layers(mixer):
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 3))
    with pytest.raises(ValueError, match="PuzzleMix needs the importance of pixels, got none"):
        HiddenMixup(net, ["0"], mixer=mixer()).mix(torch.randn(32, 1, 8, 8), torch.arange(32) % 3)


def test_mixers_that_learn_with_the_network_mix_its_input():
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    mixer = AdaMixup(net, (4,), num_classes=3)
    with pytest.raises(ValueError, match="mixer must mix the outputs of a layer as they are"):
        HiddenMixup(net, ["", "1"], mixer=mixer)
    logits, mixed = HiddenMixup(net, [""], mixer=mixer).mix(torch.randn(8, 4), torch.arange(8) % 3)
    assert len(logits) == len(mixed.y) == 16


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (["layer"], "got 'layer': did you mean 'layer4' or 'layer3' or 'layer2'"),
        (["", "layer2.O"], "got 'layer2.O': did you mean 'layer2.1' or 'layer2.0'"),
        (["~"], "got '~': there are stem, layer1,"),
        ("layer1", r"layers must be a list of names, got 'layer1': use \['layer1'\]"),
        ([], "layers must name at least one layer"),
    ],
)
def test_unknown_layers_are_refused_with_close_names(layers, message):
    net = build("preact-resnet18", in_shape=(1, 8, 8), num_classes=3)
    with pytest.raises(ValueError, match=message):
        HiddenMixup(net, layers)


def test_settings_belong_to_the_mixer_if_there_is_one():
    with pytest.raises(ValueError, match="mixer has its own settings: give it k, alpha instead"):
        HiddenMixup(Net(), ["a"], mixer=KMixup(), k=4, alpha=1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'kk'"):
        HiddenMixup(Net(), ["a"], kk=4)


def test_a_layer_that_is_not_called_is_an_error():
    net = Net()
    net.spare = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="nothing was mixed, because .* 'spare'"):
        HiddenMixup(net, ["spare"], k=4, num_classes=3)(*batch())
    assert hooks(net) == 0


# saving


def test_saves_and_loads_cleanly_and_resumes():
    def make(seed):
        torch.manual_seed(seed)
        return HiddenMixup(Net(), ["", "a"], k=4, num_classes=3, generator=seeded(seed))

    x, y = batch()
    hidden = make(0)
    names = {f"net.{name}" for name in Net().state_dict()}
    assert set(hidden.state_dict()) == names | {"mixer._extra_state"}
    assert set(hidden.net.state_dict()) == set(Net().state_dict())
    hidden(x, y)
    file = io.BytesIO()
    torch.save(hidden.state_dict(), file)
    unbroken = [hidden(x, y) for _ in range(5)]
    file.seek(0)
    resumed = make(7)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for expected in unbroken:
        assert all(torch.equal(a, b) for a, b in zip(expected, resumed(x, y), strict=True))
    assert hooks(copy.deepcopy(hidden)) == 0
    hidden.net.load_state_dict(Net().state_dict())


# surroundings


@pytest.mark.usefixtures("bf16")
def test_works_under_autocast():
    net, (x, y) = Net(), batch()
    hidden = HiddenMixup(net, ["a"], k=4, num_classes=3, generator=seeded())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, m = hidden.mix(x, y)
        out = net.a(x)
    assert m.x.dtype == out.dtype == torch.bfloat16
    assert m.y.dtype == torch.float32
    partner = KMixup(4, generator=seeded()).mix(out, y).partner
    assert torch.equal(m.partner, partner)
    F.cross_entropy(logits, m.y).backward()
    assert net.a.weight.grad.isfinite().all()


def test_wrappers_are_looked_through():
    net, wrapped, fabric = Net(), nn.Module(), nn.Module()
    wrapped.module = nn.Module()
    wrapped.module._orig_mod = net
    fabric._forward_module, fabric._original_module = wrapped, net
    assert all(unwrapped(each) is net for each in (wrapped, fabric, net))


compiles = pytest.mark.filterwarnings(
    # dynamo looks at .grad of tensors that cross a graph break, inductor loads torch.jit
    "ignore:The .grad attribute of a Tensor that is not a leaf",
    "ignore::DeprecationWarning",
)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("in_place", [False, True])
@compiles
def test_a_compiled_network_is_mixed_as_the_eager_one(backend, in_place):
    torch.compiler.reset()
    plain, net = Net(), Net()
    net.load_state_dict(plain.state_dict())
    if in_place:
        net.compile(backend=backend)
    compiled = net if in_place else torch.compile(net, backend=backend)

    def make(network):
        return HiddenMixup(network, ["", "a", "b"], k=4, num_classes=3, generator=seeded())

    pair = make(compiled), make(plain)
    drawn = set()
    for step in range(24):
        x, y = batch()
        results = []
        for hidden in pair:
            hidden.train(step % 6 != 0)  # the first call is in eval mode
            draw = hidden.draw(len(y))
            logits, mixed = hidden.mix(x, y, draw)
            soft = mixed.y if hidden.training else y
            hidden.zero_grad()
            F.cross_entropy(logits, soft).backward()
            results.append((logits, soft, *(p.grad for p in hidden.parameters())))
        drawn.add(pair[0].layers[draw.layer])
        torch.testing.assert_close(*results, rtol=1e-4, atol=1e-6)
    assert drawn == {"", "a", "b"}
    assert hooks(net) == 0


@pytest.mark.slow
@compiles
def test_a_network_compiled_without_the_hook_is_an_error_not_a_silent_plain_pass():
    torch.compiler.reset()
    x, y = batch()
    net = torch.compile(Net(), backend="eager")
    net(x)
    with pytest.raises(RuntimeError, match="call a compiled network only through HiddenMixup"):
        HiddenMixup(net, ["a"], k=4, num_classes=3)(x, y)
    assert hooks(net) == 0


@pytest.mark.slow
@compiles
def test_wrappers_of_one_compiled_network_do_not_disturb_each_other():
    torch.compiler.reset()
    plain, (x, y) = Net(), batch()
    net = torch.compile(plain, backend="eager")
    for seed in (0, 1, 2):
        pair = [
            HiddenMixup(n, ["a"], k=4, num_classes=3, generator=seeded(seed)) for n in (net, plain)
        ]
        for _ in range(2):
            torch.testing.assert_close(*(hidden(x, y) for hidden in pair))


@pytest.mark.slow
@compiles
def test_a_compiled_step_around_it_equals_the_eager_one():
    torch.compiler.reset()
    x, y = batch()
    hidden = HiddenMixup(Net(), ["a"], k=4, num_classes=3, generator=seeded())

    def step(x, y):
        return F.cross_entropy(*hidden(2 * x, y))

    losses = []
    for run in (step, torch.compile(step, backend="eager")):
        hidden.mixer.generator.manual_seed(3)
        losses.append(run(x, y))
    torch.testing.assert_close(*losses)


DDP = """
import os, sys, time, torch
from pathlib import Path
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from kmixup import HiddenMixup
from tests.wrappers.test_hidden import Net, batch, hooks, seeded

torch.set_num_threads(1)
folder, rank, around = sys.argv[1], int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
torch.manual_seed(rank)  # DDP gives all the weights of rank 0
net = Net()
options = dict(layers=["", "a", "b"], k=4, num_classes=3, generator=seeded(rank))
if around == "hidden":
    model = DistributedDataParallel(HiddenMixup(net, **options))
else:
    model = HiddenMixup(DistributedDataParallel(net), **options)
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
steps = []
for _ in range(6):
    x, y = batch()
    before = {name: p.detach().clone() for name, p in net.state_dict().items()}
    logits, soft = model(x, y)
    optimiser.zero_grad()
    F.cross_entropy(logits, soft).backward()
    steps.append({"x": x, "y": y, "before": before, "grad": net.a.weight.grad.clone()})
    optimiser.step()
assert hooks(net) == 0
torch.save({"steps": steps, "weights": net.state_dict()}, f"{folder}/rank{rank}.pt")
while not Path(f"{folder}/rank{1 - rank}.pt").exists():
    time.sleep(0.01)
os._exit(0)  # threads of gloo sometimes abort a process that ends by itself
"""


@pytest.mark.slow
@pytest.mark.parametrize("around", ["hidden", "network"])
def test_two_processes_average_the_gradients_of_mixed_layers(tmp_path, around, monkeypatch):
    script = tmp_path / "ddp.py"
    script.write_text(DDP)
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(tmp_path), str(rank), around],
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for rank in (0, 1)
    ]
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    ranks = [torch.load(tmp_path / f"rank{r}.pt", weights_only=True) for r in (0, 1)]
    for name, value in ranks[0]["weights"].items():
        assert torch.equal(value, ranks[1]["weights"][name])

    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    alone = [
        HiddenMixup(Net(), ["", "a", "b"], k=4, num_classes=3, generator=seeded(r)) for r in (0, 1)
    ]
    for steps in zip(*(rank["steps"] for rank in ranks), strict=True):
        gradients = []
        for rank, (hidden, step) in enumerate(zip(alone, steps, strict=True)):
            monkeypatch.setattr(distributed, "get_rank", lambda rank=rank: rank)
            hidden.net.load_state_dict(step["before"])
            hidden.zero_grad()
            logits, soft = hidden(step["x"], step["y"])
            F.cross_entropy(logits, soft).backward()
            gradients.append(hidden.net.a.weight.grad)
        for step in steps:
            torch.testing.assert_close(step["grad"], sum(gradients) / 2)


def test_threads_get_their_own_targets():
    """Threads share the modules, so what a call mixes must not be kept there."""
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    hidden = HiddenMixup(net, ["0", "1"], k=2, alpha=1.0, num_classes=100)

    def run(label):
        y = torch.full((6,), label)
        _, soft = hidden(torch.randn(6, 4), y)
        return bool((soft.argmax(1) == label).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, [i % 100 for i in range(2000)]))
    assert hooks(net) == 0


@pytest.mark.parametrize(("layer", "shape"), [("", (2, 3)), ("0", ())])
def test_interpolations_get_the_shape_of_inputs_that_are_mixed(layer, shape):
    seen = []

    class Shaped(Linear):
        def draw(self, n, shape=(), generator=None):
            seen.append(shape)

    mixer = Mixer(Optimal(2), Beta(1.0), Shaped())
    HiddenMixup(nn.Sequential(nn.Flatten()), [layer], mixer=mixer)(torch.randn(8, 2, 3))
    assert seen == [shape]
