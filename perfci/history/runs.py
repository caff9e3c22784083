"""Write whole runs in one transaction, read them back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, Row, Select, select

from perfci.errors import UnrecordableRun
from perfci.history import schema
from perfci.history.database import insert_into, insert_rows
from perfci.history.schema import NotPacked, pack_points, unpacked_points
from perfci.model.case import Direction
from perfci.model.run import HEADER, Environment, Point, RecordedRun, RunHeader, header_fields
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


def record_runs(connection: Connection, runs: Iterable[RecordedRun]) -> int:
    """Write the runs whose ids aren't there yet. Return their number."""
    known: _Known = {}
    return sum(_record(connection, run, known) for run in runs)


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
    for text in {*_texts(run), *(text for name in set(names) for text in name)}:
        if "\0" in text or (not text.isascii() and _is_broken(text)):
            raise _unrecordable(run, f"{text[:80]!r} is not text that a database takes")


_Known = dict[str, dict[_SeriesName, int]]
"""Numbers of series by name, for each environment that was looked up."""


def _record(connection: Connection, run: RecordedRun, known: _Known) -> bool:
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
    names = [_name(point) for point in run.points]
    numbers = _series_numbers(connection, run.environment.key, set(names), known)
    places = [numbers[name] for name in names]
    placed = sorted(zip(places, run.points, strict=True), key=lambda pair: pair[0])
    if placed:
        content = pack_points([at for at, _ in placed], [point.value for _, point in placed])
        insert_rows(connection, schema.run_points, [(number, content)])
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
    connection: Connection, environment: str, names: set[_SeriesName], known: _Known
) -> dict[_SeriesName, int]:
    if environment not in known or names - known[environment].keys():
        known[environment] = _known_series(connection, environment)
    # sorted: two writers that add the same series in two orders would wait for each other
    if missing := sorted(names - known[environment].keys()):
        rows = [{"environment": environment, **name._asdict()} for name in missing]
        connection.execute(insert_into(connection, schema.series).on_conflict_do_nothing(), rows)
        known[environment] = _known_series(connection, environment)
    return known[environment]


def _known_series(connection: Connection, environment: str) -> dict[_SeriesName, int]:
    rows = connection.execute(_SERIES.filter_by(environment=environment))
    return {_SeriesName(*name): number for number, *name in rows}


def _texts(run: RecordedRun) -> Iterable[str]:
    yield from (run.id, run.source, run.sha, run.subject, run.branch, run.committed_at)
    yield from (run.measured_at, run.environment.key, run.runner)


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


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
    return RecordedRun(
        **header_fields(row),
        environment=Environment(row.environment, _document(connection, row.facts)),
        points=tuple(
            Point(
                *(known[at].case, known[at].metric, known[at].unit, value),
                cast("Direction", known[at].direction),
            )
            for at, value in zip(series, values, strict=True)
        ),
        source_hashes=_document(connection, row.source_hashes),
        failed=_document(connection, row.failed),
    )


def points_of(connection: Connection, run: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the numbers of a run's series, and their values."""
    query = select(schema.run_points.c.packed).filter_by(run=run)
    return unpacked_points(connection.execute(query).scalar() or b"")


def _document(connection: Connection, number: int) -> dict[str, str]:
    content = connection.execute(
        select(schema.documents.c.content).filter_by(number=number)
    ).scalar_one()
    return dict(json.loads(content))
