"""Registries: the modules of one of perfci's packages, and what other distributions add to them.

A plug-in is one module. It is found because it is in the package, or by an entry point of the
package's group (such as ``perfci.importers``) in any distribution. Standard library only, because
workers use this module, too.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from perfci.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BROKEN = "broken-plugin"
"""The slug of the error for a plug-in that can't be used."""
_LONGEST = 300
"""Characters of a plug-in's error that are shown."""
_METADATA = (".dist-info", ".egg-info", "EGG-INFO")
"""The endings of folders that hold a distribution's metadata."""


def module_names(package: ModuleType) -> tuple[str, ...]:
    """Return the names of the modules of ``package``, in order; none is imported."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(package.__path__)))


def built_in_modules(package: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the modules of ``package`` by name, in order of their names."""
    for name in module_names(package):
        yield name, importlib.import_module(f"{package.__name__}.{name}")


def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of ``group``, in order of their names; none is imported."""
    if not _mentioned(group):
        return ()
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group), key=lambda point: point.name))


def load_plugin(point: EntryPoint, *needed: str) -> Any:
    """Return the plug-in that an entry point names.

    Raises UsageError for a plug-in that can't be imported or lacks one of the ``needed``
    attributes. The error names the entry point and its distribution.
    """
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is reported
        raise broken_entry_point(point, f"{type(error).__name__}: {error}") from error
    if missing := [f"`{name}`" for name in needed if not hasattr(loaded, name)]:
        raise broken_entry_point(point, f"it lacks {', '.join(missing)}")
    return loaded


def added_plugins(group: str, *needed: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and the plug-ins of the entry points of ``group``, sorted by name."""
    for point in entry_points_of(group):
        yield point.name, load_plugin(point, *needed)


def broken_entry_point(point: EntryPoint, what: str) -> UsageError:
    """Return the error for a plug-in. It names the entry point and its distribution."""
    owner = point.dist.name if point.dist else "an unknown distribution"
    what = " ".join(what[: 2 * _LONGEST].split())
    what = what if len(what) <= _LONGEST else f"{what[: _LONGEST - 1]}…"
    return UsageError(
        BROKEN,
        f"`{point.name}` of {owner} ({point.group}: {point.value}) can't be used: {what}",
        f"Mend it, or uninstall {owner}.",
    )


def _mentioned(group: str) -> bool:
    """Return whether a distribution may add to ``group``. Usually none does.

    This answers faster than ``importlib.metadata``, whose import of the email package alone takes
    longer.
    """
    # another finder may know distributions that aren't on sys.path
    if any(hasattr(f, "find_distributions") for f in sys.meta_path if f is not PathFinder):
        return True
    section = f"[{group}]".encode()
    for folder in sys.path:
        try:
            entries = [path for path in Path(folder).iterdir() if path.name.endswith(_METADATA)]
        except NotADirectoryError:  # an archive
            return True
        except OSError:
            continue
        for path in entries:
            try:
                if section in (path / "entry_points.txt").read_bytes():
                    return True
            except OSError:  # it has no entry points
                continue
    return False
