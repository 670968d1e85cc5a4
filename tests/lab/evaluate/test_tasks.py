"""What a network learns: losses, scores and words of classes and of numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score, root_mean_squared_error
from torch.nn.functional import cross_entropy

from kmixup.lab.data import Dataset, load
from kmixup.lab.evaluate.baseline import constant_sentence, figures
from kmixup.lab.evaluate.scores import NumberScores, Scores, score_classes, score_numbers
from kmixup.lab.evaluate.tasks import Classes, Regression, objective_of


def drawn(n=60, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, classes, generator=generator)
    return logits, torch.randint(classes, (n,), generator=generator)


def numbers(y_train=(10.0, 20.0, 60.0)):
    """A regression with these training targets, standardised."""
    y = torch.tensor(y_train)
    mean, std = float(y.mean()), float(y.std(correction=0))
    y = (y - mean) / std
    x = torch.zeros(len(y), 1)
    zero, one = torch.tensor(0.0), torch.tensor(1.0)
    return Dataset("rents", x, y, x, y, (), zero, one, "none", target_mean=mean, target_std=std)


# scores


def test_a_constant_answer_has_the_error_of_the_baseline_and_half_the_balanced_accuracy():
    y = (torch.arange(71) == 0).long()
    scores = score_classes(torch.tensor([[1.0, 0.0]]).expand(71, 2), y, majority=0)
    assert scores.error == scores.baseline == pytest.approx(1 / 71)
    assert (scores.balanced_accuracy, scores.auc, scores.answers) == (0.5, 0.5, 1)


def test_the_area_under_the_curve_is_of_the_classes_that_occur():
    logits, y = drawn()
    present = y < 2
    scores = score_classes(logits[present], y[present], majority=0)
    assert 0 < scores.auc < 1
    same = score_classes(logits[y == 1], y[y == 1], majority=0)
    assert (same.auc, same.baseline) == (None, 1.0)


def test_scores_of_numbers_are_those_of_scikit_learn_in_the_targets_unit():
    generator = torch.Generator().manual_seed(0)
    y, guess = torch.randn(2, 50, generator=generator)
    scores = score_numbers(guess, y, deviation=7.0)
    own, told = 7 * y.double().numpy() + 3, 7 * guess.double().numpy() + 3
    assert scores.error == pytest.approx(root_mean_squared_error(own, told))
    assert scores.r2 == pytest.approx(r2_score(own, told))
    assert scores.baseline == pytest.approx(root_mean_squared_error(own, np.full(50, 3.0)))


def test_targets_that_do_not_differ_have_no_r2():
    assert score_numbers(torch.zeros(4), torch.ones(4), deviation=1.0).r2 is None


# objectives


def test_the_loss_of_numbers_is_the_mean_squared_error_of_standardised_targets():
    objective = objective_of(numbers())
    outputs, targets = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [4.0]])
    assert objective.loss(outputs, targets, 2) == 2.5
    weighted = objective.weigh(targets, torch.tensor([1.0, 0.5]))
    assert objective.loss(outputs, weighted, 2) == 1.5


def test_the_fit_of_numbers_is_the_share_of_their_squares_that_is_explained():
    objective = objective_of(numbers())
    y = objective.targets(numbers().y_train)
    met, whole = objective.fit(torch.zeros(3, 1), y)
    assert float(met) == pytest.approx(0, abs=1e-6)
    met, whole = objective.fit(y, y)
    assert float(met / whole) == 1


def test_the_error_of_numbers_is_in_their_own_unit():
    data = numbers()
    objective = objective_of(data)
    assert float(objective.error(torch.zeros(3, 1), data.y_test)) == pytest.approx(data.target_std)
    assert objective.scores(torch.zeros(3, 1), data.y_test).baseline == pytest.approx(
        data.target_std
    )


def test_losses_of_a_fleet_are_those_of_its_members():
    for objective, width in ((Classes(3, 0), 3), (Regression(2.0), 1)):
        outputs, targets = torch.rand(2, 4, 5, width)
        losses = objective.loss(outputs, targets, 5)
        alone = [objective.loss(*pair, 5) for pair in zip(outputs, targets, strict=True)]
        assert torch.allclose(losses, torch.stack(alone))


def test_balanced_weights_give_every_class_the_same_say():
    data = load("cancer")
    weights = objective_of(data, "balanced").class_weights
    counts = data.y_train.bincount().float()
    assert torch.allclose(weights * counts, torch.full((2,), len(data.y_train) / 2))


def test_weighted_losses_are_those_of_torch():
    weights = torch.tensor([0.5, 2.0, 1.0])
    logits, y = drawn()
    soft = torch.nn.functional.one_hot(y, 3) * 0.7 + 0.1
    loss = Classes(3, 0, weights).loss(logits, soft * weights, len(y))
    expected = cross_entropy(logits, soft, weight=weights, reduction="sum") / len(y)
    assert loss == pytest.approx(float(expected))


def test_a_class_that_training_lacks_weighs_nothing():
    iris = load("iris")
    few = iris.y_train != 2
    data = replace(iris, x_train=iris.x_train[few], y_train=iris.y_train[few])
    weights = objective_of(data, "balanced").class_weights
    assert weights[2] == 0
    assert float((weights * data.y_train.bincount(minlength=3)).sum()) == pytest.approx(
        len(data.y_train)
    )


def test_a_regression_has_no_classes_to_weigh():
    with pytest.raises(ValueError, match="class_weights must not be given for a regression"):
        objective_of(numbers(), "balanced")


# words


def test_the_metrics_beside_the_error_have_their_titles():
    logits, y = drawn()
    shown = figures(score_classes(logits, y, majority=1))
    assert [text.rpartition(" ")[0] for text in shown] == [
        "log-loss", "calibration error", "Brier score", "balanced accuracy", "AUC",
    ]  # fmt: skip
    assert figures(NumberScores(5.0, 5.0, None)) == ["R² not defined"]


def test_a_network_that_always_predicts_one_class_is_noted():
    y = (torch.arange(71) == 0).long()
    scores = score_classes(torch.tensor([[1.0, 0.0]]).expand(71, 2), y, majority=0)
    assert constant_sentence([scores]) == (
        "Always predicting the majority class has the error 1.41%; the network is stuck on a "
        "single class. Try more epochs or another learning rate, or balanced class weights."
    )


def test_networks_that_are_no_better_than_the_constant_prediction_are_counted():
    worse = NumberScores(error=6.0, baseline=5.0, r2=-0.4)
    better = NumberScores(error=3.0, baseline=5.0, r2=0.6)
    nothing = "Try more epochs or another learning rate"
    assert constant_sentence([worse]).endswith(f"RMSE 5; the network is no better. {nothing}.")
    assert constant_sentence([worse, better]).endswith("; 1 of 2 networks are no better.")
    assert constant_sentence([better, better]).endswith("RMSE 5.")
    assert constant_sentence([]) == constant_sentence([Scores(0.1, 0.2, 0.3)]) == ""
