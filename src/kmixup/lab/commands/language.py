"""Sentences of the library in the words of the command: `resume=True` becomes `--resume`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

QUOTES = "'\""
VALUE = r"\.\.\.|\(\d+, \d+\)|'[^']*'|\"[^\"]*\"|[\w.+-]*\w"


def in_options(sentence: str, options: Mapping[str, str]) -> str:
    """Write the arguments that a sentence names as options of the command.

    The library names an argument by its value (`k=4`, `resume=True`, or `out=...` for any
    value), by a name that is no word of English (`batch_size`), or at the start of a sentence.

    Args:
        sentence: an error of the library.
        options: the option of each argument of the command, e.g. {"batch_size": "--batch-size"}.

    >>> options = {"resume": "--resume", "out": "--out", "batch_size": "--batch-size", "k": "--k"}
    >>> in_options("run holds a run: go on with resume=True, or choose another out=...", options)
    'run holds a run: go on with --resume, or choose another --out'
    >>> in_options("batch_size must be at least k=200: raise batch_size or lower k", options)
    '--batch-size must be at least --k 200: raise --batch-size or lower k'
    >>> in_options("stretch all with resize=(12, 16)", {"resize": "--resize"})
    'stretch all with --resize 12x16'
    """

    def option(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        opening = match.start() == 0 and sentence[match.end() :].startswith(" ")
        told = value is not None or "_" in name or opening
        if name not in options or not told:
            return match[0]
        if value in (None, "True", "..."):
            return options[name]
        if value.startswith("("):
            return f"{options[name]} {value[1:-1].replace(', ', 'x')}"
        return f"{options[name]} {shlex.quote(value.strip(QUOTES))}"

    return re.sub(rf"(?<![\w.(/-])(?P<name>[a-z_]+)\b(?:=(?P<value>{VALUE}))?", option, sentence)


def with_value(sentence: str, words: Sequence[str]) -> str:
    """Say what was typed where a number was wanted; typer says only what it should have been.

    >>> with_value("Invalid value for '--k': not a valid integer", ["train", "--k", "many"])
    "--k must be a whole number, got 'many'"
    """
    match = re.fullmatch(r"Invalid value for '(--[\w-]+)': (.*)", sentence)
    kinds = {"integer": ("a whole number", int), "number": ("a number", float)}
    kind = next((kinds[word] for word in kinds if match and word in match[2]), None)
    if match is None or kind is None:
        return sentence
    option, (noun, read) = match[1], kind
    typed = [after for word, after in pairwise(words) if word == option]
    typed += [word[len(option) + 1 :] for word in words if word.startswith(f"{option}=")]
    wrong = next((text for text in typed if not _reads(read, text)), None)
    return sentence if wrong is None else f"{option} must be {noun}, got {wrong!r}"


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def options_of(command: Any, words: Sequence[str]) -> dict[str, str]:
    """The options of the command that was typed, by the names of their arguments.

    Args:
        command: the whole command, as typer hands it to click.
        words: what was typed after its name.
    """
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    flags = {parameter.name: parameter.opts[0] for parameter in command.params}
    return {name: flag for name, flag in flags.items() if flag.startswith("--")}
