"""The watches of one worker: what its processes write down, and what the kernel says.

The watch in a worker sees what Python opens. The kernel sees what its C code opens, too, and the
programs that it starts, whatever a benchmark writes into the file of the watch.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfci.measure.checkout.differing import bytecode_of
from perfci.measure.provenance.attribution import Provenance, WrongCode, provenance_of
from perfci.measure.provenance.events import ENTRY_POINTS, read_events
from perfci.measure.provenance.places import CodePlaces
from perfci.model.case import Failure
from perfci.model.run import WRONG_CODE
from perfci.worker.hook.perfci_watch.ownership import VARIABLE

# In words.
_SHOWN = 3
_CODE_OF = {
    "checkout": " of the user's checkout",
    "another tree": ", another tree of the project",
    "copy": ", an installed copy of the project",
    "perhaps a copy": ", perhaps an installed copy of the project",
}
_VERBS = {
    "import": "is imported from",
    "kept out": "would be imported from",
    **dict.fromkeys(("open", ENTRY_POINTS), "is read from"),
    "run": "is run from",
}
_EVENT = struct.Struct("iIII")
_MODIFY, _ATTRIB, _OPEN, _DELETE_SELF, _MOVE_SELF = 0x2, 0x4, 0x20, 0x400, 0x800
_DONT_FOLLOW = 0x02000000
_MASK = _MODIFY | _ATTRIB | _OPEN | _DELETE_SELF | _MOVE_SELF | _DONT_FOLLOW
_OVERFLOW = 0x4000
_BUFFER = 1 << 16


@dataclass(frozen=True, slots=True)
class WorkerWatch:
    """The file that one worker and its children write to, and whose files are whose."""

    events: Path
    places: CodePlaces
    python_path: Sequence[str]
    built: bool

    def begin(self) -> None:
        """Make the file: a watch writes to it, and makes none again where it was removed."""
        self.events.touch()

    def environment(self) -> dict[str, str]:
        """Return what its environment has to say."""
        return {VARIABLE: self.places.settings(str(self.events))}

    def provenance(self, *, failed: int = 0) -> Provenance:
        """Return what it ran until now; once it has ended, all of it. The file is removed.

        ``failed`` is the worker's process id where it ended before it could look at all it had.
        """
        events = read_events(self.events)
        self.events.unlink(missing_ok=True)
        return provenance_of(events, self.places, self.python_path, built=self.built, failed=failed)


def described(code: WrongCode, side: str) -> str:
    """Return in one line what is wrong."""
    if code.where == "child":
        return f"`{code.file}` could not be watched: which code it imported isn't known"
    what = f"`{code.name}`" if code.name and code.how != "open" else "a file"
    verb = _VERBS.get(code.how, "is loaded from")
    return f"{what} {verb} {code.file}{_CODE_OF[code.where]}: not {side}'s own code"


def wrong_code(wrong: Sequence[WrongCode], case: str, side: str, log_tail: str) -> Failure:
    """Return the failure of a case whose worker ran what isn't its side's."""
    lines = [described(code, side) for code in wrong[:_SHOWN]]
    if len(wrong) > _SHOWN:
        lines[-1] += f" (and {len(wrong) - _SHOWN} more)"
    advice = dict.fromkeys(code.advice for code in wrong[:_SHOWN] if code.advice)
    message = "; ".join(lines) + "".join(f"\n{line}" for line in advice)
    return Failure(case, side, "finish", WRONG_CODE, message, log_tail)


def record_removed(case: str, side: str) -> Failure:
    """Return the failure of a case whose worker measured, and whose events were removed."""
    message = (
        "what this worker ran isn't known: what it wrote down was removed\n"
        "Leave the session's files (below TMPDIR's parent) as they are."
    )
    return Failure(case, side, "finish", WRONG_CODE, message)


class OpenedFiles:
    """The files of ``files`` (real, absolute paths) that were opened since it was made.

    A file counts by its inode, under whatever name it is opened, and so does the bytecode that
    Python opens in its place. Where not all of them can be followed, and of None, ``complete`` is
    False, and nothing that it says is of use.
    """

    def __init__(self, files: Iterable[str] | None) -> None:
        self._files = tuple(files or ())
        self._paths: dict[int, set[str]] = {}
        self._descriptor = -1
        self.complete = False
        if files is None:
            return
        try:
            self._descriptor = _begin()
            for path in self._files:
                if Path(path).exists():
                    self._follow(path, path)
                for made in bytecode_of(Path(path)):
                    self._follow(str(made), path)
            self.complete = self._works()
        except OSError:  # no inotify here, or more files than the user may follow
            self.close()

    def taken(self) -> frozenset[str]:
        """Return the files that were opened, written or moved since this was last asked."""
        opened: set[str] = set()
        while self._descriptor >= 0:
            try:
                events = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                break
            at = 0
            while at < len(events):
                watch, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                if mask & _OVERFLOW:
                    self.complete = False
                opened |= self._paths.get(watch, set())
        return frozenset(opened)

    def close(self) -> None:
        """Follow nothing any more."""
        self.complete = False
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _follow(self, path: str, means: str) -> None:
        call = ctypes.CDLL(None, use_errno=True).inotify_add_watch
        number = call(self._descriptor, os.fsencode(path), _MASK)
        if number < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", path)
        self._paths.setdefault(number, set()).add(means)

    def _works(self) -> bool:
        """Open each file, and see whether the kernel says so: not every file system's does."""
        there = {path for path in self._files if Path(path).exists()}
        for path in there:
            with suppress(PermissionError):
                os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        return self.taken() == there


def _begin() -> int:
    number: int = ctypes.CDLL(None, use_errno=True).inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if number < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    return number
