"""Every named network: its size, its output, its gradients, its weights from a seed."""

from functools import cache

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from kmixup.lab.models import MODELS, SETS, build, layers_of
from kmixup.lab.models.convolutional import (
    DenseNetBC,
    PreActBlock,
    PreActResNet,
    WideBottleneck,
    WideBottleneckResNet,
    initialise,
)
from kmixup.lab.models.mlp import mlp

# name, shape of a sample, classes, parameters; in the published millions where there are any
SIZES = [
    ("mlp-toy", (2,), 2, 16_352, None),
    ("mlp-iris", (4,), 3, 11_019, None),
    ("mlp-cancer", (30,), 2, 28_574, None),
    ("mlp-abalone", (8,), 28, 28_144, None),
    ("mlp-phishing", (30,), 2, 28_574, None),
    ("mlp-arrhythmia", (279,), 13, 56_689, None),
    ("lenet", (1, 28, 28), 10, 61_706, "0.06"),
    ("lenet", (1, 160, 101), 30, 6_040_846, None),
    ("preact-resnet18", (3, 32, 32), 10, 11_172_170, "11.17"),
    ("preact-resnet18", (3, 64, 64), 200, 11_269_640, None),
    ("preact-resnet18-quarter", (3, 32, 32), 10, 701_018, None),
    ("preact-resnet14", (3, 32, 32), 10, 175_066, None),
    ("preact-resnet20", (3, 32, 32), 10, 272_282, "0.27"),
    ("densenet-bc-190", (3, 32, 32), 10, 25_624_430, "25.6"),
    ("densenet-bc-190", (3, 32, 32), 100, 25_821_620, None),
    ("wide-resnet28-10", (3, 32, 32), 10, 36_479_194, "36.5"),
    ("wide-resnet101", (3, 32, 32), 10, 124_858_186, "124.9"),
    ("wide-resnet101", (3, 224, 224), 1000, 126_886_696, "126.9"),
]
LARGE = {"densenet-bc-190", "wide-resnet28-10", "wide-resnet101"}
every_size = pytest.mark.parametrize(
    ("name", "in_shape", "num_classes", "parameters", "millions"), SIZES
)

# the same structures, small enough to compute with
SMALL = {
    "mlp": lambda: mlp(in_shape=(3, 16, 16), num_classes=5, hidden=(8, 7, 6)),
    "lenet": lambda: build("lenet", in_shape=(3, 16, 16), num_classes=5),
    "lenet, sliding": lambda: nn.Sequential(
        nn.Upsample((44, 36)), build("lenet", in_shape=(3, 44, 36), num_classes=5)
    ),
    "preact": lambda: PreActResNet(
        in_shape=(3, 8, 8), stem=8, widths=(8, 16, 32), blocks=2, num_classes=5
    ),
    "preact, wide": lambda: PreActResNet(
        in_shape=(3, 8, 8), stem=4, widths=(8, 16, 32), blocks=2, num_classes=5
    ),
    "densenet": lambda: DenseNetBC(in_shape=(3, 8, 8), depth=16, growth=4, num_classes=5),
    "bottleneck": lambda: WideBottleneckResNet(
        in_shape=(3, 8, 8), blocks=(2, 1, 2, 1), num_classes=5, width=16
    ),
}
every_small = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL.keys())


@cache
def on_meta(name, in_shape, num_classes):
    """Shapes without numbers, at no cost."""
    with torch.device("meta"):
        return build(name, in_shape=in_shape, num_classes=num_classes)


def test_every_name_is_measured():
    assert {name for name, *_ in SIZES} == set(MODELS)


@every_size
def test_sizes_are_exact_and_round_to_the_published_ones(
    name, in_shape, num_classes, parameters, millions
):
    net = on_meta(name, in_shape, num_classes)
    assert sum(p.numel() for p in net.parameters()) == parameters
    if millions is not None:
        digits = len(millions.partition(".")[2])
        assert f"{parameters / 1e6:.{digits}f}" == millions
    assert net(torch.zeros(3, *in_shape, device="meta")).shape == (3, num_classes)


@every_small
def test_gradients_flow_to_all_parameters_and_a_step_downhill_lowers_the_loss(make):
    torch.manual_seed(0)
    net, x, y = make().double(), torch.randn(8, 3, 16, 16).double(), torch.arange(8) % 5
    before = cross_entropy(net(x), y)
    before.backward()
    assert [name for name, p in net.named_parameters() if not p.grad.abs().sum() > 0] == []
    with torch.no_grad():
        for p in net.parameters():
            p -= 1e-5 * p.grad
    assert cross_entropy(net(x), y) < before


@every_small
def test_samples_do_not_see_one_another_in_eval_mode(make):
    torch.manual_seed(0)
    net, x = make().eval(), torch.randn(4, 3, 16, 16)
    assert torch.allclose(net(x)[:2], net(x[:2]), atol=1e-5)


def weights(make, seed):
    torch.manual_seed(seed)
    return list(make().parameters())


def by_name(name, in_shape, num_classes):
    return lambda: build(name, in_shape=in_shape, num_classes=num_classes)


REAL = {name: by_name(name, *row) for name, *row, _, _ in SIZES if name not in LARGE} | SMALL


