"""Read a result file of another tool: its JSON, its names, its run. Pure.

Every importer builds on this module. The standard library decodes the JSON, not msgspec: asv and
pytest-benchmark write ``NaN`` for a skipped result, which isn't valid JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from perfci.errors import DamagedFile, UsageError
from perfci.model.case import Direction
from perfci.model.run import Environment, Point, RecordedRun
from perfci.units import NoTime, from_text

T = TypeVar("T")
MOST_BYTES = 64 << 20
"""Largest size of a file. The raw data of 10,000 benchmarks come near it."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Matches half of a surrogate pair, as JSON escapes it."""
_PATH = re.compile(r" - at `(?P<path>[^`]+)`$")
"""Matches the path at the end of a message of msgspec's."""
_LONGEST_NAME = 200
_LONGEST_LABEL = 60
_IN_NAME = str.maketrans("[]", "()")
"""Replaces the characters of a benchmark's name that delimit axes in a case's id."""
_IN_LABEL = str.maketrans("[],=", "();:")
"""Replaces the characters of an axis or its value that delimit axes in a case's id."""
_QUOTED = re.compile(r"""(?P<quote>['"])(?P<word>[A-Za-z_][\w.+-]*)(?P=quote)""")
_SHA = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._]+")
_NOT_IN_METRIC = re.compile(r"[^A-Za-z0-9_]+")
_MOST_FACTS = 80
_NEVER_BELOW_ZERO = {"s", "bytes"}
"""Units whose values are skipped if they are negative."""


@dataclass(frozen=True, slots=True)
class SkippedResult:
    """A benchmark, or a file of a folder, without points (``what``), and the reason (``why``)."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ForeignResults:
    """Content of a file. ``tool`` is empty if the file couldn't be read.

    ``notes`` list what was assumed where the file leaves something open, such as a time's zone.
    """

    tool: str
    runs: tuple[RecordedRun, ...]
    skipped: tuple[SkippedResult, ...] = ()
    notes: tuple[str, ...] = ()


class RunBuilder:
    """Collects and checks the results of one run, then builds the run."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.skipped: list[SkippedResult] = []
        self.notes: list[str] = []
        self._points: dict[tuple[str, str], Point] = {}
        self._failed: dict[str, str] = {}
        self._hashes: dict[str, str] = {}

    def skip(self, what: str, why: str) -> None:
        """Record that a benchmark gave no points."""
        self.skipped.append(SkippedResult(visible(what, 300), visible(why, 300)))

    def fail(self, case: str, why: str) -> None:
        """Record a case without a result as skipped, and in the run as failed."""
        self._failed.setdefault(case, visible(why, 300))
        self.skip(case, why)

    def add_source_hash(self, case: str, source_hash: str) -> None:
        """Record the hash of the source of a case's benchmark."""
        self._hashes[case] = visible(source_hash, 100)

    def add_point(
        self,
        case: str,
        metric: str,
        unit: str,
        value: float | None,
        direction: Direction = "lower",
    ) -> None:
        """Add a value. A value that is missing, not finite or impossible is recorded as skipped."""
        if not case:
            self.skip("a benchmark", "it has no name")
        elif value is None or not finite(value):
            self.skip(f"{case} {metric}", "its value is no finite number")
        elif value < 0 and unit in _NEVER_BELOW_ZERO:
            self.skip(f"{case} {metric}", f"its value is below zero: {value} {unit}")
        elif (case, metric) in self._points:
            self.skip(f"{case} {metric}", "another of the same name stands before it")
        else:
            self._points[case, metric] = Point(case, metric, unit, float(value), direction)

    def entries(
        self, entries: Iterable[Any], convert: Callable[[Any], T], noun: str = "benchmark"
    ) -> Iterator[tuple[int, T]]:
        """Yield each entry that ``convert`` can read, with its number from 1; skip the others."""
        for number, entry in enumerate(entries, 1):
            try:
                converted = convert(entry)
            except msgspec.ValidationError as error:
                self.skip(f"{noun} {number}", explained(error))
            else:
                yield number, converted

    def time(self, text: Any) -> str:
        """Return a time in UTC, or an empty string if ``text`` is not a time."""
        if not isinstance(text, str):
            return ""
        try:
            time, zoned = from_text(text)
        except NoTime:
            return ""
        if not zoned:
            self.notes.append(f"{self.tool} writes times without their zone: taken as UTC")
        return time

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
        """Return the run. Its id is a hash of its content: the same file gives the same id."""
        points = tuple(sorted(self._points.values(), key=lambda point: (point.case, point.metric)))
        cases = {point.case for point in points}
        failed = {case: why for case, why in sorted(self._failed.items()) if case not in cases}
        values = [[point.case, point.metric, point.unit, point.value] for point in points]
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

    def results(self, run: RecordedRun) -> ForeignResults:
        """Return the content of a file whose only run is ``run``. Each note occurs once."""
        return ForeignResults(
            self.tool, (run,), tuple(self.skipped), tuple(dict.fromkeys(self.notes))
        )


