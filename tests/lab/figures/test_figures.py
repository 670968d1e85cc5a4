"""Figures: every one is drawn, twice the same, from plain inputs, and says what it shows."""

import re

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from PIL import Image
from scipy.ndimage import label
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree

from kmixup.lab import figures
from kmixup.lab import plotting as style
from kmixup.lab.data import load
from kmixup.lab.figures import clouds as plane
from kmixup.lab.figures import convergence, gallery, theory
from kmixup.lab.figures.clouds import Cloud, cloud_of
from kmixup.lab.figures.couplings import couplings, partners, steps
from kmixup.lab.figures.gallery import DRAW, Settings
from kmixup.lab.trial import Protocol, Trial
from kmixup.matching import Nearest, Optimal

TRAINED = ("surfaces", "convergence")
TOYS = ("one-ring", "four-bars", "swiss-roll")


def draw(name, settings):
    return style.save(DRAW[name](settings), settings.out, name)


def toys(size):
    return [cloud_of(load(name, size=size), size=size) for name in TOYS]


def labels(figure: Figure) -> str:
    """All titles of a figure."""
    return "\n".join(axes.get_title() for axes in figure.axes)


# every figure


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in TRAINED)) for n in figures.NAMES],
)
def test_every_figure_is_drawn_and_twice_the_same(name, tmp_path):
    before = dict(matplotlib.rcParams)
    for folder in ("one", "two"):
        paths = draw(name, Settings(tmp_path / folder, quick=True))
        assert [path.name for path in paths] == [f"{name}.{kind}" for kind in ("svg", "png", "txt")]
    assert dict(matplotlib.rcParams) == before
    for path in paths:
        assert path.stat().st_size > 100
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes()
    caption = paths[2].read_text().strip()
    assert caption.endswith(".")
    assert Image.open(paths[1]).text["Description"] == caption
    assert "dc:date" not in paths[0].read_text()


@pytest.mark.slow
def test_a_quick_run_shows_networks_that_separate_the_classes(tmp_path):
    figure = DRAW["surfaces"](Settings(tmp_path, quick=True))
    errors = [float(error) for error in re.findall(r"([\d.]+) % error", labels(figure))]
    assert len(errors) == 9
    one_ring, four_bars, swiss_roll = errors[:3], errors[3:6], errors[6:]
    assert max(four_bars) < 5
    assert max(one_ring[0], one_ring[2]) < 10
    assert max(swiss_roll[0], swiss_roll[2]) < 30  # 50 is chance


def test_names_and_drawings_go_together():
    assert list(figures.NAMES) == list(gallery.DRAW)
    assert set(figures.OF_DATA) < set(figures.NAMES)


def test_dots_have_the_marker_of_the_main_class_and_mixed_colours():
    _, grid = style.panels(1, 1)
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [0.25, 0.75]])
    plane.dots(grid[0, 0], np.zeros((3, 2)), shares)
    circles, triangles = grid[0, 0].collections
    assert (len(circles.get_offsets()), len(triangles.get_offsets())) == (1, 2)
    mixed = 0.25 * np.array(to_rgb(style.ORANGE)) + 0.75 * np.array(to_rgb(style.BLUE))
    assert triangles.get_facecolor()[1, :3] == pytest.approx(mixed)


# clouds


def test_two_dimensions_are_shown_as_they_are():
    x = np.random.default_rng(0).normal(size=(9, 2))
    cloud = Cloud.of("mine", x, list("aabbccaab"))
    assert np.array_equal(cloud.plane, x)
    assert cloud.shares.shape == (9, 3)
    assert cloud.note == ""
    assert np.array_equal(Cloud.of("line", x[:, :1], [0] * 9).plane[:, 1], np.zeros(9))


def test_more_dimensions_are_projected_along_the_most_variance():
    x = np.random.default_rng(0).normal(size=(40, 5)) * [9, 0.1, 4, 0.1, 0.1]
    cloud = Cloud.of("mine", x, [0] * 40)
    assert abs(np.corrcoef(cloud.plane[:, 0], x[:, 0])[0, 1]) > 0.99
    assert abs(np.corrcoef(cloud.plane[:, 1], x[:, 2])[0, 1]) > 0.99
    assert cloud.note.startswith("matched in all 5 dimensions and shown in the first two")
    mixed = (x[0] + x[1]) / 2
    assert cloud.show(mixed[None]) == pytest.approx(cloud.plane[:2].mean(0)[None])


def test_large_data_are_thinned_out_and_it_is_said():
    iris = load("iris")
    cloud = cloud_of(iris, size=20, seed=3)
    assert len(cloud.x) == 20
    assert cloud.note.startswith("20 of 100 training points of iris, drawn at random; matched in")
    rows = {tuple(row) for row in iris.normalise(iris.x_train).double().numpy()}
    assert {tuple(row) for row in cloud.x} <= rows


def test_fewer_than_four_points_raise():
    with pytest.raises(ValueError, match="at least 4 samples to be drawn, got 2"):
        Cloud.of("two", np.eye(2), [0, 1])


