"""One foreign run while it is read: its points, its failures, and what was left out."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from perfci.errors import UsageError
from perfci.model.case import Direction
from perfci.model.run import Environment, Point, RecordedRun
from perfci.units import NoTime, from_text

# What reading a foreign file gives: the runs, what was left out, and what was assumed.


@dataclass(frozen=True, slots=True)
class Skipped:
    """A benchmark, or a file of a folder, that gave no points, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """All that a file holds. ``tool`` is empty where it couldn't be read.

    ``notes`` say what the file leaves open and was assumed, such as a time without a zone.
    """

    tool: str
    runs: tuple[RecordedRun, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


# Names from a file as case ids: ``name[axis=value]``, visible characters only.

_LONGEST_NAME = 200
_LONGEST_LABEL = 60
_IN_NAME = str.maketrans("[]", "()")
_IN_LABEL = str.maketrans("[],=", "();:")
_QUOTED = re.compile(r"""(?P<quote>['"])(?P<word>[A-Za-z_][\w.+-]*)(?P=quote)""")
_SHA = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_PLAIN = re.compile(r"[^A-Za-z0-9._]+")
_METRIC = re.compile(r"[^A-Za-z0-9_]+")


def visible(text: str, limit: int) -> str:
    """Return ``text`` on one line without what can't be seen, at most ``limit`` characters.

    A longer one ends in a hash of the whole, so that two long names stay two.
    """
    if not text.isprintable():  # most are, and looking at each character takes long
        text = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    digest = hashlib.sha256(line.encode()).hexdigest()[:8]
    return f"{line[: limit - 9]}~{digest}"


def case_id(name: str, axes: Mapping[str, str] | None = None) -> str:
    """Return the id of a benchmark at one point of its axes."""
    shown = _benchmark(name)
    inner = ",".join([f"{_label(axis)}={_label(value)}" for axis, value in (axes or {}).items()])
    return f"{shown}[{inner}]" if inner else shown


def metric_name(text: str) -> str:
    """Return ``text`` as the name of a metric: letters, digits and ``_``."""
    return _METRIC.sub("_", visible(text, 60)).strip("_") or "value"


def plain(text: str, limit: int = 40) -> str:
    """Return ``text`` as a part of an environment's key."""
    return _PLAIN.sub("_", text).lower()[:limit].strip("_.") or "unknown"


def sha_of(text: Any) -> str:
    """Return ``text`` where it is a commit's hash, in lower case; else nothing."""
    return text.lower() if isinstance(text, str) and _SHA.fullmatch(text) else ""


@lru_cache(maxsize=10_000)
def _version(source_hash: str) -> str:
    return visible(source_hash, 100)


@lru_cache(maxsize=10_000)
def _benchmark(name: str) -> str:
    return visible(name, _LONGEST_NAME).translate(_IN_NAME)


@lru_cache(maxsize=10_000)  # a suite has many points and few labels
def _label(text: str) -> str:
    word = _QUOTED.fullmatch(text)
    return visible(word["word"] if word else text, _LONGEST_LABEL).translate(_IN_LABEL)


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
        self._hashes[case] = _version(source_hash)

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
        elif value is None or not finite(value) or not all(map(finite, values)):
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
        """Return a time in UTC; empty where ``text`` is not a time."""
        if not isinstance(text, str):
            return ""
        try:
            found, zoned = from_text(text)
        except NoTime:
            return ""
        if not zoned:
            self.notes.append(f"{self.tool} writes times without their zone: taken as UTC")
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
        content = json.dumps([sha, environment.key, measured_at, runner, failed, values])
        digest = hashlib.sha256(content.encode()).hexdigest()
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
        """Return what a file holds whose only run is ``run``; each note is there once."""
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
    noted = {f"note_{name}": value for name, value in _facts(notes).items()}
    shown = [plain(str(part)) for part in title if isinstance(part, (str, int, float)) and part]
    return Environment("-".join((tool, *shown, digest)), facts | noted)


def _facts(plain_facts: Mapping[str, Any]) -> dict[str, str]:
    """Return what is text or a number, the first of them; lists and objects are no facts."""
    kept = {
        visible(name, 60): visible(str(value), 300)
        for name, value in sorted(plain_facts.items())
        if isinstance(value, (str, int, float)) and str(value).strip()
    }
    return dict(list(kept.items())[:_MOST_FACTS])
