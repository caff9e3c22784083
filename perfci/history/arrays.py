"""A whole history in arrays, for the trend, and as the rows of a table, for notebooks.

Millions of points take seconds. This needs numpy, which recording a run doesn't.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from perfci.history import schema
from perfci.history.runs import header_of, runs_query
from perfci.history.schema import NotPacked, count_points
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
        of_series = np.repeat(np.arange(len(series), dtype=np.int32), counts)
        runs = _joined([each.runs for each in series], np.int32)
        values = _joined([each.values for each in series], np.float64)
        # the loaded runs are in the order of measuring, and mostly so are a series' values
        place = of_series * np.int64(len(self.loaded.runs)) + runs
        if not np.all(place[1:] > place[:-1]):
            order = np.argsort(place, kind="stable")
            runs, values = runs[order], values[order]
        del place
        headers = [run.header for run in self.loaded.runs]

        def by_series(texts: Iterable[str]) -> pd.Categorical:
            return _categories(list(texts), of_series)

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
        runs=tuple(LoadedRun(row.key, header_of(row)) for row in rows),
        series=tuple(_series(connection, indices)),
        sources=_Sources([row.source_hashes for row in rows], documents, set(facts)),
    )


def _series(connection: Connection, indices: NDArray[Any]) -> Iterator[LoadedSeries]:
    """Yield each series as a slice of all points, sorted by series, without a copy.

    A run has a series once, so each run's points go to the next free place of their series. Sorting
    all points would need their size again, and twice the time.
    """
    rows = connection.execute(
        select(schema.series, schema.environments.c.key).join(schema.environments)
    ).all()
    packed = _packed(connection, indices)
    numbers = [row.number for row in rows]
    free = np.zeros(max(numbers, default=0) + 2, dtype=np.intp)
    for of_run, _, _ in packed:
        if not np.isin(of_run, numbers, kind="table").all():
            raise NotPacked("a run has points of a series that is not there")
        free[of_run + 1] += 1
    np.cumsum(free, out=free)
    begins = free.copy()
    runs, values = np.empty(begins[-1], dtype=np.int32), np.empty(begins[-1])
    for of_run, of_values, run in packed:
        places = free[of_run]
        runs[places], values[places] = run, of_values
        free[of_run] += 1
    for row in rows:
        at = slice(begins[row.number], begins[row.number + 1])
        if at.start < at.stop:
            yield LoadedSeries(
                key=SeriesKey(row.key, row.case, row.metric),
                unit=row.unit,
                direction=row.direction,
                runs=runs[at],
                values=values[at],
            )


def _packed(
    connection: Connection, indices: NDArray[Any]
) -> list[tuple[NDArray[Any], NDArray[Any], int]]:
    """Return each run's series and values, as the database holds them, and its index."""
    points = schema.run_points.c
    of_runs = []
    query = select(points.run, points.packed)
    for run, content in connection.execution_options(yield_per=20).execute(query):
        count = count_points(content)
        series = np.frombuffer(content, "<i4", count)
        values = np.frombuffer(content, "<f8", count, offset=4 * count)
        if run < len(indices) and indices[run] >= 0:
            of_runs.append((series, values, int(indices[run])))
    return of_runs


class _Sources(Mapping[tuple[str, str], Any]):
    """Versions of a benchmark's source, one per run, by (environment, case).

    Versions are numbered in the order of their hashes' first use. Each array is made on access,
    because the arrays of all cases would need more memory than the points.
    """

    def __init__(
        self, of_run: list[int], documents: Mapping[int, Mapping[str, str]], keys: set[str]
    ) -> None:
        used = sorted(set(of_run))
        place = {number: index for index, number in enumerate(used)}
        self._map_of_run = np.array([place[number] for number in of_run], dtype=np.int32)
        self._maps = [documents[number] for number in used]
        names: dict[str, int] = {}
        for hashes in self._maps:
            for value in hashes.values():
                names.setdefault(value, len(names))
        self._numbers = names
        self._cases = set().union(*self._maps)
        self._environments = keys

    def __getitem__(self, key: tuple[str, str]) -> NDArray[Any]:
        environment, case = key
        if environment not in self._environments or case not in self._cases:
            raise KeyError(key)
        hashes = (by_case.get(case) for by_case in self._maps)
        known = [-1 if value is None else self._numbers[value] for value in hashes]
        return np.array(known, dtype=np.int32)[self._map_of_run]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((key, case) for key in sorted(self._environments) for case in sorted(self._cases))

    def __len__(self) -> int:
        return len(self._environments) * len(self._cases)
