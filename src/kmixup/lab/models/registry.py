"""The networks of the paper, and two small ones for CPUs, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kmixup.lab.models import densenet, lenet, mlp, preact_resnet, wide_resnet
from kmixup.lab.models.network import Network

MODELS: Mapping[str, Network] = MappingProxyType(
    mlp.NETWORKS
    | lenet.NETWORKS
    | preact_resnet.NETWORKS
    | densenet.NETWORKS
    | wide_resnet.NETWORKS
)
