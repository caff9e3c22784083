"""Runs as the history's records: made from what was measured, written whole, and read back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, Row, Select, insert, select

from perfci.errors import UnrecordableRun
from perfci.history import schema
from perfci.history.database import insert_into
from perfci.history.schema import NotPacked, document, pack_points, unpacked_points
from perfci.metrics import METRICS
from perfci.model.case import Direction, Failure, Metric
from perfci.model.report import Report
from perfci.model.run import (
    HEADER,
    CaseRun,
    Environment,
    GateOutcome,
    Point,
    RecordedRun,
    Run,
    RunHeader,
    header_fields,
)
from perfci.stats.evidence import summarise
from perfci.stats.quantile import upper_median
from perfci.units import NoTime, from_text

_SERIES_FIELDS = ("case", "metric", "unit", "direction")
_MOST_COMMITS = 2**31
"""Limit of a run's position on its branch: the largest integer of a database's column, plus 1."""
_SERIES = select(*(schema.series.c[name] for name in ("number", *_SERIES_FIELDS)))
"""Query for each series' number and its ``_SeriesName``."""


class _SeriesName(NamedTuple):
    """The identity of a series within its environment."""

    case: str
    metric: str
    unit: str
    direction: str


_ID_DIGITS = 32
_END_OF_KIND = ": "
"""Separates kind and message in the field that stores why a case has no points."""


def recorded_run(
    run: Run,
    *,
    source: str,
    runner: str,
    subject: str = "",
    branch: str = "",
    committed_at: str = "",
    position: int | None = None,
) -> RecordedRun:
    """Return ``run`` for the history: each case's metrics, and why a failed case has no metrics.

    The id is a hash of the commit, the machine, the moment and every value. So the same run gets
    the same id wherever it is recorded, and each shard of a session gets its own.
    """
    # the side is hashed, too: a commit measured against itself is two runs at one moment
    sided = [(case, point) for case in run.cases for point in _points(case)]
    failed = {failure.case: failed_field([failure]) for failure in run.failures} | {
        case.case.id: failed_field(case.failures) for case in run.cases if case.failures
    }
    return RecordedRun(
        id=_digest(
            "run",
            run.side.sha,
            run.environment.key,
            run.created_at,
            runner,
            [
                [case.workers[0].side, point.case, point.metric, point.value]
                for case, point in sided
            ],
            sorted(failed.items()),
        ),
        source=source,
        sha=run.side.sha,
        subject=subject,
        branch=branch,
        committed_at=committed_at,
        measured_at=run.created_at,
        position=position,
        environment=run.environment,
        runner=runner,
        points=tuple(point for _, point in sided),
        source_hashes={
            case.case.id: case.case.source_hash
            for case in run.cases
            if case.workers and not case.failures
        },
        failed=failed,
    )


def failed_field(failures: Iterable[Failure]) -> str:
    """Return the text that the history stores for a case's failures."""
    return "; ".join(f"{failure.kind}{_END_OF_KIND}{failure.message}" for failure in failures)


def kind_of_field(stored: str) -> str:
    """Return the kind of the first failure that ``failed_field`` stored."""
    return stored.partition(_END_OF_KIND)[0]


def outcome_of(report: Report, *, runner: str) -> GateOutcome | None:
    """Return how ``report`` ended. None if it compared nothing, was cut short or tests the gate."""
    if report.base is None or report.injected or report.interrupted:
        return None
    gating = [row for row in report.results if row.gate == "fail" and row.method != "none"]
    return GateOutcome(
        id=_digest(
            "outcome",
            report.command,
            report.created_at,
            report.environment.key,
            runner,
            report.base.sha,
            report.head.sha,
            report.shard,
            [[row.case, row.metric, row.status, row.ratio, row.difference] for row in gating],
        ),
        command=report.command,
        created_at=report.created_at,
        environment=report.environment.key,
        runner=runner,
        base_sha=report.base.sha,
        head_sha=report.head.sha,
        same=report.base.sha == report.head.sha and report.base.python == report.head.python,
        verdict=report.verdict.status,
        comparisons=len(gating),
        regressed=sum(row.status == "regressed" for row in gating),
        inconclusive=sum(row.status == "inconclusive" for row in gating),
    )


