"""Telling the library that sees looks from below (``looks.c``) what to leave out.

It takes its orders as paths that are asked for by ``access(2)``: without it, nothing is there.
"""

from __future__ import annotations

import os

ask = os.access
_CONTROL = b"/\x01perfci-looks/"
PAUSE, GO_ON = _CONTROL + b"+", _CONTROL + b"-"
"""Orders, for ``ask(order, 0)``: leave out what this thread looks at, until it may go on."""


def begin() -> bool:
    """Have it record what this process looks at; return whether it is there and does."""
    return ask(_CONTROL + b"b", 0)


def keep() -> None:
    """Have it keep lines until ``is_complete`` asks for them; a fork writes each at once again."""
    ask(_CONTROL + b"k", 0)


def is_complete() -> bool:
    """Have it write down what it kept; return whether all that it saw is written down."""
    return ask(_CONTROL + b"c", 0)


def leave_out_listing() -> None:
    """Have it leave out the folder that this thread is about to list."""
    ask(_CONTROL + b"l", 0)
