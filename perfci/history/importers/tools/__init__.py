"""The tools whose files of results are read: a module each, which is all it takes to add one.

A module (or what an entry point of the group ``perfci.importers`` names) has what ``Importer`` asks
for; ``importers`` finds them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol, cast

from perfci.history.importers.gathering import Foreign
from perfci.plugins import added_plugins, built_in_modules, missing_attributes

GROUP = "perfci.importers"


class Importer(Protocol):
    """What reads one tool's files.

    ``TOOL`` is its name in messages. ``COMPANIONS`` are files that hold no results but explain
    those of their folder, by name, each with what reads its JSON: ``read(plain, path)``.
    """

    TOOL: str
    COMPANIONS: Mapping[str, Callable[[Any, str], Any]]

    def recognised(self, plain: Any, /) -> bool:
        """Return whether this JSON is a file of the tool's results."""

    def read(self, plain: Any, name: str, beside: Callable[[str], Any], /) -> Foreign:
        """Return what the file ``name`` holds.

        ``beside(file)`` gives a companion of the file's folder, or of the nearest one above it, as
        ``COMPANIONS`` read it, or None. Raises DamagedFile for a file that can't be believed.
        """


@cache
def importers() -> tuple[Importer, ...]:
    """Return perfci's own, then those of other distributions. UsageError for a broken one."""
    others = added_plugins(
        GROUP, lambda one: missing_attributes(one, "TOOL", "COMPANIONS", "recognised", "read")
    )
    found = (*built_in_modules(sys.modules[__name__]), *others)
    return tuple(cast("Importer", one) for _, one in found)
