"""`kmixup sweep` as its users meet it: what it prints, and one sentence for each mistake."""

import json
import re
import sys

import pytest
from sweeping import Fake

from kmixup.lab.experiments.rows import NAME, Done, Failed, Store, read

GRID = """
data = "iris"
method = ["erm", "mixup"]
alpha = [0.5, 1]
trials = 2
[protocol]
epochs = 2
"""


@pytest.fixture
def grid(here, engine):
    """Write a grid, whose units run in this process."""

    def write(text=GRID):
        (here / "grid.toml").write_text(text)
        return here / "out" / "grid"

    return write


def ending(out, folder="out/grid"):
    """What is printed after the tables, but for the path of the page."""
    *_, summary, page = out.splitlines(keepends=True)
    assert page == f"page: {folder}/report.html\n"
    return summary


# what it prints


def test_a_sweep_ends_with_its_summary_and_the_next_has_nothing_to_do(kmixup, grid):
    folder = grid()
    code, out, err = kmixup("sweep", "grid.toml")
    assert (code, ending(out)) == (0, "6 trials, 6 of them run now: out/grid\n")
    assert re.fullmatch(
        r"6 of 6 trials, 0 s left; last: iris mixup alpha=1 \d+\.\d\d%\ndrawing the page …\n",
        err,
    )
    assert len(read(folder)) == 6
    code, out, err = kmixup("sweep", "grid.toml")
    assert (code, ending(out)) == (0, "6 trials, 0 of them run now: out/grid\n")
    assert err == "6 of 6 trials done before\ndrawing the page …\n"


def test_the_folder_can_be_chosen_and_the_progress_left_out(kmixup, grid):
    grid('data = "iris"\nmethod = "erm"\nprotocol.epochs = 1\n')
    code, out, err = kmixup("sweep", "grid.toml", "--out", "mine", "--quiet")
    assert (code, ending(out, "mine"), err) == (0, "1 trial, 1 of them run now: mine\n", "")


def test_what_has_ended_so_far_is_reported_without_any_training(kmixup, grid):
    folder = grid('data = "iris"\nmethod = "erm"\ntrials = 2\nprotocol.epochs = 1\n')
    kmixup("sweep", "grid.toml", "--quiet")
    grid('data = "iris"\nmethod = "erm"\ntrials = 3\nprotocol.epochs = 1\n')
    rows = (folder / "rows.jsonl").read_bytes()
    with Store(folder):  # as if another process were at it
        code, out, _ = kmixup("sweep", "grid.toml", "--so-far")
    assert (code, ending(out)) == (0, "2 trials, 0 of them run now: out/grid\n")
    assert (folder / "rows.jsonl").read_bytes() == rows
    report = (folder / "report.md").read_text()
    assert "2 trials finished, 0 failed;" in report
    assert "```\nkmixup sweep grid.toml\n```" in report  # which trains the third


def test_without_any_row_there_is_nothing_to_report_so_far(kmixup, grid):
    grid('data = "iris"\nmethod = "erm"\nprotocol.epochs = 1\n')
    code, _, err = kmixup("sweep", "grid.toml", "--so-far")
    assert code == 2
    assert "out/grid must be the folder of a sweep, it has no rows.jsonl" in err
    kmixup("sweep", "grid.toml", "--quiet")
    grid('data = "iris"\nmethod = "mixup"\nprotocol.epochs = 1\n')
    code, _, err = kmixup("sweep", "grid.toml", "--so-far")
    assert code == 2
    assert "--out must hold rows of these trials, out/grid has none: run them without" in err


@pytest.mark.parametrize(
    ("words", "total"),
    [
        ("sweep grid.toml", "12 trials"),
        ("compare iris --epochs 1 --trials 2", "up to 30 networks"),
        (
            "tune iris --k 1 --k 2 --k 4 --budget 29 --epochs 2",
            "about 24 trials, depending on the search",
        ),
    ],
)
def test_a_dry_run_prints_an_estimate_and_writes_nothing(kmixup, grid, here, words, total):
    grid(GRID + "batch_size = [32, 64]\n")
    code, out, err = kmixup(*words.split(), "--dry-run")
    assert (code, err) == (0, "")
    first, time = out.splitlines()
    assert first == total
    assert re.fullmatch(
        r"about [\d.]+ (s|min) on 1 worker \(from a few steps on this machine\)", time
    )
    assert not (here / "out").exists()


