"""Reading a whole history at once, into arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from perfci.store.history import schema
from perfci.store.history.bulk import read_points
from perfci.trend.loaded import LoadedHistory, LoadedRun, LoadedSeries
from perfci.trend.series import Night, SeriesKey

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sqlalchemy import Connection, Row, Select


def load_history(connection: Connection) -> LoadedHistory:
    """Return every run, and every series with its values."""
    import numpy as np
    from sqlalchemy import select

    rows = connection.execute(
        nights_query().add_columns(schema.runs.c.facts, schema.runs.c.source_hashes)
    ).all()
    documents = {
        number: json.loads(content)
        for number, content in connection.execute(
            select(schema.documents.c.number, schema.documents.c.content).where(
                schema.documents.c.number.in_(
                    select(schema.runs.c.facts).union(select(schema.runs.c.source_hashes))
                )
            )
        )
    }
    facts = {row.key: documents[row.facts] for row in rows}  # an environment's newest run's
    indices = np.full(max((row.number for row in rows), default=0) + 1, -1, dtype=np.int32)
    for index, row in enumerate(rows):
        indices[row.number] = index
    return LoadedHistory(
        environments=facts,
        runs=tuple(LoadedRun(row.key, night_of(row)) for row in rows),
        series=tuple(_series(connection, indices)),
        sources=_Sources([row.source_hashes for row in rows], documents, set(facts)),
    )


def read_environments(connection: Connection) -> tuple[str, ...]:
    """Return the keys of the environments that have runs, sorted."""
    from sqlalchemy import select

    keys = select(schema.environments.c.key).join(schema.runs).distinct()
    return tuple(sorted(connection.execute(keys).scalars()))


def nights_query() -> Select[Any]:
    """Select runs with their environment's key, as they were measured."""
    from sqlalchemy import select

    runs = schema.runs
    return (
        select(
            runs.c.number,
            runs.c.id,
            schema.environments.c.key,
            runs.c.source,
            runs.c.sha,
            runs.c.subject,
            runs.c.branch,
            runs.c.committed_at,
            runs.c.measured_at,
            runs.c.position,
            runs.c.runner,
        )
        .join(schema.environments, runs.c.environment == schema.environments.c.number)
        .order_by(*schema.AS_MEASURED)
    )


def night_of(row: Row[Any]) -> Night:
    """Return a row of ``nights_query``."""
    return Night(
        run=row.id,
        source=row.source,
        sha=row.sha,
        subject=row.subject,
        branch=row.branch,
        committed_at=row.committed_at,
        measured_at=row.measured_at,
        position=row.position,
        runner=row.runner,
    )


def _series(connection: Connection, indices: NDArray[Any]) -> Iterator[LoadedSeries]:
    """Sort all points by series; each series is then a slice of them, without a copy."""
    import numpy as np
    from sqlalchemy import select

    wanted = select(schema.series, schema.environments.c.key).join(schema.environments)
    points = read_points(connection)
    by_series = np.argsort(points.series, kind="stable")
    runs = indices[points.run[by_series]]
    values = points.value[by_series]
    counts = np.bincount(points.series)
    ends = np.cumsum(counts)
    del points, by_series
    for row in connection.execute(wanted):
        if row.number >= len(counts) or not counts[row.number]:
            continue
        at = slice(ends[row.number] - counts[row.number], ends[row.number])
        yield LoadedSeries(
            key=SeriesKey(row.key, row.case, row.metric),
            unit=row.unit,
            direction=row.direction,
            runs=runs[at],
            values=values[at],
        )


class _Sources(Mapping[tuple[str, str], Any]):
    """By (environment, case), one number for each run; made when it is asked for.

    Made at once, the arrays of all cases would need more memory than the points.
    """

    def __init__(
        self, of_run: list[int], documents: Mapping[int, Mapping[str, str]], keys: set[str]
    ) -> None:
        import numpy as np

        used = sorted(set(of_run))
        place = {number: index for index, number in enumerate(used)}
        self._map_of_run = np.array([place[number] for number in of_run], dtype=np.int32)
        self._maps = [documents[number] for number in used]
        names: dict[str, int] = {}
        for one in self._maps:
            for value in one.values():
                names.setdefault(value, len(names))
        self._numbers = names
        self._cases = set().union(*self._maps)
        self._environments = keys

    def __getitem__(self, key: tuple[str, str]) -> NDArray[Any]:
        import numpy as np

        environment, case = key
        if environment not in self._environments or case not in self._cases:
            raise KeyError(key)
        hashes = (one.get(case) for one in self._maps)
        known = [-1 if value is None else self._numbers[value] for value in hashes]
        return np.array(known, dtype=np.int32)[self._map_of_run]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((key, case) for key in sorted(self._environments) for case in sorted(self._cases))

    def __len__(self) -> int:
        return len(self._environments) * len(self._cases)
