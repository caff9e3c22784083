"""The code that a session's workers ran, and the cases that ran the same code on both sides.

The watch in a worker sees the files that Python opens. The kernel (``OpenedFiles``) also sees what
C code opens, and what other programs open that a worker starts. A benchmark can write anything into
the watch's file, but it can't deceive the kernel.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

from perfci.measure.checkout.trees import bytecode_of
from perfci.measure.plan import SessionPlan
from perfci.measure.progress import CaseState
from perfci.measure.provenance.advice import folder_of
from perfci.measure.provenance.attribution import UNSEEN_LOOKS, Provenance
from perfci.measure.provenance.events import answer, is_library
from perfci.model.run import Compiled, Ran, SideRan
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import may_be_same_code
from perfci.worker.loading import PREFIX

_TOOLS = frozenset(
    [
        "as",
        "c++",
        "cc",
        "clang",
        "clang++",
        "g++",
        "gcc",
        "ld",
        "ldconfig",
        "lscpu",
        "nvcc",
        "openssl",
        "ptxas",
    ]
)
"""Programs that hide nothing if they run: they read the files that their command line names, which
a watched process wrote."""
_EVENT = struct.Struct("iIII")
"""An event of inotify: its watch, mask and cookie, and the length of the name that follows."""
_MODIFY, _ATTRIB, _OPEN, _DELETE_SELF, _MOVE_SELF = 0x2, 0x4, 0x20, 0x400, 0x800
_DONT_FOLLOW = 0x02000000
"""Events of inotify, and a flag: the standard library has no names for them."""
_MASK = _MODIFY | _ATTRIB | _OPEN | _DELETE_SELF | _MOVE_SELF | _DONT_FOLLOW
_OVERFLOW = 0x4000
"""The mask of an event which says that others were lost."""
_BUFFER = 1 << 16
"""Bytes of events that are read in one call."""


@dataclass(slots=True)
class CaseFiles:
    """The files that one case used on one side, as ``(path, sha256)``, and what isn't known.

    ``looked_at`` are the paths whose existence or content it asked for, where the sides' trees
    answer differently, each with the answer that it got. ``loaded`` are used files outside of the
    trees. ``not_its_own`` are helpers of head's benchmarks that the side's own commit has with
    another content. ``unknown`` are reasons why not all of the code that ran is known.
    """

    files: set[tuple[str, str]] = field(default_factory=set)
    looked_at: set[tuple[str, str]] = field(default_factory=set)
    loaded: set[tuple[str, str]] = field(default_factory=set)
    not_its_own: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


class CodeRan:
    """Collects the code that ran, round by round. Each version of a file is read once.

    A case that ran the same code on both sides, without doubt, is settled: it needs no more rounds,
    unless ``everything`` is measured. ``close`` ends the following of files.
    """

    def __init__(self, plan: SessionPlan, policy: Policy, *, everything: bool) -> None:
        self._plan = plan
        self._policy = policy
        self._everything = everything
        self._sides = {side.name: side for side in plan.sides}
        self._cases: dict[tuple[str, str], CaseFiles] = {}
        self._folders: dict[str, set[str]] = {name: set() for name in self._sides}
        self._outside: dict[str, set[str]] = {name: set() for name in self._sides}
        self._installed: dict[str, set[tuple[str, str]]] = {name: set() for name in self._sides}
        self._hashes: dict[tuple[str, int, int], str] = {}
        differing = plan.differing if self._may_be_the_same() else None
        for path in differing or ():  # hashed before it is followed: that doesn't count as opened
            self._digest(path)
        self._openings = OpenedFiles(differing)
        self._imported: frozenset[str] = frozenset()

    def begin_group(self) -> None:
        """Count what was opened since the last round as opened by what forks the next workers."""
        self._imported = self._openings.taken()

    def add(self, state: CaseState, ran: Mapping[str, Provenance]) -> None:
        """Note what a round's workers ran, by side. Their trees must still exist."""
        state.opened |= self._imported | self._openings.taken()
        for side, provenance in ran.items():
            self._add(state.case.id, side, provenance)

    def settles(self, state: CaseState) -> bool:
        """Return whether the case ran the same code on both sides, without doubt."""
        return (
            not self._everything
            and state.rounds == 1
            and self._openings.complete
            and self._ran_the_same(state)
            and may_be_same_code(state.compared(self._policy))
        )

    def by_side(self) -> Ran:
        """Return what ran on each side."""
        base = self._side("base") if len(self._plan.sides) > 1 else None
        return Ran(base, self._side("head"))

    def same(self, states: Sequence[CaseState]) -> tuple[str, ...]:
        """Return the cases whose code that ran doesn't differ between the sides."""
        if not self._may_be_the_same():
            return ()
        return tuple(state.case.id for state in states if self._ran_the_same(state))

    def unexercised(self, states: Sequence[CaseState]) -> Mapping[str, tuple[str, ...]]:
        """Return the changes by kind if no case used anything that differs, else nothing."""
        all_same = bool(states) and len(self.same(states)) == len(states)
        return self._plan.changes if all_same else {}

    def notes(self) -> tuple[str, ...]:
        """Return notes for the report."""
        notes: list[str] = []
        if files := {name for files in self._cases.values() for name in files.not_its_own}:
            what = "which differ" if len(files) > 1 else "which differs"
            both = f"Both sides ran head's {', '.join(sorted(files))}, {what} in base"
            notes.append(f"{both}: what lies in the benchmarks' folder is head's.")
        unseen = any(UNSEEN_LOOKS in files.unknown for files in self._cases.values())
        if unseen and self._may_be_the_same():
            why = f" ({self._plan.looks.why})" if self._plan.looks.why else ""
            note = f"Not all looks at files were seen{why}: their cases are measured in full"
            notes.append(f"{note}, same code or not. `perfci doctor` says more.")
        return tuple(notes)

    def close(self) -> None:
        """Follow files no longer."""
        self._openings.close()

    def _may_be_the_same(self) -> bool:
        """Return whether there are two sides under one Python, with nothing injected."""
        sides, injected = self._plan.sides, self._plan.config.settings.inject
        one_python = len({side.python for side in sides}) == 1
        return len(sides) > 1 and one_python and not any(injected.values())

    def _ran_the_same(self, state: CaseState) -> bool:
        if state.same_code:
            return True
        if state.failures or state.opened or not all(state.outputs.values()):
            return False
        base, head = (self._code_digest(state.case.id, side) for side in ("base", "head"))
        return base != "" and base == head

    def _add(self, case: str, side: str, ran: Provenance) -> None:
        tree = self._sides[side]
        roots = tree.root, self._plan.temporary_of(side).resolve()
        case_files = self._cases.setdefault((case, side), CaseFiles())
        for paths, files in ((ran.used, case_files.files), (ran.loaded, case_files.loaded)):
            for path in paths:
                label, digest = _label(path, roots), self._digest(path)
                files.add((label, digest))
                if not digest:
                    case_files.unknown.add(f"gone {label}")
        for look in ran.looked_at:
            label = _label(look.path, roots)
            answers = {answer(look.how, plan.root / label) for plan in self._plan.sides}
            if len(answers) > 1:
                case_files.looked_at.add((f"{look.how} {label}", answer(look.how, Path(look.path))))
        used = {_label(path, roots) for path in ran.used}
        pattern = self._plan.config.pattern
        case_files.not_its_own |= {
            name for name in used & tree.overlay.changed if not fnmatch(Path(name).name, pattern)
        }
        case_files.unknown |= {
            reason for reason in ran.unknown if reason.partition(" ")[2] not in _TOOLS
        }
        self._outside[side] |= set(ran.outside)
        self._installed[side] |= {
            (module.name.partition(".")[0], module.path) for module in ran.elsewhere
        }
        for module in ran.modules:
            of_library = not module.name.startswith(PREFIX)
            if of_library and Path(module.path).is_relative_to(tree.root):
                relative = str(Path(module.path).relative_to(tree.root))
                self._folders[side].add(folder_of(tree.root, relative, module.name))

    def _side(self, name: str) -> SideRan:
        """Return what this side's workers ran, over all cases."""
        by_case = {case: files for (case, side), files in self._cases.items() if side == name}
        files = {pair for used in by_case.values() for pair in used.files}
        # only packages that all sides imported from the same file: other copies are meant to differ
        installed = set.intersection(*self._installed.values())
        return SideRan(
            tree=self._sides[name].tree,
            folders=tuple(sorted(self._folders[name])),
            compiled=tuple(Compiled(*pair) for pair in sorted(files) if is_library(pair[0])),
            outside=tuple(sorted(self._outside[name])),
            installed=tuple(sorted({package for package, _ in installed})),
            unknown=tuple(sorted({why for used in by_case.values() for why in used.unknown})),
            cases={case: digest for case in by_case if (digest := self._code_digest(case, name))},
        )

    def _code_digest(self, case: str, side: str) -> str:
        """Return one hash of all that ``case`` used on ``side``, or "" if not all is known."""
        used = self._cases.get((case, side))
        if used is None or used.unknown or used.not_its_own or not used.files:
            return ""
        pairs = sorted(used.files | used.loaded | used.looked_at)
        text = "\n".join(f"{digest} {path}" for path, digest in pairs)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    def _digest(self, path: str) -> str:
        """Return the SHA-256 of a file, or of the archive that it is in.

        Empty if it is gone, or can't be read any more.
        """
        with suppress(OSError):
            place, status = _nearest(path)
            if S_ISREG(status.st_mode):
                key = (place, status.st_mtime_ns, status.st_size)
                if key not in self._hashes:
                    with open(place, "rb") as file:  # noqa: PTH123 (thousands a round: no Path)
                        self._hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
                return self._hashes[key]
        return ""


