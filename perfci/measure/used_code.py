"""The code that a session's workers used: which of a tree's files, and which installed copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch

from perfci.measure.code_guard import CodeUsed
from perfci.measure.plan import SessionPlan
from perfci.measure.progress import CaseState
from perfci.model.run import Ran, SideRan


class UsedCode:
    """Collects what workers used, round by round."""

    def __init__(self, plan: SessionPlan) -> None:
        self._plan = plan
        self._used: dict[str, set[CodeUsed]] = {side.name: set() for side in plan.sides}

    def add(self, used: Mapping[str, CodeUsed]) -> None:
        """Note what a round's workers used, by side."""
        for side, files in used.items():
            self._used[side].add(files)

    def touches_nothing(self, used: Mapping[str, CodeUsed]) -> bool:
        """Return whether both sides of a case used no changed file, and started no process.

        False, too, if a changed file may be used unseen.
        """
        changed = self._plan.differences.seen
        return (
            len(used) > 1
            and changed is not None
            and not any(side.started or side.own & changed for side in used.values())
        )

    def by_side(self) -> Ran:
        """Return what ran on each side."""
        base = self._side("base") if len(self._plan.sides) > 1 else None
        return Ran(base, self._side("head"))

    def unexercised(self, states: Sequence[CaseState]) -> Mapping[str, tuple[str, ...]]:
        """Return the changes by kind if no case used a changed file, else nothing.

        Nothing, too, if a changed source isn't Python: what is built of it isn't known.
        """
        changes = self._plan.differences.by_kind
        changed = {name for names in changes.values() for name in names}
        python = all(name.endswith(".py") for name in changes.get("sources", ()))
        measured = any(state.rounds for state in states)
        return changes if python and measured and changed.isdisjoint(self._files()) else {}

    def notes(self) -> tuple[str, ...]:
        """Return a note on helpers of head's benchmarks that both sides ran."""
        changed = frozenset().union(*(side.overlay.changed for side in self._plan.sides))
        pattern = self._plan.config.pattern
        names = sorted(
            name
            for name in changed & self._files()
            if not fnmatch(name.rpartition("/")[2], pattern)
        )
        if not names:
            return ()
        what = "which differ" if len(names) > 1 else "which differs"
        both = f"Both sides ran head's {', '.join(names)}, {what} in base"
        return (f"{both}: what lies in the benchmarks' folder is head's.",)

    def _files(self) -> frozenset[str]:
        """Return the files, relative to their trees, that any worker used."""
        return frozenset().union(*(used.own for side in self._used.values() for used in side))

    def _side(self, name: str) -> SideRan:
        # only packages that all sides imported from the same file: other copies are meant to differ
        elsewhere = [
            {module for used in side for module in used.elsewhere} for side in self._used.values()
        ]
        installed = {module.name.partition(".")[0] for module in set.intersection(*elsewhere)}
        folders = frozenset[str]().union(*(used.folders for used in self._used[name]))
        return SideRan(
            tree=next(side.tree for side in self._plan.sides if side.name == name),
            folders=tuple(sorted(folders)),
            installed=tuple(sorted(installed)),
        )
