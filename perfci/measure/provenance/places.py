"""Whose file is whose, for one side: the settings of its watch, and the same rule here."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from configparser import ConfigParser, Error
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import perfci
from perfci.files import parse_toml
from perfci.measure.provenance.counterparts import Counterparts
from perfci.worker.hook.perfci_watch.ownership import Ownership, decoded, encoded
from perfci.worker.own_packages import NO_LIBRARY, normalised, packages_in, project_folders

_HARNESS = f"{Path(perfci.__file__).resolve().parent}/"


@dataclass(frozen=True, slots=True)
class Places:
    """Where one side's code is, and where it must not come from. Paths are absolute and real.

    ``cache`` holds the trees of all sides and commits: what lies there and is not ``own`` is
    another's. ``own`` are the side's tree and the benchmarks, ``spared`` what no side is to blame
    for. ``copies`` are installed copies of the project, ``twins`` what is installed under a name
    that something in the repository has, too, ``changed`` the names of the files that differ
    between the sides; ``counterparts`` say which of these files aren't the side's own. ``clones``
    are other folders that the project is installed from, ``pythons`` where interpreters and what is
    installed in them lie. ``installed`` are packages whose installed copy is meant. ``benchmarks``
    are the side's tree, head's, and the benchmarks' folder in either, where the side is to run
    head's; ``benchmark_root`` is the tree whose benchmarks run. ``temporary`` is what its workers
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
    benchmarks: tuple[str, ...] = ()
    benchmark_root: str = ""
    temporary: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    counterparts: Counterparts | None = None

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
                "pythons": tuple(
                    one
                    for one in self.pythons
                    if one.startswith((self.checkout, *self.clones)) and one != self.checkout
                ),
                "clones": self.clones,
                "checkout": (self.checkout,),
                "names": self.names,
                "installed": self.installed,
                "benchmarks": self.benchmarks,
                "benchmark_root": (self.benchmark_root,) if self.benchmark_root else (),
                "temporary": self.temporary,
                "events": (events,),
            }
        )

    def place(self) -> Callable[[str], str]:
        """Return what says whose a real path is, as a watched child does."""
        return Ownership(decoded(self.settings("")), in_child=True).place


def benchmark_places(
    folder: Path, files: Sequence[str], pattern: str, libraries: Collection[Path]
) -> tuple[str, ...]:
    """Return what both sides run of head's tree: the benchmarks' folder, helpers included.

    Where ``libraries`` are imported from that folder too (``benchmarks = "."``), or it is in a
    package of theirs (``benchmarks = "mylib"``), only its benchmark files: what lies beside them is
    the library, of which each side has its own.
    """
    if any(library.is_relative_to(folder) or _in_package(folder, library) for library in libraries):
        return tuple(file for file in files if fnmatch(Path(file).name, pattern))
    return (f"{folder}/",)


def _in_package(folder: Path, library: Path) -> bool:
    if not folder.is_relative_to(library):
        return False
    parts = folder.relative_to(library).parts
    return bool(
        parts
        and not NO_LIBRARY.intersection(parts)
        and (library / parts[0] / "__init__.py").is_file()
    )


# Which distributions a tree says it is the source of. Reads its project files.

_NAME = re.compile(r"""\bname\s*=\s*["']([A-Za-z0-9._-]+)["']""")


def distributions_of(tree: Path) -> tuple[str, ...]:
    """Return the normalised names that ``tree``'s project files declare; several in a monorepo."""
    found = {
        normalised(name)
        for folder, _ in project_folders(str(tree))
        for name in (
            *_in_pyproject(folder / "pyproject.toml"),
            *_in_setup_cfg(folder / "setup.cfg"),
            *_in_setup_py(folder / "setup.py"),
        )
    }
    return tuple(sorted(found))


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


def _in_pyproject(file: Path) -> tuple[str, ...]:
    try:
        table = parse_toml(_text(file))
    except ValueError:  # another commit's mistake: its benchmarks will fail
        return ()
    tool = table.get("tool", {})
    sections = (table.get("project", {}), tool.get("poetry", {}) if isinstance(tool, dict) else {})
    return tuple(
        str(section["name"])
        for section in sections
        if isinstance(section, dict) and section.get("name")
    )


def _in_setup_cfg(file: Path) -> tuple[str, ...]:
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(_text(file))
    except Error:
        return ()
    name = parser.get("metadata", "name", fallback="")
    return (name,) if name else ()


def _in_setup_py(file: Path) -> tuple[str, ...]:
    found = _NAME.search(_text(file))
    return (found[1],) if found else ()


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.is_file() else ""
