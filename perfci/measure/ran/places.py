"""Whose file is whose, for one side: the settings of its watch, and the same rule here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import perfci
from perfci.worker.hook.perfci_watch import Watch, encoded

_HARNESS = f"{Path(perfci.__file__).resolve().parent}/"


@dataclass(frozen=True, slots=True)
class Places:
    """Where one side's code is, and where it must not come from. Paths are absolute and real.

    ``cache`` holds the trees of all sides and commits: what lies there and is not ``own`` is
    another's. ``own`` are the side's tree and the benchmarks, ``spared`` what no side is to blame
    for. ``copies`` are installed copies of the project, ``clones`` other folders that it is
    installed from, ``pythons`` where interpreters and what is installed in them lie. ``installed``
    are packages whose installed copy is meant. Folders end in a slash, but for ``python_path``.
    """

    root: str
    checkout: str
    cache: str
    own: tuple[str, ...]
    spared: tuple[str, ...]
    python_path: tuple[str, ...]
    names: tuple[str, ...] = ()
    installed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    clones: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()

    def settings(self, findings: str) -> str:
        """Return the settings of a watch that writes to the file ``findings``."""
        return encoded(
            {
                "python_path": self.python_path,
                "own": self.own,
                "spared": self.spared,
                "harness": (_HARNESS,),
                "strange": (*self.others, self.cache),
                "copies": self.copies,
                "pythons": tuple(
                    one
                    for one in self.pythons
                    if one.startswith((self.checkout, *self.clones)) and one != self.checkout
                ),
                "clones": self.clones,
                "checkout": (self.checkout,),
                "names": self.names,
                "installed": self.installed,
                "findings": (findings,),
            }
        )

    def place(self, path: str) -> str:
        """Return whose the real ``path`` is, as a watched child tells it."""
        return Watch(self.settings(""), in_child=True).place(path)


def benchmark_places(
    folder: Path, files: Sequence[str], pattern: str, libraries: Collection[Path]
) -> tuple[str, ...]:
    """Return what both sides run of head's tree: the benchmarks' folder, helpers included.

    Where ``libraries`` are imported from that folder too (``benchmarks = "."``), only its benchmark
    files: what lies beside them may be the library.
    """
    if any(library.is_relative_to(folder) for library in libraries):
        return tuple(file for file in files if fnmatch(Path(file).name, pattern))
    return (f"{folder}/",)
