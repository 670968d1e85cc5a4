"""The command's words for what the library says of its arguments."""

import pytest
import typer

from kmixup.lab.commands import app
from kmixup.lab.commands.language import in_options, options_of

COMMAND = typer.main.get_command(app)
TRAIN = options_of(COMMAND, ["train", "--data", "iris"])


def test_options_are_those_of_the_command_that_was_typed():
    assert TRAIN["batch_size"] == "--batch-size"
    assert TRAIN["augment"] == "--augment"
    assert "k" not in options_of(COMMAND, ["sweep", "grid.toml"])
    assert options_of(COMMAND, ["data", "fetch", "mnist", "--into", "x"])["into"] == "--into"
    assert "name" not in options_of(COMMAND, ["data", "fetch", "mnist"])  # has no dashes
    assert options_of(COMMAND, ["--version"]) == {"version": "--version"}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("k must be at least 1", "--k must be at least 1"),
        ("k=4 needs 4 samples: lower k", "--k 4 needs 4 samples: lower k"),
        ("at the rate 0.1: set rate=0.01, or", "at the rate 0.1: set --rate 0.01, or"),
        ("the data, the seed and the rate stay", "the data, the seed and the rate stay"),
        ("choose target='a b' or target=\"c\".", "choose --target 'a b' or --target c."),
        ("a rank of the batch_size_of", "a rank of the batch_size_of"),
        ("pass out=..., resume=True.", "pass --out, --resume."),
        ("write KMixup(k=4), not nets.k=4", "write KMixup(k=4), not nets.k=4"),
        ("run/out=1/k=2.csv holds", "run/out=1/k=2.csv holds"),
        ("out/run must be a folder", "out/run must be a folder"),
        ("workers must be at least 1", "workers must be at least 1"),  # no option of train
    ],
)
def test_arguments_become_options_where_they_are_meant(sentence, expected):
    assert in_options(sentence, TRAIN) == expected
