"""Notices of a use case on its way, one line at a time, to its caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Announce = Callable[[str], None]
"""Takes one line of what is about to be done, which stays."""


class Say(Protocol):
    """Takes one line. ``err`` is for lines besides the result, such as a warning."""

    def __call__(self, text: str, *, err: bool = False) -> None:
        """Show, keep or drop ``text``, which may quote untrusted names."""


def silent(text: str, *, err: bool = False) -> None:
    """Drop a notice."""


def unheard(_: object) -> None:
    """Drop a line."""
