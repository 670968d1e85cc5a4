"""Pages of the site that are not in docs/: public names, commands, examples, reports.

MkDocs calls the functions `on_…`. Pages are made from the package and the repository at each
build, so that none can be forgotten: one for each public name, example and report, and one for the
commands.
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

from kmixup_command import make_app

ROOT = Path(__file__).parents[1]
PACKAGES = ("kmixup", "kmixup.inspection", "kmixup.theory", "kmixup.lab")
# the API by purpose: what the modules with these paths define; the first match counts
PURPOSES = {
    "Mixing": ("methods.kmixup", "mixer", "mixed", "_batch", "collate", "vicinal"),
    "Methods": ("methods", "importance"),
    "Pairing": ("matching",),
    "Coefficient and interpolation": ("coefficient", "interpolation"),
    "Wrappers": ("wrappers",),
    "Calibration and inspection": ("calibration", "inspection", "_measured"),
    "Errors": ("_checks",),
    "Batch norm": ("batchnorm",),
    "Theory": ("theory",),
    "Integrations": ("integrations",),
    "The lab": ("lab",),
}
INTEGRATIONS = "kmixup.integrations"
# parts of the integrations that nobody imports have no place on their pages
INNER = (
    "    options:\n      filters: ['!^_[^_]', '!^(Mutual|Box|Blend|Switch|of_pair|draw_batch)$']\n"
)
# weights of pages in the search, by the beginning of their address: a report is long and full of
# common words, and the API names everything
BOOSTS = {
    "results/": 1e-4, "examples/": 0.1, "contributing/": 0.2, "reference/cli": 0.2,
    "evidence/": 0.5, "api/kmixup.theory": 0.1, "api/kmixup.lab": 0.3, "api/": 0.5,
    "experiments.md": 0.5,
}  # fmt: skip
# what people search for, and the page that answers it
KEYWORDS = {
    "api/kmixup.KMixup.md": ("lam_per", "one lam per sample"),
    "changelog.md": ("changelog", "what is new"),
    "experiments.md": ("sweep", "reproduce", "ray"),
    "frameworks/fastai.md": ("fastai",),
    "frameworks/keras.md": ("keras", "tensorflow", "jax"),
    "frameworks/lightning.md": ("lightning",),
    "frameworks/timm.md": ("timm",),
    "frameworks/torchvision.md": ("torchvision",),
    "frameworks/transformers.md": ("transformers", "hugging face"),
    "frameworks/scikit-learn.md": ("scikit-learn", "sklearn"),
    "guide/batchnorm.md": ("batch norm", "batchnorm"),
    "guide/choosing.md": ("alpha", "what is alpha", "choose k", "default alpha"),
    "guide/cutmix.md": ("cutmix",),
    "guide/devices.md": (
        "ddp", "distributed", "multi-gpu", "amp", "bf16", "mixed precision", "gpu",
    ),
    "guide/faq.md": (
        "cite", "citation", "license", "licence", "object detection", "boxes", "class imbalance",
        "label smoothing", "bert",
    ),
    "guide/loop.md": ("resume", "checkpoint"),
    "guide/regression.md": ("regression",),
    "guide/segmentation.md": ("segmentation", "masks"),
    "guide/small-batches.md": ("k larger than batch size", "memory"),
    "guide/targets.md": ("multi-label", "targets"),
    "guide/text.md": ("text", "tokens", "bert"),
    "index.md": ("install", "cpu install", "wheel", "how to cite"),
    "methods.md": ("puzzlemix", "cutmix", "methods"),
    "own-data.md": ("csv", "excel", "tables", "tune"),
    "reference/glossary.md": ("alpha", "what is alpha"),
}  # fmt: skip
PICTURE = re.compile(r'<p>(<img [^>]*src="([^"]+\.(?:png|svg|webp))"[^>]*>)</p>')
CELL = re.compile(r"<(t[dh])\b([^>]*)>([^<]*)</\1>")
WORDS = re.compile(r"[a-z]{2,} [a-z]{2,}")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
TABS = re.compile(r"<!-- tabs -->(.*?)<!-- /tabs -->", re.S)
MATCHING = re.compile(r"!\[[^\]]*\]\([^)]*matching\.svg\)")
# files of the repository that are shown on a page of another name
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "README.md": "index.md",
    "examples/tutorial.ipynb": "tutorial.md",
    "examples/tutorial.py": "tutorial.md",
    "results/README.md": "results/index.md",
}


def public_names() -> dict[str, tuple[str, str]]:
    """The purpose and the first line of each public name, by its path, in the order of PURPOSES."""
    found: dict[str, tuple[str, str]] = {}
    homes: dict[str, str] = {}
    seen: set[int] = set()  # a name that two packages share is the first one's
    for package in PACKAGES:
        for name in import_module(package).__all__:
            thing = getattr(import_module(package), name)
            if id(thing) not in seen:
                seen.add(id(thing))
                about = first_line(inspect.getdoc(thing))
                homes[f"{package}.{name}"], purpose = place_of(thing.__module__)
                found[f"{package}.{name}"] = purpose, about
    for module in integrations():
        path = f"{INTEGRATIONS}.{module}"
        source = (ROOT / "src" / Path(*path.split("."))).with_suffix(".py").read_text()
        homes[path], purpose = place_of(path)
        found[path] = purpose, first_line(ast.get_docstring(ast.parse(source)))
    order = [home for group in PURPOSES.values() for home in group]
    return {path: found[path] for path in sorted(found, key=lambda at: order.index(homes[at]))}


def place_of(module: str) -> tuple[str, str]:
    """The entry of PURPOSES that has a module, and its purpose."""
    for purpose, homes in PURPOSES.items():
        for home in homes:
            if f"{module}.".startswith(f"kmixup.{home}."):
                return home, purpose
    raise ValueError(f"{module} must have a purpose: add it to PURPOSES in docs/hooks.py")


def integrations() -> list[str]:
    """Modules of the integrations that people import from."""
    folder = ROOT / "src" / Path(*INTEGRATIONS.split("."))
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


def reports() -> list[str]:
    return sorted(path.parent.name for path in ROOT.glob("results/*/report.md"))


def api_pages() -> Iterator[tuple[str, str, str]]:
    """Address, title and text of the overview and of one page for each public name."""
    overview = [
        "# API",
        "Every public name by purpose, each with a page made from its docstring. Names of the "
        "library are imported from `kmixup`, others from the package that their page names. The "
        "tests run every example.",
    ]
    pages = []
    for path, (purpose, about) in public_names().items():
        if f"## {purpose}" not in overview:
            overview += [f"## {purpose}", "| | |\n|---|---|"]
        name = path.rpartition(".")[2]
        about = about.replace("|", "&#124;")  # would end the cell
        overview[-1] += f"\n| [`{name}`]({path}.md) | {about} |"
        inner = INNER if path.startswith(INTEGRATIONS) else ""
        pages.append((f"api/{path}.md", name, f"::: {path}\n{inner}"))
    yield "api/index.md", "All names", "\n\n".join(overview) + "\n"
    yield from pages


def command_page() -> Iterator[tuple[str, str, str]]:
    """The help of every command, on one page."""
    text = make_app().generate_docs(include_hidden=True)
    text = re.sub(r"^## Table of Contents\n.*?(?=^## )", "", text, flags=re.S | re.M)
    title, about = "# Command line", "Generated from `kmixup COMMAND --help`."
    yield "reference/cli.md", "Command line", text.replace("# kmixup\n", f"{title}\n\n{about}\n", 1)


def example_pages() -> Iterator[tuple[str, str, str]]:
    for path in sorted(ROOT.glob("examples/*.py")):
        source = path.read_text()
        said = first_line(ast.get_docstring(ast.parse(source)))
        text = f"# {path.name}\n\n{said}\n\n```python\n{source}```\n"
        yield f"examples/{path.stem}.md", path.name, text


def tutorial(config: MkDocsConfig) -> Iterator[File]:
    """The tutorial with all that its cells print and draw, run now."""
    source = (ROOT / "examples/tutorial.py").read_text()
    page = ["# Tutorial", first_line(ast.get_docstring(ast.parse(source)))]
    page[-1] += (
        " It takes about a minute on one CPU core. The file is "
        "[examples/tutorial.py](examples/tutorial.md), with a notebook beside it."
    )
    names: dict[str, Any] = {}
    pictures = 0
    for kind, body in cells_of(source):
        if kind == "text":
            page.append(body)
            continue
        page.append(f"```python\n{body}\n```")
        before = names.get("figure")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(body, "tutorial.py", "exec"), names)
        if printed.getvalue():
            page.append(f"```text\n{printed.getvalue()}```")
        if isinstance(names.get("figure"), Figure) and names["figure"] is not before:
            pictures += 1
            drawn = io.BytesIO()
            names["figure"].savefig(drawn, dpi=130)
            name = f"img/tutorial-{pictures}.png"
            yield File.generated(config, name, content=drawn.getvalue())
            page.append(f"![What the cell above draws]({name})")
    yield File.generated(config, "tutorial.md", content="\n\n".join(page) + "\n")


def report_pages() -> Iterator[tuple[str, str, str]]:
    for source in ("results/README.md", *(f"results/{name}/report.md" for name in reports())):
        if (address := page_of(source)) is None:
            raise ValueError(f"{source} must have a page: add it to PAGES")
        text = rebased((ROOT / source).read_text(), source, address)
        name = Path(source).parent.name
        yield address, "All reports" if source == "results/README.md" else name, text


def root_pages() -> Iterator[tuple[str, str, str]]:
    for source, title in (("CHANGELOG.md", "Changes"), ("CONTRIBUTING.md", "Contributing")):
        yield PAGES[source], title, rebased((ROOT / source).read_text(), source, PAGES[source])


def generated() -> Iterator[tuple[str, str, str]]:
    for pages in (api_pages, command_page, example_pages, report_pages, root_pages):
        yield from pages()


def page_of(path: str) -> str | None:
    """The page that shows a file of the repository, by its path."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    folder, _, name = path.partition("/")
    name = name.removesuffix("/report.md").removesuffix(".py")
    if folder == "results":
        return f"results/{name}.md" if name in reports() else "results/index.md"
    return f"examples/{name}.md" if folder == "examples" else None


