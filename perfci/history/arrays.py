"""A whole history in arrays, for the trend, and as the rows of a table, for notebooks.

Millions of points take seconds. This needs numpy, which recording a run doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from perfci.history import schema
from perfci.history.runs import header_of, runs_query
from perfci.history.schema import NotPacked, count_points, document
from perfci.trend import LoadedHistory, LoadedRun, LoadedSeries, SeriesKey

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class History:
    """Everything that a history has recorded, as it was when it was loaded.

    ``place`` is its address without a password. ``environments`` has the facts of each by its key.
    """

    place: str
    environments: Mapping[str, Mapping[str, str]]
    loaded: LoadedHistory

    def __len__(self) -> int:
        return sum(len(series.values) for series in self.loaded.series)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each recorded value, by series and then as measured.

        Texts are categories, times are in UTC, ``value`` is in ``unit``. ``run`` names the run
        that it was recorded in. ``position`` is its commit's place on the branch, where known.
        """
        import pandas as pd

        series = self.loaded.series
        counts = [len(each.values) for each in series]
        series_of_row = np.repeat(np.arange(len(series), dtype=np.int32), counts)
        runs = _joined([each.runs for each in series], np.int32)
        values = _joined([each.values for each in series], np.float64)
        order_key = series_of_row * np.int64(len(self.loaded.runs)) + runs
        order = np.argsort(order_key, kind="stable")
        runs, values = runs[order], values[order]
        headers = [run.header for run in self.loaded.runs]

        def by_series(texts: Iterable[str]) -> pd.Categorical:
            return _categories(list(texts), series_of_row)

        def by_run(texts: Iterable[str]) -> pd.Categorical:
            return _categories(list(texts), runs)

        def times(texts: Sequence[str]) -> Any:
            known = pd.to_datetime(pd.Series(texts, dtype=object), utc=True, format="ISO8601")
            return known.array[runs]

        positions = pd.array([header.position for header in headers], dtype="Int64")
        return pd.DataFrame(
            {
                "environment": by_series(each.key.environment for each in series),
                "case": by_series(each.key.case for each in series),
                "metric": by_series(each.key.metric for each in series),
                "unit": by_series(each.unit for each in series),
                "value": values,
                "sha": by_run(header.sha for header in headers),
                "committed_at": times([header.committed_at for header in headers]),
                "measured_at": times([header.measured_at for header in headers]),
                "position": positions[runs],
                "branch": by_run(header.branch for header in headers),
                "subject": by_run(header.subject for header in headers),
                "runner": by_run(header.runner for header in headers),
                "source": by_run(header.source for header in headers),
                "run": by_run(header.id for header in headers),
            },
            copy=False,
        )


def _joined(parts: Sequence[Any], kind: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _categories(texts: Sequence[str], rows: Any) -> pd.Categorical:
    """Return ``texts`` at ``rows``, each text stored once."""
    import pandas as pd

    codes, names = pd.factorize(np.array(texts, dtype=object))
    return pd.Categorical.from_codes(codes[rows], categories=pd.Index(names, dtype=object))


def load_history(connection: Connection) -> LoadedHistory:
    """Return every run, and every series with its values."""
    rows = connection.execute(
        runs_query().add_columns(schema.runs.c.facts, schema.runs.c.source_hashes)
    ).all()
    documents = {
        number: document(content)
        for number, content in connection.execute(
            select(schema.documents.c.number, schema.documents.c.content).where(
                schema.documents.c.number.in_(
                    select(schema.runs.c.facts).union(select(schema.runs.c.source_hashes))
                )
            )
        )
    }
    used = sorted({row.source_hashes for row in rows})
    if not documents.keys() >= {*used, *(row.facts for row in rows)}:
        raise NotPacked("a run's document is missing")
    facts = {row.environment: documents[row.facts] for row in rows}  # the newest run's facts win
    highest = max((row.number for row in rows), default=0)
    index_of_run_number = np.full(highest + 1, -1, dtype=np.int32)
    for index, row in enumerate(rows):
        index_of_run_number[row.number] = index
    return LoadedHistory(
        environments=facts,
        runs=tuple(LoadedRun(row.environment, header_of(row)) for row in rows),
        series=tuple(_series(connection, index_of_run_number)),
        sources=tuple(documents[number] for number in used),
        source_of_run=np.searchsorted(used, [row.source_hashes for row in rows]),
    )


def _series(connection: Connection, index_of_run_number: NDArray[Any]) -> Iterator[LoadedSeries]:
    """Yield each series as a slice of all points, sorted by series, without a copy.

    This is a counting sort: count per series, cumulate, then fill. A run has a series once, so each
    run's points go to the next free place of their series. Another sort of all points would need
    their size again, and twice the time. Keeping the packed points would, too: they are read twice.
    """
    rows = connection.execute(select(schema.series)).all()
    numbers = [row.number for row in rows]
    next_place = np.zeros(max(numbers, default=0) + 2, dtype=np.intp)
    is_known = np.zeros(len(next_place), dtype=bool)
    is_known[numbers] = True
    for series_numbers, _, _ in _points_by_run(connection, index_of_run_number):
        # clipped, because a damaged number may be any: the ends are no series
        if not is_known.take(series_numbers, mode="clip").all():
            raise NotPacked("a run has points of a series that is not there")
        next_place[series_numbers + 1] += 1
    np.cumsum(next_place, out=next_place)
    begins = next_place.copy()
    runs, values = np.empty(begins[-1], dtype=np.int32), np.empty(begins[-1])
    for series_numbers, run_values, run in _points_by_run(connection, index_of_run_number):
        places = next_place[series_numbers]
        runs[places], values[places] = run, run_values
        next_place[series_numbers] += 1
    shared, content = runs[:0], b""
    for row in rows:
        at = slice(begins[row.number], begins[row.number + 1])
        if at.start < at.stop:
            if (of_series := runs[at].tobytes()) != content:  # mostly equal, so kept once
                content, shared = of_series, np.frombuffer(of_series, dtype=np.int32)
            yield LoadedSeries(
                key=SeriesKey(row.environment, row.case, row.metric),
                unit=row.unit,
                direction=row.direction,
                runs=shared,
                values=values[at],
            )


def _points_by_run(
    connection: Connection, index_of_run_number: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any], int]]:
    """Yield the numbers of each run's series, their values, and the run's index."""
    points = schema.run_points.c
    query = select(points.run, points.packed)
    for run, content in connection.execution_options(yield_per=20).execute(query):
        count = count_points(content)
        series = np.frombuffer(content, "<i4", count)
        values = np.frombuffer(content, "<f8", count, offset=4 * count)
        if run < len(index_of_run_number) and index_of_run_number[run] >= 0:
            yield series, values, int(index_of_run_number[run])
