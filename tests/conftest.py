"""Shared set-up: small tensors run fastest on one thread, and hypothesis must not time us."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("kmixup", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("kmixup")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
