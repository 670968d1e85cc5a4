"""The pictures of published rows show what the rows say."""

import json
import re
from html import unescape
from pathlib import Path

import evidence
import pytest

from kmixup.lab.formatting import with_interval

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", evidence.PICTURES)
def test_a_picture_shows_the_numbers_of_the_rows(name):
    figures, draw = evidence.PICTURES[name]
    drawing = (ROOT / f"docs/img/{name}.svg").read_text()
    shown = json.loads(unescape(re.search("<dc:description>(.*?)</dc:description>", drawing)[1]))
    assert shown == json.loads(json.dumps(figures())), "run python docs/evidence.py"
    panels = draw(shown).axes
    assert [panel.get_title() for panel in panels] == list(shown)
    for panel, content in zip(panels, shown.values(), strict=True):
        assert len(panel.containers) == len(content) - ("ERM" in content)


@pytest.mark.parametrize("question", list(evidence.GAINS)[1:])
def test_the_picture_of_gains_has_the_differences_of_the_results_page(question):
    page = (ROOT / "docs/evidence/index.md").read_text()
    for difference in evidence.gains_of(question)[question].values():
        assert with_interval(*difference) in page


def test_every_picture_is_on_a_page_and_none_is_left_over():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(path.read_text() for path in pages)
    for path in (ROOT / "docs/img").iterdir():
        assert path.stem.startswith("figure-") or f"img/{path.stem}" in text, path.name
    assert {f"{name}.svg" for name in evidence.PICTURES} <= {
        path.name for path in (ROOT / "docs/img").iterdir()
    }


@pytest.mark.parametrize("path", sorted((ROOT / "docs/img").glob("*.svg")), ids=lambda p: p.stem)
def test_an_svg_has_no_background_and_follows_the_theme(path):
    drawing = path.read_text()
    assert "currentColor" in drawing or "class=" in drawing
    assert "#000000" not in drawing
    background = drawing.partition('<g id="patch_1">')[2].partition("</g>")[0]
    assert not background or "fill: none" in background
