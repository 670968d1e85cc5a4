"""The tutorial's cells; `python docs/cells.py` writes them as a notebook beside it."""

import json
import re
from pathlib import Path

TUTORIAL = Path(__file__).parents[1] / "examples/tutorial.py"
NOTEBOOK = TUTORIAL.with_suffix(".ipynb")


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


def notebook(source: str) -> str:
    """The cells as a Jupyter notebook without output."""
    cells = [{"cell_type": "code", "source": "%matplotlib inline"}]
    for kind, body in cells_of(source):
        if kind == "text":
            # pages of the site are not beside the notebook
            cells.append({"cell_type": "markdown", "source": body.replace("](", "](../docs/")})
        else:
            shows = "\nfigure" if "figure = " in body else ""
            cells.append({"cell_type": "code", "source": body + shows})
    for cell in cells:
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell |= {"execution_count": None, "outputs": []}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(TUTORIAL.read_text()))
