"""Docstrings as the site shows them.

Doctests become code, public names become links, and arguments that share a line get one each.
"""

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent)\S.*)*", re.M)
FLAGS = re.compile(r" *# doctest: .*$", re.M)
SEVERAL = re.compile(r"^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +.*)*)", re.M)
NAME = re.compile(r"(?<![`\[])`(\w+)`(?![`\]])")


def shown(text: str, public: dict[str, str]) -> str:
    """Markdown of a docstring; `public` has the full path of every public name.

    >>> print(shown("See `match`.", {"match": "kmixup.match"}))
    See [`match`][kmixup.match].
    """

    def fenced(match: re.Match[str]) -> str:
        indent = match["indent"]
        return f"{indent}```pycon\n{FLAGS.sub('', match[0])}\n{indent}```"

    def linked(match: re.Match[str]) -> str:
        path = public.get(match[1])
        return f"[`{match[1]}`][{path}]" if path else match[0]

    def apart(match: re.Match[str]) -> str:
        return "\n".join(f"{match[1]}{name}: {match[3]}" for name in match[2].split(", "))

    return DOCTEST.sub(fenced, NAME.sub(linked, SEVERAL.sub(apart, text)))


class Shown(griffe.Extension):
    """Rewrites every docstring as it is read."""

    def __init__(self) -> None:
        from kmixup import __all__ as names

        self.public = {name: f"kmixup.{name}" for name in names}

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            own = {name: path for name, path in self.public.items() if name != obj.name}
            obj.docstring.value = shown(obj.docstring.value, own)
