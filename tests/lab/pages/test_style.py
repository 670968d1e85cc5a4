"""One look for all plots, whatever the caller's settings are."""

import matplotlib
import numpy as np
from matplotlib.colors import rgb_to_hsv, to_rgb

from kmixup.lab.pages import style


def test_the_first_classes_and_both_ends_of_the_scale_differ_in_grey():
    def grey(colour):
        return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))

    assert grey(style.ORANGE) - grey(style.BLUE) > 0.25
    scale = [grey(colour[:3]) for colour in matplotlib.colormaps[style.SCALE](np.linspace(0, 1, 9))]
    assert all(np.diff(scale) < 0)
    assert rgb_to_hsv(to_rgb(style.FAINT))[1] == 0


def test_the_callers_settings_come_back():
    with matplotlib.rc_context({"font.size": 31}):
        with style.in_style(**{"axes.grid": True}):
            assert matplotlib.rcParams["font.size"] == style.STYLE["font.size"]
            assert matplotlib.rcParams["axes.grid"]
        assert matplotlib.rcParams["font.size"] == 31


def test_shades_of_few_lines_differ_and_are_not_too_light():
    shades = [style.shade(i, 5) for i in range(5)]
    assert len(set(shades)) == 5
    assert np.mean(shades[-1][:3]) < 0.7
    assert style.shade(0, 1) == shades[0]
