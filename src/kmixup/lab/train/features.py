"""Features that samples are matched on: principal components, or what a network sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from kmixup._networks import evaluating
from kmixup.lab.data import Dataset
from kmixup.lab.methods import MatchOn

BATCH = 512
DECAY = 0.99  # per step, of the moving average of weights


class FeatureTable:
    """Features of all training samples `(n, d)`, not augmented, looked up by row."""

    def __init__(self, on: MatchOn, data: Dataset, net: nn.Module) -> None:
        self.on, self.data, self.net = on, data, net
        self.average: AveragedModel | None = None
        self.rows = torch.empty(0)
        if on.kind == "ema":
            average = get_ema_multi_avg_fn(DECAY)
            self.average = AveragedModel(net, multi_avg_fn=average, use_buffers=True)
        elif on.kind != "network":
            self.rows = principal_components(self._inputs(), on.number)

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self.rows.index_select(0, rows.to(self.rows.device))

    def refresh(self, epoch: int) -> None:
        """Recompute the network's features if they are due in an epoch, counted from 0."""
        if self.on.kind in ("network", "ema") and epoch % self.on.number == 0:
            net = self.net if self.average is None else self.average.module
            self.rows = penultimate(net, self._inputs())

    def update_average(self) -> None:
        """Move the average towards the weights, after each step."""
        if self.average is not None:
            self.average.update_parameters(self.net)

    def _inputs(self) -> Tensor:
        return self.data.normalise(self.data.x_train)

    def state_dict(self) -> dict[str, Any]:
        average = {} if self.average is None else self.average.state_dict()
        return {"rows": self.rows, "average": average}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rows = state["rows"].to(self.data.x_train.device)
        if self.average is not None:
            self.average.load_state_dict(state["average"])


def principal_components(x: Tensor, number: int) -> Tensor:
    """Return the first principal components of samples `(n, ...)`, at most as many as there are."""
    from sklearn.decomposition import PCA

    rows = x.flatten(1).cpu().double().numpy()
    n, d = rows.shape
    solver = "covariance_eigh" if n > d else "full"  # the faster of the two deterministic ones
    scores = PCA(min(number, n - 1, d), svd_solver=solver).fit_transform(rows)
    return torch.from_numpy(scores).to(x.device, torch.float32)


def penultimate(net: nn.Module, x: Tensor) -> Tensor:
    """Return the inputs of a network's last layer, in eval mode: `(n, ...)` to `(n, d)`."""
    last = [layer for layer in net.modules() if not list(layer.children())][-1]
    calls: list[tuple[Tensor, Tensor]] = []  # inputs and output of the last layer
    handle = last.register_forward_hook(
        lambda layer, inputs, output: calls.append((inputs[0].flatten(1), output))
    )
    with handle, evaluating(net), torch.no_grad():
        outputs = [net(batch) for batch in torch.split(x, BATCH)]
    if [id(output) for output in outputs] != [id(output) for _, output in calls]:
        raise ValueError(
            "match_on needs a network that ends in its last layer, got "
            f"{type(net).__name__}, whose last module is {type(last).__name__}: define the layer "
            "that gives the outputs last"
        )
    return torch.cat([features for features, _ in calls])
