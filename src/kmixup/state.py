"""Generators of modules, whose state is saved in checkpoints."""

from __future__ import annotations

from typing import Any

from torch import Generator, nn

from kmixup.compiling import warn_user
from kmixup.randomness import Source


class Resumable(nn.Module):
    """A module with a generator, whose state is part of `state_dict()`.

    A checkpoint without that state, or with a state that this module has no generator for, warns
    instead of raising. Extra state that is None is left out of `state_dict()`.
    """

    def __init__(self, generator: Generator | None = None) -> None:
        super().__init__()
        self._source = Source(generator)

    @property
    def generator(self) -> Generator | None:
        return self._source.generator

    @generator.setter
    def generator(self, generator: Generator | None) -> None:
        self._source = Source(generator)

    def get_extra_state(self) -> Any:
        """Return the state of the generator."""
        return None if self.generator is None else self.generator.get_state()

    def set_extra_state(self, state: Any) -> None:
        if self.generator is not None:
            self.generator.set_state(state.cpu())
            return
        warn_user(
            "the checkpoint has a generator and this mixer has none, so it will not repeat the "
            "draws of that run: create it with generator=torch.Generator()"
        )

    def missing_extra_state(self) -> None:
        """Handle a checkpoint without extra state for this module."""
        if self.generator is not None:
            warn_user(
                "the checkpoint has no state for this mixer's generator, so it will not repeat the "
                "draws of that run: save the state_dict() of the mixer as well"
            )

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, *more: Any) -> None:
        super()._save_to_state_dict(destination, prefix, *more)
        if destination[key := f"{prefix}_extra_state"] is None:
            del destination[key]

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        *more: Any,
    ) -> None:
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, *more
        )
        if (key := f"{prefix}_extra_state") not in state_dict:
            self.missing_extra_state()
        if key in missing_keys:
            missing_keys.remove(key)
