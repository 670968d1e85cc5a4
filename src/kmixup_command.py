"""The `kmixup` command: subcommands that are imported when they run, and its error messages.

It lives outside the package, because importing anything inside imports torch, which takes
seconds: `kmixup --help` and `--version` don't, and Ctrl-C during those imports ends quietly.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from cyclopts import App, ArgumentCollection

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

# subcommand of kmixup.lab.commands: an example and what it does
COMMANDS = {
    "train": ("iris --k 16", "train one network"),
    "predict": ("RUN new.csv", "predict new samples, or score labelled ones"),
    "tune": ("iris", "choose k and alpha for your data"),
    "inspect": ("table.csv", "see what k and alpha do to your data"),
    "compare": ("iris cancer", "test whether methods differ at equal budgets"),
    "sweep": ("grid.toml", "train your own grid"),
    "repair": ("out/grid", "check and repair the rows of a sweep"),
    "reproduce": ("toy", "re-run an experiment of the paper"),
    "figures": ("couplings", "draw the paper's figures, or yours"),
    "data": ("list", "list, describe and download data sets"),
}

MODULES = {"repair": "sweep"}  # others are in modules of their name

RENAMED = {
    "bench": "reproduce cost",
    "calibrate": "inspect",
    "evaluate": "predict --score",
    "league": "compare",
}

# optional dependencies: modules of each extra
EXTRAS = {
    "lab": (
        "cyclopts", "filelock", "jinja2", "matplotlib", "optuna", "pandas", "PIL", "pooch", "rich",
        "safetensors", "sklearn", "tqdm",
    ),
    "ray": ("ray",),
}  # fmt: skip

# A terminal obeys control characters, and lines look different with those of their direction.
# Line ends and tabs stay.
UNPRINTABLE = dict.fromkeys(
    [*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)

# how torch says that memory ran out, where it raises a plain RuntimeError
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


def printable(text: str) -> str:
    """Leave out control characters: names and errors may come from files of others."""
    return text.translate(UNPRINTABLE)


class _Printed:
    """A stream that writes only what is printable. Rich looks for the stream behind it."""

    def __init__(self, stream: IO[str]) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        return self.rich_proxied_file.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    os.environ["PYTHONSAFEPATH"] = "1"  # workers import nothing from the current folder
    sys.excepthook = _print_traceback
    out, err = (cast(IO[str], _Printed(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        code = _run()
    sys.exit(code)


def _run() -> int:
    import signal
    import warnings

    warnings.showwarning = lambda message, *where, **more: _print_error(str(message))
    before = signal.signal(signal.SIGINT, _leave_at_once)
    try:
        words = sys.argv[1:]
        command, bound, _ = make_app().parse_args(words, print_error=False, exit_on_error=False)
        signal.signal(signal.SIGINT, before)  # the module of the subcommand is imported
        code = command(*bound.args, **bound.kwargs) or 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        _print_error("stopped")
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has left, e.g. `kmixup data list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except Exception as error:
        message, code = _explain(error)
        _print_error(message)
    finally:
        signal.signal(signal.SIGINT, before)
    return code


def make_app() -> App:
    """Return the app with its subcommands, none of which is imported before it runs."""
    from importlib.metadata import version

    from cyclopts import App, Parameter

    width = max(len(f"{name} {example}") for name, (example, _) in COMMANDS.items())
    lines = [
        f"kmixup {f'{name} {example}':<{width}}  {summary}"
        for name, (example, summary) in COMMANDS.items()
    ]
    app = App(
        name="kmixup",
        help="k-mixup: mixup along optimal-transport matchings.\n\n"
        + "\n".join(["```", *lines, "```", "kmixup COMMAND --help has options and examples."]),
        help_format="markdown",
        config=_check_whole_numbers,
        usage="Usage: kmixup COMMAND [OPTIONS]",
        version=lambda: f"kmixup {version('kmixup')}",
        default_parameter=Parameter(negative_iterable=(), negative_none=()),
    )
    for flag in ("--help", "--version"):
        app[flag].group = "Options"
    for name in COMMANDS:  # hidden, because a list of commands would import them all
        app.command(f"kmixup.lab.commands.{MODULES.get(name, name)}:{name}", name=name, show=False)
    return app


def _check_whole_numbers(
    app: App, commands: tuple[str, ...], arguments: ArgumentCollection
) -> None:
    """Raise on a fraction for a whole number, which would be cut to one silently."""
    from cyclopts import CoercionError

    for argument in arguments:
        if int in _leaves(argument.hint) and argument.parameter.converter is None:
            for token in argument.tokens:
                if token.value and not token.value.lstrip("+-").replace("_", "").isdecimal():
                    raise CoercionError(argument=argument, token=token, target_type=int)


def _leaves(hint: Any) -> set[Any]:
    """Return the types that a type hint is made of."""
    return {hint}.union(*map(_leaves, getattr(hint, "__args__", ())))


def _explain(error: Exception) -> tuple[str, int]:
    """Return the message for a user's mistake, and the exit code; raise on what is a bug."""
    if isinstance(error, ImportError):
        return _missing_extra(error), BAD_INPUT
    lacking = isinstance(error, RuntimeError) and any(w in str(error) for w in OUT_OF_MEMORY)
    if lacking or isinstance(error, MemoryError):
        where = f" ({error})" if isinstance(error, MemoryError) and str(error) else ""
        advice = "use fewer samples (--limit), smaller batches or a smaller network"
        return f"out of memory{where}: {advice}", FAILED
    from cyclopts import CycloptsError, UnknownCommandError

    if isinstance(error, UnknownCommandError) and not error.command_chain:
        return _unknown_command(sys.argv[1]), BAD_INPUT
    if isinstance(error, CycloptsError):
        if not isinstance(error.__cause__, ValueError):
            command = " ".join(["kmixup", *(error.command_chain or ())])
            return f"{error} See {command} --help.", BAD_INPUT
        error = error.__cause__  # a converter has raised it
    return _problem(error), BAD_INPUT


