"""What a session's workers ran: for each side its tree, folders and compiled files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

WRONG_CODE = "wrong_code"
"""The kind of failure of a case whose worker ran what isn't its side's code."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A shared library of a side's tree that its workers loaded, and its content's SHA-256."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class SideRan:
    """What one side's workers ran. Paths are relative to its tree.

    ``tree`` is git's hash of the tree that was checked out, uncommitted changes included.
    ``folders`` are those that modules were imported from. ``outside`` are files in the user's
    checkout that no tree has (weights, say), the same for both sides. ``installed`` are packages of
    the project that both sides imported from one installed copy, because the configuration lets
    them. ``unknown`` says what could not be seen of what ran: ``program NAME`` for one that is no
    Python, ``unseen fork`` for a child that ended at once. ``cases`` has a hash of all that a case
    used, where that is known: equal ones ran the same code.
    """

    tree: str
    folders: tuple[str, ...] = ()
    compiled: tuple[Compiled, ...] = ()
    outside: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    cases: Mapping[str, str] = field(default_factory=dict)
    installed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """What ran on both sides; ``base`` is None where one side was measured alone."""

    base: SideRan | None
    head: SideRan
