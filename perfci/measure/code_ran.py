"""The code that a session's workers ran, and the cases that ran the same code on both sides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from perfci.measure.plan import SessionPlan
from perfci.measure.progress import CaseState
from perfci.measure.provenance.advice import folder_of
from perfci.measure.provenance.attribution import UNSEEN_LOOKS, Provenance
from perfci.measure.provenance.events import answer, is_library
from perfci.measure.provenance.places import SideTree
from perfci.measure.provenance.watch import OpenedFiles
from perfci.model.run import Compiled, Ran, SideRan
from perfci.verdict.judgement import may_be_same_code
from perfci.verdict.policy import Policy
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
"""Programs that read what their command line names, which a watched process wrote."""


class CodeRan:
    """Grows round by round; ``close`` ends the following of files.

    A case that ran the same code on both sides, without doubt, needs no more rounds: it is settled,
    but where ``everything`` is measured.
    """

    def __init__(self, plan: SessionPlan, policy: Policy, *, everything: bool) -> None:
        self._plan = plan
        self._policy = policy
        self._everything = everything
        self._tally = FileTally(plan.trees())
        differing = plan.differing if self._may_be_the_same() else None
        self._tally.read(differing or ())
        self._openings = OpenedFiles(differing)

    def opened(self) -> frozenset[str]:
        """Return the files that differ between the sides and were opened since the last call."""
        return self._openings.taken()

    def add(
        self, state: CaseState, ran: Mapping[str, Provenance], imported: frozenset[str]
    ) -> None:
        """Note what a round's workers ran, by side; ``imported`` was opened by what forked them."""
        state.opened |= imported | self.opened()
        for side, provenance in ran.items():
            self._tally.add(state.case.id, side, provenance)

    def settles(self, state: CaseState) -> bool:
        """Say whether the case is the same code on both sides, and nothing says otherwise."""
        return (
            not self._everything
            and state.rounds == 1
            and self._openings.complete
            and self._ran_the_same(state)
            and may_be_same_code(state.compared(self._policy))
        )

    def of_sides(self) -> Ran | None:
        """Return what ran on each side; None where it isn't watched."""
        if not self._plan.places:
            return None
        base = self._tally.side("base") if len(self._plan.sides) > 1 else None
        return Ran(base, self._tally.side("head"))

    def same(self, states: Sequence[CaseState]) -> tuple[str, ...]:
        """Return the cases of which nothing that ran differs between the sides."""
        if not self._may_be_the_same():
            return ()
        return tuple(state.case.id for state in states if self._ran_the_same(state))

    def unexercised(self, states: Sequence[CaseState]) -> Mapping[str, tuple[str, ...]]:
        """Return the changes by kind where no case used anything that differs; else nothing."""
        all_same = bool(states) and len(self.same(states)) == len(states)
        return self._plan.changes if all_same else {}

    def notes(self) -> tuple[str, ...]:
        """Return what the report should say of it."""
        notes = self._tally.notes()
        if self._may_be_the_same() and self._tally.has_unseen_looks():
            why = f" ({self._plan.looks.why})" if self._plan.looks.why else ""
            note = f"Not all looks at files were seen{why}: their cases are measured in full"
            notes += (f"{note}, same code or not. `perfci doctor` says more.",)
        return notes

    def close(self) -> None:
        """Follow files no longer."""
        self._openings.close()

    def _may_be_the_same(self) -> bool:
        """Say whether both sides are watched, under one Python, nothing injected."""
        if not self._plan.places or any(self._plan.settings.inject.values()):
            return False
        sides = self._plan.sides
        return len(sides) > 1 and len({side.python for side in sides}) == 1

    def _ran_the_same(self, state: CaseState) -> bool:
        if state.same_code:
            return True
        measured = all(state.outputs.values()) and not state.failures
        return measured and not state.opened and self._tally.is_same(state.case.id)


@dataclass(slots=True)
class CaseFiles:
    """The files that one case used on one side, as ``(path, sha256)``, and what isn't known.

    ``looked_at`` is what it asked for, or listed, where the sides' trees answer differently, each
    with the answer that it got.
    ``loaded`` are those that lie outside of the trees, ``not_its_own`` helpers of head's benchmarks
    that the side has, too, with another content.
    """

    files: set[tuple[str, str]] = field(default_factory=set)
    looked_at: set[tuple[str, str]] = field(default_factory=set)
    loaded: set[tuple[str, str]] = field(default_factory=set)
    not_its_own: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


