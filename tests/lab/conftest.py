"""The command in an empty folder."""

import sys

import pytest

from kmixup.lab.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with no data at hand but what needs no download."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("KMIXUP_DATA", raising=False)
    monkeypatch.setattr("warnings.showwarning", None)
    return tmp_path


@pytest.fixture
def kmixup(here, monkeypatch, capsys):
    """The command in this process: exit code, standard output and standard error."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["kmixup", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return left.value.code, printed.out, printed.err

    return run
