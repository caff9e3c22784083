"""Registries: the modules of one of perfci's packages, and what other distributions add to them.

One module is all it takes to add one: it is found by being in the package, or by an entry point
of the package's group (``perfci.importers``, say) in anybody's distribution. Standard library
only: workers use it too.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from perfci.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def built_in(package: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the modules of ``package`` by name, in order of their names."""
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda one: one.name):
        yield found.name, importlib.import_module(f"{package.__name__}.{found.name}")


def added(group: str, check: Callable[[Any], str]) -> Iterator[tuple[str, Any]]:
    """Yield what entry points of ``group`` add, by name, in order of their names.

    ``check`` returns what is wrong with one, or nothing. Raises UsageError for one that can't be
    imported or is wrong: it names the entry point and its distribution.
    """
    from importlib.metadata import entry_points  # 30 ms, of which a worker has no use

    for point in sorted(entry_points(group=group), key=lambda one: one.name):
        try:
            loaded = point.load()
        except Exception as error:  # anybody's code: whatever it raises is said
            raise _broken(point, f"{type(error).__name__}: {error}") from error
        if wrong := check(loaded):
            raise _broken(point, wrong)
        yield point.name, loaded


def lacking(plugin: Any, *needed: str) -> str:
    """Return which of the ``needed`` attributes ``plugin`` lacks, in words, or nothing."""
    missing = [name for name in needed if not hasattr(plugin, name)]
    return f"it has no {', '.join(f'`{name}`' for name in missing)}" if missing else ""


def _broken(point: EntryPoint, what: str) -> UsageError:
    owner = point.dist.name if point.dist else "an unknown distribution"
    return UsageError(
        "broken-plugin",
        f"`{point.name}` of {owner} ({point.group}: {point.value}) can't be used: {what}",
        f"Mend it, or uninstall {owner}.",
    )