def test_a_dry_run_without_the_data_says_how_to_get_them(kmixup, grid):
    grid('data = "mnist"\n')
    code, out, _ = kmixup("sweep", "grid.toml", "--dry-run")
    assert code == 0
    assert out.startswith("1 trial\nno time estimate for some trials: FileNotFoundError: ")
    assert "mnist needs train-images-idx3-ubyte.gz" in out


def test_failed_trials_are_counted_by_their_reason(kmixup, grid):
    text = GRID.replace("mixup", "kmixup").replace("[0.5, 1]", "1\nk = [1, 120]")
    folder = grid(text + "batch_size = 128\n")
    code, out, err = kmixup("sweep", "grid.toml", "--quiet")
    assert (code, ending(out)) == (1, "6 trials, 6 of them run now: out/grid\n")
    assert err == (
        "2 trials failed:\n"
        "  2 × SettingError: k must be lower: 120 needs 120 training samples with pairing "
        "'loaders', iris has 100\n"
        "rerun the failed trials with:\n  kmixup sweep grid.toml --quiet\n"
    )
    statuses = {(row.trial.method.k, type(row)) for row in read(folder)}
    assert statuses == {(1, Done), (120, Failed)}
    code, out, _ = kmixup("sweep", "grid.toml", "--quiet")
    assert (code, ending(out)) == (1, "6 trials, 2 of them run now: out/grid\n")


def test_a_network_that_diverges_or_raises_stops_no_other(kmixup, grid, here):
    (here / "bad_nets.py").write_text(
        "def raises(*, in_shape, num_classes):\n    raise KeyError('weights')\n"
    )
    grid(
        'data = "iris"\nmethod = "erm"\nmodel = ["mlp-iris", "bad_nets:raises"]\n'
        "[protocol]\nepochs = 2\nrate = [0.01, 1e30]\n"
    )
    code, out, err = kmixup("sweep", "grid.toml", "--quiet")
    assert (code, ending(out)) == (1, "4 trials, 4 of them run now: out/grid\n")
    assert "3 trials failed" in err
    assert "  1 × DivergedError: the loss became NaN or infinite in epoch " in err
    assert "  2 × KeyError: 'weights'\n" in err
    (here / "bad_nets.py").write_text(
        "from torch import nn\n"
        "def raises(*, in_shape, num_classes):\n    return nn.Linear(*in_shape, num_classes)\n"
    )
    sys.modules.pop("bad_nets")
    code, out, err = kmixup("sweep", "grid.toml", "--quiet")
    assert (code, ending(out)) == (1, "4 trials, 3 of them run now: out/grid\n")
    assert "2 trials failed" in err
    sys.modules.pop("bad_nets")


OWN_ENGINE = """
from contextlib import nullcontext
from kmixup.lab.experiments.units import run

class Here:
    workers = 1
    def __init__(self, execution):
        self.execution = execution
    def kept(self):
        return nullcontext(self)
    def rows(self, units, *, device, running):
        for unit in units:
            yield run(unit, device=device, running=running)

def none(execution):
    return None
"""


