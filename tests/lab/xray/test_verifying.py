"""The check of the advice: paired trials on validation samples, and what is said of them."""

from dataclasses import replace

import pytest
from sweeping import done_row, failed_row

from kmixup.inspection import Advice
from kmixup.lab.sweep.estimate import TimeEstimate
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.xray import verifying
from kmixup.lab.xray.verifying import ADVICE, ERM, MIXUP, VALIDATION, methods_of, verify

BASE = Trial("iris", "mlp-iris", Method("erm"), Protocol(epochs=100, batch_size=32), seed=3)
ADVISED = Advice(16, 4.0, ("", ""), "")


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(verifying, "estimate", lambda trials: TimeEstimate(10, 10))


def check(error, advice=ADVISED, base=BASE, samples=100):
    """Verify without training; `error(trial)` is None for a trial that fails."""
    asked = []

    def run(trials):
        asked.extend(trials)
        errors = map(error, trials)
        return [
            failed_row(trial) if value is None else done_row(trial, value)
            for trial, value in zip(trials, errors, strict=True)
        ]

    return verify(base, advice, 1.0, run, samples=samples), asked


def of_k(**by_name):
    def error(trial):
        return by_name[trial.method.name] + trial.seed % 3 / 1000 * trial.method.k

    return error


def test_trials_are_paired_and_never_see_the_test_part():
    verified, asked = check(of_k(erm=0.1, mixup=0.1, kmixup=0.1))
    assert {trial.validation for trial in asked} == {VALIDATION}
    assert {trial.split for trial in asked} == {3}
    by_method = {}
    for trial in asked:
        by_method.setdefault(trial.method, []).append(trial.seed)
    assert len(by_method) == 3
    assert {tuple(seeds) for seeds in by_method.values()} == {(3, 4, 5, 6, 7, 8)}
    assert {trial.method.pairing for trial in asked if trial.method.entry.mixes} == {"batch"}
    assert "the test part was not touched" in verified.notes


def test_the_table_has_paired_differences():
    verified, _ = check(of_k(erm=0.10, mixup=0.08, kmixup=0.05))
    assert verified.difference(ADVICE, ERM).mean == pytest.approx(-3.5)
    erm, mixup, advice = verified.table.rows
    assert (erm[0], erm[2], erm[3]) == ("ERM", "–", "–")
    assert mixup[0] == "mixup: alpha = 1"
    assert advice[0] == "the advice: k = 16, alpha = 4"
    assert advice[2].startswith("−3.50 [")


@pytest.mark.parametrize(
    ("errors", "sentence"),
    [
        ((0.10, 0.08, 0.05), "Mixing helps here: the advice is better than ERM"),
        ((0.10, 0.20, 0.15), "Do not follow it blindly: the advice is worse than ERM"),
        ((0.10, 0.10, 0.085), "No difference can be told between the advice and ERM"),
    ],
)
def test_a_sentence_says_what_follows(errors, sentence):
    names = dict(zip(("erm", "mixup", "kmixup"), errors, strict=True))
    verified, _ = check(of_k(**names))
    assert verified.sentence.startswith(sentence)


def test_what_was_not_advised_is_not_trained():
    assert list(methods_of(replace(ADVISED, alpha=0.0), 1.0)) == [ERM, MIXUP]
    assert list(methods_of(replace(ADVISED, k=1, alpha=1.0), 1.0)) == [ERM, MIXUP]
    doubtful = replace(ADVISED, doubt="cannot tell with 60 samples")
    assert list(methods_of(doubtful, 1.0)) == [ERM, MIXUP]
    verified, _ = check(of_k(erm=0.1, mixup=0.2), replace(ADVISED, alpha=0.0))
    assert verified.sentence.startswith("Do not mix at random: mixup is worse than ERM")


def test_failed_trials_are_counted():
    verified, _ = check(lambda trial: None if trial.method.k == 16 else 0.1)
    assert "6 trials failed" in verified.notes
    assert verified.table.rows[2][1] == "failed"
    assert verified.sentence == "Nothing can be said: fewer than three paired trials ended well."


def test_a_long_training_is_shortened_and_that_is_said(monkeypatch):
    monkeypatch.setattr(verifying, "estimate", lambda trials: TimeEstimate(1800, 100))
    verified, asked = check(of_k(erm=0.1, mixup=0.1, kmixup=0.1))
    assert {(trial.protocol.epochs, trial.limit) for trial in asked} == {(10, None)}
    assert "Trained for 10 of 100 epochs, to end in a few minutes" in verified.notes
    monkeypatch.setattr(verifying, "estimate", lambda trials: TimeEstimate(36_000, 100))
    verified, asked = check(of_k(erm=0.1, mixup=0.1, kmixup=0.1), samples=60_000)
    assert {(trial.protocol.epochs, trial.limit) for trial in asked} == {(5, 6000)}
    assert "Trained for 5 of 100 epochs on 6,000 of 60,000 training samples" in verified.notes
