"""The repository's address, in every file that names it.

    python docs/address.py https://github.com/OWNER/kmixup

writes it between the markers `address` of pyproject.toml, mkdocs.yml and README.md; without an
argument it prints the present one. Before the first publication there is none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATES = {
    "pyproject.toml": 'Repository = "{0}"\nIssues = "{0}/issues"\n',
    "mkdocs.yml": "repo_url: {0}\n",
    "README.md": (
        "[![tests]({0}/actions/workflows/ci.yml/badge.svg)]({0}/actions/workflows/ci.yml)\n"
    ),
}
MARKED = re.compile(
    r"(?<=address -->\n)(.*?)(?=<!-- /address)|(?<=# address\n)(.*?)(?=# /address)", re.S
)
ADDRESS = re.compile(r"https://[\w.-]+/[\w.-]+/[\w-]+")


def present(root: Path = ROOT) -> str:
    """Return the address that all files have, "" for none; raise if they differ."""
    found = {}
    for name, template in TEMPLATES.items():
        (text,) = MARKED.finditer((root / name).read_text())
        address = ADDRESS.search(text[0])
        found[name] = address[0] if address else ""
        if text[0] != (template.format(found[name]) if address else ""):
            raise ValueError(f"{name} has other lines between the markers: run docs/address.py")
    if len({*found.values()}) > 1:
        raise ValueError(f"the files name different addresses: {found}")
    return found["README.md"]


def write(address: str, root: Path = ROOT) -> None:
    if not ADDRESS.fullmatch(address):
        raise ValueError(f"the address must look like https://HOST/OWNER/NAME, got {address!r}")
    for name, template in TEMPLATES.items():
        path, lines = root / name, template.format(address)
        path.write_text(MARKED.sub(lines, path.read_text(), count=1))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(sys.argv[1])
    print(present() or "no address yet")
