"""skorch networks that train on mixed batches."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from skorch.helper import SliceDict
from torch import nn

from kmixup import KMixup
from kmixup.integrations.skorch import MixedNetClassifier, MixedNetRegressor

X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_net_takes_any_module_and_inputs_in_a_search_for_k(alpha):
    class Both(nn.Module):
        def __init__(self, width=4):
            super().__init__()
            self.image, self.number = nn.LazyLinear(width), nn.LazyLinear(width)
            self.last = nn.Linear(width, 3)

        def forward(self, image, number):
            return self.last(self.image(image.flatten(1)) + self.number(number))

    images = np.random.default_rng(0).normal(size=(150, 1, 3, 3)).astype(np.float32)
    inputs = SliceDict(image=images, number=X.astype(np.float32))
    net = MixedNetClassifier(
        Both,
        criterion=nn.CrossEntropyLoss,
        criterion__reduction="none",
        optimizer=torch.optim.Adam,
        lr=0.02,
        max_epochs=30,
        verbose=0,
        mixer__alpha=alpha,
        mixer__lam_per="sample",
    )
    grid = {"mixer__k": [1, 8], "module__width": [8]}
    search = GridSearchCV(net, grid, cv=3, scoring="accuracy").fit(inputs, y)
    assert search.best_estimator_.mixer_.k == search.best_params_["mixer__k"]
    assert search.best_score_ > 0.8


def test_a_net_trains_on_the_loss_of_both_targets_and_validates_on_clean_batches():
    seen = []

    class Recording(KMixup):
        def mix(self, *batch):
            seen.append(super().mix(*batch))
            return seen[-1]

    net = MixedNetRegressor(
        nn.Linear(4, 1), max_epochs=2, batch_size=60, verbose=0, mixer=Recording
    )
    net.fit(X.astype(np.float32), y[:, None].astype(np.float32))
    assert len(seen) == 4  # of 120 rows that train
    assert not net.mixer_.training
    assert np.isfinite(net.history[:, "valid_loss"]).all()
