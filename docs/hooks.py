"""Pages of the site that are not in docs/: public names, commands, examples, reports.

MkDocs calls the functions `on_…`. Pages are made from the package and the repository at each
build, so that none can be forgotten: one for each public name, example and report, and one for the
commands. What is in which group, and what searches find, is in `extra` of mkdocs.yml.
"""

import ast
import contextlib
import inspect
import io
import posixpath
import re
from collections.abc import Iterator
from html import unescape
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any

from cells import cells_of
from latex2mathml.converter import convert
from matching_figure import figure
from matplotlib.figure import Figure
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import yaml_load

from kmixup_command import make_app

Made = tuple[str, str, str, str]  # address, title, text and group of a page
ROOT = Path(__file__).parents[1]
SITE: dict[str, Any] = yaml_load((ROOT / "mkdocs.yml").read_text())["extra"]
PICTURE = re.compile(r'<p>(<img [^>]*src="([^"]+\.(?:png|svg|webp))"[^>]*>)</p>')
CELL = re.compile(r"<t[dh]\b[^>]*>[^<]*</")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
TABS = re.compile(r"<!-- tabs -->(.*?)<!-- /tabs -->", re.S)
MATCHING = re.compile(r"!\[[^\]]*\]\([^)]*matching\.svg\)")


def first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


def public_names() -> Iterator[tuple[str, str, str]]:
    """Yield path, group and first line of each public name, in the order of the groups."""
    found: dict[str, tuple[str, str]] = {}
    seen: set[int] = set()  # a name that two packages share is the first one's
    for package in map(import_module, SITE["packages"]):
        for name in package.__all__:
            thing = getattr(package, name)
            if id(thing) not in seen:
                seen.add(id(thing))
                found[f"{package.__name__}.{name}"] = (
                    thing.__module__,
                    first_line(inspect.getdoc(thing)),
                )
    for file in sorted(ROOT.glob("src/kmixup/integrations/[!_]*.py")):
        path = f"kmixup.integrations.{file.stem}"
        found[path] = path, first_line(ast.get_docstring(ast.parse(file.read_text())))
    homes = [(home, group) for group, some in SITE["groups"].items() for home in some]
    placed = []
    for path, (module, about) in found.items():
        fits = [
            i for i, (home, _) in enumerate(homes) if f"{module}.".startswith(f"kmixup.{home}.")
        ]
        if not fits:
            raise ValueError(f"{module} must have a group: add it to mkdocs.yml")
        placed.append((fits[0], path, about))
    for home, path, about in sorted(placed, key=lambda one: one[0]):
        yield path, homes[home][1], about


def api_pages() -> Iterator[Made]:
    """Yield the overview and one page for each public name."""
    overview = (
        "# API\n\nEvery public name by purpose, each with a page made from its docstring. Names of "
        "the library are imported from `kmixup`, others from the package that their page names. "
        "The tests run every example.\n"
    )
    pages = []
    for path, group, about in public_names():
        if f"## {group}\n" not in overview:
            overview += f"\n## {group}\n\n| | |\n|---|---|\n"
        name = path.rpartition(".")[2]
        about = about.replace("|", "&#124;")  # would end the cell
        overview += f"| [`{name}`]({path}.md) | {about} |\n"
        text = f"::: {path}\n"
        if ".integrations." in path:
            text += f"    options: {{filters: {SITE['filters']}}}\n"
        pages.append((f"api/{path}.md", name, text, group))
    yield "api/index.md", "All names", overview, ""
    yield from pages


def repository_pages() -> Iterator[Made]:
    """Yield the help of every command, and files of the repository."""
    text = make_app().generate_docs(include_hidden=True)
    text = re.sub(r"^## Table of Contents\n.*?(?=^## )", "", text, flags=re.S | re.M)
    title = "# Command line\n\nGenerated from `kmixup COMMAND --help`.\n"
    yield "reference/cli.md", "Command line", text.replace("# kmixup\n", title, 1), ""
    for path in sorted(ROOT.glob("examples/*.py")):
        source = path.read_text()
        said = first_line(ast.get_docstring(ast.parse(source)))
        text = f"# {path.name}\n\n{said}\n\n```python\n{source}```\n"
        yield f"examples/{path.stem}.md", path.name, text, ""
    titles = {"results/README.md": "All reports", "CHANGELOG.md": "Changes"}
    titles |= {"CONTRIBUTING.md": "Contributing"} | {at: Path(at).parent.name for at in reports()}
    for name, title in titles.items():
        address = page_of(name) or ""
        yield address, title, rebased((ROOT / name).read_text(), name, address), ""


def reports() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("results/*/report.md"))


def generated() -> Iterator[Made]:
    yield from api_pages()
    yield from repository_pages()


