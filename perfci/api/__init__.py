"""HOW a benchmark is written and found.

Imports only the standard library, and torch if a benchmark asks for it. Definitions raise
``BenchmarkError`` with file and line. Nothing here measures or prints.
"""

from __future__ import annotations

import inspect
import math
import os
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from perfci.errors import BenchmarkError

_PACKAGE = str(Path(__file__).parent.parent) + "/"
_PARENT_DEATH = str(Path(__file__).with_name("parent_death.py"))


def user_frame() -> str:
    """Return ``file:line`` of the innermost frame outside perfci, or an empty text."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def require_right(function: str, slug: str, wrongs: Iterator[str], advice: str) -> None:
    """Raise BenchmarkError for the first error in the arguments of ``perfci.FUNCTION``."""
    if wrong := next(wrongs, ""):
        raise BenchmarkError(slug, f"{user_frame()}: perfci.{function}: {wrong}", advice)


def all_of(value: object, *types: type) -> TypeGuard[Collection[object]]:
    """Return whether ``value`` is a non-empty collection, not a text, of members of these types."""
    return (
        isinstance(value, Collection)
        and not isinstance(value, (str, bytes))
        and bool(value)
        and all(isinstance(each, types) for each in value)
    )


def are_texts(value: object) -> bool:
    """Return whether ``value`` maps texts to texts."""
    return isinstance(value, Mapping) and all(
        isinstance(text, str) for text in (*value, *value.values())
    )


def is_command(words: object) -> bool:
    """Return whether ``words`` are a program and its arguments."""
    return all_of(words, str, os.PathLike) and "" not in list(words)[:1]


def is_count(value: object) -> bool:
    """Return whether ``value`` is a whole number above zero."""
    return type(value) is int and value > 0


def is_positive(value: object) -> bool:
    """Return whether ``value`` is a finite number above zero."""
    return is_number(value) and value > 0  # type: ignore[operator]


def is_number(value: object) -> bool:
    """Return whether ``value`` is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def tied_command(words: Sequence[str]) -> list[str]:
    """Return the words that start a command, which the kernel kills when this process ends."""
    return [sys.executable, "-P", _PARENT_DEATH, str(os.getpid()), *words]


def how_it_ended(code: int) -> str:
    """Return how a process with this exit code ended, as the end of a sentence."""
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"ended with exit code {code}"