def test_k_is_cut_to_half_of_few_points():
    cloud = Cloud.of("few", np.eye(6, 2), [0, 1] * 3)
    assert [cloud.block(k) for k in (1, 3, 32)] == [1, 3, 3]
    figure = couplings([cloud])
    assert "few, k = 3" in labels(figure)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["same class", "different classes", "0", "1"]


# what the figures show


def test_optimal_and_nearest_share_point_axes_and_scale_and_nearest_crosses_less():
    clouds = toys(size=128)
    first, second = (
        partners(clouds, pairing=pairing, samples=300) for pairing in (Optimal, Nearest)
    )
    for a, b in zip(first.axes, second.axes, strict=True):
        assert (a.get_xlim(), a.get_ylim()) == (b.get_xlim(), b.get_ylim())
    stars = [
        [axes.collections[-1].get_offsets().tolist() for axes in f.axes[:3]]
        for f in (first, second)
    ]
    assert stars[0] == stars[1]
    assert "matched optimally" in first.get_label()
    assert "the nearest point" in second.get_label()
    matched, nearest = (
        float(f.axes[1].get_title().split()[2].rstrip("%")) for f in (first, second)
    )
    assert nearest < matched


def test_lines_join_optimal_partners():
    cloud = Cloud.of("two", [[0.0, 0], [0, 1], [9, 0], [9, 1]] * 4, [0, 0, 1, 1] * 4)
    same, other = couplings([cloud]).axes[1].collections[:2]  # k = 8, half of the points
    segments = [*same.get_segments(), *other.get_segments()]
    assert len(segments) == 8
    # optimal: no more matches cross than the counts of both halves ask for
    left = [sum(end[side][0] < 4 for end in segments) for side in (0, 1)]
    assert len(other.get_segments()) == abs(left[0] - left[1])


def test_the_injectivity_radius_is_where_the_holes_part():
    figure = theory.injectivity()
    curve = figure.axes[0].lines[0].get_xydata()
    axis = np.linspace(-2.5, 2.5, 400)
    distance = KDTree(curve).query(np.stack(np.meshgrid(axis, axis), 2))[0]
    for axes, radius, holes in zip(figure.axes, theory.EPSILONS, (1, None, 2), strict=True):
        assert f"ε = {radius:g}" in axes.get_title()
        if holes is not None:
            assert f"{holes} hole" in axes.get_title()
            assert label(distance >= radius)[1] - 1 == holes  # the rest of the plane is no hole


def test_the_counterexample_crosses_twice_for_half_the_cost():
    figure = theory.counterexample()
    costs = []
    for axes, crossing in zip(figure.axes, (1, 2), strict=True):
        arrows = [text.arrow_patch for text in axes.texts if isinstance(text, Annotation)]
        bent = [arrow for arrow in arrows if arrow.get_linewidth() > 1]
        assert len(bent) == crossing
        assert f": {crossing} cross match" in axes.get_title()
        costs.append(float(axes.get_title().split()[-2]))
    assert costs[1] < 0.7 * costs[0]


def test_the_direct_match_of_a_far_island_costs_less_than_the_detour():
    figure = theory.endpoints((8, 32), samples=50)
    detour, direct, _ = labels(figure).splitlines()
    assert float(direct.split()[-2]) < float(detour.split()[-2])
    measured = figure.axes[2].containers[0].lines[0].get_ydata()
    assert all(0.3 < share < 0.9 for share in measured)


def test_the_slopes_of_distances_are_printed_beside_their_rates():
    figure = theory.matched_distance((8, 16, 32, 64, 128), samples=20)
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == 5
    for text in (texts[0], texts[2]):
        *_, slope, _, error, rate = text.split()
        assert abs(float(slope) - float(rate.strip("()"))) < 4 * float(error) + 0.05
    assert texts[4].startswith("d = 1, two clusters")
    assert texts[4].endswith("(-0.50)")


def test_the_remainder_is_of_third_order(tmp_path):
    figure = gallery.DRAW["expansion"](Settings(tmp_path, quick=True))
    slopes = [float(t.get_text().split()[-1]) for t in figure.axes[0].get_legend().get_texts()[:2]]
    assert min(slopes) > 2.8


def test_the_share_in_a_row_is_above_the_paper_s_bound_and_below_the_other():
    figure = theory.cross_fraction((32, 64, 128), samples=200)
    row = {line.get_label(): line.get_ydata() for line in figure.axes[2].get_lines()}
    (exact,) = (np.array(line) for label, line in row.items() if label.startswith("expected"))
    assert (exact > row["paper's bound"]).all()
    assert (exact < row["corrected bound"]).all()


# training


