"""Tells which tree a file belongs to, by the settings of ``CodePlaces``, and finds own code first.

"Own" is the tree of the side that this process measures.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder

TYPE_CHECKING = False  # importing typing, json and re would double a child's start time
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from .watch import CodeWatch

VARIABLE = "PERFCI_WATCH"
"""The variable with the settings, as ``encoded`` writes them. A child without it isn't watched."""
HOOK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder that is put on a child's ``PYTHONPATH``."""

_ENTRY, _BETWEEN = "\x1e", "\x1f"
"""Characters between two settings, and between a setting's name and its values."""
_SYSTEM = ("/usr/lib", "/usr/local/lib/", "/usr/bin/", "/usr/sbin/", "/lib", "/bin/", "/sbin/")
"""Folders of the system's libraries and programs, which are the same for both sides."""
_RUNS = frozenset({"import", "load", "map"})
"""Events that mean that a file's code is run."""


class Ownership:
    """The folders of this process's side, and the folders that belong to others."""

    def __init__(self, settings: Mapping[str, tuple[str, ...]], *, in_child: bool) -> None:
        self.folders = settings["python_path"]
        self.own = settings["own"]
        self.strange = settings["strange"]
        self.copies = settings["copies"]
        self.twins = settings["twins"]
        self.changed = frozenset(settings["changed"])
        self.distributions = frozenset(settings["distributions"])
        # the only part of the measuring perfci that a child may use is this folder
        harness = (f"{HOOK}/",) if in_child else settings["harness"]
        self.spared = (*settings["spared"], *harness)
        prefix = f"{os.path.realpath(sys.prefix)}/"  # a child may run another environment's Python
        own_prefix = () if prefix in settings["checkout"] else (prefix,)
        self.pythons = (*settings["pythons"], *own_prefix)
        self.checkout = settings["checkout"]
        self.clones = settings["clones"]
        self.names = frozenset(settings["names"])
        self.installed = frozenset(settings["installed"])
        self.temporary = settings["temporary"]
        prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__)}
        self._usual = (*_SYSTEM, *(f"{os.path.realpath(folder)}/" for folder in prefixes))
        self._real_folders: dict[str, tuple[str, tuple[int, int] | None]] = {}

    def place(self, path: str) -> str:
        """Return the owner of the real ``path``, or an empty string."""
        places = {
            "own": self.own,
            "spared": self.spared,
            "strange": self.strange,
            "copy": self.copies,
            "twin": self.twins,
            "": self.pythons,
            "checkout": self.checkout,
        }
        matching = (place for place, folders in places.items() if path.startswith(folders))
        return next(matching, "strange" if path.startswith(self.clones) else "")

    def matters(self, how: str, real: str, name: str) -> bool:
        """Return whether to record that ``real`` was run or read.

        That is so for files whose owner is known, and for code from an unknown place, as its
        content may differ between the sides.
        """
        place = self.place(real)
        nowhere = not place and not real.startswith(self._usual)
        foreign = how in _RUNS and (nowhere or real.startswith(self.temporary))
        if not place and name.partition(".")[0] in self.names and "-packages/" in real:
            place = "copy"
        if not place and os.path.basename(real) in self.changed:
            return True
        return foreign or (place not in {"", "spared"})

    def declares_entry_points(self, path: str) -> bool:
        """Return whether the file declares entry points of a distribution whose sides differ."""
        if not self.distributions or os.path.basename(path) != "entry_points.txt":
            return False
        folder = os.path.basename(os.path.dirname(path)).partition("-")[0]
        name = folder.removesuffix(".egg").removesuffix(".egg-info")
        return name.replace("_", "-").replace(".", "-").lower() in self.distributions

    def is_strange(self, path: str) -> bool:
        """Return whether the path belongs to another tree, so that this side must not import it."""
        place = self.place(self.real(path) + ("/" if os.path.isdir(path) else ""))
        return place in {"strange", "checkout"}

    def real(self, path: str) -> str:
        """Return the real path. Each folder is resolved only once."""
        folder, _, leaf = os.path.abspath(path).rpartition("/")
        whole = f"{self._real_folder(folder)}{leaf}"
        return os.path.realpath(whole) if os.path.islink(whole) else whole

    def real_folder(self, path: str) -> str:
        """Return the real path of a folder, with a slash at its end. It is resolved only once."""
        return self._real_folder(os.path.abspath(path))

    def _real_folder(self, folder: str) -> str:
        real, behind = self._real_folders.get(folder, ("", None))
        if not real or (behind is not None and behind != _identity(folder)):
            real = f"{os.path.realpath(folder or '/').rstrip('/')}/"
            # a link's target may change later: remember which folder it led to
            behind = _identity(folder) if real != f"{folder}/" else None
            self._real_folders[folder] = real, behind
        return real


