"""`kmixup inspect` on data of all kinds: an answer and a page, or one sentence."""

import math
import re

import numpy as np
import pytest
import torch
from page_checker import Checker
from PIL import Image
from sklearn.datasets import load_wine

import kmixup as library
from kmixup import calibrate
from kmixup.lab.data import load


def table(folder, rows, header="a,b,target", name="own.csv"):
    (folder / name).write_text("\n".join([header, *rows]))


def two_clusters(n):
    """Rows of two classes far apart."""
    rng = np.random.default_rng(0)
    return [
        f"{x:.4f},{y + 9 * (i % 2):.4f},{'xy'[i % 2]}"
        for i, (x, y) in enumerate(rng.normal(size=(n, 2)))
    ]


def lines(text):
    """The readings that were printed, by k."""
    readings = {}
    for line in text.partition("Optimal(")[0].splitlines():
        if match := re.match(r" *(\d+)  +\d", line):
            readings[int(match[1])] = line.split()[1:]
    return readings


def inspected(name, *, seed=0, **settings):
    """What the library says about the training set of a data set."""
    data, generator = load(name, seed=seed), torch.Generator().manual_seed(seed)
    x = data.normalise(data.x_train)
    return library.inspect(x, data.y_train, disjoint=False, generator=generator, **settings)


# what is printed


def test_the_answer_is_printed_with_every_reading(kmixup, here):
    code, out, err = kmixup("inspect", "iris", "--largest-k", 16, "--no-page")
    assert (code, err) == (0, "")
    inspection, printed = inspected("iris", largest_k=16), lines(out)
    assert list(printed) == [1, 2, 4, 8, 16]
    for k, cells in printed.items():
        assert float(cells[0]) == pytest.approx(100 * inspection.at(k).ratio.value, abs=0.06)
    assert printed[2][4] == f"{100 * inspection.at(2).crossing.value:.1f}"
    assert out.startswith("iris: 100 training samples of 4 numbers in 3 classes")
    assert "with kmixup tune" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert list(here.glob("out/*")) == []


def test_a_sample_of_many_rows_is_called_one_and_is_that_of_the_library(kmixup, here):
    table(here, two_clusters(3000))
    words = ("inspect", "own.csv", "--size", 150, "--largest-k", 4, "--no-page")
    _, out, _ = kmixup(*words, "--seed", 3)
    assert out.startswith("own.csv: 2,000 training samples of 2 numbers in 2 classes")
    assert "150 inspected (x: " in " ".join(out.split())
    inspection = inspected("own.csv", seed=3, size=150, largest_k=4)
    assert lines(out)[4][0] == f"{100 * inspection.at(4).ratio.value:.1f}"


def test_options_reach_the_measurement(kmixup):
    words = ("inspect", "iris", "--no-page", "--largest-k", 8)
    _, out, _ = kmixup(*words, "--alpha", 0.2, "--scaling", "none", "--limit", 90)
    said = " ".join(out.split())
    assert "the first 90 of 100 training" in said
    assert "scaling none" in said
    assert "as much as mixup with alpha = 0.2" in said
    assert list(lines(out)) == [1, 2, 4, 8]


def test_alpha_is_that_of_calibrate_for_the_same_pairing(kmixup, here):
    load_wine(as_frame=True).frame.to_csv(here / "wine.csv", index=False)
    wine = load("wine.csv", seed=0)
    points = wine.normalise(wine.x_train)
    found = {}
    for pairing, source in (("loaders", "a second loader"), ("batch", "the same batch")):
        words = ("wine.csv", "--pairing", pairing, "--alpha", 0.2)
        _, printed, _ = kmixup("inspect", *words, "--largest-k", 16, "--no-page")
        said = " ".join(printed.split())
        assert f"partners from {source}" in said
        expected = calibrate(
            points, 16, 0.2, disjoint=pairing == "batch",
            generator=torch.Generator().manual_seed(0),
        )  # fmt: skip
        ratio = expected.matched / expected.square_distance_1
        percent, _, error, alpha, *_ = lines(printed)[16]
        gap = abs(float(percent) / 100 - ratio.value)
        assert gap < 4 * math.hypot(float(error) / 100, ratio.error)
        assert float(alpha) == pytest.approx(expected.alpha, rel=0.05)
        assert f"Mixup with alpha = 0.2 has xi = {expected.target_xi:.4g}. Equally" in said
        assert f"k = 16 at alpha {alpha}." in said
        found[pairing] = float(alpha)
    assert found["loaders"] > 1.08 * found["batch"]  # no sampling error
    _, default, _ = kmixup("inspect", "wine.csv", "--alpha", 0.2, "--largest-k", 16, "--no-page")
    assert float(lines(default)[16][3]) == found["loaders"]  # as in kmixup train


