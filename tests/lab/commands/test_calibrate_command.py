"""`kmixup calibrate` says what `kmixup.calibrate` finds."""

import torch

from kmixup import calibrate
from kmixup.lab.data import load

IRIS = load("iris")
X = IRIS.normalise(IRIS.x_train)


def found(k, alpha, **settings):
    return calibrate(X, k, alpha, generator=torch.Generator().manual_seed(0), **settings)


def test_the_table_has_the_calibrated_alpha_of_every_k(kmixup):
    code, out, err = kmixup("calibrate", "iris", "--k", 2, "--k", 4, "--alpha", 0.2)
    assert (code, err) == (0, "")
    first, _, _, *lines = out.splitlines()
    assert f"alpha = 0.2 has xi = {found(2, 0.2).target_xi:.4g}" in first
    for line, k in zip(lines, (2, 4), strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[:3] == [str(k), f"{found(k, 0.2).alpha:.3g}", f"{found(k, 0.2).xi:.4g}"]


def test_pairs_inside_a_batch_are_calibrated_as_such(kmixup):
    _, out, _ = kmixup("calibrate", "iris", "--k", 4, "--alpha", 0.2, "--pairing", "batch")
    assert f"| {found(4, 0.2, disjoint=True).alpha:.3g} " in out
    assert "partners from the same batch" in out


def test_what_is_out_of_reach_is_said_once(kmixup):
    code, out, err = kmixup("calibrate", "iris", "--k", 2, "--k", 32, "--alpha", 16)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "no alpha perturbs as much at k = 2, 32: this is the cap"
