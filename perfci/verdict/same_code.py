"""What ran, of several reports on the same commits together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from perfci.model.ran import Ran, SideRan
from perfci.model.report import Report


def joined_ran(reports: Sequence[Report]) -> Ran | None:
    """Return what ran in any of ``reports``; None where none says it."""
    told = [report.ran for report in reports if report.ran]
    if not told:
        return None
    bases = [one.base for one in told if one.base]
    return Ran(_joined(bases) if bases else None, _joined([one.head for one in told]))


def joined_same_code(reports: Iterable[Report]) -> tuple[str, ...]:
    """Return the cases of which nothing that ran differs, each once."""
    return tuple(dict.fromkeys(case for report in reports for case in report.same_code))


def _joined(sides: Sequence[SideRan]) -> SideRan:
    """Trees that differ are not the same side: such a one has none."""
    trees = {side.tree for side in sides}

    def every(of: Callable[[SideRan], Iterable[str]]) -> tuple[str, ...]:
        return tuple(sorted({one for side in sides for one in of(side)}))

    compiled = {one for side in sides for one in side.compiled}
    return SideRan(
        tree=trees.pop() if len(trees) == 1 else "",
        folders=every(lambda side: side.folders),
        compiled=tuple(sorted(compiled, key=lambda one: (one.file, one.sha256))),
        outside=every(lambda side: side.outside),
        installed=every(lambda side: side.installed),
        unknown=every(lambda side: side.unknown),
        cases={case: digest for side in sides for case, digest in side.cases.items()},
    )
