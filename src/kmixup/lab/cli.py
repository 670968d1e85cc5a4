"""The command `kmixup`: what goes wrong is said in one sentence, and no traceback."""

from __future__ import annotations

import sys
import warnings
from typing import Any, NoReturn

# what the extra kmixup[lab] brings, by the names of the modules
LAB = (
    "typer",
    "rich",
    "lightning_fabric",
    "pooch",
    "tqdm",
    "sklearn",
    "PIL",
    "matplotlib",
    "jinja2",
)

BAD_INPUT, INTERRUPTED = 2, 130


def main() -> None:
    """Run the command on the arguments of the process."""
    warnings.showwarning = _say_warning
    try:
        code = _command()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LAB:
            raise
        _leave(f'the lab needs {error.name}, which is not installed: pip install "kmixup[lab]"')
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(code)


def _command() -> int:
    import typer

    from kmixup.lab.commands import app
    from kmixup.lab.prepare import DivergedError

    # the base of all errors of usage, in click or in typer's own copy of it
    usage_error: Any = typer.BadParameter.__mro__[1]
    try:
        return int(app(standalone_mode=False, prog_name="kmixup") or 0)
    except usage_error as error:
        _leave(error.format_message().rstrip("."))
    except (ValueError, OSError, DivergedError) as error:
        _leave(str(error))
    except typer.Abort:
        return INTERRUPTED


def _leave(sentence: str) -> NoReturn:
    print(f"kmixup: {sentence}", file=sys.stderr)
    sys.exit(BAD_INPUT)


def _say_warning(message: Warning | str, *where: object, **more: object) -> None:
    print(f"kmixup: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