def _nearest(path: str) -> tuple[str, os.stat_result]:
    """Return the nearest of the file and its folders that exists, and its status."""
    while True:
        try:
            return path, os.stat(path)  # noqa: PTH116 (thousands a round: no Path)
        except (FileNotFoundError, NotADirectoryError):
            if path == (path := str(Path(path).parent)):
                raise


@lru_cache(maxsize=1 << 15)
def _label(path: str, roots: tuple[Path, ...]) -> str:
    """Return ``path`` relative to the root that it lies in. Cached, as most rounds use the same."""
    for root in roots:
        if Path(path).is_relative_to(root):
            return str(Path(path).relative_to(root))
    return path


class OpenedFiles:
    """Follows ``files`` (real, absolute paths), by inotify, to know which of them are opened.

    A file counts by its inode, under whatever name it is opened. If Python opens a file's bytecode,
    the file counts as opened. ``complete`` is False if not all files can be followed, or if they
    aren't known (None). Then the answers are of no use.
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
        """Return the files that were opened, written or moved since the last call."""
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
        """Stop following files."""
        self.complete = False
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _follow(self, path: str, means: str) -> None:
        """Follow ``path``. When it is opened, the file ``means`` counts as opened."""
        call = ctypes.CDLL(None, use_errno=True).inotify_add_watch
        number = call(self._descriptor, os.fsencode(path), _MASK)
        if number < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", path)
        self._paths.setdefault(number, set()).add(means)

    def _works(self) -> bool:
        """Open each file. Return whether the kernel reports that: not every file system does."""
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
