"""A why as lines of text, which each renderer escapes for itself."""

from __future__ import annotations

from collections.abc import Iterator

from perfci.instruments import words
from perfci.model.why import Difference, Hint, Why


def difference_text(one: Difference | Hint) -> str:
    """Return it in English, with its place in the code."""
    place = f", {one.file}:{one.line}" if one.file and one.line else ""
    return f"{words(one)}{place}"


def first_line(why: Why) -> str:
    """Return the likeliest reason, or nothing where there is none."""
    return difference_text(why.differences[0]) if why.differences else ""


def untold_lines(why: Why) -> Iterator[str]:
    """Yield what could not be said, and why not; several of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in why.untold.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"{', '.join(filter(None, names)) or 'why'}: {reason}"


def why_lines(why: Why) -> Iterator[str]:
    """Yield a why in lines: the differences, then hints, then what could not be said."""
    if not why.differences and not why.untold:
        yield "nothing differs inside"
    for one in why.differences:
        yield f"{difference_text(one)}{' (a changed line)' if one.hunk else ''}"
    for hint in why.hints:
        yield f"hint: {difference_text(hint)}"
    for line in untold_lines(why):
        yield f"not told by {line}"
