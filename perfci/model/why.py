"""Why a case moved: what instruments found that differs inside, ranked, and what they could not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfci.model.finding import Plain

MOST_STACK_S = 1e9
"""Longer than any call: a page adds stacks up."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What one instrument found to differ between the sides, as a code with its arguments.

    ``seconds`` is how much slower that made a call of head, or its start, and ``bytes`` how much
    larger; below zero where it is better, 0 where that isn't known. ``metric`` is what such a
    difference moves, or what the names of its metrics begin with: ``latency``, ``cold_start``,
    ``import_time``, ``compile_time``, ``peak_host_memory``, ``peak_device_memory``. ``file`` is
    relative to head's tree, where it is in one, and ``hunk`` says that its line was changed. One
    that is not ``exact`` may be variance between processes, of which a side has one here.
    """

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
    """What a profile of head shows that is often a mistake. It is no reason for any verdict."""

    instrument: str
    code: str
    arguments: Mapping[str, Plain] = field(default_factory=dict)
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of functions, the outermost first, and what it takes of a call on each side, in s."""

    frames: tuple[str, ...]
    base: float
    head: float


@dataclass(frozen=True, slots=True)
class Why:
    """Why one case moved: the differences, the first the likeliest reason.

    ``stacks`` are where both sides' calls spend their time on the host, those that take most.
    ``untold`` says by instrument why it could not say anything, ``""`` standing for all of them.
    """

    case: str
    differences: tuple[Difference, ...] = ()
    hints: tuple[Hint, ...] = ()
    untold: Mapping[str, str] = field(default_factory=dict)
    stacks: tuple[Stack, ...] = ()
