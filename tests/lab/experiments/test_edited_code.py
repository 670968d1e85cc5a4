"""Rows of your own code have a digest of it, and versions of it never mix."""

import importlib
import sys
from textwrap import dedent

import pandas as pd
import pytest

from kmixup.lab.data.own import plain, raw_digest
from kmixup.lab.experiments.rows import read
from kmixup.lab.imports import source_digest
from kmixup.lab.report.frame import results_of, tables_of
from kmixup.lab.results import frame_of

NETS = """
    from torch import nn
    from layers import WIDTH
    def small(*, in_shape, num_classes):
        return nn.Sequential(nn.Linear(in_shape[0], WIDTH), nn.Linear(WIDTH, num_classes))
"""
POINTS = """
    import torch
    def points():
        x = torch.randn(40, 3, generator=torch.Generator().manual_seed(SEED))
        return x, torch.arange(40) % 2
"""
MIXERS = """
    import kmixup
    def mixer(*, k, alpha, num_classes):
        return kmixup.KMixup(k, alpha, num_classes)
"""
GRID = """
    data = "points:points"
    model = "nets:small"
    method = ["erm", "mixers:mixer"]
    k = 2
    trials = 4
    [protocol]
    epochs = 1
    batch_size = 16
"""
FILES = {"nets.py": NETS, "layers.py": "WIDTH = 4", "points.py": POINTS.replace("SEED", "0")}
FILES |= {"mixers.py": MIXERS, "grid.toml": GRID, "unrelated.py": "A = 1"}


def forget():
    """Forget modules of one's own, as a new process has not imported them."""
    for module in list(sys.modules):
        if module.partition(".")[0] in ("nets", "layers", "points", "mixers", "own"):
            del sys.modules[module]
    importlib.invalidate_caches()


@pytest.fixture
def write(here, monkeypatch):
    """Write a file of one's own, and forget what was imported."""
    monkeypatch.syspath_prepend(here)

    def write(name, text):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(dedent(text))
        forget()

    for name, text in FILES.items():
        write(name, text)
    yield write
    forget()


EDITS = {
    "nets.py": (NETS.replace("nn.Linear(WIDTH, num", "nn.ReLU(), nn.Linear(WIDTH, num"), "model"),
    "layers.py": ("WIDTH = 5", "model"),
    "mixers.py": (MIXERS.replace("(k, alpha", "(k, 2 * alpha"), "method"),
    "points.py": (POINTS.replace("SEED", "1"), "data"),
}
NAMES = {
    "model": "the model 'nets:small'",
    "method": "the method 'mixers:mixer'",
    "data": "the data 'points:points'",
}


@pytest.mark.parametrize("file", EDITS)
@pytest.mark.filterwarnings("ignore:the network has not fitted")
def test_edited_code_is_named_and_its_rows_are_never_pooled(kmixup, here, write, engine, file):
    text, part = EDITS[file]
    sweep = ("sweep", "grid.toml", "--device", "cpu")
    code, out, _ = kmixup(*sweep)
    assert (code, "8 trials, 8 of them run now" in out) == (0, True)
    code, out, _ = kmixup(*sweep)
    assert (code, "8 trials, 0 of them run now" in out) == (0, True)
    rows = read(here / "out" / "grid")
    parts = {row.trial.method.name: [part for part, _ in row.trial.code] for row in rows}
    assert parts == {"erm": ["data", "model"], "mixers:mixer": ["data", "method", "model"]}

    write(file, text)
    code, _, err = kmixup(*sweep)
    assert code == 2
    assert err.startswith("kmixup: --out must be a folder without rows of other code, ")
    assert f"{NAMES[part]} was edited since rows of out/grid were written" in err
    assert err.endswith("choose another folder, or keep both versions apart (--accept-edited)\n")
    assert len(read(here / "out" / "grid")) == 8

    changed = 4 if part == "method" else 8  # ERM has no method of one's own
    code, out, _ = kmixup(*sweep, "--accept-edited")
    assert code == 0
    assert f"8 trials, {changed} of them run now" in out
    rows = read(here / "out" / "grid")
    assert len(rows) == 8 + changed
    frame = frame_of(rows)
    results = results_of(frame, tables_of(frame))
    assert len(results) == 2
    assert len({result.distinct[f"{part} code"] for result in results}) == 2
    for result in results:
        assert {cell.expected for cell in result.cells} == {4}
        for cell in result.cells:
            assert len(cell.done.filter(like="code_").drop_duplicates()) <= 1
    report = (here / "out" / "grid" / "report.md").read_text()
    assert report.count(f"{part} code = ") >= 2


