"""Networks by name, and a user's own by package.module:function."""

import sys

import pytest
import torch

from kmixup.lab.models import MODELS, build

OWN = """
import torch
from torch import nn

number = 3

def network(*, in_shape, num_classes):
    return nn.Linear(in_shape[0], num_classes)

def positional(width, in_shape, num_classes):
    return nn.Linear(in_shape[0], num_classes)

def nothing(**settings):
    return None

def broken(in_shape, num_classes):
    raise TypeError("broken on purpose")

def narrow(in_shape, num_classes):
    return nn.Linear(in_shape[0], num_classes - 1)

def misfit(in_shape, num_classes):
    return nn.Linear(in_shape[0] + 1, num_classes)

class Pair(nn.Linear):
    def __init__(self, in_shape, num_classes):
        super().__init__(in_shape[0], num_classes)

    def forward(self, x):
        return super().forward(x), x

def noisy(in_shape, num_classes):
    body = nn.Sequential(nn.BatchNorm1d(in_shape[0]), nn.Dropout(0.5))
    body[0].eval()
    return nn.Sequential(body, Noise(), nn.Linear(in_shape[0], num_classes))

class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)

class Net(nn.Linear):
    def __init__(self, in_shape, num_classes):
        super().__init__(in_shape[0], num_classes)
"""


@pytest.fixture(autouse=True)
def own_modules(tmp_path, monkeypatch):
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "nets.py").write_text(OWN)
    (package / "needy.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "own_package"]:
        del sys.modules[name]


def make(name, in_shape=(4,), num_classes=3):
    return build(name, in_shape=in_shape, num_classes=num_classes)


@pytest.mark.parametrize("own", ["network", "Net"])
def test_a_function_or_class_of_ones_own_is_called_with_shape_and_classes(own):
    net = make(f"own_package.nets:{own}")
    assert net(torch.zeros(2, 4)).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("lenett", "did you mean .*lenet"),
        ("PreAct_ResNet18", "did you mean .*preact-resnet18"),
        ("zzz", f"there are {', '.join(MODELS)}$"),
    ],
)
def test_an_unknown_name_lists_the_close_ones_or_all(name, meant):
    with pytest.raises(ValueError, match=f"got '{name}': {meant}"):
        make(name)


NETS = "own_package.nets"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *(
            (name, f"written package.module:name, got '{name}'")
            for name in (":network", f"{NETS}:", "a:b:c")
        ),
        ("not_there.nets:network", "no module named 'not_there'.*install it"),
        ("own_package.not_there:network", "no module named 'own_package.not_there'.*install it"),
        (f"{NETS}:netwrk", r"has no 'netwrk', .*did you mean 'network'"),
        (f"{NETS}:zzz", r"has no 'zzz', asked for by model 'own_package.nets:zzz': there are "),
        (f"{NETS}:number", r"'own_package.nets:number' must be a function"),
        (f"{NETS}:positional", "in_shape and num_classes .*: missing a required argument: 'width'"),
        (f"{NETS}:Pair", r"'own_package.nets:Pair' must return logits of .*, got tuple: give"),
        (
            f"{NETS}:narrow",
            r"'own_package.nets:narrow' must return logits of the shape \(2, 3\) for a batch of "
            r"the shape \(2, 4\), got \(2, 2\): give its last layer num_classes outputs",
        ),
        (
            f"{NETS}:misfit",
            r"'own_package.nets:misfit' must take a batch of the shape \(2, 4\), got "
            r"RuntimeError: mat1 and mat2 .*: make its layers fit in_shape",
        ),
    ],
)
def test_a_path_to_no_network_is_refused_with_its_reason(name, message):
    with pytest.raises(ValueError, match=message):
        make(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", r"must return an nn.Module, got NoneType"),
        ("broken", r"^broken on purpose$"),  # what the function raises is reported as it is
    ],
)
def test_a_function_must_return_a_network_that_returns_logits(name, message):
    with pytest.raises(TypeError, match=message):
        make(f"{NETS}:{name}")


def test_what_a_module_fails_to_import_is_reported_as_it_is():
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        make("own_package.needy:network")


def test_the_check_of_a_network_leaves_no_trace():
    torch.manual_seed(0)
    net = make("own_package.nets:noisy")
    state = torch.get_rng_state()
    torch.manual_seed(0)
    builder = sys.modules["own_package.nets"].noisy
    untouched = builder(in_shape=(4,), num_classes=3)
    assert torch.equal(torch.get_rng_state(), state)
    for (name, value), other in zip(
        net.state_dict().items(), untouched.state_dict().values(), strict=True
    ):
        assert torch.equal(value, other), name
    modes, wanted = ([part.training for part in model.modules()] for model in (net, untouched))
    assert modes == wanted
    assert not all(modes)
