"""`kmixup sweep` as its users meet it: what it prints, and one sentence for each mistake."""

import errno
import json
import os
import re
import sys
from dataclasses import replace

import pytest
import torch
from sweeping import Fake, Inline

from kmixup.lab.experiments import driver as watching
from kmixup.lab.experiments import engines as command
from kmixup.lab.experiments import estimate as estimating
from kmixup.lab.experiments.driver import Watch
from kmixup.lab.experiments.estimate import TimeEstimate, estimate
from kmixup.lab.experiments.grid import expand
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
def grid(here, monkeypatch):
    """Write a grid, whose units run in this process."""
    monkeypatch.setattr(command, "Local", lambda *workers: Inline())

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
        r"6 of 6 trials, [\d,]+ a minute, 0 s left; last: iris mixup alpha=1 \d+\.\d\d%\n"
        "drawing the page …\n",
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


def test_a_dry_run_prints_cells_and_an_estimate_and_writes_nothing(kmixup, grid):
    folder = grid(GRID + "batch_size = [32, 64]\n")
    code, out, err = kmixup("sweep", "grid.toml", "--dry-run")
    assert (code, err) == (0, "")
    total, time, *cells = out.splitlines()
    assert total == "12 trials in 6 cells"
    assert re.fullmatch(
        r"about [\d.]+ (s|min) on 1 worker \(from a few steps on this machine\)", time
    )
    methods = ("erm", "mixup alpha=0.5", "mixup alpha=1")
    assert cells == [
        f"  iris  mlp-iris  {method}  batch_size={size}  × 2"
        for size in (32, 64)
        for method in methods
    ]
    assert not folder.exists()


def test_a_dry_run_lists_the_first_cells_only(kmixup, grid, monkeypatch):
    monkeypatch.setattr(estimating, "estimate", lambda trials: TimeEstimate(1, 1))
    alphas = ", ".join(str(i / 10) for i in range(1, 31))
    grid(f'data = "iris"\nmethod = "mixup"\nalpha = [{alphas}]\n')
    _, out, _ = kmixup("sweep", "grid.toml", "--dry-run")
    assert len(out.splitlines()) == 23
    assert out.endswith("  and 10 more cells\n")


def test_a_grid_sweeps_what_is_matched_on(kmixup, grid):
    grid(
        'data = "iris"\nmethod = ["mixup", "kmixup"]\nk = 4\nlabels = [0, 1]\n'
        'match_on = ["pixels", "pca"]\n[protocol]\nepochs = 1\n'
    )
    code, out, _ = kmixup("sweep", "grid.toml", "--dry-run")
    assert code == 0
    assert "5 trials in 5 cells" in out
    assert "kmixup k=4 alpha=1 with labels=1 matched on pca:50" in out


def test_a_dry_run_without_the_data_times_noise_and_says_so(kmixup, grid):
    grid('data = "mnist"\n')
    code, out, _ = kmixup("sweep", "grid.toml", "--dry-run")
    assert code == 0
    assert out.startswith("1 trial in 1 cell\n")
    assert out.endswith("  mnist  lenet  kmixup k=16 alpha=1  × 1\n")
    assert re.search(r"^about [\d.]+ (s|min|h) on 1 worker", out, re.MULTILINE)
    assert "mnist is not at hand: timed on noise of its shape" in out


