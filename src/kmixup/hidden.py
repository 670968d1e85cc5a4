"""The same inside a network: one of its layers is mixed, in one forward pass."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from kmixup.methods import KMixup
from kmixup.mixing import Mixed, Mixing
from kmixup.nests import Nest
from kmixup.pairing import eager
from kmixup.sampling import device_of

# names of the only children of a wrapper: torch.compile, DistributedDataParallel, Lightning Fabric
WRAPPED = {"_orig_mod", "module", "_forward_module", "_original_module"}


class HiddenMixup(nn.Module):
    """Mixes the output of a layer of any network, drawn for every call.

    With random pairs (`k=1`) this is manifold mixup (Verma et al. 2019), with a larger
    k its pairs are matched by optimal transport on the output of the layer, detached.

    Args:
        net: the network. It is not changed: a forward hook is there during a call only.
        layers: names of its modules, as in `net.named_modules()`; "" is the input. Each
            call draws one of them, all alike (a name that is given twice, twice as often).
            Wrappers (compiled, distributed) are looked through.
        mixer: how to mix, e.g. `LocalMixup(...)`; by default `KMixup(**options)`. The
            layer is drawn from its generator, if there is something to draw.
        options: those of `KMixup`.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    >>> hidden = HiddenMixup(net, layers=["", "1"], k=16, alpha=1.0, num_classes=10)
    >>> logits, y = hidden(torch.randn(128, 1, 28, 28), torch.randint(10, (128,)))

    The layer's output may be a tensor, or a tuple or dict of which all floating-point
    tensors `(n, ...)` are mixed and the rest stays as it is. A layer that is called
    several times is mixed once, the first time. In `.eval()` mode the network runs as
    it is and targets come back as they are; `hidden.mixer.eval()` ends the mixing alone.

    Batch norm sees one batch, and its running statistics one update: before the mixed
    layer of clean activations, after it of mixed ones, as in manifold mixup.

    The network is a submodule: `parameters()`, `to()`, `state_dict()` (under `net.`) and
    DistributedDataParallel, around the network or around this, go through. Compile the
    network, not this, and call it only through this: the compiler ignores hooks that are
    added after a call without, and what was not mixed is an error. Checkpointing must
    not recompute the mixed layer: choose one that lies outside of checkpointed segments.
    """

    def __init__(
        self,
        net: nn.Module,
        layers: Sequence[str],
        *,
        mixer: Mixing | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if mixer is not None and options:
            raise ValueError(f"mixer has its own settings: give it {', '.join(options)} instead")
        self.net = net
        self.layers = _check_layers(net, layers)
        self.mixer = KMixup(**options) if mixer is None else mixer
        self._drawn = ""
        self._y: Tensor | None = None
        self._mixed: Mixed | None = None

    @eager
    def forward(self, x: Nest, y: Tensor, *args: Any, **kwargs: Any) -> tuple[Any, Tensor]:
        """The network's output and soft targets; see `draw` for the arguments."""
        if not self.mixer.training:
            return self._run(x, *args, **kwargs), y
        self.mixer.check_unweighted()
        output, mixed = self.draw(x, y, *args, **kwargs)
        return output, mixed.y

    @eager
    def draw(self, x: Nest, y: Tensor, *args: Any, **kwargs: Any) -> tuple[Any, Mixed]:
        """The network's output and the account of the mixing.

        Args:
            x: the first argument of the network; integers (token ids) only where no
                input is mixed.
            y: targets `(n, ...)`; integers are classes, floats are interpolated.
            args, kwargs: further arguments of the network, handed on as they are.

        `Mixed.x` is the mixed output of the layer, `Mixed.distance` is measured there.
        """
        self._drawn = name = self._draw_layer()
        if name == "":
            mixed = self.mixer.draw(x, y)
            return self._run(mixed.x, *args, **kwargs), mixed
        self._y = y
        handle = unwrapped(self.net).get_submodule(name).register_forward_hook(self._mix)
        try:
            output = self._run(x, *args, **kwargs)
            if self._mixed is None:
                raise RuntimeError(
                    f"nothing was mixed, because this forward pass did not call layer {name!r}, or "
                    "ran code that was compiled without its hook: choose a layer that is always "
                    "called, and call a compiled network only through HiddenMixup, or set "
                    "torch._dynamo.config.skip_nnmodule_hook_guards = False before its first call"
                )
            return output, self._mixed
        finally:
            handle.remove()
            self._y = self._mixed = None

    def _draw_layer(self) -> str:
        if len(self.layers) == 1 or not self.mixer.training:
            return self.layers[0]
        generator = self.mixer.generator
        device = device_of(generator)
        index = torch.randint(len(self.layers), (), generator=generator, device=device)
        return self.layers[int(index)]

    @eager
    def _mix(self, module: nn.Module, inputs: Any, output: Nest) -> Nest:
        """The forward hook of the drawn layer."""
        if self._y is None or self._mixed is not None:
            return output
        leaves, structure = pytree.tree_flatten(output)
        floats = [
            i
            for i, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor) and leaf.is_floating_point()
        ]
        shapes = [tuple(leaves[i].shape) for i in floats]
        if not shapes or any(shape[:1] != (len(self._y),) for shape in shapes):
            raise ValueError(
                f"layer {self._drawn!r} must put out floating-point tensors whose first dimension "
                f"is the batch of {len(self._y)}, got shapes {shapes}: choose another layer "
                "(modules for sequences have batch_first=True)"
            )
        mixed = self.mixer.draw([leaves[i] for i in floats], self._y)
        for i, leaf in zip(floats, mixed.x, strict=True):
            leaves[i] = leaf
        self._mixed = replace(mixed, x=pytree.tree_unflatten(leaves, structure))
        return self._mixed.x

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        with _hooks_guarded():
            return self.net(*args, **kwargs)

    def extra_repr(self) -> str:
        return f"layers={self.layers}"


def unwrapped(net: nn.Module) -> nn.Module:
    """The network inside of compiled and distributed ones, whose layers have short names."""
    children = dict(net.named_children())
    while children and children.keys() <= WRAPPED:
        net = next(iter(children.values()))
        children = dict(net.named_children())
    return net


def _check_layers(net: nn.Module, layers: Sequence[str]) -> tuple[str, ...]:
    if isinstance(layers, str):
        raise ValueError(f"layers must be a list of names, got {layers!r}: use [{layers!r}]")
    if not layers:
        raise ValueError('layers must name at least one layer, e.g. [""] for the input')
    names = [name for name, _ in unwrapped(net).named_modules(remove_duplicate=False)]
    for layer in layers:
        if layer not in names:
            close = sorted(get_close_matches(layer, names, n=5)) or names[1:6]
            raise ValueError(
                f'layers must name modules of the network, or be "" for its input, got {layer!r}: '
                f"there is {', '.join(map(repr, close)) or 'none'}"
            )
    return tuple(layers)


def _hooks_guarded() -> AbstractContextManager[object]:
    """Make code that is compiled meanwhile look for hooks, which it otherwise takes as fixed.

    https://docs.pytorch.org/docs/stable/torch.compiler_nn_module.html
    """
    dynamo = sys.modules.get("torch._dynamo")  # not loaded: nothing is compiled
    if dynamo is None:
        return nullcontext()
    guarded: AbstractContextManager[object] = dynamo.config.patch(skip_nnmodule_hook_guards=False)
    return guarded