def _points(case: CaseRun) -> Iterable[Point]:
    """Yield a case's points. A failed case has no points: some workers aren't a measurement."""
    known = dict(METRICS)
    for worker in case.workers:
        known |= {own.name: own for own in worker.extra_metrics if own.name not in METRICS}
    for metric in known.values() if not case.failures else ():
        values = [worker.values.get(metric.name, math.nan) for worker in case.workers]
        finite = tuple(float(value) for value in values if math.isfinite(value))
        if finite:
            center = _center(metric, finite)
            yield Point(case.case.id, metric.name, metric.unit, center, metric.direction)


def _center(metric: Metric, values: Sequence[float]) -> float:
    """Return the centre that a report shows of the same values. For counts it is a seen value."""
    if metric.kind == "exact":
        return upper_median(values)
    center = summarise(values, logarithmic=not metric.absolute).center
    assert center is not None  # noqa: S101 (there are values, and all are finite)
    return center


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def record_runs(connection: Connection, runs: Iterable[RecordedRun]) -> int:
    """Write the runs whose ids aren't there yet. Return their number."""
    return sum(_record(connection, run) for run in runs)


def require_recordable(run: RecordedRun) -> None:
    """Raise UsageError for a run that could not be read back unchanged."""
    names = [_name(point) for point in run.points]
    if not run.id or not run.measured_at or not run.environment.key:
        raise _unrecordable(run, "it has no id, no environment or no time")
    try:
        from_text(run.measured_at)
    except NoTime as error:
        why = f"{run.measured_at[:80]!r} is no time at which it was measured"
        raise _unrecordable(run, why) from error
    if run.position is not None and not 0 <= run.position < _MOST_COMMITS:
        raise _unrecordable(run, f"no branch has {run.position} commits")
    if len({(name.case, name.metric) for name in names}) < len(names):
        raise _unrecordable(run, "a metric of a case is there twice")
    for point in run.points:
        if not math.isfinite(point.value):
            raise _unrecordable(run, f"{point.case} {point.metric} is not a finite number")
    header = (value for value in header_fields(run).values() if isinstance(value, str))
    for text in {*header, run.environment.key, *(text for name in names for text in name)}:
        if "\0" in text or text.encode("utf-8", "ignore").decode() != text:
            raise _unrecordable(run, f"{text[:80]!r} is not text that a database takes")


def _record(connection: Connection, run: RecordedRun) -> bool:
    if connection.execute(select(schema.runs.c.number).filter_by(id=run.id)).first():
        return False
    facts, source_hashes, failed = _document_numbers(
        connection, (run.environment.facts, run.source_hashes, run.failed)
    )
    number = connection.execute(
        insert_into(connection, schema.runs)
        .values(
            **header_fields(run),
            environment=run.environment.key,
            facts=facts,
            source_hashes=source_hashes,
            failed=failed,
        )
        .on_conflict_do_nothing(index_elements=["id"])
        .returning(schema.runs.c.number)
    ).scalar()
    if number is None:  # another writer committed it meanwhile
        return False
    numbers = _series_numbers(connection, run.environment.key, set(map(_name, run.points)))
    placed = sorted((numbers[_name(point)], point.value) for point in run.points)
    if placed:
        packed = pack_points([at for at, _ in placed], [value for _, value in placed])
        connection.execute(insert(schema.run_points).values(run=number, packed=packed))
    return True


def _name(point: Point) -> _SeriesName:
    return _SeriesName(point.case, point.metric, point.unit, point.direction)


