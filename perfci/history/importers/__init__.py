"""Result files of other tools as recorded runs. Pure.

Each tool is one module of this package, or what an entry point of the group ``perfci.importers``
names. It has the attributes of ``Importer``. A file's tool is known by its content, never by its
name. The standard library decodes the JSON, not msgspec: asv and pytest-benchmark write ``NaN`` for
a skipped result, which isn't valid JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol, TypeVar, cast

import msgspec

from perfci.errors import DamagedFile, PerfciError, UsageError
from perfci.model.case import Direction
from perfci.model.run import Environment, Point, RecordedRun, content_id
from perfci.plugins import added_plugins, built_in_modules
from perfci.units import NoTime, from_text, listed

T = TypeVar("T")
GROUP = "perfci.importers"
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

    A run's ``measured_at`` is empty if the file doesn't say it. ``notes`` list what was assumed
    where the file leaves something open, such as a time's zone.
    """

    tool: str
    runs: tuple[RecordedRun, ...]
    skipped: tuple[SkippedResult, ...] = ()
    notes: tuple[str, ...] = ()


class Importer(Protocol):
    """Reader of one tool's files.

    ``TOOL`` is the tool's name in messages. ``COMPANIONS`` names files that explain the results in
    their folder.
    """

    TOOL: str
    COMPANIONS: tuple[str, ...]

    def recognised(self, plain: Any, /) -> bool:
        """Return whether this JSON is a file of the tool's results."""

    def read(self, plain: Any, builder: RunBuilder, /) -> ForeignResults:
        """Return the content of a file, built by ``builder``. DamagedFile for a damaged file."""


@cache
def importers() -> Mapping[str, Importer]:
    """Return perfci's own importers by name, then those of other distributions.

    Names have hyphens instead of underscores. Raises UsageError for a broken importer.
    """
    added = added_plugins(GROUP, "TOOL", "COMPANIONS", "recognised", "read")
    plugins = (*built_in_modules(sys.modules[__name__]), *added)
    return {name.replace("_", "-"): cast("Importer", plugin) for name, plugin in plugins}


def read_foreign(content: bytes, name: str, form: str = "") -> ForeignResults:
    """Return the content of the file ``name``. ``form`` names its importer, if given.

    Raises UsageError for JSON that isn't a file of results, or for an unknown ``form``, and
    DamagedFile for a damaged file.
    """
    known = importers()
    wanted = form.replace("_", "-")
    if wanted and wanted not in known:
        raise UsageError(
            "foreign-unknown",
            f"{visible(form, 40)!r} is not a format",
            f"Formats: {listed([*known])}.",
        )
    chosen = (known[wanted],) if wanted else tuple(known.values())
    plain = _load(content, name)
    importer = _importer_of(plain, name, chosen)
    return importer.read(plain, RunBuilder(importer.TOOL, name))


def foreign_parts(
    paths: Iterable[str], content_of: Callable[[str], bytes], name: str
) -> Iterator[ForeignResults]:
    """Yield the content of each file of a folder, one at a time: years of asv's results are large.

    ``paths`` are relative to the folder, with ``/``. A tool's companions (asv's ``benchmarks.json``
    and ``machine.json``) are read first. A file that can't be read is yielded as skipped. Raises
    UsageError at the end if the folder has no file of results.
    """
    every = tuple(importers().values())
    explaining = {file for importer in every for file in importer.COMPANIONS}
    companions: dict[str, Any] = {}
    whys: list[str] = []
    is_read = False
    for path in sorted(paths, key=lambda path: (path.split("/")[-1] not in explaining, path)):
        try:
            plain = _load(content_of(path), path)
            if path.split("/")[-1] in explaining and not any(e.recognised(plain) for e in every):
                companions[path] = plain
                continue
            importer = _importer_of(plain, path, every)
            companion = partial(_nearest, companions, path)
            yield importer.read(plain, RunBuilder(importer.TOOL, path, companion))
            is_read = True
        except PerfciError as error:
            whys.append(error.message)
            yield ForeignResults(
                "", (), (SkippedResult(visible(path, 300), visible(error.message, 300)),)
            )
    if not is_read:
        raise UsageError(
            "nothing-to-import",
            "; ".join([f"{visible(name, 300)} holds no file of results", *whys[:1]]),
            "Give asv's results folder (the one with benchmarks.json), or one with JSON files.",
        )


def _importer_of(plain: Any, name: str, chosen: Iterable[Importer]) -> Importer:
    importer = next((each for each in chosen if each.recognised(plain)), None)
    if importer is None:
        raise UsageError(
            "foreign-unknown",
            f"{visible(name, 300)} is not a file of results of {listed([e.TOOL for e in chosen])}",
            "Give the JSON that the tool itself writes, or its folder; docs/foreign.md says how.",
        )
    return importer


def _nearest(companions: Mapping[str, Any], path: str, name: str) -> Any:
    """Return the companion ``name`` in the file's folder or the nearest folder above, or None."""
    folders = path.split("/")[:-1]
    above = ("/".join((*folders[:depth], name)) for depth in range(len(folders), -1, -1))
    return next((companions[file] for file in above if file in companions), None)


