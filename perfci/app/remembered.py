"""What the cache folder keeps of a repository from one command to the next.

Which cases failed in its last comparisons, for ``--last-failed``, and which cases there are, for a
shell that completes them. Nothing decides by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfci.checkout.repository import Repository
from perfci.errors import DamagedFile, UsageError
from perfci.files import read_regular, write_file
from perfci.model.case import Case
from perfci.model.report import Report
from perfci.model.status import traits
from perfci.units import counted, first_of

_SCHEMA = "perfci.remembered/1"


@dataclass(frozen=True, slots=True)
class Remembered:
    """``failed`` has the metrics that regressed by case; none of a case, or file, that failed.

    ``names`` are the ids of the cases, ``tags`` theirs. ``asked`` is the last comparison and
    ``at`` when it was made, both empty before the first.
    """

    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked: str = ""
    at: str = ""


class Memory:
    """The file of one repository; all its worktrees share it."""

    def __init__(self, cache: Path, repository: Repository) -> None:
        self.path = cache / repository.id / "remembered.json"

    def read(self) -> Remembered:
        """Return what is kept; nothing of it before the first. DamagedFile for anything else."""
        try:
            kept = json.loads(read_regular(self.path))
        except FileNotFoundError:
            return Remembered()
        except (OSError, ValueError) as error:
            raise self._damaged(str(error)) from error
        try:
            return _read(kept)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._damaged("it isn't what perfci writes") from error

    def keep_cases(self, cases: Iterable[Case]) -> None:
        """Keep which cases there are. OSError where the cache folder can't be written."""
        cases = tuple(cases)
        names = tuple(case.id for case in cases)
        tags = tuple(sorted({tag for case in cases for tag in case.tags}))
        before = self._before()
        if (before.names, before.tags) != (names, tags):
            self._write(replace(before, names=names, tags=tags))

    def keep_failed(self, report: Report, *, asked: str, whole: bool) -> None:
        """Keep what failed in ``report``. OSError where the cache folder can't be written.

        A case that it doesn't have stays, unless it is of the ``whole``; and so does one whose
        metric it couldn't decide.
        """
        before = self._before()
        failed = failed_after(before.failed, report, whole=whole)
        self._write(replace(before, failed=failed, asked=asked, at=report.created_at))

    def last_failed(self) -> Remembered:
        """Return what is kept. UsageError where nothing failed, or was compared yet."""
        kept = self.read()
        if kept.failed:
            return kept
        raise UsageError(
            "nothing-failed",
            f"no case regressed or failed in the last comparison, {kept.asked} of {kept.at}"
            if kept.asked
            else "no comparison of this repository was made on this machine yet",
            "Leave out --last-failed to measure all cases.",
        )

    def _before(self) -> Remembered:
        try:
            return self.read()
        except DamagedFile:  # it is written anew
            return Remembered()

    def _write(self, kept: Remembered) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        table = {
            "schema": _SCHEMA,
            "names": kept.names,
            "tags": kept.tags,
            "failed": kept.failed,
            "asked": kept.asked,
            "at": kept.at,
        }
        write_file(self.path, json.dumps(table, indent=1) + "\n")

    def _damaged(self, why: str) -> DamagedFile:
        return DamagedFile(
            "damaged-memory",
            f"{self.path}, which says what failed last, can't be read: {why}",
            "Leave out --last-failed: the next comparison writes it anew.",
        )


def _read(kept: Any) -> Remembered:
    if kept["schema"] != _SCHEMA:
        raise ValueError(kept["schema"])
    return Remembered(
        _strings(kept["names"]),
        _strings(kept["tags"]),
        {str(case): _strings(metrics) for case, metrics in kept["failed"].items()},
        str(kept["asked"]),
        str(kept["at"]),
    )


def _strings(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise TypeError
    return tuple(values)


def failed_after(
    before: Mapping[str, tuple[str, ...]], report: Report, *, whole: bool
) -> dict[str, tuple[str, ...]]:
    """Return what failed once ``report`` is known: of its cases what it says, else as before.

    A metric that regressed before and is undecided now is not known to be mended.
    """
    broken = {failure.case for failure in report.failures}
    failed: dict[str, list[str]] = {}
    for row in report.results:
        again = row.metric in before.get(row.case, ()) and row.status == "inconclusive"
        worse = traits(row.status).sense == "worse"
        if again or (worse and row.gate != "info" and not row.accepted):
            failed.setdefault(row.case, []).append(row.metric)
    seen = broken | {row.case for row in report.results}
    kept = {case: names for case, names in before.items() if case not in seen and not whole}
    now = {case: tuple(names) for case, names in failed.items() if case not in broken}
    return kept | dict.fromkeys(sorted(broken), ()) | now


def taken_text(kept: Remembered) -> str:
    """Return which cases ``--last-failed`` takes, and from which comparison."""
    shown = first_of(list(kept.failed), 5)
    return f"--last-failed: {counted(len(kept.failed), 'case')} of {kept.asked}, {kept.at}: {shown}"
