"""The command in an empty folder, engines without processes, and data with a sealed test set."""

import sys

import pytest
import torch
from sealing import Sealed, own
from sweeping import Inline

from kmixup.lab.commands import options
from kmixup.lab.data import loading
from kmixup.lab.data.dataset import Samples
from kmixup.lab.experiments import engines
from kmixup_command import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with no data at hand but what needs no download."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONSAFEPATH", "")  # which the command sets for its workers
    monkeypatch.setattr("warnings.showwarning", None)
    return tmp_path


@pytest.fixture
def kmixup(here, monkeypatch, capsys):
    """The command in this process: exit code, standard output and standard error."""

    monkeypatch.setattr(options, "PATIENCE", 600.0)  # no status lines on a slow machine

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["kmixup", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return left.value.code, printed.out, printed.err

    return run


@pytest.fixture
def sealed(tmp_path, monkeypatch):
    """A data set of one's own with a sealed test set."""
    path = tmp_path / "own.npz"
    x, y = torch.randn(60, 3), torch.arange(60) % 2
    own(path, shift=0.0)
    x_test, y_test = (part.clone().as_subclass(Sealed) for part in (x, y))
    monkeypatch.setattr(
        loading, "read_own", lambda *a, **kw: Samples(x, y, ("a", "b"), x_test, y_test)
    )
    monkeypatch.setattr(Sealed, "opened", False)
    return str(path)


@pytest.fixture
def engine(monkeypatch):
    """Run units in this process, or on another engine that the test calls this with."""

    def use(engine):
        monkeypatch.setattr(engines, "Local", lambda *workers: engine)

    use(Inline())
    return use
