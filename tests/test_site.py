"""The pages of the site: their code runs, they are all reachable, and they leave nothing out."""

import re
from pathlib import Path

import pytest
import yaml

from kmixup.lab.figures import NAMES
from kmixup.matching import pairing

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
# pages whose code is run by other tests, with what it needs
ELSEWHERE = {"frameworks.md", "lab.md", "methods.md", "own-data.md", "theory.md", "tuning.md"}
# folders of pages that are made when the site is built
MADE = ("api/", "examples/", "results/", "tutorial.md", "changelog.md")


def blocks(page):
    return re.findall(r"^```(python|text)\n(.*?)^```", (DOCS / page).read_text(), re.S | re.M)


def has_code(page):
    return any(kind == "python" for kind, _ in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if has_code(page)])
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(
    page, capsys, tmp_path, monkeypatch
):
    if page in ELSEWHERE:
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pairing, "_warned", set())  # a page shows a warning that is given once
    names = {}
    for kind, block in blocks(page):
        if kind == "python":
            capsys.readouterr()
            exec(compile(block, f"docs/{page}", "exec"), names)
        else:
            assert capsys.readouterr().out == block


def test_every_page_is_in_the_navigation():
    def addresses(entry):
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            yield from addresses(list(entry.values()))
        else:
            for part in entry:
                yield from addresses(part)

    listed = list(addresses(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(at for at in listed if not at.startswith(MADE)) == PAGES
    assert set(MADE) <= set(listed)


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_are_there(page):
    text = re.sub(r"^```.*?^```", "", (DOCS / page).read_text(), flags=re.S | re.M)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path = link.partition("#")[0]
        target = (DOCS / page).parent / path
        if not path or "://" in link:
            continue
        inside = target.resolve().relative_to(ROOT)
        if not str(inside).startswith(tuple(f"docs/{made}" for made in MADE)):
            assert target.exists(), f"{page} links to {link}"


def test_the_gallery_has_every_figure_with_its_command():
    page = (DOCS / "gallery.md").read_text()
    for name in NAMES:
        assert re.search(rf"^kmixup figures {name}$", page, re.M), name


@pytest.mark.slow
def test_the_tutorial_runs_from_top_to_bottom(capsys):
    source = (ROOT / "examples/tutorial.py").read_text()
    assert source.count("EPOCHS = 60\n") == 1
    names = {}
    exec(compile(source.replace("EPOCHS = 60\n", "EPOCHS = 2\n"), "tutorial.py", "exec"), names)
    printed = capsys.readouterr().out
    assert printed.count("test error") == 3
    assert len(names["figure"].axes) == 3
    assert names["found"].reachable
