"""How a use case says something on its way: a line at a time, to whoever called it."""

from __future__ import annotations

from typing import Protocol


class Say(Protocol):
    """Takes one line; ``err`` is for what stands beside the result, such as a warning."""

    def __call__(self, text: str, *, err: bool = False) -> None:
        """Show, keep or drop ``text``, which may quote untrusted names."""


def silent(text: str, *, err: bool = False) -> None:
    """Drop a notice."""
