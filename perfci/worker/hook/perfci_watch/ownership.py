"""The owner of a file: the settings of ``CodePlaces``, as the side's processes read them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing, json and re would double the start of a child
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VARIABLE = "PERFCI_WATCH"
"""Holds the settings, as ``encoded`` gives them; a child without it is not watched."""
HOOK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder that a child has on its path."""

_ENTRY, _BETWEEN = "\x1e", "\x1f"
_SYSTEM = ("/usr/lib", "/usr/local/lib/", "/usr/bin/", "/usr/sbin/", "/lib", "/bin/", "/sbin/")
"""Where a system's libraries and programs lie: the same for both sides."""
_RUNS = frozenset({"import", "load", "map"})


class Ownership:
    """The folders of this process's side, and those of all others."""

    def __init__(self, settings: Mapping[str, tuple[str, ...]], *, in_child: bool) -> None:
        self.folders = settings["python_path"]
        self.own = settings["own"]
        self.strange = settings["strange"]
        self.copies = settings["copies"]
        self.twins = settings["twins"]
        self.changed = frozenset(settings["changed"])
        self.distributions = frozenset(settings["distributions"])
        # a child has no business in the perfci that measures, but for this folder
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
        """Return whose the real ``path`` is; empty for what is no one's here."""
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
        """Return whether running or reading ``real`` is worth a line: it lies in a known place.

        What runs and lies in no place that is known matters, too: it may be another on each side.
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
        """Return whether it has entry points that the sides declare differently."""
        if not self.distributions or os.path.basename(path) != "entry_points.txt":
            return False
        folder = os.path.basename(os.path.dirname(path)).partition("-")[0]
        name = folder.removesuffix(".egg").removesuffix(".egg-info")
        return name.replace("_", "-").replace(".", "-").lower() in self.distributions

    def is_strange(self, path: str) -> bool:
        """Return whether it belongs to another tree: no import of this side may find it."""
        place = self.place(self.real(path) + ("/" if os.path.isdir(path) else ""))
        return place in {"strange", "checkout"}

    def real(self, path: str) -> str:
        """Return the real path; each folder is resolved once."""
        folder, _, leaf = os.path.abspath(path).rpartition("/")
        whole = f"{self._real_folder(folder)}{leaf}"
        return os.path.realpath(whole) if os.path.islink(whole) else whole

    def real_folder(self, path: str) -> str:
        """Return the real path of a folder, with a slash at its end; it is resolved once."""
        return self._real_folder(os.path.abspath(path))

    def _real_folder(self, folder: str) -> str:
        real, behind = self._real_folders.get(folder, ("", None))
        if not real or (behind is not None and behind != _identity(folder)):
            real = f"{os.path.realpath(folder or '/').rstrip('/')}/"
            # a link may be pointed elsewhere later on
            behind = _identity(folder) if real != f"{folder}/" else None
            self._real_folders[folder] = real, behind
        return real


def encoded(settings: Mapping[str, Sequence[str]]) -> str:
    """Return settings as a variable's text. No path has these characters, nor a NUL."""
    return _ENTRY.join(_BETWEEN.join((name, *values)) for name, values in settings.items())


def decoded(text: str) -> dict[str, tuple[str, ...]]:
    """Return the settings that ``encoded`` made a text of."""
    entries = (entry.split(_BETWEEN) for entry in text.split(_ENTRY))
    return {name: tuple(values) for name, *values in entries}


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder or "/")
    except OSError:
        return None
    return status.st_dev, status.st_ino
