"""One foreign run while it is read: its points, its failures, and what was left out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from perfci.errors import UsageError
from perfci.foreign.naming import plain, visible
from perfci.foreign.result import Foreign, Skipped
from perfci.record.history import Point, RecordedRun
from perfci.record.instant import NoTime, from_text
from perfci.record.metric import Direction
from perfci.record.run import Environment

MOST_POINTS = 500_000
"""Of a run. 64 MiB of JSON could hold more, none of them from a real suite."""
_MOST_FACTS = 80
_NEVER_BELOW_ZERO = {"s", "bytes"}


class Gathering:
    """Takes what a file says, checks it, and makes the run of it."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.skipped: list[Skipped] = []
        self.notes: list[str] = []
        self._points: dict[tuple[str, str], Point] = {}
        self._failed: dict[str, str] = {}
        self._hashes: dict[str, str] = {}

    def skip(self, what: str, why: str) -> None:
        """Remember that something gave no points."""
        self.skipped.append(Skipped(visible(what, 300), visible(why, 300)))

    def fail(self, case: str, why: str) -> None:
        """Remember a case that has no result, in the run too."""
        self._failed.setdefault(case, visible(why, 300))
        self.skip(case, why)

    def hash(self, case: str, source_hash: str) -> None:
        """Remember the version of a case's benchmark."""
        self._hashes[case] = visible(source_hash, 100)

    def point(
        self,
        case: str,
        metric: str,
        unit: str,
        value: float | None,
        values: Sequence[float] = (),
        direction: Direction = "lower",
    ) -> None:
        """Take a value; one that is missing, not finite or impossible is skipped, and said."""
        if not case:
            self.skip("a benchmark", "it has no name")
        elif value is None or not all(map(finite, (value, *values))):
            self.skip(f"{case} {metric}", "its value is no finite number")
        elif value < 0 and unit in _NEVER_BELOW_ZERO:
            self.skip(f"{case} {metric}", f"its value is below zero: {value} {unit}")
        elif (case, metric) in self._points:
            self.skip(f"{case} {metric}", "another of the same name stands before it")
        elif len(self._points) >= MOST_POINTS:
            raise UsageError(
                "foreign-too-large",
                f"a run of {self.tool} holds more than {MOST_POINTS:,} values",
                "Split the file.",
            )
        else:
            self._points[case, metric] = Point(
                case, metric, unit, float(value), tuple(map(float, values)), direction
            )

    def time(self, text: Any) -> str:
        """Return a time in UTC; empty where ``text`` tells none."""
        if not isinstance(text, str):
            return ""
        try:
            found, zoned = from_text(text)
        except NoTime:
            return ""
        if not zoned:
            self.notes.append(f"{self.tool} tells times without their zone: taken as UTC")
        return found

    def run(
        self,
        environment: Environment,
        *,
        measured_at: str,
        sha: str = "",
        branch: str = "",
        committed_at: str = "",
        runner: str = "",
    ) -> RecordedRun:
        """Return the run. Its id is a hash of all of it, so that the same file gives the same."""
        points = tuple(sorted(self._points.values(), key=lambda one: (one.case, one.metric)))
        cases = {point.case for point in points}
        failed = {case: why for case, why in sorted(self._failed.items()) if case not in cases}
        values = [[one.case, one.metric, one.unit, one.value, one.values] for one in points]
        told = json.dumps([sha, environment.key, measured_at, runner, failed, values])
        digest = hashlib.sha256(told.encode()).hexdigest()
        return RecordedRun(
            id=f"{self.tool}-{digest[:32]}",
            source=self.tool,
            sha=sha,
            subject="",
            branch=visible(branch, 200),
            committed_at=committed_at,
            measured_at=measured_at,
            position=None,
            environment=environment,
            runner=visible(runner, 200),
            points=points,
            source_hashes={case: self._hashes[case] for case in sorted(cases & set(self._hashes))},
            failed=failed,
        )

    def foreign(self, run: RecordedRun) -> Foreign:
        """Return what is told of a file that holds ``run`` alone; each note is told once."""
        return Foreign(self.tool, (run,), tuple(self.skipped), tuple(dict.fromkeys(self.notes)))


def finite(value: float) -> bool:
    """Return whether a number, of any size, is a finite float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def environment_of(
    tool: str, title: Sequence[Any], deciding: Mapping[str, Any], notes: Mapping[str, Any]
) -> Environment:
    """Return the environment of a foreign run.

    Its key reads ``tool-title…-1a2b3c4d``, the end a hash of ``deciding``. Facts in ``notes`` are
    kept to be read and decide nothing; their names begin with ``note_``.
    """
    facts = {"tool": tool} | _facts(deciding)
    digest = hashlib.sha256(json.dumps(sorted(facts.items())).encode()).hexdigest()[:8]
    told = {f"note_{name}": value for name, value in _facts(notes).items()}
    shown = [plain(str(part)) for part in title if isinstance(part, (str, int, float)) and part]
    return Environment("-".join((tool, *shown, digest)), facts | told)


def _facts(plain_facts: Mapping[str, Any]) -> dict[str, str]:
    """Return what is text or a number, the first of them; lists and objects are no facts."""
    kept = {
        visible(name, 60): visible(str(value), 300)
        for name, value in sorted(plain_facts.items())
        if isinstance(value, (str, int, float)) and str(value).strip()
    }
    return dict(list(kept.items())[:_MOST_FACTS])
