"""What the processes of one worker wrote down, read and made sense of. Pure but for ``read``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from perfci.worker.hook.perfci_watch.record import decoded_events

_LONGEST_NAME, _LONGEST_PATH = 255, 4096
"""What Linux takes, in bytes; a path with the zero at its end."""
_BYTECODE = re.compile(r"/__pycache__/([^/]+)\.[^./]+(?:\.opt-\d)?\.pyc$")
_CODE = (".py", ".pyc", ".pyd", ".egg", ".whl", ".pyx", ".cu", ".cpp", ".c", ".ptx", ".cubin")
LOOKS = frozenset({"stat", "module", "list", "kinds", "sizes", "distributions"})
"""What is looked at and not read: whether a file or module is there, what a folder has (and of
what kind and size), or of packages' metadata there."""
ENTRY_POINTS = "entry points"
"""How an installed distribution's entry points are read, with the group as the name."""
_LIBRARY = re.compile(r"\.(so|dylib|pyd)(\.\d+)*$")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a worker or a child of it ran, read or started.

    ``how`` is ``import``, ``load`` (a shared library), ``map``, ``open``, ``run`` (a program),
    ``stat`` (is it there, how large is it?), ``module`` (is there one of this path, but for the
    suffix?), ``list`` (a folder), ``distributions`` (what of
    packages' metadata a folder has), ``network`` (a server's address as the path),
    ``entry points`` (those of a group, of a distribution whose sides declare others),
    ``kept out`` (an import that was refused) or ``missing`` (one that nobody has); of a child
    ``watched``, ``looked`` (at all it had loaded, when it ended) and ``living``, with its process
    id as the ``name``, or ``unwatched``; ``program`` for one that is no Python.
    From below come ``python`` (one has begun, with its process id), ``exec`` (a program was begun;
    ``started`` where Python says so, too) and ``blind`` (not all looks at files were seen).
    """

    how: str
    path: str
    name: str = ""


def read_events(file: Path) -> tuple[Event, ...]:
    """Return what is written in ``file``; a line that no watch writes is an event, too.

    The benchmark can write to it: it is the same user's. That makes it no worse than its numbers.
    """
    if not file.exists():
        return ()
    found = []
    for line in decoded_events(file.read_bytes()):
        if len(line) != 3 or len(os.fsencode(line[1])) >= _LONGEST_PATH:
            found.append(Event("unreadable", repr(line)[:80]))
        elif not _is_no_name(line[1]):
            how, path, name = line
            found.append(Event(how, source_of(path), name))
    return tuple(dict.fromkeys(found))


def _is_no_name(path: str) -> bool:
    """Whether nothing can be there: somebody asked whether a text is a file's name, say."""
    return any(len(os.fsencode(name)) > _LONGEST_NAME for name in path.split("/"))


def source_of(path: str) -> str:
    """Return the source file of bytecode that Python wrote beside it; others as they are."""
    return _BYTECODE.sub(r"/\1.py", path)


def is_library(path: str) -> bool:
    """Whether it is a shared library."""
    return _LIBRARY.search(path) is not None


def is_code(path: str) -> bool:
    """Whether what lies there is run rather than read."""
    inside = ".egg/" in path or ".zip/" in path
    return inside or path.endswith((*_CODE, ".zip")) or is_library(path)
