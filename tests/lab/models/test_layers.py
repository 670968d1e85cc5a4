"""Where manifold mixup mixes in each of the networks."""

import pytest
import torch

from kmixup.lab.models import MODELS, build, layers_of
from kmixup.lab.models.registry import SETS


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


@pytest.mark.parametrize("name", ["mlp-toy", "lenet", "preact-resnet18"])
def test_blocks_put_out_activations_of_the_batch(name):
    net = build(name, in_shape=shape_of(name), num_classes=3)
    seen = {}
    for block in MODELS[name].blocks:
        net.get_submodule(block).register_forward_hook(
            lambda module, inputs, output, block=block: seen.update({block: output.shape})
        )
    net(torch.randn(2, *shape_of(name)))
    assert list(seen) == list(MODELS[name].blocks)
    assert all(shape[0] == 2 for shape in seen.values())


def test_sets_of_layers():
    assert layers_of("lenet", "input+first-block") == ("", "3")
    assert layers_of("lenet", "all-blocks") == ("3", "6", "8", "11")
    assert layers_of("preact-resnet18", "deep-blocks") == ("layer3", "layer4")
    assert layers_of("preact-resnet20", "deep-blocks") == ("layer2", "layer3")
    assert layers_of("lenet", "input, 6") == ("", "6")


def test_the_blocks_of_a_model_of_ones_own_are_not_guessed():
    with pytest.raises(ValueError, match="layers must name modules of the model 'my:net'"):
        layers_of("my:net", "input+first-block")
    assert layers_of("my:net", "input,body") == ("", "body")
