"""Figures as files and parts of a page: the same figure, the same bytes."""

import io
import re

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import rgb_to_hsv, to_rgb
from PIL import Image

from kmixup.lab import plotting
from kmixup.lab.plotting import inline, panels, png, save, styled, svg


@styled
def drawn():
    figure, grid = panels(1, 1)
    grid[0, 0].imshow(np.linspace(0, 1, 2500).reshape(50, 50))
    figure.set_label("A square.")
    return figure


def line(axes):
    axes.plot([1, 2], [3, 4], label="a line")


@pytest.mark.parametrize("encode", [svg, png])
def test_the_same_figure_gives_the_same_bytes_under_any_settings(encode):
    first = encode(drawn(), {"Title": "t"})
    with matplotlib.rc_context({"font.size": 31, "svg.hashsalt": "other"}):
        assert encode(drawn(), {"Title": "t"}) == first
    assert b"date" not in first.lower()


def test_a_png_has_its_texts_and_size():
    picture = Image.open(io.BytesIO(png(drawn(), {"Description": "α"})))
    assert picture.text == {"Description": "α"}
    assert picture.size == (299, 299)


def test_ids_of_two_drawings_on_a_page_differ():
    first, second = (inline(line, name, ncols=1) for name in ("a", "b"))
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (first, second)]
    assert all(ids)
    assert not ids[0] & ids[1]
    for text, known in zip((first, second), ids, strict=True):
        assert set(re.findall(r'(?:url\(|href=")#([^")]+)', text)) <= known
    assert inline(line, "a", ncols=1) == first
    assert first.startswith("<svg")
    assert ">a line</text>" in first  # text stays text


def test_a_figure_is_saved_with_its_caption(tmp_path):
    paths = save(drawn(), tmp_path / "deep", "square")
    assert [path.name for path in paths] == ["square.svg", "square.png", "square.txt"]
    assert paths[2].read_text() == "A square.\n"
    assert "A square." in paths[0].read_text()


def test_the_first_classes_and_both_ends_of_the_scale_differ_in_grey():
    def grey(colour):
        return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))

    assert grey(plotting.ORANGE) - grey(plotting.BLUE) > 0.25
    scale = [
        grey(colour[:3]) for colour in matplotlib.colormaps[plotting.SCALE](np.linspace(0, 1, 9))
    ]
    assert all(np.diff(scale) < 0)
    assert rgb_to_hsv(to_rgb(plotting.FAINT))[1] == 0


def test_shades_of_few_lines_differ_and_are_readable_on_white_and_on_dark_pages():
    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    dark = luminance((0x1E / 255, 0x21 / 255, 0x29 / 255))  # the site's dark theme
    for count in range(2, 8):
        shades = [plotting.shade(i, count) for i in range(count)]
        assert len(set(shades)) == count
        for light in map(luminance, shades):
            assert 1.05 / (light + 0.05) >= 3
            assert (light + 0.05) / (dark + 0.05) >= 3
    assert plotting.shade(0, 1) == shades[0]
