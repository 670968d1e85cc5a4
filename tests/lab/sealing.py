"""Data whose test set must not be looked at too early."""

import numpy as np
import torch


def own(path, *, shift):
    """A table of two clouds with a fixed test set, which `shift` moves and relabels."""
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 3)) + np.arange(60)[:, None] % 2
    test = random.normal(size=(20, 3)) + shift
    labels = (np.arange(20) + int(shift > 0)) % 2
    np.savez(path, x=x, y=np.arange(60) % 2, x_test=test, y_test=labels)
    return str(path)


class Sealed(torch.Tensor):
    """Samples that may be counted, and nothing else until they are opened."""

    opened = False

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not (cls.opened or func in (torch.Tensor.__len__, torch.Tensor.shape.__get__)):
            raise AssertionError(f"a test sample was read by {func}")
        return super().__torch_function__(func, types, args, kwargs or {})
