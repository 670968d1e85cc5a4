"""Docstrings as the site shows them.

Doctests become code, public names become links, and arguments that share a line get one each.
"""

import re
from importlib import import_module
from typing import Any

import griffe

DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent)\S.*)*", re.M)
FLAGS = re.compile(r" *# doctest: .*$", re.M)
SEVERAL = re.compile(r"^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +.*)*)", re.M)
PACKAGES = ("kmixup", "kmixup.inspection", "kmixup.theory", "kmixup.lab")
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
        pages: dict[int, str] = {}  # a name that two packages share has one page, of the first
        self.public: dict[str, dict[str, str]] = {}
        for package in PACKAGES:
            module = import_module(package)
            self.public[package] = {
                name: pages.setdefault(id(getattr(module, name)), f"{package}.{name}")
                for name in module.__all__
            }

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Link names of the library everywhere, those of a package in its own docstrings."""
        if obj.docstring is not None:
            names = {
                name: path
                for package in PACKAGES
                if obj.path.startswith(f"{package}.")
                for name, path in self.public[package].items()
            }
            names.pop(obj.name, None)
            obj.docstring.value = shown(obj.docstring.value, names)
