"""The same inside a network: one of its layers is mixed, in one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from kmixup.compiling import eager, hooks_guarded
from kmixup.inputs import Features, Nest, batch_length, computed_features
from kmixup.layers import check_layers, unwrapped
from kmixup.memory import has_memory
from kmixup.methods import KMixup
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import Mixer
from kmixup.mixing import Mixing
from kmixup.randomness import device_of


class HiddenMixup(nn.Module):
    """Mixes the output of a layer of any network, drawn for every call.

    With random pairs (`k=1`) this is manifold mixup (Verma et al. 2019), with a larger
    k its pairs are matched by optimal transport on the output of the layer, detached.

    Args:
        net: the network. It is not changed: a forward hook is there during a call only.
        layers: names of its modules, as in `net.named_modules()`; "" is the input. Each
            call draws one name, all equally likely; a name that is listed twice is twice as
            likely. Names need no prefix for wrappers (compiled, distributed).
        mixer: how to mix, e.g. `LocalMixup(...)`; by default `KMixup(**options)`. Its generator
            also draws the layer. Mixers that need importance, learn with the network or change
            the shape of unmixed samples are for the input.
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

    The network is a submodule: `parameters()`, `to()` and `state_dict()` (under `net.`) reach
    it, and DistributedDataParallel may wrap the network or this module. Compile the network,
    not this module, and call the network only through this module: the compiler ignores hooks
    that are added after a call without them, and a pass in which nothing was mixed is an error.
    Checkpointing must not recompute the mixed layer: choose a layer outside of checkpointed
    segments.
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
        self.layers = check_layers(net, layers)
        self.mixer = KMixup(**options) if mixer is None else mixer
        if has_memory(self.mixer):
            raise ValueError(
                "mixer must have no memory inside of a network, whose layers change in every step: "
                "leave memory out, or mix the input with it"
            )
        if self.mixer.rests:
            raise ValueError(
                "mixer must leave unmixed samples as they are inside of a network, got "
                f"{type(self.mixer).__name__}, which changes their shape: mix the input with it"
            )
        if needy := [
            type(module).__name__
            for module in self.mixer.modules()
            if isinstance(module, Mixer) and module.interpolation.by_importance
        ]:
            raise ValueError(
                "mixer must do without the importance of pixels, which layers do not have, got "
                f"{needy[0]}: mix the input with it"
            )
        if self.mixer.penalises and any(self.layers):
            raise ValueError(
                f"mixer must not learn with the network inside of it, got "
                f'{type(self.mixer).__name__}: use layers=[""], or mix the input with it'
            )

    @eager
    def forward(
        self, x: Nest, y: Nest, *args: Any, features: Features | None = None, **kwargs: Any
    ) -> tuple[Any, Nest]:
        """The network's output and soft targets; see `draw` for the arguments."""
        if not self.mixer.training:
            return self._run(x, *args, **kwargs), y
        self.mixer.check_unweighted()
        output, mixed = self.draw(x, y, *args, features=features, **kwargs)
        return output, mixed.y

    @eager
    def draw(
        self, x: Nest, y: Nest, *args: Any, features: Features | None = None, **kwargs: Any
    ) -> tuple[Any, Mixed]:
        """The network's output and the account of the mixing.

        Args:
            x: the first argument of the network; integers (token ids) only where no
                input is mixed.
            y: targets `(n, ...)`; integers are classes, floats are interpolated.
            features: what to match on in place of the layer's output: a tensor `(n, ...)` such as
                an embedding, or a function of `x` that gives one.
            args, kwargs: further arguments of the network, handed on as they are.

        `Mixed.x` is the mixed output of the layer, `Mixed.distance` is measured there.
        """
        draw = self.sample(batch_length(x if y is None else y))
        return self.mix(x, y, draw, *args, features=features, **kwargs)

    def sample(self, n: int) -> Draw:
        """Draw the layer, and all chance of mixing a batch of `n` there."""
        layer = 0
        if len(self.layers) > 1 and self.mixer.training:
            generator = self.mixer._source.here()
            device = device_of(generator)
            layer = int(torch.randint(len(self.layers), (), generator=generator, device=device))
        draw = self.mixer.sample(n)
        return replace(draw, choices=(layer, *draw.choices))

    @eager
    def mix(
        self,
        x: Nest,
        y: Nest,
        draw: Draw,
        *args: Any,
        features: Features | None = None,
        **kwargs: Any,
    ) -> tuple[Any, Mixed]:
        """The network's output, mixed as `draw` says; the other arguments are those of `draw`."""
        if self.mixer.training:
            features = computed_features(features, x, None)
        layer, *choices = draw.choices
        name, draw = self.layers[layer], replace(draw, choices=tuple(choices))
        if name == "":
            mixed = self.mixer.mix(x, y, draw, features=features)
            return self._run(mixed.x, *args, **kwargs), mixed
        call = _Call(self, name, y, draw, features)
        handle = unwrapped(self.net).get_submodule(name).register_forward_hook(self._mix)
        token = _CALL.set(call)
        try:
            output = self._run(x, *args, **kwargs)
        finally:
            _CALL.reset(token)
            handle.remove()
        if call.mixed is None:
            raise RuntimeError(
                f"nothing was mixed, because this forward pass did not call layer {name!r}, or "
                "ran code that was compiled without its hook: choose a layer that is always "
                "called, and call a compiled network only through HiddenMixup, or set "
                "torch._dynamo.config.skip_nnmodule_hook_guards = False before its first call"
            )
        return output, call.mixed

    @eager
    def _mix(self, module: nn.Module, inputs: Any, output: Nest) -> Nest:
        """The forward hook of the drawn layer."""
        call = _CALL.get()
        if call is None or call.owner is not self or call.mixed is not None:
            return output
        leaves, structure = pytree.tree_flatten(output)
        floats = [
            i
            for i, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor) and leaf.is_floating_point()
        ]
        outputs = [leaves[i] for i in floats]
        shapes, n = [tuple(output.shape) for output in outputs], call.draw.blocks.n
        if not shapes or any(shape[:1] != (n,) for shape in shapes):
            raise ValueError(
                f"layer {call.layer!r} must put out floating-point tensors whose first dimension "
                f"is the batch of {n}, got shapes {shapes}: choose another layer "
                "(modules for sequences have batch_first=True)"
            )
        alone = len(outputs) == 1  # a mixer may take one tensor only
        entries = outputs[0] if alone else outputs
        mixed = self.mixer.mix(entries, call.y, call.draw, features=call.features)
        for i, leaf in zip(floats, [mixed.x] if alone else mixed.x, strict=True):
            leaves[i] = leaf
        call.mixed = replace(mixed, x=pytree.tree_unflatten(leaves, structure))
        return call.mixed.x

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        with hooks_guarded():
            return self.net(*args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("k", "alpha", "prob"):
            raise AttributeError(f"{name} is a setting of the mixer: set hidden.mixer.{name}")
        super().__setattr__(name, value)

    def extra_repr(self) -> str:
        return f"layers={self.layers}"


@dataclass(eq=False)
class _Call:
    """A forward pass on its way: what its hook mixes, and the account once it has."""

    owner: HiddenMixup
    layer: str
    y: Nest
    draw: Draw
    features: Features | None
    mixed: Mixed | None = None


# The forward pass of this thread. It is no attribute of the module, which threads share; and
# no closure of the hook, for which a compiled network would be compiled again at every call.
_CALL: ContextVar[_Call | None] = ContextVar("kmixup forward pass", default=None)
