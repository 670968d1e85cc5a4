"""The loss of methods that learn, which has a penalty beside the loss of the samples."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from kmixup.wrappers.clean import BesideClean


@dataclass(frozen=True, eq=False)
class Penalised(BesideClean):
    """Mixed and clean samples, and a penalty that their loss includes.

    Attributes:
        extra: the penalty, a scalar.
    """

    extra: Tensor = field(kw_only=True, repr=False)

    @property
    def penalty(self) -> Tensor:
        return self.extra