def test_k_at_which_no_alpha_is_as_strong_are_named(kmixup, here):
    _, printed, _ = kmixup("inspect", "iris", "--alpha", 16, "--largest-k", 4, "--no-page")
    assert "No alpha is as strong at k = 2, 4." in " ".join(printed.split())


# pages


def page_of(folder, name):
    return (folder / "out" / "inspect" / name / "inspect.html").read_text()


def test_the_page_is_written_where_it_is_said(kmixup, here):
    table(here, two_clusters(60))
    code, out, _ = kmixup("inspect", "own.csv", "--largest-k", 1, "--out", "deep/er")
    assert code == 0
    assert out.endswith("page: deep/er/inspect.html\n")
    page = (here / "deep/er/inspect.html").read_text()
    Checker(page)
    assert "kmixup inspect own.csv --largest-k 1 --out deep/er" in page


def test_a_constant_column_and_a_single_class_of_a_part_are_no_obstacle(kmixup, here):
    rows = two_clusters(90)
    arrays = np.array([[*map(float, row.split(",")[:2]), 5.0] for row in rows], np.float32)
    kinds = np.repeat(np.arange(2), 45)
    np.savez(here / "own.npz", x=arrays, y=kinds, x_test=arrays, y_test=kinds)
    code, out, _ = kmixup("inspect", "own.npz", "--limit", 45)
    assert code == 0
    assert out.endswith("page: out/inspect/own.npz/inspect.html\n")
    assert "(0: 45)" in " ".join(out.split())
    assert "other class" not in out
    assert "third class" not in out
    page = page_of(here, "own.npz")
    Checker(page)
    assert "Distance of partners" in page
    assert "Partners of another class" not in page
    assert "different classes" not in page


@pytest.mark.parametrize(("rows", "ks"), [(6, [1, 2]), (13, [1, 2, 4]), (48, [1, 2, 4, 8, 16])])
def test_few_rows_give_readings_as_far_as_they_go(kmixup, here, rows, ks):
    table(here, two_clusters(rows))
    code, out, _ = kmixup("inspect", "own.csv", *["--no-page"] * (rows > 6))
    assert code == 0
    assert list(lines(out)) == ks
    if rows == 6:
        Checker(page_of(here, "own.csv"))


def test_many_duplicates_of_few_rows_are_inspected(kmixup, here):
    table(here, ["1,2,x", "3,4,y", "5,6,x"] * 20)
    code, out, _ = kmixup("inspect", "own.csv")
    assert code == 0
    assert lines(out)[1][0] == "100"
    Checker(page_of(here, "own.csv"))


def test_images_are_shown_as_images(kmixup, here):
    rng = np.random.default_rng(0)
    for i, label in enumerate(("dark", "light")):
        (here / "photos/train" / label).mkdir(parents=True)
        for j in range(15):
            pixels = rng.integers(100 * i, 100 * i + 99, (5, 7, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(here / f"photos/train/{label}/{j}.png")
    code, out, _ = kmixup("inspect", "photos", "--largest-k", 4)
    assert code == 0
    assert "20 training samples of 105 numbers in 2 classes" in out
    page = page_of(here, "photos")
    checked = Checker(page)
    pictures = [link for link in checked.links if link.startswith("data:image/png;base64,")]
    assert len(pictures) == 1 + 6 * 5  # couplings; sample, and twice a partner and half-way


# mistakes


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (two_clusters(4), "own.csv must have at least 4 training samples to be inspected, has 2"),
        (["1,2,x", "1,2,y"] * 10, "own.csv must have samples that differ, the 13 that were"),
        ([f"{i},0,c{i}" for i in range(30)], "two samples to be split (two of one class if"),
        (["1,x"], "own.csv must have 3 values in a row, row 1 has 2"),
    ],
)
def test_rows_that_cannot_be_inspected_are_explained(kmixup, here, rows, message):
    table(here, rows)
    code, out, err = kmixup("inspect", "own.csv")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
