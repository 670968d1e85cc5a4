"""State of modules beyond their tensors, saved in checkpoints where there is any."""

from __future__ import annotations

from typing import Any

from torch import nn


class Resumable(nn.Module):
    """A module whose extra state may be missing from a checkpoint.

    Extra state that is None is left out of `state_dict()`. If a checkpoint has none,
    `missing_extra_state` is called instead of raising.
    """

    def get_extra_state(self) -> Any:
        return None

    def set_extra_state(self, state: Any) -> None:
        pass

    def missing_extra_state(self) -> None:
        """Handle a checkpoint without extra state for this module."""

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