def tutorial(config: MkDocsConfig) -> Iterator[File]:
    """Yield the tutorial with all that its cells print and draw, run now."""
    source = (ROOT / "examples/tutorial.py").read_text()
    page = [
        f"# Tutorial\n\n{first_line(ast.get_docstring(ast.parse(source)))} It takes about a minute "
        "on one CPU core. The file is [examples/tutorial.py](examples/tutorial.md), with a "
        "notebook next to it."
    ]
    names: dict[str, Any] = {}
    for number, (kind, body) in enumerate(cells_of(source)):
        if kind == "text":
            page.append(body)
            continue
        before = names.get("figure")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(body, "tutorial.py", "exec"), names)
        page.append(f"```python\n{body}\n```")
        if printed.getvalue():
            page.append(f"```text\n{printed.getvalue()}```")
        if isinstance(drawn := names.get("figure"), Figure) and drawn is not before:
            drawn.savefig(stream := io.BytesIO(), dpi=130)
            name = f"img/tutorial-{number}.png"
            yield File.generated(config, name, content=stream.getvalue())
            page.append(f"![What the cell above draws]({name})")
    yield File.generated(config, "tutorial.md", content="\n\n".join(page) + "\n")


def page_of(path: str) -> str | None:
    """Return the page that shows a file of the repository, by its path."""
    folder, _, name = path.partition("/")
    if path in SITE["pages"] or folder == "docs":
        return str(SITE["pages"].get(path, name))
    if folder == "results":
        report = f"results/{name.removesuffix('/report.md')}"
        return f"{report}.md" if f"{report}/report.md" in reports() else "results/index.md"
    return f"examples/{name.removesuffix('.py')}.md" if folder == "examples" else None


def rebased(text: str, source: str, address: str) -> str:
    """Return a file with its links as links of its page; without a page only their text."""

    def page(match: re.Match[str]) -> str:
        label, target, anchor = match.groups("")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if "://" in target or not (ROOT / path).exists() or path.startswith(source.split("/")[0]):
            return match[0]
        shown = page_of(path)
        start = posixpath.dirname(address) or "."
        return f"[{label}]({posixpath.relpath(shown, start)}{anchor})" if shown else label

    return LINK.sub(page, text)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace `api/` and the like in the navigation by the pages that were made."""
    pages = list(generated())

    def expanded(entry: Any) -> Any:
        if isinstance(entry, list):
            return [expanded(part) for part in entry]
        if isinstance(entry, dict):
            return {title: expanded(part) for title, part in entry.items()}
        if not entry.endswith("/"):
            return entry
        nav: list[Any] = []
        groups: dict[str, list[Any]] = {"": nav}
        for address, title, _, group in pages:
            if address.startswith(entry):
                if group not in groups:
                    nav.append({group: groups.setdefault(group, [])})
                groups[group].append(address if address.endswith("/index.md") else {title: address})
        return nav

    config.nav = expanded(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for address, _, text, _ in generated():
        files.append(File.generated(config, address, content=text))
    for file in tutorial(config):
        files.append(file)
    return files


def tabs(region: re.Match[str]) -> str:
    """Return sections as tabs, which a plain file cannot have."""
    _, *sections = re.split(r"^### (.+)\n", region[1], flags=re.M)
    return "\n\n".join(
        f'=== "{title}"\n\n{indent(body.strip(), "    ")}'
        for title, body in zip(sections[::2], sections[1::2], strict=True)
    )


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Make links lead to pages, sections tabs, and images figures that react."""
    address = page.file.src_uri
    boosts = (boost for start, boost in SITE["boosts"].items() if address.startswith(start))
    page.meta |= {"search": {"boost": next(boosts, 2)}, "tags": SITE["keywords"].get(address, [])}
    up = "../" * address.count("/")
    markdown = TABS.sub(tabs, markdown)
    if "matching.svg" in markdown:
        markdown = MATCHING.sub(lambda _: figure(f"{up}matching.js"), markdown)
    if "demo.webp" in markdown:
        names = ("img/demo.js", "demo.js")
        markdown += "\n" + "\n".join(f'<script src="{up}{name}" defer></script>' for name in names)
    return rebased(markdown, f"docs/{address}", address)


def on_page_content(html: str, **_: Any) -> str:
    """Make formulas MathML, pictures links to themselves, and numbers in tables unbroken."""

    def formula(match: re.Match[str]) -> str:
        # what the converter knows by another name, or in braces only
        source = unescape(match[3]).replace("{aligned}", "{split}")
        source = re.sub(r"\\(mathbb|mathcal|mathrm) (\w)", r"\\\1{\2}", source)
        return str(convert(source, display="block" if match[2] == "[" else "inline"))

    def unbroken(cell: re.Match[str]) -> str:
        text = re.sub(r" ([±=×]) ", "\u00a0\\1\u00a0", cell[0])
        return re.sub(r"([\[(][^\s\])]+,) ([^\s\])]+[\])])", "\\1\u00a0\\2", text)

    html = re.sub(r"<th\b([^>]*)></th>", r"<td\1></td>", html)  # a header without text is none
    html = PICTURE.sub(r'<p><a class="picture" href="\2">\1</a></p>', html)
    return FORMULA.sub(formula, CELL.sub(unbroken, html))


def on_post_page(output: str, **_: Any) -> str:
    """Name the search dialog for screen readers, which the theme leaves out."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)
