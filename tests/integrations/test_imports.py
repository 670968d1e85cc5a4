"""Every framework that an integration is made for is there, beside the torch of the library."""

import importlib

import pytest
import torch

FRAMEWORKS = [
    "accelerate",
    "fastai.vision.all",
    "ignite",
    "keras",
    "lightning",
    "skorch",
    "timm",
    "torchmetrics",
    "torchvision.transforms.v2",
    "transformers",
]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_can_be_imported(name):
    importlib.import_module(name)
    assert torch.__version__.startswith("2.")