class FileTally:
    """Grows round by round. Each version of a file is read once."""

    def __init__(self, trees: Mapping[str, SideTree]) -> None:
        self._trees = trees
        self._cases: dict[tuple[str, str], CaseFiles] = {}
        self._folders: dict[str, set[str]] = {name: set() for name in trees}
        self._outside: dict[str, set[str]] = {name: set() for name in trees}
        self._installed: dict[str, set[tuple[str, str]]] = {name: set() for name in trees}
        self._hashes: dict[tuple[str, int, int], str] = {}

    def read(self, paths: Iterable[str]) -> None:
        """Read these files now, so that no one has to open them for their hash later on."""
        for path in paths:
            self._digest(path)

    def add(self, case: str, side: str, ran: Provenance) -> None:
        """Add what one worker of ``case`` ran; its trees are there still."""
        tree = self._trees[side]
        mine = self._cases.setdefault((case, side), CaseFiles())
        for paths, files in ((ran.used, mine.files), (ran.loaded, mine.loaded)):
            for path in paths:
                label, digest = self._label(path, tree), self._digest(path)
                files.add((label, digest))
                if not digest:
                    mine.unknown.add(f"gone {label}")
        for look in ran.looked_at:
            label = self._label(look.path, tree)
            if len({answer(look.how, each.root / label) for each in self._trees.values()}) > 1:
                mine.looked_at.add((f"{look.how} {label}", answer(look.how, Path(look.path))))
        used = {self._label(path, tree) for path in ran.used}
        mine.not_its_own |= {
            name for name in used & tree.replaced if not fnmatch(Path(name).name, tree.pattern)
        }
        mine.unknown |= {reason for reason in ran.unknown if reason.partition(" ")[2] not in _TOOLS}
        self._outside[side] |= set(ran.outside)
        self._installed[side] |= {
            (module.name.partition(".")[0], module.path) for module in ran.elsewhere
        }
        for module in ran.modules:
            of_library = not module.name.startswith(PREFIX)
            if of_library and Path(module.path).is_relative_to(tree.root):
                relative = str(Path(module.path).relative_to(tree.root))
                self._folders[side].add(folder_of(tree.root, relative, module.name))

    def side(self, name: str) -> SideRan:
        """Return what this side's workers ran, over all cases."""
        mine = [files_of_case for (_, side), files_of_case in self._cases.items() if side == name]
        files = {pair for files_of_case in mine for pair in files_of_case.files}
        return SideRan(
            tree=self._trees[name].tree,
            folders=tuple(sorted(self._folders[name])),
            compiled=tuple(Compiled(*pair) for pair in sorted(files) if is_library(pair[0])),
            outside=tuple(sorted(self._outside[name])),
            installed=tuple(sorted({package for package, _ in self._of_one_copy()})),
            unknown=tuple(
                sorted({reason for files_of_case in mine for reason in files_of_case.unknown})
            ),
            cases={
                case: digest
                for case, side in self._cases
                if side == name and (digest := self.digest(case, side))
            },
        )

    def _of_one_copy(self) -> set[tuple[str, str]]:
        """Return what all sides imported from the same file: a copy each is meant to differ."""
        return set.intersection(*self._installed.values())

    def is_same(self, case: str) -> bool:
        """Return whether all that ran of both sides' trees is the same, and all of it is known."""
        base, head = (self.digest(case, side) for side in ("base", "head"))
        return base != "" and base == head

    def digest(self, case: str, side: str) -> str:
        """Return one hash of all that ``case`` used on ``side``; empty where not all is known."""
        mine = self._cases.get((case, side))
        if mine is None or mine.unknown or mine.not_its_own or not mine.files:
            return ""
        pairs = sorted(mine.files | mine.loaded | mine.looked_at)
        text = "\n".join(f"{digest} {path}" for path, digest in pairs)
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    def has_unseen_looks(self) -> bool:
        """Return whether some worker or child looked at files unseen."""
        return any(UNSEEN_LOOKS in case.unknown for case in self._cases.values())

    def notes(self) -> tuple[str, ...]:
        """Return a note on head's helpers that base ran, and has otherwise."""
        files = {name for mine in self._cases.values() for name in mine.not_its_own}
        if not files:
            return ()
        what = "which differ" if len(files) > 1 else "which differs"
        both = f"Both sides ran head's {', '.join(sorted(files))}, {what} in base"
        return (f"{both}: what lies in the benchmarks' folder is head's.",)

    def _label(self, path: str, tree: SideTree) -> str:
        for root in (tree.root, tree.temporary):
            if Path(path).is_relative_to(root):
                return str(Path(path).relative_to(root))
        return path

    def _digest(self, path: str) -> str:
        """Return the file's SHA-256, of one in an archive the archive's.

        Empty where it is gone, or can't be read any more.
        """
        with suppress(OSError):
            return self._digest_of(Path(path))
        return ""

    def _digest_of(self, place: Path) -> str:
        while not place.exists() and place != place.parent:
            place = place.parent
        if not place.is_file():
            return ""
        status = place.stat()
        key = (str(place), status.st_mtime_ns, status.st_size)
        if key not in self._hashes:
            with place.open("rb") as file:
                self._hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._hashes[key]
