"""Tests see no data files but in tests marked `data`, and frameworks only on request."""

import os
import tempfile
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


def pytest_configure(config: pytest.Config) -> None:
    """Hide the user's data and cache, also from workers and the processes that tests start."""
    if hidden := os.environ.pop("KMIXUP_DATA", None):
        os.environ["KMIXUP_TEST_DATA"] = str(Path(hidden).resolve())
    if not hasattr(config, "workerinput"):  # workers of pytest-xdist inherit it
        cache = tempfile.TemporaryDirectory(prefix="kmixup-tests-", ignore_cleanup_errors=True)
        config.add_cleanup(cache.cleanup)
        os.environ["XDG_CACHE_HOME"] = cache.name


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("data") and "KMIXUP_TEST_DATA" not in os.environ:
        pytest.skip("KMIXUP_DATA is not set: it names the folder of the data files")


@pytest.fixture(autouse=True)
def _data(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("data"):
        monkeypatch.setenv("KMIXUP_DATA", os.environ["KMIXUP_TEST_DATA"])
