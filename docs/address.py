"""Write the repository's address into every file that names it.

    python docs/address.py https://github.com/OWNER/kmixup

writes it between the markers `address` of pyproject.toml, mkdocs.yml and README.md. Before the
first publication there is none.
"""

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
    r"(?<=address -->\n).*?(?=<!-- /address)|(?<=# address\n).*?(?=# /address)", re.S
)


def write(address: str, root: Path = ROOT) -> None:
    if not re.fullmatch(r"https://[\w.-]+/[\w.-]+/[\w-]+", address):
        raise ValueError(f"the address must look like https://HOST/OWNER/NAME, got {address!r}")
    for name, template in TEMPLATES.items():
        path = root / name
        path.write_text(MARKED.sub(template.format(address), path.read_text(), count=1))


if __name__ == "__main__":
    write(sys.argv[1])
