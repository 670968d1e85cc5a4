"""Mixup in the latent space of a generative model."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kmixup import KMixup, LatentMixup
from oracles import seeded


def root(x):
    return x.sqrt()


def square(z):
    return z.square()


@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
@pytest.mark.parametrize("paired", [False, True])
def test_codes_are_matched_and_mixed_and_decoded(lam_per, paired):
    x, x2, y = torch.rand(16, 3), torch.rand(16, 3), torch.randn(16)
    settings = {"lam_per": lam_per, "generator": seeded()}
    latent = LatentMixup(root, square, 4, **settings)
    m = latent.mix(x, y, other=(x2, y) if paired else None)
    settings["generator"].manual_seed(0)
    plain = KMixup(4, alpha=1.0, **settings)
    codes = plain.mix(x.sqrt(), y, other=(x2.sqrt(), y) if paired else None)
    assert torch.equal(m.x, codes.x.square())
    for name in ("y", "partner", "lam", "distance"):
        assert torch.equal(getattr(m, name), getattr(codes, name))


def test_a_conditional_code_holds_the_class_which_is_mixed_too():
    x, y = torch.randn(12, 3), torch.randint(4, (12,))

    def encode(x, y):
        return {"z": x, "class": F.one_hot(y, 4).float()}

    def decode(code):
        return torch.cat([code["z"], code["class"]], 1)

    mix = LatentMixup(encode, decode, 4, num_classes=4, conditional=True)
    for other in (None, (torch.randn(12, 3), torch.randint(4, (12,)))):
        m = mix.mix(x, y, other=other)
        torch.testing.assert_close(m.x[:, 3:], m.y)


def test_the_codecs_are_neither_trained_nor_switched_nor_stored():
    encode = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).eval()
    mix = LatentMixup(encode, nn.Linear(2, 3), 2).train()
    assert not encode.training
    assert list(mix.parameters()) == []
    assert mix.state_dict() == {}
    assert not mix.mix(torch.randn(8, 3), torch.randn(8)).x.requires_grad


@pytest.mark.parametrize("paired", [False, True])
def test_a_function_for_features_is_given_the_inputs_and_not_their_codes(paired):
    x, y, x2 = torch.rand(12, 5), torch.rand(12), torch.rand(12, 5)
    other = (x2, y) if paired else None
    values = (x[:, :2], x2[:, :2]) if paired else x[:, :2]
    by_function, by_tensor, by_parts = (
        LatentMixup(lambda x: (x[:, 1:], x[:, :1]), torch.hstack, k=4, generator=seeded())
        for _ in range(3)
    )
    expected = by_tensor.mix(x, y, other=other, features=values)
    draw = by_parts.draw(12, within=not paired)
    for found in (
        by_function.mix(x, y, other=other, features=lambda inputs: inputs[:, :2]),
        by_parts.mix(x, y, draw, other=other, features=lambda inputs: inputs[:, :2]),
    ):
        assert torch.equal(found.x, expected.x)
        assert torch.equal(found.distance, expected.distance)
