"""The events that the processes of one worker wrote down, and the owners of the files in them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_IFMT

import perfci
from perfci.measure.provenance.counterparts import Counterparts
from perfci.worker.hook.perfci_watch.ownership import Ownership, decoded, encoded
from perfci.worker.hook.perfci_watch.record import decoded_events
from perfci.worker.own_packages import NO_LIBRARY, packages_in

_LONGEST_NAME, _LONGEST_PATH = 255, 4096
"""Linux's limits in bytes. That of a path includes the zero at its end."""
_BYTECODE = re.compile(r"/__pycache__/([^/]+)\.[^./]+(?:\.opt-\d)?\.pyc$")
_CODE = (".py", ".pyc", ".pyd", ".egg", ".whl", ".pyx", ".cu", ".cpp", ".c", ".ptx", ".cubin")
LOOKS = frozenset({"stat", "module", "list", "kinds", "sizes", "distributions"})
"""What is looked at and not read: whether a file or module is there, what a folder has (and of
what kind and size), or of packages' metadata there."""
ENTRY_POINTS = "entry points"
"""How an installed distribution's entry points are read, with the group as the name."""
_LIBRARY = re.compile(r"\.(so|dylib|pyd)(\.\d+)*$")
_METADATA = (".dist-info", ".egg-info", ".egg")
_IMPORTED = (".py", ".pyc", ".so")
_NOT_COMPARED = frozenset({"__pycache__", ".git"})
_HARNESS = f"{Path(perfci.__file__).resolve().parent}/"


@dataclass(frozen=True, slots=True)
class CodeEvent:
    """One thing that a worker or a child of it ran, read or started.

    ``how`` is ``import``, ``load`` (a shared library), ``map``, ``open``, ``run`` (a program),
    ``stat`` (is it there, how large is it?), ``module`` (is there one of this path, but for the
    suffix?), ``list`` (a folder), ``distributions`` (what of
    packages' metadata a folder has), ``network`` (a server's address as the path),
    ``entry points`` (those of a group, of a distribution whose sides declare others),
    ``kept out`` (an import that was refused) or ``missing`` (one that no side has); of a child
    ``watched``, ``looked`` (at all it had loaded, when it ended) and ``living``, with its process
    id as the ``name``, or ``unwatched``; ``program`` for one that is no Python.
    From below come ``python`` (one has begun, with its process id), ``exec`` (a program was begun;
    ``started`` where Python says so, too) and ``blind`` (not all looks at files were seen).
    """

    how: str
    path: str
    name: str = ""


def read_events(file: Path) -> tuple[CodeEvent, ...]:
    """Return the events in ``file``. A line that no watch writes is an event, too.

    The benchmark can write to it: it is the same user's. That makes it no worse than its numbers.
    """
    if not file.exists():
        return ()
    events: dict[CodeEvent, None] = {}
    for line in dict.fromkeys(map(tuple, decoded_events(file.read_bytes()))):
        longest = _longest(line[1]) if len(line) == 3 else (_LONGEST_PATH, 0)
        if longest[0] >= _LONGEST_PATH:
            events[CodeEvent("unreadable", repr([*line])[:80])] = None
        # nothing has a longer name: a caller asked whether a text is a file's name, say
        elif longest[1] <= _LONGEST_NAME:
            how, path, name = line
            events[CodeEvent(how, source_of(path), name)] = None
    return tuple(events)


@lru_cache(maxsize=1 << 15)
def _longest(path: str) -> tuple[int, int]:
    """Return the bytes of ``path``, and of its longest name. Most workers use the same paths."""
    encoded_path = os.fsencode(path)
    return len(encoded_path), max(map(len, encoded_path.split(b"/")))


@lru_cache(maxsize=1 << 15)
def source_of(path: str) -> str:
    """Return the source of bytecode that Python wrote next to it, or another path unchanged."""
    return _BYTECODE.sub(r"/\1.py", path)


def is_library(path: str) -> bool:
    """Return whether it is a shared library."""
    return _LIBRARY.search(path) is not None


def is_code(path: str) -> bool:
    """Return whether what lies there is run rather than read."""
    inside = ".egg/" in path or ".zip/" in path
    return inside or path.endswith((*_CODE, ".zip")) or is_library(path)


def answer(how: str, path: Path) -> str:
    """Return a hash of what a look at ``path`` answers, of a folder name by name.

    Times are left out: these differ between any two trees.
    """
    try:
        text = "\0".join(sorted(_entries(how, path)))
    except OSError as error:  # a name that is too long, a folder that may not be entered
        text = f"error {error.errno}"
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _entries(how: str, path: Path) -> Iterator[str]:
    if how == "module":
        yield from _modules(path)
        return
    if not path.exists():
        return
    if how == "stat":
        status = path.stat()
        yield f"{oct(status.st_mode)} {'' if path.is_dir() else status.st_size}"
        return
    if not path.is_dir():
        yield "no folder"
        return
    yield "folder"
    for name in {entry.name for entry in path.iterdir()} - _NOT_COMPARED:
        if how != "distributions" or name.endswith(_METADATA):
            yield f"/{name}\0{_kind(path / name, how) if how in {'kinds', 'sizes'} else ''}"


def _modules(path: Path) -> Iterator[str]:
    """Yield what a finder has to choose from for the module of this path, without a suffix."""
    folder = path.parent
    if not folder.is_dir():
        return
    for name in _by_module(str(folder), folder.stat().st_mtime_ns).get(path.name, ()):
        package = folder / name
        if package.is_dir():
            yield f"/{name} {'package' if any(package.glob('__init__.*')) else 'namespace'}"
        elif name.endswith(_IMPORTED):
            yield f"/{name}"


@lru_cache(maxsize=512)
def _by_module(folder: str, _changed_ns: int) -> Mapping[str, Sequence[str]]:
    """Return the names in a folder by what comes before their first dot."""
    names_of_top: dict[str, list[str]] = {}
    for path in Path(folder).iterdir():
        names_of_top.setdefault(path.name.partition(".")[0], []).append(path.name)
    return names_of_top


def _kind(path: Path, how: str) -> str:
    status = path.lstat()
    size = status.st_size if how == "sizes" and not path.is_dir() else ""
    return f"{S_IFMT(status.st_mode)} {size}"


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
        return _placing(self.settings(""))


@lru_cache(maxsize=8)
def _placing(settings: str) -> Callable[[str], str]:
    """Return what says whose a path is by these settings, and remembers it for later workers."""
    return lru_cache(maxsize=1 << 15)(Ownership(decoded(settings), in_child=True).place)


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
