"""The events that one worker's processes recorded, and the owners of the files in them."""

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
"""Linux's limits of a file's name and of a path, in bytes. A path's includes its final zero."""
_BYTECODE = re.compile(r"/__pycache__/([^/]+)\.[^./]+(?:\.opt-\d)?\.pyc$")
"""The end of the path of bytecode that Python wrote next to its source."""
_CODE = (".py", ".pyc", ".pyd", ".egg", ".whl", ".pyx", ".cu", ".cpp", ".c", ".ptx", ".cubin")
LOOKS = frozenset({"stat", "module", "list", "kinds", "sizes", "distributions"})
"""Events that look for something without reading a file: whether a file or module exists, what a
folder has (and of which kind and size), or which packages' metadata a folder has."""
ENTRY_POINTS = "entry points"
"""The event of reading an installed distribution's entry points. The group is its name."""
_LIBRARY = re.compile(r"\.(so|dylib|pyd)(\.\d+)*$")
_METADATA = (".dist-info", ".egg-info", ".egg")
_IMPORTED = (".py", ".pyc", ".so")
_NOT_COMPARED = frozenset({"__pycache__", ".git"})
"""Names in a folder that differ between any two trees."""
_HARNESS = f"{Path(perfci.__file__).resolve().parent}/"


@dataclass(frozen=True, slots=True)
class CodeEvent:
    """One thing that a worker or a child of it ran, read or started. ``how`` is one of these:

    - Files: ``import``, ``load`` (a shared library), ``map``, ``open``, ``run`` (a program), ``kept
      out`` (an import that was refused), ``missing`` (an import that wasn't found) and ``entry
      points`` (a group's, of a distribution for which the sides declare different ones).
    - Looks: ``stat`` (does the file exist, and how large is it?), ``module`` (does the path exist
      with any suffix of a module?), ``list`` (a folder, also with its ``kinds`` or ``sizes``) and
      ``distributions`` (the packages' metadata in a folder).
    - Children, with the process id as the ``name``: ``watched``, ``looked`` (the child ended, and
      recorded all it had loaded) and ``living``. Also ``unwatched``, and ``program`` for a child
      that isn't a Python. ``network`` has a server's address as the path.
    - Seen by the preloaded library: ``python`` (one began; the name is its process id) and ``exec``
      (a program began; Python's own record of this is ``started``). ``blind`` means that not all
      looks at files were seen.
    """

    how: str
    path: str
    name: str = ""


def read_events(file: Path) -> tuple[CodeEvent, ...]:
    """Return the events in ``file``. A line that no watch wrote gives an event ``unreadable``.

    A benchmark runs as the same user and can write to the file, just as it can falsify its times.
    """
    if not file.exists():
        return ()
    events: dict[CodeEvent, None] = {}
    for line in dict.fromkeys(map(tuple, decoded_events(file.read_bytes()))):
        longest = _longest(line[1]) if len(line) == 3 else (_LONGEST_PATH, 0)
        if longest[0] >= _LONGEST_PATH:
            events[CodeEvent("unreadable", repr([*line])[:80])] = None
        # No file has a longer name: code asked whether a long text is a file's name, say.
        elif longest[1] <= _LONGEST_NAME:
            how, path, name = line
            events[CodeEvent(how, source_of(path), name)] = None
    return tuple(events)


@lru_cache(maxsize=1 << 15)
def _longest(path: str) -> tuple[int, int]:
    """Return the lengths of ``path`` and of the longest name in it, in bytes.

    Cached, because most workers use the same paths.
    """
    encoded_path = os.fsencode(path)
    return len(encoded_path), max(map(len, encoded_path.split(b"/")))


@lru_cache(maxsize=1 << 15)
def source_of(path: str) -> str:
    """Return the source of bytecode that Python wrote next to it, or another path unchanged."""
    return _BYTECODE.sub(r"/\1.py", path)


def is_library(path: str) -> bool:
    """Return whether ``path`` is that of a shared library."""
    return _LIBRARY.search(path) is not None


def is_code(path: str) -> bool:
    """Return whether the file at ``path`` is code, which is run rather than read as data."""
    inside = ".egg/" in path or ".zip/" in path
    return inside or path.endswith((*_CODE, ".zip")) or is_library(path)


def answer(how: str, path: Path) -> str:
    """Return a hash of the answer to a look at ``path``. A folder's answer has its sorted names.

    File times are left out, because they differ between any two trees.
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
    """Yield what an import can choose from for the module at ``path``, which has no suffix."""
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
    """Return the names in a folder by their part before the first dot.

    ``_changed_ns`` is in the cache's key, so that a folder that has changed is read again.
    """
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
    """The places of one side's code, and the places that its code must not come from.

    Paths are absolute and real. Folders end in a slash, except ``root`` and those in
    ``python_path``. The side's tree is ``root`` and ``own``, the other sides' are ``others``.
    ``cache`` holds the trees of all sides and commits: what lies there outside of ``own`` belongs
    to another side. No side is to blame for what is ``spared``. ``names`` are the names of the
    project's packages. ``copies`` are installed copies of the project. ``twins`` are installed
    packages and modules that are named like one of the repository. ``changed`` are the names of
    files that differ between the sides. ``counterparts`` says which of these installed files
    aren't the side's own. ``distributions`` are those whose entry points the sides declare
    differently. ``clones`` are other folders that the project is installed from. ``pythons`` are
    the folders of interpreters and their packages. ``installed`` are packages whose installed copy
    is meant. ``temporary`` is the workers' ``TMPDIR``.
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
        """Return the function that names the owner of a real path, as a watched child does."""
        return _placing(self.settings(""))


@lru_cache(maxsize=8)
def _placing(settings: str) -> Callable[[str], str]:
    """Return the function that names a path's owner by these settings. It caches its results."""
    return lru_cache(maxsize=1 << 15)(Ownership(decoded(settings), in_child=True).place)


def packages_of(tree: Path, python_path: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the packages in ``tree`` that lie in no other package.

    Examples and tests may have folders that are named like public packages. These count only if
    ``python_path`` has the folder that they are in.
    """
    return tuple(
        sorted(
            name
            for name, folder in packages_in(str(tree)).items()
            if folder in python_path or not NO_LIBRARY & {*Path(folder).parts}
        )
    )