@pytest.mark.slow
def test_courses_are_those_of_the_records_and_are_kept(tmp_path, monkeypatch):
    trial = Trial("iris", "mlp-iris", protocol=Protocol(epochs=3, rate=0.005))
    drawn = convergence.courses(trial, trials=2, folder=tmp_path)
    assert list(drawn) == [(1.0, 1), (1.0, 32), (10.0, 1), (10.0, 32)]
    for accuracy in drawn.values():
        assert accuracy.shape == (2, 2, 3)
        assert ((accuracy > 0) & (accuracy <= 1)).all()
    kept = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert kept.count("record.json") == 8
    monkeypatch.setattr(convergence, "train", None)  # cannot be called
    again = convergence.courses(trial, trials=2, folder=tmp_path)
    assert all(np.array_equal(drawn[setting], again[setting]) for setting in drawn)
    figure = convergence.convergence(drawn, "Iris")
    parts = ["Test, α = 1", "Training, α = 1", "Test, α = 10", "Training, α = 10"]
    assert labels(figure).splitlines() == parts
    assert "the mean of 2 networks" in figure.get_label()


@pytest.fixture
def untrained(monkeypatch):
    """Return how convergence would be drawn: the trial, the folder of its runs, the title."""
    monkeypatch.setattr(convergence, "courses", lambda trial, *, trials, folder: (trial, folder))
    monkeypatch.setattr(convergence, "convergence", lambda courses, title: (*courses, title))
    return DRAW["convergence"]


def test_without_mnist_the_title_says_so(tmp_path, monkeypatch, untrained):
    monkeypatch.setattr(gallery, "at_hand", lambda name, limit: False)
    trial, _, title = untrained(Settings(tmp_path))
    assert trial.data == "swiss-roll"
    assert title == "swiss-roll, mlp-toy (MNIST is not downloaded)"


def test_runs_are_kept_only_of_data_that_cannot_change(tmp_path, untrained):
    np.savez(tmp_path / "own.npz", x=np.eye(60, 2), y=np.arange(60) % 2)
    assert untrained(Settings(tmp_path, data="iris"))[1] == tmp_path / "runs"
    assert untrained(Settings(tmp_path, data=str(tmp_path / "own.npz")))[1] is None


# the command


def test_named_figures_are_written_in_order(kmixup, tmp_path):
    code, out, err = kmixup("figures", "injectivity", "couplings", "--quick", "--out", "made")
    assert code == 0
    first, second = out.splitlines()
    assert first.startswith("written: made/couplings.svg, .png, .txt (")
    assert second.startswith("written: made/injectivity.svg, .png, .txt (")
    assert err.startswith("1 of 2: couplings, who is mixed with whom")
    assert len(list((tmp_path / "made").iterdir())) == 6


@pytest.mark.parametrize(("d", "kind"), [(2, "npz"), (5, "csv")])
def test_your_own_data_are_drawn(kmixup, tmp_path, d, kind):
    x, y = np.random.default_rng(0).normal(size=(60, d)), np.arange(60) % 3
    np.savez(tmp_path / "own.npz", x=x, y=y)
    pd.DataFrame(x).assign(kind=[f"c{label}" for label in y]).to_csv("own.csv", index=False)
    more = ("--target", "kind") if kind == "csv" else ()
    code, out, _ = kmixup("figures", "--data", f"own.{kind}", *more, "--quick", "--out", "made")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()] == [
        f"made/{name}.svg," for name in ("couplings", "matching", "nearest", "steps")
    ]
    caption = (tmp_path / "made" / "matching.txt").read_text()
    assert ("principal components" in caption) == (d > 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("surface", "figure must be one of surfaces, "),
        (
            "clusters --data iris",
            "--data can be drawn as couplings, matching, nearest, steps, convergence, not as",
        ),
        ("convergence --quick --epochs 0", "epochs must be a whole number, at least 1, got 0"),
        ("convergence --quick --trials 0", "--trials must be a whole number, at least 1, got 0"),
        ("couplings --seed -1", "--seed must be a whole number, at least 0, got -1"),
        ("couplings --out taken", "out must be a folder, taken is a file"),
    ],
)
def test_a_mistake_is_one_sentence(kmixup, tmp_path, words, message):
    (tmp_path / "taken").touch()
    code, out, err = kmixup("figures", *words.split())
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("kmixup: ")
    assert message in err.splitlines()[-1]


def test_the_steps_of_a_block_end_in_the_match_of_least_cost():
    cloud = Cloud.of("points", np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2)
    figure = steps(cloud, seed=3)
    square = figure.axes[1].images[0].get_array()
    frames = [patch.get_xy() for patch in figure.axes[1].patches]
    column = [round(x + 0.5) for x, _ in frames]
    assert sorted(column) == list(range(8))
    rows, best = linear_sum_assignment(square)
    assert square[range(8), column].sum() == pytest.approx(square[rows, best].sum())
    assert f"{square[rows, best].mean():.3g} for a pair" in figure.get_label()


@pytest.mark.parametrize("name", ["couplings", "convergence"])
def test_a_regression_has_no_pictures_of_classes(tmp_path, name):
    path = tmp_path / "own.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i / 8}\n" for i in range(40)))
    with pytest.raises(ValueError, match="target must hold classes, .* has numbers: use kmixup"):
        DRAW[name](Settings(out=tmp_path, data=str(path)))
