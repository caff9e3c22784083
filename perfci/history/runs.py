"""Runs as the history's records: made from what was measured, written whole, and read back."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, select

from perfci.errors import UsageError
from perfci.history import database
from perfci.history.database import insert_into
from perfci.metrics import METRICS
from perfci.model import inherited
from perfci.model.case import Failure, Metric
from perfci.model.run import HEADER, CaseRun, Point, RecordedRun, Run, RunHeader, content_id
from perfci.stats.evidence import summarise
from perfci.stats.quantile import upper_median
from perfci.units import NoTime, from_text

_MOST_COMMITS = 2**31
"""Limit of a run's position on its branch: the largest integer of a database's column, plus 1."""


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

    Each shard of a session is a run of its own.
    """
    recorded = RecordedRun(
        id="",
        source=source,
        sha=run.side.sha,
        subject=subject,
        branch=branch,
        committed_at=committed_at,
        measured_at=run.created_at,
        position=position,
        environment=run.environment,
        runner=runner,
        points=tuple(point for case in run.cases for point in _points(case)),
        source_hashes={
            case.case.id: case.case.source_hash
            for case in run.cases
            if case.workers and not case.failures
        },
        failed={failure.case: failed_field([failure]) for failure in run.failures}
        | {case.case.id: failed_field(case.failures) for case in run.cases if case.failures},
    )
    # a commit measured against itself is two runs at one moment
    sides = {worker.side for case in run.cases for worker in case.workers}
    return replace(recorded, id=content_id(recorded, *sorted(sides)))


def failed_field(failures: Iterable[Failure]) -> str:
    """Return the text that the history stores for a case's failures."""
    text = "; ".join(f"{failure.kind}: {failure.message}" for failure in failures)
    return text.encode("utf-8", "backslashreplace").decode()


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


def require_recordable(run: RecordedRun) -> None:
    """Raise UsageError for a run that could not be read back unchanged."""
    if why := next(_reasons_against(run), ""):
        raise UsageError(
            "unrecordable-run",
            f"the run {run.id[:12]!r} of {run.sha[:12]!r} ({run.source}) can't be recorded: {why}",
            "Nothing of it was recorded.",
        )


def _reasons_against(run: RecordedRun) -> Iterator[str]:
    if not run.id or not run.measured_at or not run.environment.key:
        yield "its id, environment or time is missing"
    try:
        from_text(run.measured_at)
    except NoTime:
        yield f"{run.measured_at[:80]!r} is not a time"
    if run.position is not None and not 0 <= run.position < _MOST_COMMITS:
        yield f"its position on the branch is {run.position}"
    if len({(point.case, point.metric) for point in run.points}) < len(run.points):
        yield "a metric of a case is there twice"
    for point in run.points:
        if not math.isfinite(point.value):
            yield f"{point.case} {point.metric} is not a finite number"
    try:
        msgspec.json.encode(run)
    except UnicodeEncodeError as error:
        yield f"it has text that isn't Unicode: {error.object[:80]!r}"
    if "\0" in "".join((*map(str, inherited(RunHeader, run).values()), run.environment.key)):
        yield "it has a text with a NUL character"


def record_runs(connection: Connection, runs: Iterable[RecordedRun]) -> int:
    """Write the runs whose ids aren't there yet. Return their number."""
    return sum(_record(connection, run) for run in runs)


def _record(connection: Connection, run: RecordedRun) -> bool:
    points = sorted(run.points)
    document = database.Document(
        run.environment,
        dict(run.source_hashes),
        dict(run.failed),
        tuple(
            database.SeriesName(each.case, each.metric, each.unit, each.direction)
            for each in points
        ),
    )
    added = connection.execute(
        insert_into(connection, database.runs)
        .values(
            **inherited(RunHeader, run),
            environment=run.environment.key,
            document=_document_number(connection, document),
            packed=database.pack([point.value for point in points]),
        )
        .on_conflict_do_nothing(index_elements=["id"])
        .returning(database.runs.c.id)
    )
    return added.first() is not None


def _document_number(connection: Connection, document: database.Document) -> int:
    content = msgspec.json.encode(document, order="deterministic")
    digest = hashlib.sha256(content).hexdigest()
    table = database.documents
    connection.execute(
        insert_into(connection, table)
        .values(digest=digest, content=content)
        .on_conflict_do_nothing(index_elements=["digest"])
    )
    return int(connection.execute(select(table.c.number).filter_by(digest=digest)).scalar_one())


def runs_query() -> Select[Any]:
    """Select runs with their environment's key and their document, in the order of measuring."""
    columns = database.runs.c
    header = (columns[name] for name in HEADER)
    return select(columns.environment, columns.document, *header).order_by(*database.AS_MEASURED)


def header_of(row: Row[Any]) -> RunHeader:
    """Return a row of ``runs_query`` as a run."""
    return RunHeader(**inherited(RunHeader, row))


def documents_of(connection: Connection, numbers: Collection[int]) -> dict[int, database.Document]:
    """Return the documents of these numbers. NotPacked if one is missing or damaged."""
    columns = database.documents.c
    query = select(columns.number, columns.content).where(columns.number.in_(numbers))
    rows = connection.execute(query)
    documents = {number: database.document(content) for number, content in rows}
    if len(documents) < len(numbers):
        raise database.NotPacked("a run's document is missing")
    return documents


def read_runs(connection: Connection) -> Iterator[RecordedRun]:
    """Yield every whole run. They are read one by one, because all may not fit into memory."""
    query = runs_query().add_columns(database.runs.c.packed)
    contents = select(database.documents.c.content)
    known: dict[int, database.Document] = {}
    for row in connection.execute(query).all():
        if row.document not in known:
            content = connection.execute(contents.filter_by(number=row.document)).scalar()
            known = {row.document: database.document(content)}  # the next run mostly has the same
        document = known[row.document]
        values = database.unpack(row.packed, document.series)
        yield RecordedRun(
            **inherited(RunHeader, row),
            environment=document.environment,
            points=tuple(
                Point(name.case, name.metric, name.unit, value, name.direction)
                for name, value in values.items()
            ),
            source_hashes=document.source_hashes,
            failed=document.failed,
        )