def test_an_engine_of_your_own_runs_the_trials(kmixup, here, monkeypatch):
    (here / "grid.toml").write_text('data = "iris"\nmethod = "erm"\nprotocol.epochs = 1\n')
    (here / "own_engine.py").write_text(OWN_ENGINE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    code, out, _ = kmixup("sweep", "grid.toml", "--engine", "own_engine:Here")
    assert (code, ending(out)) == (0, "1 trial, 1 of them run now: out/grid\n")
    code, _, err = kmixup("sweep", "grid.toml", "--engine", "own_engine:none")
    assert code == 2
    assert "engine 'own_engine:none' must return an engine with workers, rows and kept" in err


# mistakes


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (None, "none.toml", "there is no grid 'none.toml'"),
        ("data = ", "grid.toml", "grid.toml must be TOML"),
        ('data = "iris"\nks = 4', "grid.toml", "ks is not a setting: those of a grid are data,"),
        ('data = "iris"\n[protocol]\nlr = 1', "grid.toml", "protocol.lr is not a setting"),
        ('data = "iris"\nk = 200', "grid.toml", "batch_size must be at least 200 for k = 200"),
        ("data = 5", "grid.toml", "data must be a string or a list of strings, got 5"),
        ('data = "iris"\nmodel = 5', "grid.toml", "model must be a string or a list of strings"),
        (GRID, "grid.toml --num-cpus 2", "--num-cpus is not an option of the local engine"),
        (GRID, "grid.toml --address auto", "--address is not an option of the local engine"),
        (
            GRID,
            "grid.toml --engine ray --workers 2",
            "--workers is not an option of the ray engine",
        ),
        (
            GRID,
            "grid.toml --engine dask",
            "--engine must be a known name or package.module:name, got 'dask'",
        ),
        (GRID, "grid.toml --engine ray --num-cpus -1", "--num-cpus must be 0 or more, got -1.0"),
        (GRID, "grid.toml --out grid.toml", "out must be a folder, grid.toml is a file"),
        (GRID, "grid.toml --out grid.toml/x", "grid.toml/x cannot be written to (Not a directory)"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(kmixup, grid, text, words, message):
    if text is not None:
        grid(text)
    code, out, err = kmixup("sweep", *words.split())
    assert (code, out) == (2, "")
    assert err.startswith("kmixup: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.fixture
def swept(kmixup, grid):
    folder = grid()
    assert kmixup("sweep", "grid.toml", "--quiet")[0] == 0
    return folder / NAME


@pytest.mark.filterwarnings("always:.*is damaged and moved")
def test_a_damaged_line_is_moved_and_run_again_and_a_torn_one_too(kmixup, swept):
    lines = swept.read_text().splitlines(keepends=True)
    swept.write_text("".join(lines)[:-100])
    code, out, _ = kmixup("sweep", "grid.toml", "--quiet")
    assert (code, ending(out)) == (0, "6 trials, 1 of them run now: out/grid\n")
    again = swept.read_text().splitlines(keepends=True)
    assert again[:-1] == lines[:-1]
    assert json.loads(again[-1])["result"] == json.loads(lines[-1])["result"]

    swept.write_text("".join([*lines[:3], lines[3][:50] + "\n", *lines[4:]]))
    moved = "line 4 of out/grid/rows.jsonl is damaged and moved to out/grid/rows.damaged"
    code, _, err = kmixup("sweep", "grid.toml")
    assert code == 0
    assert moved in err
    assert sorted(swept.read_text().splitlines()[1:3]) == sorted(map(str.strip, lines[1:3]))
    assert len(read(swept.parent)) == 6


def test_rows_are_checked_and_repaired_on_request(kmixup, swept):
    assert kmixup("repair", "out/grid") == (0, "no damaged lines\n6 trials in out/grid\n", "")
    swept.write_text(swept.read_text().replace('"seed":1', '"seed":2', 1))
    code, out, err = kmixup("repair", "out/grid")
    assert (code, err) == (0, "")
    assert out.startswith("line ")
    assert out.endswith(" is damaged and moved to out/grid/rows.damaged\n5 trials in out/grid\n")
    code, _, err = kmixup("repair", "nowhere")
    assert (code, err) == (
        2, "kmixup: nowhere must be the folder of a sweep, it has no rows.jsonl\n"
    )  # fmt: skip


def test_ctrl_c_prints_how_to_resume(kmixup, grid, engine):
    grid()

    class Stopped(Fake):
        def rows(self, units, **more):
            raise KeyboardInterrupt
            yield

    engine(Stopped())
    code, out, err = kmixup("sweep", "grid.toml", "--workers", 2)
    assert (code, out) == (130, "")
    resume = "kmixup sweep grid.toml --workers 2"
    assert err == f"stopped; finished trials are in out/grid, resume with\n  {resume}\n"
