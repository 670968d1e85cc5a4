"""Turns: who is called how often, and what is made of the times."""

import pytest

from kmixup.lab.timing import Timings, interleaved


def test_contenders_alternate_for_as_many_turns_as_asked():
    calls = []
    timed = interleaved(
        {name: lambda name=name: calls.append(name) for name in "ab"}, seconds=0, least=4
    )
    changes = [name for i, name in enumerate(calls) if i == 0 or calls[i - 1] != name]
    assert "".join(changes) == "ab" * 6  # two rounds to warm up
    assert [len(turns) for turns in timed.turns.values()] == [4, 4]


def test_a_ratio_is_the_median_within_turns_and_a_time_the_best():
    timed = Timings({"a": [1.0, 2.0, 9.0], "b": [1.0, 1.0, 3.0]})
    assert timed.best("a") == 1.0
    assert timed.ratio("a", "b") == pytest.approx(2.0)
