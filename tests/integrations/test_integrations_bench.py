"""The benchmark of the routes through frameworks."""

import pytest

from benchmarks import integrations as bench


@pytest.mark.slow
def test_every_route_is_measured_beside_the_direct_call(capsys):
    bench.integrations(0.0)
    printed = capsys.readouterr().out
    for name in bench.ROUTES:
        assert printed.count(f"| {name} ") == 1, name
    assert "left out" not in printed


def test_a_framework_that_is_missing_is_left_out_with_a_sentence(capsys, monkeypatch):
    def absent(x, y):
        raise ImportError("No module named 'timm'")

    monkeypatch.setattr(bench, "ROUTES", {"timm Mixup": absent})
    bench.integrations(0.0)
    printed = capsys.readouterr().out
    assert "timm Mixup is left out: No module named 'timm'. `make integrations`" in printed
