"""What a side's build consists of, read and checked, and the key under which it is kept."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfci.checkout.repository import Resolved
from perfci.errors import UsageError

BUILD_TIMEOUT_S = 1800.0
_QUOTED_OR_SHELL = re.compile(
    r"""\\. | '[^']*' | "(?:\\.|[^"\\])*" | (?P<shell> && | \|\| | >> | \$\( | [;|&<>`] )""",
    re.VERBOSE | re.DOTALL,
)
"""What is quoted is skipped, so that what is found as ``shell`` stands outside."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A build: the tree (and a commit of it), what is run in it, and how. ``timeout`` is in s.

    ``enter`` is a command that goes before each: it takes them out of others' reach.
    """

    tree: str
    commit: str
    commands: tuple[tuple[str, ...], ...]
    python: str
    environment: Mapping[str, str] = field(repr=False)  # may hold what no log should show
    timeout: float = BUILD_TIMEOUT_S
    enter: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Equal for builds that can stand for each other: same tree, commands and Python.

        The environment and what is installed in that Python are not part of it.
        """
        parts = [self.tree, self.python, *("\0".join(command) for command in self.commands)]
        text = "\0\0".join(parts)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def make_recipe(
    resolved: Resolved,
    build: Sequence[str],
    python: str,
    environment: Mapping[str, str],
    timeout: float,
    enter: tuple[str, ...] = (),
) -> Recipe:
    """Return the recipe of ``build`` commands. UsageError for one that can't be read."""
    commands = tuple(_words(command, python) for command in build)
    return Recipe(resolved.tree, resolved.commit, commands, python, environment, timeout, enter)


def _words(command: str, python: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _unreadable(command, str(error).lower()) from error
    if not words:
        raise _unreadable(command, "it is empty")
    found = (match["shell"] for match in _QUOTED_OR_SHELL.finditer(command))
    if shell := next(filter(None, found), None):
        raise _unreadable(command, f"{shell} needs a shell")
    return tuple(word.replace("{python}", python) for word in words)


def _unreadable(command: str, why: str) -> UsageError:
    return UsageError(
        "bad-build-command",
        f"build command {command!r} can't be run: {why}",
        "Commands run without a shell, one after the other: give each its own text in `build`, "
        "quote what is meant as it stands, or write \"bash -c '…'\".",
    )