def finite(value: float) -> bool:
    """Return whether a number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def environment_of(
    tool: str, title: Sequence[Any], deciding: Mapping[str, Any], notes: Mapping[str, Any]
) -> Environment:
    """Return the environment of a foreign run.

    Its key reads ``tool-title…-1a2b3c4d`` and ends in a hash of the facts in ``deciding``. Facts in
    ``notes`` are for readers and don't change the key. Their names begin with ``note_``.
    """
    facts = {"tool": tool} | _facts(deciding)
    digest = hashlib.sha256(json.dumps(sorted(facts.items())).encode()).hexdigest()[:8]
    noted = {f"note_{name}": value for name, value in _facts(notes).items()}
    words = [_NOT_PLAIN.sub("_", str(part)).lower()[:40].strip("_.") for part in title if part]
    return Environment("-".join((tool, *filter(None, words), digest)), facts | noted)


def _facts(plain_facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the first ``_MOST_FACTS`` facts that are text or a number, sorted by name."""
    kept = {
        visible(name, 60): visible(str(value), 300)
        for name, value in sorted(plain_facts.items())
        if isinstance(value, (str, int, float)) and str(value).strip()
    }
    return dict(list(kept.items())[:_MOST_FACTS])


def load(content: bytes, name: str) -> Any:
    """Return the decoded JSON ``content``. Else raise DamagedFile."""
    if len(content) > MOST_BYTES:
        raise UsageError(
            "foreign-too-large",
            f"{visible(name, 300)} holds more than {MOST_BYTES >> 20} MiB",
            "Leave out the raw data (pytest-benchmark: not --benchmark-save-data), or split it.",
        )
    try:
        plain = json.loads(content.decode("utf-8-sig"))
        if _SURROGATE.search(content):  # a lone surrogate can't be encoded: replace it
            plain = json.loads(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace"))
    except (RecursionError, ValueError) as error:
        raise DamagedFile(
            "foreign-damaged",
            f"{visible(name, 300)} can't be read: {visible(str(error), 300)}",
            "It may have been cut off while it was written or copied: get it again.",
        ) from error
    return plain


def fill(plain: Any, kind: type[T], name: str, tool: str) -> T:
    """Return the decoded JSON ``plain`` as a ``kind``. Unknown keys are ignored."""
    try:
        return msgspec.convert(plain, type=kind, strict=True)
    except msgspec.ValidationError as error:
        raise DamagedFile(
            "foreign-layout",
            f"{visible(name, 300)} looks like a result file of {tool}, but {explained(error)}",
            f"Write it again with {tool}, or take the file out.",
        ) from error


def explained(error: msgspec.ValidationError) -> str:
    """Return msgspec's message as ``$.a.b: Expected …, got …``."""
    message = str(error)
    path = _PATH.search(message)
    return visible(f"at {path['path'] if path else '$'}: {_PATH.sub('', message)}", 300)


def visible(text: str, limit: int) -> str:
    """Return ``text`` on one line, without invisible characters and cut to ``limit``.

    A text that was cut ends in a hash of the whole text, so that two long names stay different.
    """
    if not text.isprintable():  # looking at each character takes long
        text = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    digest = hashlib.sha256(line.encode()).hexdigest()[:8]
    return f"{line[: limit - 9]}~{digest}"


def case_id(name: str, axes: Mapping[str, str] | None = None) -> str:
    """Return the id of a benchmark at one point of its axes."""
    shown = visible(name, _LONGEST_NAME).translate(_IN_NAME)
    inner = ",".join([f"{_label(axis)}={_label(value)}" for axis, value in (axes or {}).items()])
    return f"{shown}[{inner}]" if inner else shown


def metric_name(text: str) -> str:
    """Return ``text`` as the name of a metric: letters, digits and ``_``."""
    return _NOT_IN_METRIC.sub("_", visible(text, 60)).strip("_") or "value"


def sha_of(text: Any) -> str:
    """Return ``text`` in lower case if it is a commit's hash, else an empty string."""
    return text.lower() if isinstance(text, str) and _SHA.fullmatch(text) else ""


def _label(text: str) -> str:
    word = _QUOTED.fullmatch(text)
    return visible(word["word"] if word else text, _LONGEST_LABEL).translate(_IN_LABEL)
