"""Mixup in the latent space of a generative model."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kmixup import KMixup, LatentMixup
from oracles import seeded


def itself(x):
    return x


def root(x):
    return x.sqrt()


def square(z):
    return z.square()


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
@pytest.mark.parametrize("paired", [False, True])
def test_identity_codecs_give_kmixup_to_the_bit(k, lam_per, paired):
    x, y = torch.randn(12, 3), torch.randint(3, (12,))
    other = (torch.randn(12, 3), torch.randint(3, (12,))) if paired else None
    settings = {"num_classes": 3, "lam_per": lam_per}
    for _ in range(3):
        latent, plain = (
            mix.draw(x, y, other=other)
            for mix in (
                LatentMixup(itself, itself, k, generator=seeded(), **settings),
                KMixup(k, alpha=1.0, generator=seeded(), **settings),
            )
        )
        for name in ("x", "y", "partner", "lam", "distance"):
            assert torch.equal(getattr(latent, name), getattr(plain, name))


def test_codes_are_matched_and_mixed_and_decoded():
    x, y = torch.rand(16, 3), torch.randn(16)
    m = LatentMixup(root, square, 4, generator=seeded()).draw(x, y)
    codes = KMixup(4, alpha=1.0, generator=seeded()).draw(x.sqrt(), y)
    assert torch.equal(m.x, codes.x.square())
    assert torch.equal(m.partner, codes.partner)
    assert torch.equal(m.distance, codes.distance)


def test_a_conditional_code_holds_the_class_which_is_mixed_too():
    x, y = torch.randn(12, 3), torch.randint(4, (12,))

    def encode(x, y):
        return {"z": x, "class": F.one_hot(y, 4).float()}

    def decode(code):
        return torch.cat([code["z"], code["class"]], 1)

    mix = LatentMixup(encode, decode, 4, num_classes=4, conditional=True)
    for other in (None, (torch.randn(12, 3), torch.randint(4, (12,)))):
        m = mix.draw(x, y, other=other)
        torch.testing.assert_close(m.x[:, 3:], m.y)


def test_the_codecs_are_neither_trained_nor_switched_nor_stored():
    encode = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).eval()
    mix = LatentMixup(encode, nn.Linear(2, 3), 2).train()
    assert not encode.training
    assert list(mix.parameters()) == []
    assert mix.state_dict() == {}
    assert not mix.draw(torch.randn(8, 3), torch.randn(8)).x.requires_grad


def test_an_unmixed_batch_comes_back_as_it_is():
    x, y = torch.rand(8, 3), torch.randn(8)

    def refuse(x):
        raise AssertionError("an unmixed batch needs no code")

    assert LatentMixup(refuse, refuse, 2, prob=0.0).draw(x, y).x is x


@pytest.mark.parametrize("paired", [False, True])
def test_a_function_for_features_is_given_the_inputs_and_not_their_codes(paired):
    x, y, x2 = torch.rand(12, 5), torch.rand(12), torch.rand(12, 5)
    other = (x2, y) if paired else None
    values = (x[:, :2], x2[:, :2]) if paired else x[:, :2]
    by_function, by_tensor, by_parts = (
        LatentMixup(lambda x: (x[:, 1:], x[:, :1]), torch.hstack, k=4, generator=seeded())
        for _ in range(3)
    )
    expected = by_tensor.draw(x, y, other=other, features=values)
    draw = by_parts.sample(12, within=not paired)
    for found in (
        by_function.draw(x, y, other=other, features=lambda inputs: inputs[:, :2]),
        by_parts.mix(x, y, draw, other=other, features=lambda inputs: inputs[:, :2]),
    ):
        assert torch.equal(found.x, expected.x)
        assert torch.equal(found.distance, expected.distance)


def test_what_is_no_codec_is_refused():
    with pytest.raises(TypeError, match="decode must be a function or a module, got 3"):
        LatentMixup(itself, 3)
    with pytest.raises(TypeError, match="other must be a pair"):
        LatentMixup(itself, itself, 2).draw(torch.rand(8, 3), None, other=torch.rand(8, 3))
