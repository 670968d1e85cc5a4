"""The page of an inspection is complete, escaped, reproducible and correct."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from page_checker import Checker
from report_rows import check_self_contained, text_of

from kmixup.lab.data import load
from kmixup.lab.inspection import inspect_data
from kmixup.lab.report import render_html
from kmixup.lab.report.inspect import examples, inspect_document

COMMAND = "kmixup inspect own.csv"


def iris():
    return inspect_data(load("iris"))


@pytest.fixture(scope="module")
def inspected():
    return iris()


@pytest.fixture(scope="module")
def written(inspected):
    return page(inspected, command=COMMAND)


def page(inspected, command):
    return render_html.html(inspect_document(inspected, command))


def test_the_page_is_self_contained_with_the_verdict_first_and_every_part(written):
    check_self_contained(written)
    text = text_of(written)
    assert "Inspection of iris" in text
    body = text.partition("Repeat it")[2]  # after the list of contents
    assert re.match(r" ?At k = 16, partners have \d+ % of the squared distance", body)
    parts = [
        "kmixup tune.",
        "Distance of partners",
        "Readings by k",
        "The alpha that keeps the strength",
        "Partners of another class",
        "Distance of mixed points from the data",
        "Manifold intrusion",
        "Matched pairs and mixed points",
        COMMAND,
        "Settings and versions",
    ]
    where = [body.index(part) for part in parts]
    assert where == sorted(where)


def test_numbers_on_the_page_are_those_that_were_found(written, inspected):
    body = written.partition('<table class="numbers">')[2].partition("</table>")[0]
    rows = re.findall(r'<th scope="row">(\d+)</th>(.*?)</tr>', body)
    assert [int(k) for k, _ in rows] == [reading.k for reading in inspected.inspection.readings]
    for k, cells in rows:
        reading = inspected.inspection.at(int(k))
        halfway = reading.halfway
        shown = [text.split(" ± ") for text in re.findall("<td[^>]*>(.*?)</td>", cells)]
        expected = [
            100 * reading.ratio.value,
            reading.alpha if reading.reachable else None,
            100 * reading.crossing.value,
            100 * reading.least,
            halfway and halfway.distance.value,
            halfway and 100 * halfway.contradiction.value,
            halfway and 100 * halfway.disagreement.value,
        ]
        for (text, *error), value in zip(shown, expected, strict=True):
            if value is None:
                assert text == "–"
            else:
                near = float(error[0]) if error else 0.006 * value
                assert float(text) == pytest.approx(value, abs=near)


def test_the_same_data_and_seed_give_the_same_bytes(written):
    assert page(iris(), command=COMMAND) == written


def test_what_comes_from_outside_is_escaped(inspected):
    evil = "<script>$\\frac$_"
    data = replace(inspected.data, name=evil, classes=(evil, "<b>", "c"))
    html = page(replace(inspected, data=data), command=evil)
    Checker(html)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 4


def test_many_classes_of_one_name_fit_the_page(inspected, tmp_path):
    rng = np.random.default_rng(0)
    labels = torch.arange(200) % 40
    points = labels[:, None] * 3 + torch.from_numpy(rng.normal(size=(200, 3))).float()
    data = replace(
        inspected.data, x_train=points, y_train=labels, classes=("same",) * 40, columns=(),
        mean=torch.tensor(0.0), std=torch.tensor(1.0),
    )  # fmt: skip
    document = inspect_document(inspect_data(data, largest_k=4), COMMAND)
    path = render_html.write(document, tmp_path / "deep/inspect.html")
    assert "in 40 classes" in text_of(path.read_text())


def test_floats_with_two_axes_are_shown_as_pictures(inspected):
    x = torch.rand(40, 1, 8, 300, generator=torch.Generator().manual_seed(0))
    data = replace(
        inspected.data, x_train=x, y_train=torch.arange(40) % 3, columns=(),
        mean=torch.tensor(0.5), std=torch.tensor(1.0),
    )  # fmt: skip
    assert examples(inspected) == []  # a table has no pictures
    shown = examples(inspect_data(data, largest_k=2))
    assert len(shown) == 6
    for example in shown:
        pictures = [image.png() for image in example.images]
        assert len(pictures) == 5  # a sample, two partners and two points half-way
        assert len({*pictures}) >= 3  # both partners may be the same
        assert all(picture.startswith(b"\x89PNG") for picture in pictures)


def test_classes_that_occur_once_cannot_be_inspected(inspected):
    unique = replace(inspected.data, y_train=torch.arange(100))
    with pytest.raises(ValueError, match="classes that occur more than once, has 100 in 100"):
        inspect_data(unique)