def test_failed_trials_are_counted_by_their_reason(kmixup, grid):
    text = GRID.replace("mixup", "kmixup").replace("[0.5, 1]", "1\nk = [1, 120]")
    folder = grid(text + "batch_size = 128\n")
    code, out, err = kmixup("sweep", "grid.toml", "--quiet")
    assert (code, ending(out)) == (1, "6 trials, 6 of them run now: out/grid\n")
    assert err == (
        "2 trials failed, the same command tries them again:\n"
        "  2 × SettingError: k must be lower: 120 needs 120 training samples with pairing "
        "'loaders', iris has 100\n"
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


# mistakes


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (None, "none.toml", "there is no grid 'none.toml'"),
        ("data = ", "grid.toml", "grid.toml must be TOML"),
        (
            'datas = "iris"',
            "grid.toml",
            "datas in grid.toml is not a setting: those of a sweep are",
        ),
        ('data = "iris"\n[protocol]\nlr = 1', "grid.toml", "protocol.lr is not a setting"),
        ('data = "iris"\nk = 200', "grid.toml", "batch_size must be at least k = 200"),
        ('data = "irsi"', "grid.toml", "there is no data set or file 'irsi': did you mean iris"),
        ("data = 5", "grid.toml", "data must be a string or a list of strings, got 5"),
        ('data = "iris"\nmodel = 5', "grid.toml", "model must be a string or a list of strings"),
        (GRID, "grid.toml --engine slurm", "--engine must be one of local, ray, got 'slurm'"),
        (GRID, "grid.toml --address auto", "--address is not an option of the local engine"),
        (GRID, "grid.toml --num-gpus 1", "--num-gpus is not an option of the local engine"),
        (
            GRID,
            "grid.toml --engine ray --workers 2",
            "--workers is not an option of the ray engine",
        ),
        (GRID, "grid.toml --engine ray --num-cpus -1", "--num-cpus must be 0 or more, got -1.0"),
        (GRID, "grid.toml --device tpu", "--device must be one of auto, cpu, cuda, mps, got 'tpu'"),
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


def test_rows_of_another_version_are_refused_and_left_alone(kmixup, swept):
    other = swept.read_text().replace('"version":1', '"version":2')
    swept.write_text(other)
    code, _, err = kmixup("sweep", "grid.toml")
    assert code == 2
    assert err == (
        "kmixup: out/grid/rows.jsonl must hold rows of version 1, it holds version 2: choose "
        "another folder, or the kmixup that wrote it\n"
    )
    assert swept.read_text() == other


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
    assert kmixup("repair", "out/grid") == (0, "no line is damaged\n6 trials in out/grid\n", "")
    swept.write_text(swept.read_text().replace('"seed":1', '"seed":2', 1))
    code, out, err = kmixup("repair", "out/grid")
    assert (code, err) == (0, "")
    assert out.startswith("line ")
    assert out.endswith(" is damaged and moved to out/grid/rows.damaged\n5 trials in out/grid\n")
    code, _, err = kmixup("repair", "nowhere")
    assert (code, err) == (
        2, "kmixup: nowhere must be the folder of a sweep, it has no rows.jsonl\n"
    )  # fmt: skip


def test_a_full_disk_is_one_sentence_and_the_sweep_goes_on_later(kmixup, swept, monkeypatch):
    lines = swept.read_text().splitlines(keepends=True)
    swept.write_text("".join(lines[:4]))

    def full(handle, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        code, out, err = kmixup("sweep", "grid.toml", "--quiet")
    assert (code, out) == (2, "")
    assert err == (
        "kmixup: the rows could not be written to out/grid/rows.jsonl (No space left on device): "
        "all earlier ones are safe; fix the disk and start again\n"
    )
    assert swept.read_text() == "".join(lines[:4])
    code, out, _ = kmixup("sweep", "grid.toml", "--quiet")
    assert (code, ending(out)) == (0, "6 trials, 3 of them run now: out/grid\n")


def test_ctrl_c_prints_how_to_resume(kmixup, grid, monkeypatch):
    grid()

    class Stopped(Fake):
        def rows(self, units, **more):
            raise KeyboardInterrupt
            yield

    monkeypatch.setattr(command, "Local", lambda *workers: Stopped())
    code, out, err = kmixup("sweep", "grid.toml", "--workers", 2)
    assert (code, out) == (130, "")
    resume = "kmixup sweep grid.toml --workers 2"
    assert err == f"stopped; finished trials are in out/grid, resume with\n  {resume}\n"


# progress


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when told to."""
    now = [100.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    return now


def test_lines_come_now_and_then_with_rate_time_left_and_last_result(clock, capsys):
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
            "2 of 5 trials, 3 a minute, 7 min left; last: iris kmixup k=16 alpha=1 2.00%\n"
        )
        clock[0] += 40
        watch.ended(rows[3:5])
        assert capsys.readouterr().err == (
            "4 of 5 trials, 3 a minute, 62 s left, 1 failed; last: iris kmixup k=16 alpha=1 0.00%\n"
        )
        clock[0] += 1
        watch.ended([Fake(failing={1}).row(long[1])])
    assert capsys.readouterr().err == (
        "5 of 5 trials, 4 a minute, 0 s left, 2 failed; "
        "last: iris kmixup k=16 alpha=1 ValueError: seed 1\n"
    )


def test_quiet_is_quiet(clock, capsys):
    trials = expand(data="iris", trials=2)
    with Watch(quiet=True) as watch:
        watch.started(trials, trials[1:])
        watch.ended([Fake().row(trials[1])])
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    trials = expand(data="iris", trials=2)
    with Watch() as watch:
        watch.started(trials, trials)
        assert watch._bar.tasks[0].fields["state"] == (
            "training mlp-iris on iris, 0 of 2 trials ended"
        )
        for trial in trials:
            watch.ended([Fake().row(trial)])
    shown = capsys.readouterr().err
    assert "━━" in shown
    assert "2 of 2 trials" in shown
    assert "0 s left; last: iris kmixup k=16 alpha=1 1.00%" in shown


# estimates


def test_an_estimate_grows_with_the_work():
    def seconds(trials, epochs):
        grid = {"data": "iris", "method": "erm", "trials": trials}
        return estimate(expand(**grid, protocol={"epochs": epochs, "batch_size": 16}))

    few, many = seconds(2, 100), seconds(40, 100)
    assert 0 < few.longest <= few.seconds
    assert few.unknown == many.unknown == ()
    assert many.seconds > few.seconds
    assert many.on(1) == many.seconds > many.on(2)


def test_probes_are_short(monkeypatch):
    probed = []
    true_fleet = estimating.train_fleet

    def noting(trials, *, data):
        lengths = (len(data.x_train) for data in data)
        epochs = (trial.protocol.epochs for trial in trials)
        probed.extend(zip(epochs, lengths, strict=True))
        return true_fleet(trials, data=data)

    monkeypatch.setattr(estimating, "train_fleet", noting)
    estimate(expand(data="iris", method="erm", protocol={"epochs": 10**6, "batch_size": 16}))
    assert probed == [(1, 16), (1, 64)]


def test_data_that_are_not_at_hand_are_probed_with_noise(here):
    protocol = {"epochs": 1, "batch_size": 8}
    missing = expand(data=["mnist", "abalone", "iris"], method="erm", trials=2, protocol=protocol)
    expected = estimate(missing)
    assert expected.seconds > 0
    assert (expected.noise, expected.unknown) == (("abalone", "mnist"), ())
    small = [replace(trial, limit=100) for trial in missing if trial.data == "mnist"]
    assert estimate(small).seconds < expected.seconds
    held = [replace(trial, validation=0.5) for trial in small]
    assert estimate(held).noise == ("mnist",)


def test_an_estimate_knows_a_k_beyond_the_batch():
    trials = expand(
        data="iris", method="kmixup", k=32, memory=64, protocol={"epochs": 10, "batch_size": 8}
    )
    expected = estimate(trials)
    assert expected.unknown == ()
    assert expected.seconds > 0


def test_an_estimate_counts_tests_under_shifts_and_the_loading_of_data(monkeypatch):
    """Both were left out once: a run that took three minutes was announced with 15 seconds."""
    protocol = {"epochs": 1, "batch_size": 4}
    plain = expand(data="mnist", method="erm", limit=8, protocol=protocol)
    attacked = [replace(trial, shifts=(("fgsm", (1.0, 2.0, 4.0)),)) for trial in plain]
    true_train = estimating.train

    def slow_shifts(trial, **more):
        estimating.time.sleep(0.1 * len(trial.levels("fgsm")))
        return true_train(trial, **more)

    monkeypatch.setattr(estimating, "train", slow_shifts)
    assert estimate(attacked).seconds > 0.3
    true_load = estimating.load_data

    def slow_load(trial):
        estimating.time.sleep(0.5)
        return true_load(trial)

    monkeypatch.setattr(estimating, "load_data", slow_load)
    assert estimate(expand(data="iris", method="erm", protocol=protocol)).seconds > 0.5


class Wide(torch.nn.Module):
    """A network that keeps a megabyte of activations for each sample."""

    def __init__(self, *, in_shape, num_classes):
        super().__init__()
        self.first = torch.nn.Linear(in_shape[0], 1 << 18)
        self.second = torch.nn.Linear(1 << 18, num_classes)

    def forward(self, x):
        return self.second(self.first(x).relu())


def test_a_large_network_is_probed_with_a_small_batch_that_fits_into_memory(
    kmixup, grid, monkeypatch
):
    trials = expand(data="iris", model=f"{__name__}:Wide", k=32, protocol={"batch_size": 32})
    monkeypatch.setattr(estimating, "machine_memory", lambda: 1e6)
    probed = []
    true_train = estimating.train

    def noting(trial, **more):
        probed.append((trial.protocol.batch_size, trial.method.k))
        return true_train(trial, **more)

    monkeypatch.setattr(estimating, "train", noting)
    expected = estimate(trials)
    assert set(probed) == {(4, 2)}
    activations, weights = 32 * (1 << 20), 12 * (1 << 18) * (5 + 3)
    assert expected.memory == pytest.approx(activations + weights, rel=0.01)
    grid(f'data = "iris"\nmodel = "{__name__}:Wide"\nk = 32\nprotocol.batch_size = 32\n')
    code, out, _ = kmixup("sweep", "grid.toml", "--dry-run")
    assert code == 0
    assert "the largest network needs about 0.1 GB for each worker, this machine has 0.0 GB" in out


def test_what_cannot_be_probed_is_named_once(here):
    wild = expand(data="iris", model="no_such:net", k=2, trials=2)
    assert len(estimate(wild).unknown) == 1
    wild = expand(data="iris", model="no_such:net", k=2)
    assert estimate(wild) == TimeEstimate(
        0, 0, ("ValueError: no module named 'no_such', asked for by model 'no_such:net': install "
               "it, or put its folder on PYTHONPATH",)
    )  # fmt: skip