def test_other_files_beside_ones_own_code_do_not_matter(write):
    before = source_digest("nets:small")
    write("unrelated.py", "A = 2")
    assert source_digest("nets:small") == before
    write("nets.py", dedent(NETS).replace("\n", "\r\n"))  # as a checkout on Windows has it
    assert source_digest("nets:small") == before
    write("layers.py", "WIDTH = 6")
    assert source_digest("nets:small") != before


def test_a_digest_covers_what_a_package_imports_from_itself(write):
    write("own/__init__.py", "")
    write("own/nets.py", "def small(**shape):\n    from . import parts\n    return parts.net()")
    write("own/parts.py", "from .deep import net")
    write("own/deep.py", "import torch\nnet = torch.nn.Identity")
    digests = [source_digest("own.nets:small")]
    for name in ("own/__init__.py", "own/deep.py", "own/parts.py"):
        write(name, "net = 1")
        digests.append(source_digest("own.nets:small"))
    assert len(set(digests)) == 4
    write("own/else.py", "")
    assert source_digest("own.nets:small") == digests[-1]


def test_code_that_is_in_no_file_raises():
    with pytest.raises(ValueError, match="the module 'math' must be a Python file, .* has none"):
        source_digest("math:sqrt")


def test_other_arrays_of_a_data_function_are_noticed(kmixup, monkeypatch, write, engine):
    write("points.py", POINTS.replace("SEED", "int(__import__('os').environ['SEED'])"))
    monkeypatch.setenv("SEED", "0")
    assert kmixup("sweep", "grid.toml", "--no-report")[0] == 0
    monkeypatch.setenv("SEED", "1")
    code, _, err = kmixup("sweep", "grid.toml", "--no-report")
    assert code == 2
    assert "what the data function 'points:points' returns was edited since rows of" in err


def test_code_that_is_edited_while_a_sweep_runs_is_noticed(kmixup, here, write, engine):
    from sweeping import Inline

    class Editing(Inline):
        def rows(self, units, **how):
            write("layers.py", "WIDTH = 7")
            yield from super().rows(units, **how)

    engine(Editing())
    code, _, err = kmixup("sweep", "grid.toml", "--no-report")
    assert code == 1
    assert "your own code must not change during a sweep, the model 'nets:small' was edited" in err


def test_raw_digests_do_not_depend_on_the_order_of_bytes_or_arrays():
    x, y = pd.Series([1.5, 2, 3]).to_numpy(), pd.Series([0, 1, 0]).to_numpy()
    same = [(x, y), {"y": y, "x": x}, {"x": x.astype(">f8"), "y": y}]
    assert len({raw_digest(*plain(data)) for data in same}) == 1
    frame = pd.DataFrame({"x": x, "y": y})
    others = [(x + 1e-15, y), (x, 1 - y), (x.reshape(3, 1), y), frame, (frame, y), (frame, 1 - y)]
    assert len({raw_digest(*plain(data)) for data in [same[0], *others]}) == 7


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("nets:small", "nets:smal", "module 'nets' has no 'smal', asked for by model 'nets:smal'"),
        ("nets:small", "net:small", "no module named 'net', asked for by model 'net:small'"),
        ("nets:small", "lennet", "model must be a known name or package.module:name, got 'lennet'"),
        ("mixers:mixer", "mixers:mix", "module 'mixers' has no 'mix', asked for by method"),
        ("points:points", "points:point", "module 'points' has no 'point', asked for by data"),
    ],
)
def test_a_dry_run_resolves_names_before_it_prints_anything(kmixup, write, old, new, sentence):
    write("grid.toml", GRID.replace(old, new))
    code, out, err = kmixup("sweep", "grid.toml", "--dry-run")
    assert (code, out) == (2, "")
    assert sentence in err
