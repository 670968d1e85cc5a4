"""Images for the tests of training."""

import pytest
import torch

from kmixup.lab.data.dataset import Dataset


@pytest.fixture(scope="session")
def photos():
    """Images of two classes, dark and bright, in uint8."""
    y = torch.arange(120) % 2
    noise = torch.randint(40, (120, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    x = (60 + 120 * y[:, None, None, None] + noise).to(torch.uint8)
    middle = torch.full((3, 1, 1), 127.5)
    return Dataset(
        "photos", x[:72], y[:72], x[72:], y[72:], ("dark", "bright"), middle, middle,
        "symmetric", pixel_range=(0.0, 255.0),
    )  # fmt: skip
