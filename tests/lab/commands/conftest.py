"""Engines without processes, for commands that run many trials."""

import pytest
from sweeping import Inline

from kmixup.lab.experiments import engines


@pytest.fixture
def engine(monkeypatch):
    """Run units in this process, or on another engine that the test calls this with."""

    def use(engine):
        monkeypatch.setattr(engines, "Local", lambda *workers: engine)

    use(Inline())
    return use
