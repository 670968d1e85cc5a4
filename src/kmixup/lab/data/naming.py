"""Names that a user may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LISTED = 12


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known names that are like a name, in any case of letters, or else the first of all.

    >>> did_you_mean("tumor", ["age", "Tumour"]), did_you_mean("x", ["age", "Tumour"])
    ("did you mean 'Tumour'?", 'there are age, Tumour')
    """
    names = list(known)
    lower = {each.lower(): each for each in reversed(names)}
    if close := get_close_matches(name.lower(), lower, n=3):
        return f"did you mean {' or '.join(repr(lower[each]) for each in close)}?"
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"there are {', '.join(names[:LISTED])}{more}"
