"""Registries: the modules of one of perfci's packages, and what other distributions add to them.

One module is all it takes to add one: it is found by being in the package, or by an entry point
of the package's group (``perfci.importers``, say) in anybody's distribution. Standard library
only: workers use it too.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from perfci.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BROKEN = "broken-plugin"
"""The slug of what another distribution adds, and can't be used."""
_LONGEST = 300
_METADATA = (".dist-info", ".egg-info", "EGG-INFO")


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


def load_plugin(point: EntryPoint, check: Callable[[Any], str]) -> Any:
    """Return what an entry point names.

    ``check`` returns what is wrong with one, or nothing. Raises UsageError for one that can't be
    imported or is wrong: it names the entry point and its distribution.
    """
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is reported
        raise broken_entry_point(point, f"{type(error).__name__}: {error}") from error
    if wrong := check(loaded):
        raise broken_entry_point(point, wrong)
    return loaded


def added_plugins(group: str, check: Callable[[Any], str]) -> Iterator[tuple[str, Any]]:
    """Yield what entry points of ``group`` add, by name, in order of their names."""
    for point in entry_points_of(group):
        yield point.name, load_plugin(point, check)


def missing_attributes(plugin: Any, *needed: str) -> str:
    """Return which of the ``needed`` attributes ``plugin`` lacks, in words, or nothing."""
    missing = [name for name in needed if not hasattr(plugin, name)]
    return f"it has no {', '.join(f'`{name}`' for name in missing)}" if missing else ""


def broken_entry_point(point: EntryPoint, what: str) -> UsageError:
    """Return the error for what an entry point adds: it names the point and its distribution."""
    owner = point.dist.name if point.dist else "an unknown distribution"
    return broken_plugin(f"`{point.name}` of", owner, what, f" ({point.group}: {point.value})")


def broken_plugin(which: str, owner: str, what: str, where: str = "") -> UsageError:
    """Return the error for ``which`` of the distribution ``owner``'s, whose words ``what`` is."""
    what = " ".join(what[: 2 * _LONGEST].split())
    what = what if len(what) <= _LONGEST else f"{what[: _LONGEST - 1]}…"
    return UsageError(
        BROKEN,
        f"{which} {owner}{where} can't be used: {what}",
        f"Mend it, or uninstall {owner}.",
    )


def _mentioned(group: str) -> bool:
    """Say whether a distribution may add to ``group``. Mostly none does, which is known at once.

    ``importlib.metadata`` imports the email package, which takes longer than all of this.
    """
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
