"""k-mixup inside other frameworks: one module for each, imported only on use."""

from importlib.util import find_spec


def require(package: str, extra: str) -> None:
    """Raise if a package that an integration extends is not installed, with the line to install it.

    >>> require("numpy", extra="sklearn")
    """
    if find_spec(package) is None:
        raise ModuleNotFoundError(
            f"this integration needs {package}, which is not installed: "
            f'pip install "kmixup[{extra}]"',
            name=package,
        )
