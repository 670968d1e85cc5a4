"""Manifold mixup: mix at a hidden layer of a network."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from kmixup._compiling import eager, hooks_guarded
from kmixup._nests import Nest, batch_length, mixed_entries
from kmixup._networks import check_layers, unwrapped
from kmixup._randomness import Source, device_of
from kmixup.matching import warn_short
from kmixup.methods.kmixup import KMixup, KMixupOptions
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import Mixing
from kmixup.wrappers.wrapper import SettingsInside, WrapperDraw


@dataclass(frozen=True, eq=False)
class HiddenDraw(WrapperDraw):
    """The draw of a `HiddenMixup`: the number of the layer to mix, and the mixer's draw."""

    layer: int


class HiddenMixup(SettingsInside):
    """Manifold mixup: mix the output of a randomly drawn layer of any network.

    With random pairs (`k=1`) this is manifold mixup (Verma et al. 2019), with a larger
    k its pairs are matched by optimal transport on the output of the layer, detached.

    The layer's output may be a tensor, or a tuple or dict of which all floating-point
    tensors `(n, ...)` are mixed. Only the first call of a layer is mixed. In `.eval()` mode network
    and targets are unchanged: `logits, _ = hidden(x)`; `hidden.mixer.eval()` disables mixing only.

    The network is a submodule (`net.`), and DistributedDataParallel may wrap it or this module.
    Compile the network, not this module, and call it only through this module: the compiler ignores
    hooks that are added later. Checkpointing must not recompute the mixed layer.

    Args:
        net: the network. It is not changed: a forward hook exists during a call only.
        layers: names of its modules, as in `net.named_modules()`; "" is the input. Each call draws
            one of them. Names need no prefix for wrappers (compiled, distributed).
        mixer: how to mix; by default `KMixup(**options)`. Its generator also draws the layer.
            Mixers that learn with the network are for `layers=[""]`. Mixers that need importance,
            such as `PuzzleMix`, raise: mix the input with them before calling the network.
        options: of `KMixup`: k, alpha, num_classes, labels and `PairOptions`.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    >>> hidden = HiddenMixup(net, layers=["", "1"], k=16, alpha=1.0, num_classes=10)
    >>> logits, y = hidden(torch.randn(128, 1, 28, 28), torch.randint(10, (128,)))
    """

    def __init__(
        self,
        net: nn.Module,
        layers: Sequence[str],
        *,
        mixer: Mixing | None = None,
        **options: Unpack[KMixupOptions],
    ) -> None:
        super().__init__()
        if mixer is not None and options:
            raise ValueError(f"mixer has its own settings: give it {', '.join(options)} instead")
        self.net = net
        self.layers = check_layers(net, layers)
        self.mixer = KMixup(**options) if mixer is None else mixer
        learns = self.mixer.learns and any(self.layers)
        if self.mixer.encodes_clean or self.mixer.has_memory or learns:
            raise ValueError(
                "mixer must mix the outputs of a layer as they are in this step, got "
                f"{type(self.mixer).__name__}, which learns with the network or needs earlier "
                "samples or another shape: mix the input with it"
            )

    @eager
    def forward(self, x: Nest, y: Nest = None, *args: Any, **kwargs: Any) -> tuple[Any, Nest]:
        """Return the network's output and soft targets; targets unchanged in `.eval()` mode.

        `x`, `y`, `args` and `kwargs` are those of `mix`.
        """
        if not self.mixer.training:
            return self._run(x, *args, **kwargs), y
        self.mixer.check_targets_suffice()
        output, mixed = self.mix(x, y, None, *args, **kwargs)
        return output, mixed.y

    @eager
    def mix(
        self, x: Nest, y: Nest = None, draw: Draw | None = None, *args: Any, **kwargs: Any
    ) -> tuple[Any, Mixed]:
        """Run the network, mix at a layer, and return the output and a `Mixed` record of the layer.

        Args:
            x: the first argument of the network; integers (token ids) only where no
                input is mixed.
            y: targets `(n, ...)`; integers are classes, floats are interpolated.
            draw: the layer and the random draws, from `draw(n)`; made here by default.
            args, kwargs: further arguments of the network.

        Raises:
            RuntimeError: if the network did not call the layer.
        """
        n = batch_length(x if y is None else y)
        if draw is None:
            if self.mixer.training:
                warn_short(n, self.mixer.block_size)
            entries = mixed_entries(x, self.mixer.mixes)
            draw = self.draw(n, tuple(entries[0].shape[1:]) if entries else ())
        hidden = HiddenDraw.of(draw) or HiddenDraw(draw, 0)
        name = self.layers[hidden.layer]
        if name == "":
            mixed = self.mixer.mix(x, y, hidden.inner)
            return self._run(mixed.x, *args, **kwargs), mixed
        call = _Call(self, name, y, n, hidden.inner)
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

    def draw(
        self, n: int, shape: tuple[int, ...] = (), *, source: Source | None = None
    ) -> HiddenDraw:
        """Return a random layer and draws for mixing `n` samples there.

        Args:
            n: number of samples.
            shape: the shape of one input, for interpolations that need it at the layer "".
            source: where to draw from, by default the mixer's own source.
        """
        layer = 0
        if source is None and self.mixer.training:
            source = self.mixer._source.of_rank()
        if len(self.layers) > 1 and self.mixer.training:
            generator = (self.mixer._source if source is None else source).here()
            device = device_of(generator)
            layer = int(torch.randint(len(self.layers), (), generator=generator, device=device))
        known = shape if self.layers[layer] == "" else ()
        return HiddenDraw(self.mixer.draw(n, known, source=source), layer)

    @eager
    def _mix(self, module: nn.Module, inputs: Any, output: Nest) -> Nest:
        """The forward hook of the drawn layer."""
        call = _CALL.get()
        if call is None or call.owner is not self or call.mixed is not None:
            return output
        leaves, structure = pytree.tree_flatten(output)
        floats = {
            i: leaf
            for i, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor) and leaf.is_floating_point()
        }
        shapes = [tuple(leaf.shape) for leaf in floats.values()]
        if not shapes or any(shape[:1] != (call.n,) for shape in shapes):
            raise ValueError(
                f"layer {call.layer!r} must return floating-point tensors whose first dimension "
                f"is the batch of {call.n}, got shapes {shapes}: choose another layer "
                "(modules for sequences have batch_first=True)"
            )
        # a mixer may take one tensor only
        entries = next(iter(floats.values())) if len(floats) == 1 else list(floats.values())
        mixed = self.mixer.mix(entries, call.y, call.draw)
        for i, leaf in zip(floats, pytree.tree_leaves(mixed.x), strict=True):
            leaves[i] = leaf
        call.mixed = replace(mixed, x=pytree.tree_unflatten(leaves, structure))
        return call.mixed.x

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        with hooks_guarded():
            return self.net(*args, **kwargs)

    def extra_repr(self) -> str:
        return f"layers={self.layers}"


@dataclass(eq=False)
class _Call:
    """A forward pass under way: what its hook mixes, and the result once it has."""

    owner: HiddenMixup
    layer: str
    y: Nest
    n: int
    draw: Draw
    mixed: Mixed | None = None


# The forward pass of this thread. It is no attribute of the module, which threads share; and
# no closure of the hook, for which a compiled network would be compiled again at every call.
_CALL: ContextVar[_Call | None] = ContextVar("kmixup forward pass", default=None)
