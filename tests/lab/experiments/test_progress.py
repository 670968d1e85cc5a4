"""Progress of a sweep: a bar on a terminal, elsewhere a line now and then."""

import sys

import pytest
from sweeping import Fake

from kmixup.lab.experiments import driver as watching
from kmixup.lab.experiments.driver import Watch
from kmixup.lab.experiments.grid import expand


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when told to."""
    now = [100.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    return now


def test_lines_come_now_and_then_with_time_left_and_last_result(clock, capsys):
    short = expand(data="iris", trials=4, protocol={"epochs": 10})
    long = expand(data="iris", trials=2, protocol={"epochs": 100})
    rows = [Fake(failing={3}).row(trial) for trial in short + long]
    with Watch() as watch:
        watch.started([*short, *long], short[1:] + long)
        assert capsys.readouterr().err == "1 of 6 trials done before\n"
        clock[0] += 20
        watch.ended(rows[1:2])
        assert capsys.readouterr().err == ""  # too soon after the start
        clock[0] += 20
        watch.ended(rows[2:3])
        # 20 of 230 epochs in 40 seconds
        assert capsys.readouterr().err == (
            "2 of 5 trials, 7 min left; last: iris kmixup k=16 alpha=0.2 2.00%\n"
        )
        clock[0] += 40
        watch.ended(rows[3:5])
        assert capsys.readouterr().err == (
            "4 of 5 trials, 62 s left, 1 failed; last: iris kmixup k=16 alpha=0.2 0.00%\n"
        )
        clock[0] += 1
        watch.ended([Fake(failing={1}).row(long[1])])
    assert capsys.readouterr().err == (
        "5 of 5 trials, 0 s left, 2 failed; last: iris kmixup k=16 alpha=0.2 ValueError: seed 1\n"
    )


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    trials = expand(data="iris", trials=2)
    with Watch() as watch:
        watch.started(trials, trials)
        assert watch._bar.tasks[0].fields["state"] == "training, 0 of 2 trials ended"
        for trial in trials:
            watch.ended([Fake().row(trial)])
    shown = capsys.readouterr().err
    assert "━━" in shown
    assert "2 of 2 trials" in shown
    assert "0 s left; last: iris kmixup k=16 alpha=0.2 1.00%" in shown
