"""Results as a tidy frame: every published number is in it, and reading needs no training."""

import math
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from sweeping import Fake, done_row, failed_row

from kmixup.lab import paper_numbers, read
from kmixup.lab.evaluate.scores import ClassScores, NumberScores, Scores
from kmixup.lab.experiments import rows as store
from kmixup.lab.experiments.driver import sweep
from kmixup.lab.experiments.rows import PUBLISHED
from kmixup.lab.paper.presets import TABLES
from kmixup.lab.results import frame_of
from kmixup.lab.trial import Method, Protocol, Trial

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "results").rglob(PUBLISHED))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.relative_to(ROOT).as_posix())
def test_every_published_score_is_a_line_of_the_frame(folder):
    frame = read(folder)
    assert not frame.duplicated(["id", "test", "level", "metric"]).any()
    assert not frame.map(lambda cell: isinstance(cell, (list, tuple, dict, set))).any(axis=None)
    lines = {
        (line.id, line.test, line.level, line.metric): line.value
        for line in frame.fillna({"level": -1}).itertuples()
    }
    rows = store.read(folder)
    for row in rows:
        plain = "test" if row.trial.validation is None else "validation"
        scored = {(plain, -1.0): row.scores}
        scored |= {(name, e): s for name, levels in row.shifts.items() for e, s in levels.items()}
        extra = {"clean": row.clean, "test": row.test, "scaled": row.scaled}
        scored |= {(name, -1.0): scores for name, scores in extra.items() if scores is not None}
        for at, scores in scored.items():
            for metric, value in vars(scores).items():
                if value is not None:
                    assert lines.pop((row.id, *at, metric)) == value
    # without batch norm, clean statistics change nothing; an AUC may be undefined
    clean = [at for at, value in lines.items() if at[1] == "clean"]
    assert all(math.isnan(value) for at, value in lines.items() if at not in clean)
    assert set(frame.id) == {row.id for row in rows}


def test_all_settings_of_a_trial_are_columns():
    method = Method("kmixup", 4, 0.5, memory=64, labels=0.5, metric="euclidean")
    protocol = Protocol(epochs=7, milestones=(0.25, 0.5))
    shifts = (("noise", (8.0,)),)
    reading = {"drop": ("x", "y"), "validation": 0.2}
    trial = Trial("a.csv", "nets:small", method, protocol, 3, shifts, **reading)
    shifted = {"noise": {8.0: Scores(0.5, 1.0, 0.1)}}
    frame = frame_of([done_row(trial, 0.25, alpha=0.9, shifts=shifted, versions={"kmixup": "1"})])
    line = frame.query("test == 'validation' and metric == 'error'").iloc[0]
    expected = {
        "id": trial.id, "data": "a.csv", "model": "nets:small", "seed": 3, "drop": "x y",
        "validation": 0.2, "method": "kmixup", "k": 4, "alpha": 0.5, "alpha_rule": "same",
        "memory": 64, "labels": 0.5, "cost": "euclidean", "epochs": 7, "milestones": "0.25 0.5",
        "trained_alpha": 0.9, "train_samples": 100, "version_kmixup": "1", "value": 0.25,
    }  # fmt: skip
    assert {name: line[name] for name in expected} == expected
    noise = frame.query("test == 'noise' and level == 8 and metric == 'error'")
    assert noise.value.tolist() == [0.5]
    assert len(frame) == 2 * 3  # tests × metrics


def test_failed_trials_validation_temperatures_and_regressions_are_lines():
    held_out = Trial("iris", "mlp-iris", validation=0.2, temperature=True)
    scores = ClassScores(0.1, 1.0, 0.1, baseline=0.6, balanced_accuracy=0.8, auc=None, answers=3)
    tested = {"test": scores, "scaled": scores, "temperature": 2.0}
    frame = frame_of(
        [
            failed_row(Trial("iris", "mlp-iris", seed=1)),
            done_row(held_out, **tested),
            done_row(Trial("b.csv", "mlp-8"), scores=NumberScores(54.3, 60.0, None)),
        ]
    )
    errors = frame[frame.metric == "error"]
    assert errors.test.tolist() == ["test", "validation", "test", "scaled", "test"]
    assert errors.value.round(3).tolist()[1:] == [0.1, 0.1, 0.1, 54.3]
    assert errors.value.isna().tolist() == [True, False, False, False, False]
    assert errors.failure.tolist()[0] == "ValueError: no"
    assert errors.temperature.tolist()[1] == 2.0
    assert frame[frame.metric == "auc"].value.isna().all()


def test_a_folder_without_rows_is_an_empty_frame(tmp_path):
    sweep([], tmp_path, engine=Fake())
    assert read(tmp_path).empty
    assert list(read(tmp_path))[-4:] == ["test", "level", "metric", "value"]


def test_the_code_on_the_page_of_results_draws_its_plot(tmp_path, monkeypatch, capsys):
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/experiments.md").read_text().partition("## Analyze results")[2]
    plot, paired, merged = re.findall(r"```python\n(.*?)```", page, re.S)
    names = {}
    with plt.rc_context():
        exec(compile(plot, "docs/experiments.md", "exec"), names)
        plt.close("all")
    assert (tmp_path / "iris.png").stat().st_size > 10_000
    assert names["errors"].loc[(1, 1.0), "mean"] == pytest.approx(
        100 * names["iris"].query("method == 'mixup' and alpha == 1").value.mean()
    )
    exec(compile(paired, "docs/experiments.md", "exec"), names)
    assert "mean" in capsys.readouterr().out
    exec(compile(merged, "docs/experiments.md", "exec"), names)
    assert "paper" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name, of in TABLES.items() if of.errors is not None])
def test_the_papers_numbers_are_lines_to_merge_by(name):
    table, numbers = TABLES[name], paper_numbers(name)
    keys = [column for column in numbers if not column.startswith("paper")]
    assert not numbers.duplicated(keys).any()
    printed = [error for row in table.errors for error in row]
    erm = numbers[numbers.method == "erm"]
    assert sorted(100 * numbers.drop(erm.index).paper) == pytest.approx(sorted(printed))
    assert all(100 * error == pytest.approx(table.erm) for error in erm.paper)
    trial = Trial(table.data, table.model, Method(table.method, table.ks[-1], table.alphas[0]))
    assert set(keys) <= set(frame_of([done_row(trial)]))


def test_a_table_that_the_paper_does_not_have_is_named():
    with pytest.raises(ValueError, match="got 'irsi': did you mean 'iris'"):
        paper_numbers("irsi")
    with pytest.raises(ValueError, match="table must be a table of the paper, got 'mnist-1000'"):
        paper_numbers("mnist-1000")


def test_reading_and_reporting_import_neither_networks_nor_training():
    code = (
        "import sys\n"
        "import kmixup.lab.results\n"
        "import kmixup.lab.paper.presets\n"
        "from kmixup.lab.report import compare, frame, inspect, sweep, tune\n"
        "print(*(name for name in sys.modules if name.startswith('kmixup.lab')))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = ended.stdout.split()
    training = ("loop", "fleet", "step", "setup", "streams", "checkpoint", "record", "model")
    assert "kmixup.lab.report.sweep" in modules
    assert not {f"kmixup.lab.train.{name}" for name in training} & set(modules)
    assert not [name for name in modules if name.startswith("kmixup.lab.models")]
