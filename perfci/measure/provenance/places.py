"""The owners of files for one side: the settings of its watch, and the same rule here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import perfci
from perfci.measure.provenance.counterparts import Counterparts
from perfci.worker.hook.perfci_watch.ownership import Ownership, decoded, encoded
from perfci.worker.own_packages import NO_LIBRARY, packages_in

_HARNESS = f"{Path(perfci.__file__).resolve().parent}/"


@dataclass(frozen=True, slots=True)
class CodePlaces:
    """The places of one side's code, and those it must not come from. Paths are absolute and real.

    ``cache`` holds the trees of all sides and commits: what lies there and is not ``own`` is
    another's. ``own`` is the side's tree, ``spared`` what no side is to blame for. ``copies`` are
    installed copies of the project, ``twins`` what is installed under a name that something in the
    repository has, too, ``changed`` the names of the files that differ between the sides;
    ``counterparts`` say which of these files aren't the side's own. ``distributions`` are those
    whose entry points the sides declare differently. ``clones`` are other folders that the project
    is installed from, ``pythons`` where interpreters and what is installed in them lie.
    ``installed`` are packages whose installed copy is meant. ``temporary`` is what its workers
    have as ``TMPDIR``. Folders end in a slash, but for ``python_path``.
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
    temporary: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    counterparts: Counterparts | None = None
    distributions: tuple[str, ...] = ()

    def settings(self, events: str) -> str:
        """Return the settings of a watch that writes to the file ``events``."""
        return encoded(
            {
                "python_path": self.python_path,
                "own": self.own,
                "spared": self.spared,
                "harness": (_HARNESS,),
                "strange": (*self.others, self.cache),
                "copies": self.copies,
                "twins": self.twins,
                "changed": self.changed,
                "distributions": self.distributions,
                "pythons": tuple(
                    python
                    for python in self.pythons
                    if python.startswith((self.checkout, *self.clones)) and python != self.checkout
                ),
                "clones": self.clones,
                "checkout": (self.checkout,),
                "names": self.names,
                "installed": self.installed,
                "temporary": self.temporary,
                "events": (events,),
            }
        )

    def place(self) -> Callable[[str], str]:
        """Return what says whose a real path is, as a watched child does."""
        return Ownership(decoded(self.settings("")), in_child=True).place


@dataclass(frozen=True, slots=True)
class SideTree:
    """One side's tree, git's hash of it, and its ``TMPDIR``.

    ``replaced`` are the files of the benchmarks' folder that the side's commit has, too, with
    another content, relative to the tree; ``pattern`` is that of benchmark files.
    """

    root: Path
    tree: str
    temporary: Path
    pattern: str
    replaced: frozenset[str] = frozenset()


def packages_of(tree: Path, python_path: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the packages in ``tree`` that lie in no other.

    Examples and tests have folders that are named as other people's packages are: they count where
    they are imported from.
    """
    return tuple(
        sorted(
            name
            for name, folder in packages_in(str(tree)).items()
            if folder in python_path or not NO_LIBRARY & {*Path(folder).parts}
        )
    )
