"""Other pairs of k-mixup on the command line: memory, labels and what is matched on."""

import json

import pytest

FEW = ("train", "--data", "iris", "--batch-size", 8, "--epochs", 1)


@pytest.mark.parametrize(
    ("words", "told", "folder"),
    [
        (("--k", 16, "--memory", 32), "k=16 alpha=1 with memory=32", "k16-alpha1-memory-32"),
        (("--k", 4, "--labels", -0.5), "k=4 alpha=1 with labels=-0.5", "k4-alpha1-labels--0.5"),
        (("--k", 4, "--match-on", "ema"), "k=4 alpha=1 matched on ema:5", "k4-alpha1-ema-5"),
    ],
)
def test_the_variant_is_trained_and_told(kmixup, here, words, told, folder):
    code, out, _ = kmixup(*FEW, *words)
    assert code == 0
    assert out.startswith(f"iris, mlp-iris, kmixup {told}: test error")
    path = here / "out" / f"iris-mlp-iris-kmixup-{folder}-seed0" / "record.json"
    name = str(words[2]).removeprefix("--").replace("-", "_")
    assert json.loads(path.read_text())["trial"]["method"][name] is not None


def test_a_grid_sweeps_what_is_matched_on(kmixup, here):
    lines = ['data = "iris"', 'method = ["mixup", "kmixup"]', "k = 4", "labels = [0, 1]"]
    lines += ['match_on = ["pixels", "pca"]', "[protocol]", "epochs = 1"]
    (here / "grid.toml").write_text("\n".join(lines))
    code, out, _ = kmixup("sweep", "grid.toml", "--dry-run")
    assert code == 0
    assert "5 trials in 5 cells" in out
    assert "kmixup k=4 alpha=1 with labels=1 matched on pca:50" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--k", 16, "--memory", 3), "memory must be a whole number, at least 32, got 3"),
        (("--k", 4, "--match-on", "taste"), "must be pixels, pca, pca-white, network, ema"),
        (("--method", "local", "--k", 4, "--labels", 1), "labels is a setting of kmixup"),
    ],
)
def test_what_cannot_be_ends_in_a_sentence(kmixup, words, message):
    code, _, err = kmixup(*FEW, *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