def rebased(text: str, source: str, address: str) -> str:
    """Links of a file of the repository as links of its page; without a page only their text."""

    def page(match: re.Match[str]) -> str:
        label, target, anchor = match.groups("")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if "://" in target or not (ROOT / path).exists() or path.startswith(source.split("/")[0]):
            return match[0]
        shown = page_of(path)
        if shown is None:
            return label
        return f"[{label}]({posixpath.relpath(shown, posixpath.dirname(address) or '.')}{anchor})"

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
        return grouped([(at, title) for at, title, _ in pages if at.startswith(entry)])

    config.nav = expanded(config.nav)
    return config


def grouped(pages: list[tuple[str, str]]) -> list[Any]:
    """Navigation of generated pages, those of the API below their purpose."""
    nav: list[Any] = []
    purposes = {f"api/{path}.md": purpose for path, (purpose, _) in public_names().items()}
    groups: dict[str, list[Any]] = {}
    for at, title in pages:
        if at.endswith("/index.md"):
            nav.append(at)
        elif at in purposes:
            if purposes[at] not in groups:
                groups[purposes[at]] = []
                nav.append({purposes[at]: groups[purposes[at]]})
            groups[purposes[at]].append({title: at})
        else:
            nav.append({title: at})
    return nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for address, _, text in generated():
        files.append(File.generated(config, address, content=text))
    for file in tutorial(config):
        files.append(file)
    return files


