import pickle

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from kmixup import Beta, KMixup, Linear, Mixer, Optimal
from kmixup.matching import Blocks, check_solver
from kmixup.matching._assignment import solve
from kmixup.matching.solver import validated
from oracles import exact_costs, scipy_optimum, seeded
from test_devices import FakeDevice


def scipy_solver(costs):
    blocks = costs.cpu().numpy()
    return torch.from_numpy(np.stack([linear_sum_assignment(block)[1] for block in blocks]))


def lapx(costs):
    return torch.from_numpy(solve(costs.numpy()))


def greedy(costs):
    return costs.argmin(2)


def in_order(costs):
    return torch.arange(costs.shape[1]).expand(costs.shape[:2])


def changing(costs):
    costs -= costs.amin(2, keepdim=True)
    return lapx(costs)


@pytest.mark.parametrize("options", [{}, {"metric": "euclidean"}, {"farthest": True}])
@pytest.mark.parametrize("d", [3, 200])
def test_another_solver_finds_the_same_partners(d, options):
    x1, x2 = torch.randn(2, 70, d)
    for sides in ((x1,), (x1, x2)):
        expected = Optimal(16, **options)(*sides, generator=seeded())
        partner = Optimal(16, solver=scipy_solver, **options)(*sides, generator=seeded())
        assert torch.equal(partner, expected)


def test_a_mixer_with_another_solver_mixes_the_same():
    x, y = torch.randn(64, 100), torch.randint(10, (64,))
    pairing = Optimal(16, solver=scipy_solver)
    mix = Mixer(pairing, Beta(1.0), Linear(), num_classes=10, generator=seeded())
    expected = KMixup(16, 1.0, 10, generator=seeded())(x, y)
    for mixed, other in zip(mix(x, y), expected, strict=True):
        assert torch.equal(mixed, other)


def test_a_pairing_names_its_solver_and_can_be_pickled():
    pairing = pickle.loads(pickle.dumps(Optimal(4, solver=scipy_solver)))
    assert pairing == Optimal(4, solver=scipy_solver)
    assert repr(pairing) == "Optimal(k=4, metric='sqeuclidean', solver=scipy_solver)"


@pytest.mark.parametrize(
    ("solver", "error", "sentence"),
    [
        (greedy, ValueError, r"solver must use each column once, got \[0, 0, 0\] for a block from"),
        (lambda costs: -torch.ones(2, 3).long(), ValueError, r"each column once, got \[-1, -1, -1"),
        (lambda costs: costs, TypeError, "must return a tensor of integers, got torch.float32"),
        (lambda costs: [[0, 1, 2]] * 2, TypeError, "must return a tensor of integers, got list"),
        (lambda costs: in_order(costs)[0], ValueError, r"shape \(2, 3\) for costs .* got \(3,\)"),
    ],
)
def test_columns_that_are_no_matching_raise(solver, error, sentence):
    costs = torch.tensor([[[0.0, 1.0, 2.0]] * 3] * 2)
    with pytest.raises(error, match=sentence):
        validated(solver(costs), costs, solver)
    with pytest.raises(error):
        check_solver(solver)


def test_a_solver_must_be_a_function():
    with pytest.raises(TypeError, match=r"solver must be a function .*got 'scipy': leave it out"):
        Optimal(4, solver="scipy")


@pytest.mark.parametrize("solver", [lapx, scipy_solver])
def test_solvers_that_keep_the_contract_pass(solver):
    check_solver(solver)


@pytest.mark.parametrize(
    ("solver", "sentence"),
    [
        (in_order, "solver must return the least total cost, got .* from in_order where .* in "),
        (changing, "solver must not change the costs, changing changed .* of shape"),
        (lambda costs: scipy_solver(costs).to("meta"), "on the device of the costs, cpu, or"),
    ],
)
def test_solvers_that_break_the_contract_are_found(solver, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_solver(solver)


def test_debug_finds_costs_that_are_not_finite():
    costs = torch.tensor([[[torch.nan]]])
    with pytest.raises(ValueError, match="costs must be finite to be solved, got a NaN"):
        validated(in_order(costs), costs, in_order, debug=True)


class Waiting(FakeDevice):
    """Count copies to the device that wait for it, too."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(func, types, args, kwargs)
        copied = func is torch.ops.aten._to_copy.default and result.is_cuda
        if copied and not args[0].is_cuda and not (kwargs or {}).get("non_blocking"):
            self.copies += 1
        return result


@pytest.mark.parametrize("n", [64, 32, 70])
@pytest.mark.parametrize("options", [{}, {"metric": "euclidean"}, {"farthest": True}])
def test_a_solver_on_the_device_costs_no_synchronization(options, n):
    devices = []

    def solver(costs):
        devices.append(costs.device.type)
        return costs.argmin(2)

    with Waiting() as device:
        x = torch.empty(n, 3, 8, 8, device="cuda")
        partner = Optimal(16, solver=solver, **options)(x)
    assert partner.device.type == "cuda"
    assert set(devices) == {"cuda"}
    assert device.copies == 0


def test_a_mixer_with_a_solver_on_the_device_does_not_wait():
    pairing = Optimal(8, solver=lambda costs: costs.argmin(2))
    mix = Mixer(pairing, Beta(1.0), Linear(), num_classes=10)
    draw = mix.draw(32, (3, 8, 8))
    with FakeDevice() as device:
        x = torch.empty(32, 3, 8, 8, device="cuda")
        mixed = mix.mix(x, torch.empty(32, dtype=torch.long, device="cuda"), draw)
        assert {mixed.x.device.type, mixed.y.device.type, mixed.partner.device.type} == {"cuda"}
    assert device.copies == 0


@pytest.mark.parametrize("offset", [0, 1e3])
@pytest.mark.parametrize("n", [64, 32, 70])
def test_what_a_device_computes_is_optimal(n, offset):
    """The same operations, on the CPU."""
    parts = [torch.randn(n, 30) + offset, torch.randn(n, 100).half()]
    pairing, order = Optimal(16, solver=lapx), torch.randperm(n).numpy()
    blocks = Blocks(n, 16, order)
    inverse = n == 32
    pairs = blocks.pairs()[:1] if inverse else blocks.pairs()
    pairs = [(own[:1], facing[:1]) for own, facing in pairs] if inverse else pairs
    partner = pairing._partners_on_device(parts, parts, pairs, None, n, inverse=inverse)
    assert sorted(partner.tolist()) == list(range(n))
    x = torch.cat([part.double() for part in parts], 1)
    for own, facing in blocks.pairs():
        for i, j in zip(own, facing, strict=True):
            cost = exact_costs(x[i], x[j])
            columns = [list(j).index(p) for p in partner[i]]
            reached = cost[np.arange(len(i)), columns].sum()
            assert reached == pytest.approx(scipy_optimum(cost), rel=1e-5)
