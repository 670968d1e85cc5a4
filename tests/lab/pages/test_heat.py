"""Heat maps: colours that carry text, and the same map without colours."""

import re

from kmixup.lab.pages.heat import Box, HeatMap, diverging, sequential


def test_colours_are_one_scale_and_their_text_stands_out():
    style = sequential([1.0, None, 9.0])
    assert style(None) == ""
    assert style(1.0) != style(9.0)
    assert style(20.0) == style(9.0)
    both = diverging([-2.0, 1.0])
    assert both(2.0) != both(-2.0)
    for colours in (style(1 + i / 10) for i in range(81)):
        ground, ink = re.findall(r"#\w+", colours)
        assert contrast(ground, ink) >= 4.5  # what WCAG asks of text


def contrast(ground, ink):
    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(ground), luminance(ink)))
    return (high + 0.05) / (low + 0.05)


def test_a_constant_grid_has_one_colour():
    assert sequential([3.0, 3.0])(3.0) == sequential([])(3.0)
    assert diverging([0.0])(0.0) == diverging([])(0.0)


def test_outliers_do_not_flatten_the_colours_of_the_others():
    near = [4.0, 4.1, 4.2, 4.3, 4.4, 4.5]
    style, alone = sequential([*near, 90.0]), sequential(near)
    colours = {style(value) for value in near}
    assert len(colours) == len(near)
    assert style(4.5) != sequential([4.0, 90.0])(4.5)
    assert style(90.0) != style(4.5)
    assert alone(4.0) == style(4.0)
    both = diverging([-0.1, 0.1, 0.2, -0.2, 0.3, 50.0])
    assert both(0.3) != both(0.1)
    assert both(50.0) == both(60.0)


def test_a_single_cell_that_differs_keeps_a_colour_of_its_own():
    style = sequential([5.0] * 9 + [80.0])
    assert style(5.0) != style(80.0)


def test_a_map_without_colours_marks_its_best_box():
    heat = HeatMap(
        "Errors",
        (("α = 1", ""), ("α = 2", "ξ = 3")),
        (("k = 1", (Box("5.0", "± 1"), Box("4.0", best=True))), ("k = 2", (Box("6.0"),))),
    )
    table = heat.table(between="\n", between_heads="\n", best="* ", caption="below")
    assert (table.title, table.caption) == ("Errors", "below")
    assert table.header == ["", "α = 1", "α = 2\nξ = 3"]
    assert table.rows == [("k = 1", "5.0\n± 1", "* 4.0"), ("k = 2", "6.0")]