def tabs(region: re.Match[str]) -> str:
    """Sections as tabs, which a plain file cannot have."""
    _, *sections = re.split(r"^### (.+)\n", region[1], flags=re.M)
    return "\n\n".join(
        f'=== "{title}"\n\n{indent(body.strip(), "    ")}'
        for title, body in zip(sections[::2], sections[1::2], strict=True)
    )


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to pages, tabs, and figures that react in place of images."""
    address = page.file.src_uri
    boosts = (boost for start, boost in BOOSTS.items() if address.startswith(start))
    page.meta["search"] = {"boost": next(boosts, 2)}
    page.meta["tags"] = list(KEYWORDS.get(address, ()))
    up = "../" * address.count("/")
    markdown = TABS.sub(tabs, markdown)
    if "matching.svg" in markdown:
        markdown = MATCHING.sub(lambda _: figure(f"{up}matching.js"), markdown)
    if "demo.webp" in markdown:
        scripts = [
            f'<script src="{up}{name}" defer></script>' for name in ("img/demo.js", "demo.js")
        ]
        markdown = "\n".join([markdown, "", *scripts])
    return rebased(markdown, f"docs/{address}", address)


def unbroken(cell: re.Match[str]) -> str:
    """A cell of a table with its numbers on one line each: 5.70 ± 0.53, (128, 30), k = 16.

    Words start at the left, also in a column of numbers.
    """
    kind, attributes, text = cell.groups()
    if kind == "td" and WORDS.search(text):
        attributes = attributes.replace("right", "left")
    text = re.sub(r" ([±=×]) ", "\u00a0\\1\u00a0", text)
    text = re.sub(r"\(\d[\d, ]*\)", lambda shape: shape[0].replace(" ", "\u00a0"), text)
    text = re.sub(r"(\[[^\s\]]+,) ([^\s\]]+\])", "\\1\u00a0\\2", text)
    return f"<{kind}{attributes}>{text}</{kind}>"


def on_page_content(html: str, **_: Any) -> str:
    """Formulas as MathML, pictures as links to themselves, numbers in tables unbroken.

    Browsers show MathML without a script. A picture of many panels is small on a phone: behind
    the link it can be enlarged.
    """

    def markup(match: re.Match[str]) -> str:
        # what the converter knows by another name, or in braces alone
        source = unescape(match[3]).replace("{aligned}", "{split}")
        source = re.sub(r"\\(mathbb|mathcal|mathrm) (\w)", r"\\\1{\2}", source)
        formula: str = convert(source, display="block" if match[2] == "[" else "inline")
        return formula

    html = PICTURE.sub(r'<p><a class="picture" href="\2">\1</a></p>', html)
    return FORMULA.sub(markup, CELL.sub(unbroken, html))


def on_post_page(output: str, **_: Any) -> str:
    """Name the search dialog for screen readers, which the theme leaves out."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)
