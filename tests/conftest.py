"""Shared set-up: small tensors run fastest on one thread, and hypothesis must not time us."""

import os
import signal
import subprocess
import sys

import pytest
import torch
from hypothesis import settings

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray listens on loopback only

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
    """Before the first product, try bf16 in a process of its own, which may die of it."""
    if any("bf16" in getattr(item, "fixturenames", ()) for item in session.items):
        product = "torch.nn.Linear(64, 64).bfloat16()(torch.ones(64, 64).bfloat16())"
        tried = subprocess.run([sys.executable, "-c", f"import torch; {product}"])
        if tried.returncode:
            session.config.stash[REFUSAL] = f"bf16 ends with exit code {tried.returncode}"


@pytest.fixture
def bf16(request: pytest.FixtureRequest) -> None:
    """For tests that compute in bf16, which not every CPU survives."""
    if refusal := request.config.stash.get(REFUSAL, ""):
        pytest.skip(refusal)
