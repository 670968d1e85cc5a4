"""Every method has as many settings to choose from."""

import pytest

from kmixup.lab.league.entrants import ALPHAS, BUDGETS, KS, make_entrants, settings_of
from kmixup.lab.train.config import Method
from kmixup.lab.train.methods import METHODS


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_but_plain_training_has_the_whole_budget(name, budget):
    settings = settings_of(name, budget)
    assert len(set(settings)) == len(settings) == (1 if name == "erm" else budget)
    assert [(m.k, m.alpha) for m in settings] == sorted((m.k, m.alpha) for m in settings)
    assert {method.name for method in settings} == {name}


def test_the_settings_are_those_of_the_protocol():
    def grid(name):
        settings = settings_of(name, 6)
        return sorted({m.k for m in settings}), sorted({m.alpha for m in settings})

    assert grid("mixup") == ([1], sorted(ALPHAS))
    assert grid("kmixup") == grid("nearest") == ([4, 16], [0.2, 1.0, 4.0])
    assert grid("manifold") == grid("regmixup") == ([1, 16], [0.2, 1.0, 4.0])
    assert grid("stackmix") == (sorted(KS), [1.0])
    assert settings_of("erm", 6) == (Method("erm"),)


@pytest.mark.parametrize(
    ("names", "budget", "message"),
    [
        (["erm"], 3, "settings must be 2, 4, 6, got 3"),
        (["erm", "mixmax"], 6, "methods must be among erm, mixup, .*, got 'mixmax'"),
    ],
)
def test_what_cannot_take_part_is_refused(names, budget, message):
    with pytest.raises(ValueError, match=message):
        make_entrants(names, budget)
