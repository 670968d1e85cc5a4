"""The pages of the site: their code runs, they are all reachable, and they leave nothing out."""

import ast
import json
import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch
import yaml

from kmixup.lab.figures import NAMES
from kmixup.lab.paper.presets import TABLES
from kmixup.matching import pairing

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
FILES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "results").rglob("*.md")])
# written out, because "where" and "part" alone are good words
BANNED = re.compile(
    r"share of the|test part|training part|half-way|points of test error|fewest of|beyond chance|"
    r"what came of|of (your|its) own\b(?! [\w`])|\balike\b|\bbeside\b|\bat hand\b|\bweighs the\b"
)
# pages whose code is run by other tests, with what it needs
ELSEWHERE = {
    "evidence/theory.md", "experiments.md", "own-data.md",
}  # fmt: skip
# folders of pages that are made when the site is built
MADE = (
    "api/", "examples/", "results/", "reference/cli.md", "tutorial.md", "changelog.md",
    "contributing/index.md",
)  # fmt: skip


def blocks(page):
    return re.findall(r"^```(python|text)\n(.*?)^```", (DOCS / page).read_text(), re.S | re.M)


def has_code(page):
    return any(kind == "python" for kind, _ in blocks(page))


@pytest.mark.parametrize("page", [page for page in PAGES if has_code(page)])
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(
    page, capsys, tmp_path, monkeypatch
):
    if page in ELSEWHERE or page.startswith("frameworks/"):
        return
    monkeypatch.chdir(tmp_path)
    # a page shows a warning that is given once
    monkeypatch.setattr(pairing, "_warned", bytearray(1 << 16))
    names = {}
    for kind, block in blocks(page):
        if kind == "python":
            capsys.readouterr()
            exec(compile(block, f"docs/{page}", "exec"), names)
        else:
            assert capsys.readouterr().out == block


