"""The command `kmixup`: whatever goes wrong is one sentence and an exit code, no traceback."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

# names of the modules that the extra kmixup[lab] installs
LAB = (
    "filelock",
    "typer",
    "rich",
    "safetensors",
    "lightning_fabric",
    "pooch",
    "requests",
    "tqdm",
    "sklearn",
    "PIL",
    "matplotlib",
    "jinja2",
)

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

# how torch says that the machine has too little memory, where it raises a plain RuntimeError
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


def main(ready: Callable[[], object] = lambda: None) -> None:
    """Run the command on the arguments of the process; `ready` is called after all imports."""
    warnings.showwarning = _say_warning
    try:
        code = _command(sys.argv[1:], ready)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LAB:
            raise
        _leave(f'the lab needs {error.name}, which is not installed: pip install "kmixup[lab]"')
    except KeyboardInterrupt:
        _leave("stopped", INTERRUPTED)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(
            words in str(error) for words in OUT_OF_MEMORY
        ):
            raise
        _leave(
            "this machine has too little memory for that: take fewer samples (--limit), smaller "
            "batches or a smaller network",
            FAILED,
        )
    sys.exit(code)


def _command(words: list[str], ready: Callable[[], object]) -> int:
    import typer

    from kmixup.lab.commands import app
    from kmixup.lab.commands.language import in_options, options_of, with_value
    from kmixup.lab.train.setup import DivergedError

    # the base of all errors of usage, in click or in typer's own copy of it
    usage_error: Any = typer.BadParameter.__mro__[1]
    command = typer.main.get_command(app)
    ready()
    try:
        return int(command(words, standalone_mode=False, prog_name="kmixup") or 0)
    except usage_error as error:
        _leave(with_value(error.format_message().rstrip("."), words))
    except (ValueError, OSError, DivergedError) as error:
        _leave(in_options(str(error), options_of(command, words)))
    except typer.Abort:
        return INTERRUPTED


def _leave(sentence: str, code: int = BAD_INPUT) -> NoReturn:
    print(f"kmixup: {sentence}", file=sys.stderr)
    sys.exit(code)


def _say_warning(message: Warning | str, *where: object, **more: object) -> None:
    print(f"kmixup: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