def _problem(error: Exception) -> str:
    """Return the message for a mistake that the lab has found; raise on what is a bug."""
    from kmixup._checks import SettingError
    from kmixup.lab.train.setup import DivergedError

    if isinstance(error, SettingError):
        _, apps, _ = make_app().parse_commands(sys.argv[1:])
        arguments = apps[-1].assemble_argument_collection()
        names = {name for argument in arguments for name in argument.names}
        return error.as_option(names)
    if isinstance(error, OSError) and error.filename is not None:
        place = f"{error.filename} cannot be used ({error.strerror})"
        return f"{place}: check the path and its rights, or name another"
    if isinstance(error, (ValueError, OSError, DivergedError)):
        return str(error)
    raise error


def _unknown_command(name: str) -> str:
    """Suggest the command that was probably meant."""
    if name in RENAMED:
        return f"{name!r} is now kmixup {RENAMED[name]}"
    from kmixup._checks import did_you_mean  # imports torch

    return f"unknown command {name!r}: {did_you_mean(name, COMMANDS)}"


def _missing_extra(error: ImportError) -> str:
    """Name the extra that has a missing module; other modules keep their traceback."""
    missing = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    for extra, modules in EXTRAS.items():
        if missing.name and missing.name.partition(".")[0] in modules:
            return (
                f'this needs {missing.name}, which is not installed: pip install "kmixup[{extra}]"'
            )
    raise missing


def _print_error(sentence: str) -> None:
    print(f"kmixup: {sentence}", file=sys.stderr)


def _print_traceback(*error: Any) -> None:
    """Print the traceback of a bug, whose message may have text of a file."""
    import traceback

    print(printable("".join(traceback.format_exception(*error))), end="", file=sys.stderr)


def _leave_at_once(*interrupt: object) -> None:
    """End the process: an exception might be swallowed by whatever is being imported."""
    os.write(2, b"kmixup: stopped\n")
    os._exit(INTERRUPTED)
