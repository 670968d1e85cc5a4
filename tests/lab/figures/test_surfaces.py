"""Decision surfaces are trained once, kept, and made anew only for other trials."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from kmixup.lab.figures import surfaces
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.train.setup import DivergedError

TOY = Trial("four-bars", "mlp-toy", Method("erm"), Protocol(epochs=2, rate=0.02), size=64)


def runs(base=TOY):
    return [replace(base, seed=3), replace(base, method=Method("mixup"), seed=2)]


def refuse(*_, **__):
    raise AssertionError("trained again")


@pytest.fixture
def drawn(tmp_path):
    return surfaces.pictures(runs(), tmp_path)


@pytest.mark.slow
def test_every_toy_has_a_picture_of_each_method(drawn):
    assert [picture.title for picture in drawn["four-bars"]] == [
        "ERM",
        "mixup, α = 1",
        "k-mixup, k = 16, α = 1",
    ]
    for picture in drawn["four-bars"]:
        assert Image.open(io.BytesIO(picture.png)).size == (360, 360)
        assert picture.caption.endswith("% test error")


@pytest.mark.slow
def test_surfaces_are_kept_and_drawn_again_without_training(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(surfaces, "train_fleet", refuse)
    again = surfaces.pictures(runs()[::-1], tmp_path)
    assert again == drawn
    with pytest.raises(AssertionError, match="trained again"):
        surfaces.pictures(runs(replace(TOY, size=32)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [b"", b"not a file of arrays", None])
def test_a_spoilt_file_is_made_anew(drawn, tmp_path, spoil):
    path = tmp_path / surfaces.NAME
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if spoil is None else spoil)
    again = surfaces.pictures(runs(), tmp_path)
    assert again == drawn
    with np.load(path, allow_pickle=False) as stored:
        assert "key" in stored


def test_a_network_that_diverged_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(
        surfaces, "train_fleet", lambda trials, data: [DivergedError("no")] * len(trials)
    )
    pictures = surfaces.pictures(runs(), tmp_path)
    assert {picture.caption for picture in pictures["four-bars"]} == {"training diverged"}


def test_trials_are_those_of_the_longest_protocol_and_the_least_seed():
    longer = replace(TOY, protocol=replace(TOY.protocol, epochs=9))
    ((erm, mixup, kmixup),) = surfaces.toy_trials([*runs(), *runs(longer)])
    assert (erm.protocol.epochs, erm.seed) == (9, 2)
    assert (mixup.method.name, kmixup.method.k) == ("mixup", 16)
    assert (mixup.method.alpha, kmixup.method.alpha) == (1.0, 1.0)  # those of the titles
    ((*_, small),) = surfaces.toy_trials(runs(replace(TOY, size=8)))
    assert small.method.k == 8


def test_other_data_have_no_pictures(tmp_path):
    iris = Trial("iris", "mlp-iris", Method("erm"))
    assert surfaces.pictures(runs(iris), tmp_path) == {}
    assert surfaces.pictures(runs(replace(TOY, model="own:net")), tmp_path) == {}
    assert not list(tmp_path.iterdir())
