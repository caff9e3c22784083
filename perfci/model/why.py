"""Why one case moved: the differences between the sides that instruments find inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.finding import Plain

MOST_STACK_S = 1e9
"""Longest time of a stack, in s. It is longer than any call, so a larger one isn't believed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the sides that one instrument found."""

    instrument: str
    code: str
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    seconds: float = 0.0
    bytes: float = 0.0
    metric: str = ""
    file: str = ""
    line: int = 0
    hunk: bool = False
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Hint:
    """A frequent mistake that a profile of head shows. It is no reason for any verdict."""

    instrument: str
    code: str
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of functions, and its share of a call's time on each side, in s."""

    frames: tuple[str, ...]
    base: float
    head: float


@dataclass(frozen=True, slots=True)
class Why:
    """The differences that explain why one case moved."""

    case: str
    differences: tuple[Difference, ...] = ()
    hints: tuple[Hint, ...] = ()
    untold: Mapping[str, str] = field(default_factory=dict)
    stacks: tuple[Stack, ...] = ()