def test_every_page_is_in_the_navigation_or_linked_from_the_results():
    def addresses(entry):
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            yield from addresses(list(entry.values()))
        else:
            for part in entry:
                yield from addresses(part)

    listed = list(addresses(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    results = (DOCS / "evidence/index.md").read_text()
    linked = {f"evidence/{name}" for name in re.findall(r"\]\((\w[\w-]*\.md)\)", results)}
    assert {at for at in listed if not at.startswith(MADE)} | linked == {*PAGES}
    assert {made for made in MADE if made != "results/"} <= set(listed)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_reads_well_without_the_site(path):
    """Links lead to files of the repository, except to the API; nothing waits for the build."""
    text = re.sub(r"^```.*?^```|<!-- (numbers|keel).*?-->", "", path.read_text(), flags=re.S | re.M)
    for link in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text):
        target = "".join(link).partition("#")[0]
        inside = (path.parent / target).resolve()
        made = str(inside.relative_to(ROOT) if inside.is_relative_to(ROOT) else "")
        if (
            target
            and "://" not in target
            and not made.startswith(("docs/api/", "docs/reference/cli"))
        ):
            assert inside.exists(), f"{path} links to {target}"
    assert not re.search(r"\]\[[\w.]+\]", text), "a link by name works on the site only"
    comments = re.findall(r"<!-- (.+?) -->", text)
    assert all(re.fullmatch(r"/?(numbers|tabs|address|keel)", comment) for comment in comments)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_anchors_of_links_are_headings(path):
    for target, anchor in re.findall(r"\]\(([^)\s#]*\.md)?#([^)\s]+)\)", path.read_text()):
        other = (path.parent / target) if target else path
        headings = re.findall(r"^#+ (.+)$", other.read_text(), re.M)
        anchors = [
            re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
        ]
        assert anchor in anchors, f"{path} links to {target}#{anchor}"


def test_no_page_uses_a_banned_phrase():
    for path in FILES:
        if path.name != "CHANGELOG.md":
            found = BANNED.search(path.read_text().lower())
            assert not found, f"{path}: {found}"


def test_no_help_or_message_uses_a_banned_phrase():
    """All texts of the code: docstrings are help and API pages, other texts are messages."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = BANNED.search(" ".join(node.value.lower().split()))
                assert not found, f"{path}:{node.lineno}: {found}"


def test_one_script_writes_the_address_of_the_repository(tmp_path):
    address = loaded("address")
    for name in address.TEMPLATES:
        (tmp_path / name).write_text((ROOT / name).read_text())
    address.write("https://example.org/team/kmixup", tmp_path)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Repository"] == "https://example.org/team/kmixup"
    assert "repo_url: https://example.org/team/kmixup\n" in (tmp_path / "mkdocs.yml").read_text()
    assert "(https://example.org/team/kmixup/actions" in (tmp_path / "README.md").read_text()
    with pytest.raises(ValueError, match="must look like https://HOST/OWNER/NAME, got 'kmixup'"):
        address.write("kmixup", tmp_path)


def test_all_files_have_the_same_address():
    marked = loaded("address").MARKED
    parts = [marked.search((ROOT / name).read_text())[0] for name in loaded("address").TEMPLATES]
    assert len({tuple(re.findall(r"https://[^/]+/[^/]+/[\w-]+", part)[:1]) for part in parts}) == 1


def test_the_gallery_has_one_picture_of_every_figure():
    page = (DOCS / "evidence/gallery.md").read_text()
    for name, caption in NAMES.items():
        (picture,) = (DOCS / "img").glob(f"figure-{name}.*")
        assert (
            f"![{caption}](../img/{picture.name})\n\n*{caption[0].upper()}{caption[1:]}.*" in page
        )
        assert f"kmixup figures {name}\n" in page
    assert len(list((DOCS / "img").glob("figure-*"))) == len(NAMES)


def test_the_errata_have_all_notes_on_the_papers_tables():
    page = (DOCS / "evidence/errata.md").read_text()
    for table in TABLES.values():
        assert not table.notes or f"| {table.title} | " in page
        assert all(note in page for note in table.notes)


def test_the_comparison_with_scikit_learn_has_the_errors_of_the_benchmark():
    page = (DOCS / "evidence/scikit-learn.md").read_text()
    lines = (ROOT / "benchmarks/own_data.txt").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    for name, _, _constant, *errors in cells[2:]:
        if name and not name.endswith("balanced weights"):
            assert " | ".join([name, *errors]) in page


def loaded(name):
    """A module of docs/, which is no package."""
    spec = spec_from_file_location(name, DOCS / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_tutorial_finds_what_its_text_says(capsys):
    names = {}
    exec((ROOT / "examples/tutorial.py").read_text(), names)
    assert capsys.readouterr().out.count("k-mixup - ERM") == 2
    convolution, connected = (
        {method: errors.mean(0) for method, errors in names[network].items()}
        for network in ("convolution", "connected")
    )
    clean, strong = 0, slice(-2, None)
    assert convolution["mixup"][clean] < convolution["ERM"][clean]
    assert (convolution["k-mixup"] < convolution["ERM"]).all()
    assert (convolution["k-mixup"] < convolution["mixup"])[strong].all()
    assert (connected["mixup"] > connected["ERM"])[strong].all()


def test_the_notebooks_have_the_cells_of_the_tutorial_and_all_examples():
    cells = loaded("cells")
    written = cells.TUTORIAL.with_suffix(".ipynb").read_text(), cells.EXAMPLES.read_text()
    assert written == (cells.tutorial(), cells.examples()), "run python docs/cells.py"


def test_the_figure_of_matching_is_small_and_shows_what_kmixup_pairs():
    module = loaded("matching_figure")
    html = module.figure("matching.js")
    assert len(html.encode()) < 60_000
    assert len((DOCS / "matching.js").read_text().splitlines()) <= 60
    points, cluster = module.ring()
    shown = json.loads(re.search("data-partners='(.*?)'", html)[1])
    crossing = []
    for k in module.KS:
        partner = torch.tensor(shown[str(k)])
        assert partner.sort().values.tolist() == list(range(len(points)))
        crossing.append(float((cluster != cluster[partner]).float().mean()))
    assert crossing == sorted(crossing, reverse=True)  # a larger k keeps more pairs in a cluster
    assert (DOCS / "img/matching.svg").read_text() == module.picture()
