"""Notebooks of the examples: `python docs/cells.py` writes them next to the scripts.

The tutorial becomes a notebook of its cells, and examples.ipynb runs every other example.
"""

import ast
import json
import re
from pathlib import Path

TUTORIAL = Path(__file__).parents[1] / "examples/tutorial.py"
EXAMPLES = TUTORIAL.parent / "examples.ipynb"


def cells_of(source: str) -> list[tuple[str, str]]:
    """Cells of a file in the percent format, each "text" or "code", without the docstring."""
    _, *parts = re.split(r"^# %%(.*)\n", source, flags=re.M)
    cells = []
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        if "markdown" in kind:
            cells.append(("text", re.sub(r"^# ?", "", body.strip(), flags=re.M)))
        else:
            cells.append(("code", body.strip()))
    return cells


def tutorial() -> str:
    """The tutorial's cells as a notebook without output."""
    cells = [("code", "%matplotlib inline")]
    for kind, body in cells_of(TUTORIAL.read_text()):
        shown = "\nfigure" if kind == "code" and "figure = " in body else ""
        # pages are in another folder
        cells.append((kind, body.replace("](", "](../docs/") if kind == "text" else body + shown))
    return notebook(cells)


def examples() -> str:
    """A notebook with a cell for every example, to be opened in the folder of the examples."""
    cells = [("text", "# Examples\n\nEach runs in under two minutes on two cores.")]
    for path in sorted(TUTORIAL.parent.glob("*.py")):
        if path.name != "own_lab.py":  # a module for the command line
            about = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
            ranks = path.name == "with_torchrun.py"
            run = "!torchrun --nproc-per-node 2" if ranks else "%run"
            cells += [("text", f"## {path.name}\n\n{about}"), ("code", f"{run} {path.name}")]
    return notebook(cells)


def notebook(cells: list[tuple[str, str]]) -> str:
    """Cells, each "text" or "code", as a Jupyter notebook."""
    kinds: dict[str, dict[str, object]] = {
        "text": {"cell_type": "markdown"},
        "code": {"cell_type": "code", "execution_count": None, "outputs": []},
    }
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": [kinds[kind] | {"source": body, "metadata": {}} for kind, body in cells],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    TUTORIAL.with_suffix(".ipynb").write_text(tutorial())
    EXAMPLES.write_text(examples())