def _document_numbers(
    connection: Connection, contents: Sequence[Mapping[str, str]]
) -> tuple[int, ...]:
    texts = [
        json.dumps(dict(sorted(content.items())), separators=(",", ":")) for content in contents
    ]
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    table = schema.documents
    query = select(table.c.digest, table.c.number).where(table.c.digest.in_(digests))
    known = {row.digest: row.number for row in connection.execute(query)}
    by_digest = dict(zip(digests, texts, strict=True))
    if missing := sorted(by_digest.keys() - known.keys()):
        connection.execute(
            insert_into(connection, table).on_conflict_do_nothing(index_elements=["digest"]),
            [{"digest": digest, "content": by_digest[digest]} for digest in missing],
        )
        known = {row.digest: row.number for row in connection.execute(query)}
    return tuple(known[digest] for digest in digests)


def _series_numbers(
    connection: Connection, environment: str, names: set[_SeriesName]
) -> dict[_SeriesName, int]:
    known = _known_series(connection, environment)
    # sorted: two writers that add the same series in two orders would wait for each other
    if missing := sorted(names - known.keys()):
        rows = [{"environment": environment, **name._asdict()} for name in missing]
        connection.execute(insert_into(connection, schema.series).on_conflict_do_nothing(), rows)
        known = _known_series(connection, environment)
    return known


def _known_series(connection: Connection, environment: str) -> dict[_SeriesName, int]:
    rows = connection.execute(_SERIES.filter_by(environment=environment))
    return {_SeriesName(*name): number for number, *name in rows}


def _unrecordable(run: RecordedRun, why: str) -> UnrecordableRun:
    return UnrecordableRun(
        "unrecordable-run",
        f"the run {run.id[:12]!r} of {run.sha[:12]!r} ({run.source}) can't be recorded: {why}",
        "Nothing of it was recorded.",
    )


def runs_query() -> Select[Any]:
    """Select runs with their environment's key, in the order of measuring."""
    columns = schema.runs.c
    header = (columns[name] for name in HEADER)
    return select(columns.number, columns.environment, *header).order_by(*schema.AS_MEASURED)


def header_of(row: Row[Any]) -> RunHeader:
    """Return a row of ``runs_query`` as a run."""
    return RunHeader(**header_fields(row))


def read_runs(connection: Connection) -> Iterator[RecordedRun]:
    """Yield every whole run. They are read one by one, because all may not fit into memory."""
    runs = schema.runs.c
    query = runs_query().add_columns(runs.facts, runs.source_hashes, runs.failed)
    known: dict[int, _SeriesName] = {}
    for row in connection.execute(query).all():
        yield _whole(connection, row, known)


def _whole(connection: Connection, row: Row[Any], known: dict[int, _SeriesName]) -> RecordedRun:
    """Return a whole run. ``known`` has series' names by number, and gets those that it lacks."""
    series, values = points_of(connection, row.number)
    if not known.keys() >= set(series):
        known.update((number, _SeriesName(*name)) for number, *name in connection.execute(_SERIES))
        if not known.keys() >= set(series):
            raise NotPacked("a run has points of a series that is not there")
    points = []
    for number, value in zip(series, values, strict=True):
        case, metric, unit, direction = known[number]
        points.append(Point(case, metric, unit, value, cast("Direction", direction)))
    return RecordedRun(
        **header_fields(row),
        environment=Environment(row.environment, _document(connection, row.facts)),
        points=tuple(points),
        source_hashes=_document(connection, row.source_hashes),
        failed=_document(connection, row.failed),
    )


def points_of(connection: Connection, run: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the numbers of a run's series, and their values."""
    query = select(schema.run_points.c.packed).filter_by(run=run)
    return unpacked_points(connection.execute(query).scalar() or b"")


def _document(connection: Connection, number: int) -> dict[str, str]:
    query = select(schema.documents.c.content).filter_by(number=number)
    return document(connection.execute(query).scalar())
