"""Decision surfaces are trained once, kept, and made anew only for other trials."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from report_rows import row

from kmixup.lab import report
from kmixup.lab.prepare import DivergedError
from kmixup.lab.protocol import Method, Protocol, Trial
from kmixup.lab.report import surfaces

TOY = Trial("four-bars", "mlp-toy", Method("erm"), Protocol(epochs=2, rate=0.02), size=64)


def rows(base=TOY):
    return [
        row(Method("erm"), 1.0, seed=3, base=base),
        row(Method("mixup"), 1.0, seed=2, base=base),
    ]


def refuse(*_, **__):
    raise AssertionError("trained again")


@pytest.fixture
def drawn(tmp_path):
    return surfaces.pictures(rows(), tmp_path)


@pytest.mark.slow
def test_every_toy_has_a_picture_of_each_method(drawn):
    assert [one.title for one in drawn["four-bars"]] == [
        "ERM",
        "mixup, α = 1",
        "k-mixup, k = 16, α = 1",
    ]
    for one in drawn["four-bars"]:
        kind, data = one.source.split(",")
        assert kind == "data:image/png;base64"
        assert Image.open(io.BytesIO(base64.b64decode(data))).size == (360, 360)
        assert one.caption.endswith("% test error")


@pytest.mark.slow
def test_surfaces_are_kept_and_drawn_again_without_training(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(surfaces, "train_fleet", refuse)
    again = surfaces.pictures(rows()[::-1], tmp_path)
    assert [one.source for one in again["four-bars"]] == [one.source for one in drawn["four-bars"]]
    with pytest.raises(AssertionError, match="trained again"):
        surfaces.pictures(rows(replace(TOY, size=32)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [b"", b"not a file of arrays", None])
def test_a_spoilt_file_is_made_anew(drawn, tmp_path, spoil):
    path = tmp_path / surfaces.NAME
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if spoil is None else spoil)
    again = surfaces.pictures(rows(), tmp_path)
    assert [one.source for one in again["four-bars"]] == [one.source for one in drawn["four-bars"]]
    with np.load(path, allow_pickle=False) as stored:
        assert "key" in stored


def test_a_network_that_diverged_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(
        surfaces, "train_fleet", lambda trials, data: [DivergedError("no")] * len(trials)
    )
    found = surfaces.pictures(rows(), tmp_path)
    assert {one.caption for one in found["four-bars"]} == {"training diverged"}


def test_trials_are_those_of_the_longest_protocol_and_the_least_seed():
    longer = replace(TOY, protocol=replace(TOY.protocol, epochs=9))
    ((erm, mixup, kmixup),) = surfaces.trials_of([*rows(), *rows(longer)])
    assert (erm.protocol.epochs, erm.seed) == (9, 2)
    assert (mixup.method.name, kmixup.method.k) == ("mixup", 16)
    ((*_, small),) = surfaces.trials_of(rows(replace(TOY, size=8)))
    assert small.method.k == 8


def test_other_data_have_no_pictures(tmp_path):
    iris = Trial("iris", "mlp-iris", Method("erm"))
    assert surfaces.pictures(rows(iris), tmp_path) == {}
    assert surfaces.pictures(rows(replace(TOY, model="own:net")), tmp_path) == {}
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_pictures_are_on_the_page_unless_they_are_not_wanted(tmp_path, monkeypatch):
    found = rows()
    tables = report.tables_of(found)
    how = {"name": "Toys", "command": "kmixup sweep toys.toml"}
    page = report.write(found, tables, tmp_path, **how).page.read_text()
    assert page.count("data:image/png;base64,") == 3
    monkeypatch.setattr(surfaces, "train_fleet", refuse)
    page = report.write(found, tables, tmp_path / "bare", surfaces=False, **how).page.read_text()
    assert "data:image/png" not in page
