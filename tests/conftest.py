"""Shared set-up: small tensors run fastest on one thread, and hypothesis must not time us."""

import signal

import pytest
import torch
from hypothesis import settings

settings.register_profile("kmixup", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("kmixup")

# A shell starts background jobs deaf to Ctrl-C, and so would be the processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REFUSAL = pytest.StashKey[str]()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Before the first product, make bf16 safe for the tests that compute in it."""
    if any("bf16" in getattr(item, "fixturenames", ()) for item in session.items):
        from kmixup.lab.train import precision

        try:
            precision.check("bf16", "cpu")
        except ValueError as error:
            session.config.stash[REFUSAL] = str(error)


@pytest.fixture
def bf16(request: pytest.FixtureRequest) -> None:
    """For tests that compute in bf16, which not every CPU survives."""
    if refusal := request.config.stash.get(REFUSAL, ""):
        pytest.skip(refusal)