def _load(content: bytes, name: str) -> Any:
    from perfci.history.importers.google_benchmark import mended  # it imports this module

    try:
        text = content.decode("utf-8-sig")
        try:
            plain = json.loads(text)
        except json.JSONDecodeError:
            if (plain := mended(text)) is None:
                raise
        if b"\\ud" in content.lower():  # half of a surrogate pair can't be encoded: replace it
            plain = json.loads(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace"))
        return plain
    except (RecursionError, ValueError) as error:
        raise DamagedFile(
            "damaged-file",
            f"{visible(name, 300)} can't be read: {visible(str(error), 300)}",
            _advice(error),
        ) from error


def _advice(error: Exception) -> str:
    """Return what to do about a file that isn't JSON: get it again where it ends too early."""
    whole = isinstance(error, json.JSONDecodeError) and error.doc.rstrip().endswith(("}", "]"))
    if whole and error.pos < len(error.doc.rstrip()):  # type: ignore[attr-defined]
        return "There it isn't JSON: let its tool write it again, or mend that place by hand."
    return "It may have been cut off while it was written or copied: get it again."


class RunBuilder:
    """Collects and checks the results of the file ``name``, then builds its run.

    ``companion(file)`` returns the JSON of a companion in the file's folder, or in the nearest
    folder above it, or None.
    """

    def __init__(
        self, tool: str, name: str, companion: Callable[[str], Any] = lambda _: None
    ) -> None:
        self.tool = tool
        self.companion = companion
        self._name = name
        self.skipped: list[SkippedResult] = []
        self.notes: list[str] = []
        self._points: dict[tuple[str, str], Point] = {}
        self._failed: dict[str, str] = {}
        self._hashes: dict[str, str] = {}

    def fill(self, plain: Any, kind: type[T]) -> T:
        """Return the file's JSON as a ``kind``. Unknown keys are ignored."""
        try:
            return msgspec.convert(plain, type=kind, strict=True)
        except msgspec.ValidationError as error:
            raise DamagedFile(
                "damaged-file",
                f"{visible(self._name, 300)} looks like a result file of {self.tool}, but: "
                f"{visible(str(error), 300)}",
                f"Write it again with {self.tool}, or take the file out.",
            ) from error

    def skip(self, what: str, why: str) -> None:
        """Record that a benchmark gave no points."""
        self.skipped.append(SkippedResult(visible(what, 300), visible(why, 300)))

    def fail(self, case: str, why: str) -> None:
        """Record a case without a result as skipped, and in the run as failed."""
        self._failed.setdefault(case, visible(why, 300))
        self.skip(case, why)

    def add_point(
        self,
        case: str,
        metric: str,
        unit: str,
        value: float | None,
        direction: Direction = "lower",
        source_hash: str = "",
    ) -> None:
        """Add a value. A value that is missing, not finite or impossible is recorded as skipped."""
        if not case:
            self.skip("a benchmark", "its name is missing")
        elif value is None or not abs(value) <= sys.float_info.max:
            self.skip(f"{case} {metric}", "its value is not a finite number")
        elif value < 0 and unit in _NEVER_BELOW_ZERO:
            self.skip(f"{case} {metric}", f"its value is below zero: {value} {unit}")
        elif (case, metric) in self._points:
            self.skip(f"{case} {metric}", "an earlier result has the same name")
        else:
            self._points[case, metric] = Point(case, metric, unit, float(value), direction)
            if source_hash:
                self._hashes[case] = visible(source_hash, 100)

    def entries(self, entries: Iterable[Any], convert: Callable[[Any], T]) -> Iterator[T]:
        """Yield each entry that ``convert`` can read; skip the others."""
        for number, entry in enumerate(entries, 1):
            try:
                yield convert(entry)
            except msgspec.ValidationError as error:
                self.skip(f"benchmark {number}", str(error))

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

    def results(
        self,
        environment: Environment,
        *,
        measured_at: str,
        sha: str = "",
        branch: str = "",
        committed_at: str = "",
        runner: str = "",
    ) -> ForeignResults:
        """Return the run as a file's content."""
        points = tuple(sorted(self._points.values(), key=lambda point: (point.case, point.metric)))
        cases = {point.case for point in points}
        failed = {case: why for case, why in sorted(self._failed.items()) if case not in cases}
        run = RecordedRun(
            id="",
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
            source_hashes=dict(sorted(self._hashes.items())),
            failed=failed,
        )
        notes = tuple(dict.fromkeys(self.notes))
        run = replace(run, id=f"{self.tool}-{content_id(run)}")
        return ForeignResults(self.tool, (run,), tuple(self.skipped), notes)


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
    """Return the facts that are text or a number, sorted by name."""
    return {
        visible(name, 60): visible(str(value), 300)
        for name, value in sorted(plain_facts.items())
        if isinstance(value, (str, int, float)) and str(value).strip()
    }


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
