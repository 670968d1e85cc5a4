"""The examples of learned mixing do what they say."""

import csv
import runpy
import sys
from pathlib import Path

import pytest
import torch

import kmixup
from kmixup.lab.data.toy import four_bars

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def latent():
    return runpy.run_path(str(ROOT / "examples/latent.py"))


@pytest.fixture(scope="module")
def intrusion():
    return runpy.run_path(str(ROOT / "examples/intrusion.py"))


@pytest.fixture(scope="module")
def moons(latent):
    x, y = latent["samples"]("moons", 300)
    return x, y, latent["learned"](x, y, 1, 400)


def test_codes_of_the_generator_lead_back_to_the_samples(moons):
    x, y, generator = moons
    again = generator.decode(generator.encode(x, y))
    assert (again - x).norm(dim=1).mean() < 0.15  # the noise of a moon is 0.05 each way


def test_latent_mixup_stays_nearer_to_the_moons_than_mixup(latent, moons):
    x, y, generator = moons
    figure, far = latent["picture"](x, y, generator)
    assert list(far) == ["mixup", "k-mixup, k = 16", "latent mixup", "latent k-mixup, k = 16"]
    assert far["latent mixup"] < 0.6 * far["mixup"]
    assert len(figure.axes) == 4


def test_classes_are_mixed_in_the_code(latent, moons):
    x, y, generator = moons
    mix = latent["mixers"](generator)["latent mixup"]
    mixed = mix.mix(x, y)
    across = y != y[mixed.partner]
    assert across.any()
    codes = [generator.encode(x, y), generator.encode(x[mixed.partner], y[mixed.partner])]
    lam = mixed.lam[:, None]
    both = {name: lam * codes[0][name] + (1 - lam) * codes[1][name] for name in codes[0]}
    torch.testing.assert_close(mixed.x, generator.decode(both), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(both["class"], mixed.y)


def test_digits_are_drawn_as_images(latent):
    x, y = torch.randn(160, 1, 6, 6), torch.arange(160) % 3
    figure, _ = latent["picture"](x, y, latent["learned"](x, y, 2, 2))
    image = figure.axes[0].images[0].get_array()
    assert image.shape == (3 * 8, 8 * 8)


def test_the_class_at_a_point_is_that_of_its_bar(intrusion):
    x, y = four_bars(400, torch.Generator().manual_seed(0))
    assert torch.equal(intrusion["class_at"](x), y)
    beside = torch.tensor([[0.0, 0.0], [-3.0, 1.0], [6.0, 0.0], [-4.5, 3.1]])
    assert intrusion["class_at"](beside).tolist() == [-1] * 4


def test_a_mixed_sample_intrudes_where_its_label_is_contradicted(intrusion):
    x = torch.tensor([[-4.5, 0.0], [1.5, 0.0], [-1.5, 0.0], [-4.5, 1.0]])
    y = torch.tensor([0, 0, 1, 0])
    lam = torch.tensor([0.5, 1.0, 0.4, 0.5])
    partner = torch.tensor([1, 1, 0, 0])
    mixed = kmixup.Mixed(
        lam[:, None] * x + (1 - lam[:, None]) * x[partner],
        (y, y[partner]),
        partner,
        lam,
        num_classes=2,
        points=([x], [x]),
    )
    # the middle of bars 0 and 2 is bar 1; on its own bar; in the gap; on its own bar
    assert intrusion["intrudes"](mixed, 4).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("example", "options", "lines"),
    [("latent", ["--steps", "2", "--limit", "200"], 5), ("intrusion", ["--epochs", "1"], 5)],
)
def test_an_example_draws_its_picture(example, options, lines, tmp_path, monkeypatch, capsys):
    picture = tmp_path / "deep" / f"{example}.png"
    options = [*options, "--trials", "1"] if example == "intrusion" else options
    monkeypatch.setattr(sys, "argv", [example, *options, "--out", str(picture)])
    runpy.run_path(str(ROOT / f"examples/{example}.py"), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) == lines
    assert picture.read_bytes().startswith(b"\x89PNG")
    if example == "intrusion":
        assert len(picture.with_suffix(".csv").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("example", "options", "message"),
    [
        ("latent", ["--steps", "0"], "--steps must be at least 1, got 0"),
        ("intrusion", ["--trials", "0"], "--epochs and --trials must be at least 1"),
    ],
)
def test_impossible_settings_are_refused(example, options, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [example, *options])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / f"examples/{example}.py"), run_name="__main__")
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_adamixup_learns_to_intrude_less_than_mixup(intrusion):
    data = intrusion["load"]("four-bars")
    x, y = data.x_train.float(), data.y_train
    share = {}
    for name in ("mixup", "AdaMixup"):
        _, mix = intrusion["train"](name, 0, x, y, 30)
        with torch.no_grad():
            share[name] = float(intrusion["intrudes"](mix.mix(x, y), len(x)).float().mean())
    assert share["mixup"] > 0.05
    assert share["AdaMixup"] < 0.2 * share["mixup"]


def test_the_table_of_intrusion_on_the_page_follows_from_the_trials(intrusion):
    with (ROOT / "results/intrusion/intrusion.csv").open() as file:
        rows = list(csv.DictReader(file))
    page = (ROOT / "docs/evidence/methods.md").read_text()
    for name in intrusion["MIXERS"]:
        trials = [row for row in rows if row["mixer"] == name]
        assert len(trials) == 3
        cells = [
            ", ".join(form.format(factor * float(row[column])) for row in trials)
            for column, factor, form in (
                ("intrusion", 100, "{:.1f}"),
                ("step", 1, "{:.2f}"),
                ("error", 100, "{:.1f}"),
            )
        ]
        assert f"| {name} | {' | '.join(cells)} |" in page, name
