"""The tests against other frameworks run on request: `make integrations`, or `--integrations`."""

from importlib.util import find_spec
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--integrations",
        action="store_true",
        help="collect kmixup.integrations and its tests too; the frameworks must be installed",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out every folder named integrations; None lets other rules decide."""
    inside = collection_path.relative_to(config.rootpath).parts
    if collection_path.name == "composer.py" and find_spec("composer") is None:
        return True  # Composer asks for an older torch
    return True if "integrations" in inside and not config.getoption("--integrations") else None
