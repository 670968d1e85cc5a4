"""Set-up of the tests against other frameworks."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from torchvision_operators import define_missing

os.environ.setdefault("KERAS_BACKEND", "torch")  # read once, when keras is imported
define_missing()


def pytest_configure(config: pytest.Config) -> None:
    """What the frameworks deprecate among themselves is not our fault; what we use is."""
    for category in ("DeprecationWarning", "FutureWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::{category}")
        config.addinivalue_line("filterwarnings", f"error::{category}:kmixup")
