"""The pictures of published rows show what the rows say."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from PIL import Image

from kmixup.lab.formatting import with_interval

ROOT = Path(__file__).parents[1]
spec = spec_from_file_location("evidence", ROOT / "docs/evidence.py")
evidence = module_from_spec(spec)
spec.loader.exec_module(evidence)


@pytest.mark.parametrize("name", evidence.PICTURES)
def test_a_picture_shows_the_numbers_of_the_rows(name):
    figures, draw = evidence.PICTURES[name]
    with Image.open(ROOT / f"docs/img/{name}.png") as picture:
        shown = json.loads(picture.info["Figures"])
    assert shown == json.loads(json.dumps(figures())), "run python docs/evidence.py"
    panels = draw(shown).axes
    assert [panel.get_title() for panel in panels] == list(shown)
    for panel, content in zip(panels, shown.values(), strict=True):
        assert len(panel.containers) == len(content) - ("ERM" in content)


def test_the_picture_of_gains_has_the_differences_of_the_results_page():
    page = (ROOT / "docs/results.md").read_text()
    shown = evidence.gains_figures()
    for question in evidence.QUESTIONS[1:]:
        for difference in shown[question].values():
            assert with_interval(*difference) in page


@pytest.mark.parametrize("name", evidence.PICTURES)
def test_a_picture_is_on_a_page_beside_the_command_that_draws_it(name):
    page = (ROOT / "docs/results.md").read_text()
    assert f"](img/{name}.png)" in page
    assert "python docs/evidence.py" in page