def encoded(settings: Mapping[str, Sequence[str]]) -> str:
    """Return the settings as a variable's text. Paths don't contain the separators."""
    return _ENTRY.join(_BETWEEN.join((name, *values)) for name, values in settings.items())


def decoded(text: str) -> dict[str, tuple[str, ...]]:
    """Return the settings that ``encoded`` gave as text."""
    entries = (entry.split(_BETWEEN) for entry in text.split(_ENTRY))
    return {name: tuple(values) for name, *values in entries}


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder or "/")
    except OSError:
        return None
    return status.st_dev, status.st_ino


class OwnCodeFirst:
    """A finder that looks in the side's own folders first, whatever else is on ``meta_path``.

    The finders of editable installs come before Python's and would find the user's checkout. A
    module that only the checkout or another tree has doesn't exist for this side: if another finder
    finds such a module, that is recorded and refused.
    """

    def __init__(self, watch: CodeWatch) -> None:
        self._watch = watch
        self._side = watch.side
        self._plain: set[str] = set()  # own folders whose path is their real path

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec, or None to let the other finders look for it."""
        if path.__class__ is list and len(path) == 1 and path[0] in self._plain:
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and spec.origin is not None:
                return spec
        result: ModuleSpec | None = self._watch.unrecorded(self._find, name, path, target)
        return result

    def _find(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        if path is None:
            if name in sys.builtin_module_names or name in self._side.installed:
                return None
            entries = self._own_path()
        else:
            entries = [
                folder for folder in path if isinstance(folder, str) and self._is_own(folder)
            ]
            if not entries:
                return None
            self._plain |= {
                entry for entry in entries if self._side.real_folder(entry) == f"{entry}/"
            }
        spec = PathFinder.find_spec(name, entries, target)
        if spec is not None and spec.origin is not None:
            return spec
        other = self._spec_of_others(name, path, target)
        if other is None and spec is None:
            self._missed(name, path, entries)
        if spec is None or spec.submodule_search_locations is None:
            return self._not_strange(name, other)
        # The spec is a folder without `__init__.py`. As in Python, a package of the same name that
        # has one wins, wherever it lies.
        if (
            other is not None
            and other.origin is not None
            and not self._side.is_strange(other.origin)
        ):
            return other
        places = [*spec.submodule_search_locations]
        if other is not None and other.submodule_search_locations is not None:
            more = other.submodule_search_locations
            places += [
                place for place in more if place not in places and not self._side.is_strange(place)
            ]
        return _namespace(name, places)

    def _own_path(self) -> list[str]:
        """Return the own entries of ``sys.path``, each own folder in the side's order.

        A child's path begins with the current folder, the tree's root. The root must not hide what
        was built in a folder that comes before the root in the side's order.
        """
        folders = self._side.folders
        searched: list[str] = []
        for entry in (item for item in sys.path if isinstance(item, str) and self._is_own(item)):
            real = self._side.real_folder(entry).rstrip("/")
            searched += folders if real in folders else (entry,)
        return list(dict.fromkeys((*searched, *folders)))

    def _spec_of_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders give, or None."""
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _missed(self, name: str, path: Sequence[str] | None, entries: Sequence[str]) -> None:
        """Record a missing module, and any extension module of its name in the checkout."""
        if path is not None or name in self._side.names:
            self._watch.record.say("missing", "", name)
        leaf = name.rpartition(".")[2]
        for entry in entries:
            for own in self._side.own:
                inside = self._side.real_folder(entry)
                if own.endswith("/") and inside.startswith(own):
                    below = f"{inside.removeprefix(own)}{leaf}"
                    for suffix in EXTENSION_SUFFIXES:
                        for there in (
                            f"{checkout}{below}{suffix}" for checkout in self._side.checkout
                        ):
                            if os.path.isfile(there):
                                self._watch.note("kept out", there, name)

    def _not_strange(self, name: str, spec: ModuleSpec | None) -> ModuleSpec | None:
        if spec is None:
            return None
        if isinstance(spec.origin, str) and self._side.is_strange(spec.origin):
            self._refuse(name, spec.origin)
        if spec.origin is None and spec.submodule_search_locations is not None:
            places = list(spec.submodule_search_locations)
            left = [place for place in places if not self._side.is_strange(place)]
            if not left and places:
                self._refuse(name, places[0])
            return spec if left == places else _namespace(name, left)
        return spec

    def _refuse(self, name: str, path: str) -> None:
        self._watch.note("kept out", path, name)
        raise ModuleNotFoundError(
            f"No module named {name!r} in the tree that is measured "
            f"(perfci keeps {path} out, which isn't its code)",
            name=name,
        )

    def _is_own(self, entry: str) -> bool:
        return self._side.real_folder(entry).startswith(self._side.own)


def _namespace(name: str, places: list[str]) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = places
    return spec
