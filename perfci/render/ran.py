"""What ran on each side, in a line each."""

from __future__ import annotations

from perfci.model.ran import SideRan
from perfci.model.report import Report
from perfci.units import counted

_SHOWN = 5


def ran_lines(report: Report) -> tuple[str, ...]:
    """Return a line for each side whose code is known."""
    if report.ran is None:
        return ()
    sides = (("base", report.ran.base), ("head", report.ran.head))
    return tuple(f"{name} ran {_text(side)}" for name, side in sides if side)


def _text(side: SideRan) -> str:
    parts = [f"tree {side.tree[:10] or 'unknown'}"]
    if side.folders:
        parts.append(f"imported from {_some(side.folders)}")
    if side.compiled:
        files = tuple(f"{one.file} ({one.sha256[:10]})" for one in side.compiled)
        parts.append(f"compiled: {_some(files)}")
    if side.outside:
        parts.append(f"{counted(len(side.outside), 'file')} of no commit: {_some(side.outside)}")
    if side.installed:
        parts.append(f"installed, not of the tree: {_some(side.installed)}")
    if side.unknown:
        parts.append(f"not seen: {_some(side.unknown)}")
    return ", ".join(parts)


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