@pytest.mark.parametrize("make", REAL.values(), ids=REAL.keys())
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(make):
    first, again, other = weights(make, 0), weights(make, 0), weights(make, 1)
    assert all(map(torch.equal, first, again))
    drawn = [not torch.equal(a, torch.full_like(a, a.flatten()[0].item())) for a in first]
    differ = [not torch.equal(a, b) for a, b in zip(first, other, strict=True)]
    assert differ == drawn  # what is not constant depends on the seed


# initialisation


def test_initial_weights_have_the_documented_distributions():
    torch.manual_seed(0)
    conv, norm, linear = nn.Conv2d(64, 128, 3, bias=False), nn.BatchNorm2d(3), nn.Linear(64, 500)
    nn.init.uniform_(norm.weight)
    nn.init.uniform_(norm.bias)
    initialise(nn.ModuleList([conv, norm, linear]))
    assert conv.weight.std().item() == pytest.approx((2 / (9 * 128)) ** 0.5, rel=0.01)
    assert conv.weight.mean().item() == pytest.approx(0, abs=1e-3)
    assert linear.weight.abs().max().item() == pytest.approx(1 / 8, rel=0.01)
    assert linear.weight.std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.02)
    assert not linear.bias.any()
    x = torch.randn(2, 3, 4, 4)
    assert torch.allclose(norm.eval()(x), x, atol=1e-4)


# structure


def silenced(block):
    """The block with a residual of zero: what is left is its shortcut."""
    for module in block.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.zeros_(module.weight)
    return block.eval()


@pytest.mark.parametrize(
    ("block", "shortcut"),
    [
        (PreActBlock(4, 4), lambda x: x),
        (PreActBlock(4, 4, first=True), torch.relu),  # activates before the ways part
        (WideBottleneck(4, 4), torch.relu),  # activates after the sum
    ],
)
def test_a_block_has_the_shortcut_of_its_kind(block, shortcut):
    x = torch.randn(2, 4, 5, 5)
    assert torch.allclose(silenced(block)(x), shortcut(x), atol=1e-4)


def test_a_dense_layer_keeps_what_came_in():
    net = DenseNetBC(in_shape=(1, 8, 8), depth=10, growth=3, num_classes=2)
    x = torch.randn(2, 6, 4, 4)
    out = net[1](x)
    assert out.shape == (2, 9, 4, 4)
    assert torch.equal(out[:, :6], x)


def test_lenet_centres_small_images():
    torch.manual_seed(0)
    small = build("lenet", in_shape=(1, 28, 28), num_classes=10)
    whole = build("lenet", in_shape=(1, 32, 32), num_classes=10)
    whole.load_state_dict(small.state_dict())
    x = torch.randn(2, 1, 28, 28)
    assert torch.equal(small(x), whole(nn.functional.pad(x, (2, 2, 2, 2))))


def test_the_layers_of_mlps_are_linear_maps():
    layer = build("mlp-iris", in_shape=(4,), num_classes=3)[1]
    x = torch.randn(7, 4)
    assert torch.allclose(layer(x), x @ layer.weight.T + layer.bias, atol=1e-6)


# what is refused


@pytest.mark.parametrize(
    "name", ["lenet", "preact-resnet18", "densenet-bc-190", "wide-resnet28-10", "wide-resnet101"]
)
def test_networks_for_images_refuse_other_shapes(name):
    with pytest.raises(ValueError, match=r"\(channels, height, width\).*got \(4,\)"):
        build(name, in_shape=(4,), num_classes=3)


def test_images_that_would_be_pooled_to_nothing_are_refused():
    with pytest.raises(ValueError, match=r"both sides at least 4, got \(3, 32, 3\)"):
        build("densenet-bc-190", in_shape=(3, 32, 3), num_classes=3)


# where manifold mixup mixes


def shape_of(name):
    if name.startswith("mlp-"):
        return (5,)
    return (1, 28, 28) if name == "lenet" else (3, 32, 32)


@pytest.mark.parametrize("name", MODELS)
def test_every_network_has_blocks_that_are_modules_of_it_in_order(name):
    blocks = MODELS[name].blocks
    with torch.device("meta"):
        net = build(name, in_shape=shape_of(name), num_classes=10)
    names = [module for module, _ in net.named_modules()]
    places = [names.index(block) for block in blocks]
    assert places
    assert places == sorted(places)
    for layers in SETS:
        assert set(layers_of(name, layers)) <= {"", *blocks}


def test_sets_of_layers():
    assert layers_of("lenet", "all-blocks") == ("3", "6", "8", "11")
    assert layers_of("preact-resnet18", "deep-blocks") == ("layer3", "layer4")
    assert layers_of("preact-resnet20", "deep-blocks") == ("layer2", "layer3")
    assert layers_of("lenet", "input, 6") == ("", "6")
    with pytest.raises(ValueError, match="layers must name modules of the model 'my:net'"):
        layers_of("my:net", "input+first-block")


def test_a_network_may_be_named_by_its_hidden_layers():
    net = build("mlp-7-5", in_shape=(4,), num_classes=3)
    assert [layer.out_features for layer in net if isinstance(layer, nn.Linear)] == [7, 5, 3]
    assert layers_of("mlp-7-5", "all-blocks") == ("2", "4")
    for name in ("mlp-", "mlp-0", "mlp-7-", "mlp-999999", "mlp-7x"):
        with pytest.raises(ValueError, match="model must be a known name"):
            build(name, in_shape=(4,), num_classes=3)
