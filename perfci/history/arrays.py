"""A whole history in arrays, for the trend, and as the rows of a table, for notebooks.

Millions of points take seconds. This needs numpy, which recording a run doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection

from perfci.history import database
from perfci.history.runs import documents_of, header_of, runs_query
from perfci.trend import LoadedHistory, LoadedRun, LoadedSeries, SeriesKey

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class History:
    """Everything that a history has recorded, as it was when it was loaded.

    ``place`` is its address without a password.
    """

    place: str
    loaded: LoadedHistory

    @property
    def environments(self) -> Mapping[str, Mapping[str, str]]:
        """The facts of each environment, by its key."""
        return self.loaded.environments

    def __len__(self) -> int:
        return sum(len(series.values) for series in self.loaded.series)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each recorded value, by series and then as measured.

        Texts are categories, times are in UTC, ``value`` is in ``unit``. ``run`` names the run
        that it was recorded in. ``position`` is its commit's place on the branch, where known.
        """
        import pandas as pd

        series = self.loaded.series
        of_series = np.repeat(np.arange(len(series)), [len(each.values) for each in series])
        runs = _joined([each.runs for each in series], np.int32)
        headers = [run.header for run in self.loaded.runs]

        def texts(values: Iterable[str], rows: Any) -> pd.Categorical:
            codes, names = pd.factorize(np.array(list(values), dtype=object))
            return pd.Categorical.from_codes(codes[rows], categories=pd.Index(names, dtype=object))

        def times(values: Sequence[str]) -> Any:
            known = pd.to_datetime(pd.Series(values, dtype=object), utc=True, format="ISO8601")
            return known.array[runs]

        positions = pd.array([header.position for header in headers], dtype="Int64")
        return pd.DataFrame(
            {
                "environment": texts((each.key.environment for each in series), of_series),
                "case": texts((each.key.case for each in series), of_series),
                "metric": texts((each.key.metric for each in series), of_series),
                "unit": texts((each.unit for each in series), of_series),
                "value": _joined([each.values for each in series], np.float64),
                "sha": texts((header.sha for header in headers), runs),
                "committed_at": times([header.committed_at for header in headers]),
                "measured_at": times([header.measured_at for header in headers]),
                "position": positions[runs],
                "branch": texts((header.branch for header in headers), runs),
                "subject": texts((header.subject for header in headers), runs),
                "runner": texts((header.runner for header in headers), runs),
                "source": texts((header.source for header in headers), runs),
                "run": texts((header.id for header in headers), runs),
            },
            copy=False,
        )


def _joined(parts: Sequence[Any], kind: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def load_history(connection: Connection) -> LoadedHistory:
    """Return every run, and every series with its values, in the order of measuring."""
    rows = connection.execute(runs_query().add_columns(database.runs.c.packed)).all()
    documents = documents_of(connection, {row.document for row in rows})
    numbers: dict[tuple[str, database.SeriesName], int] = {}
    series_of = {
        number: np.array(
            [
                numbers.setdefault((each.environment.key, name), len(numbers))
                for name in each.series
            ],
            dtype=np.int32,
        )
        for number, each in documents.items()
    }
    values = [
        np.frombuffer(database.require_packed(row.packed, documents[row.document].series), "<f8")
        for row in rows
    ]
    series = _joined([series_of[row.document] for row in rows], np.int32)
    runs = np.repeat(np.arange(len(rows), dtype=np.int32), [len(each) for each in values])
    order = np.argsort(series, kind="stable")
    ends = np.cumsum(np.bincount(series, minlength=len(numbers)))[:-1]
    both = (runs, _joined(values, np.float64))
    parts = (np.split(each[order], ends)[: len(numbers)] for each in both)
    places = {number: place for place, number in enumerate(documents)}
    return LoadedHistory(
        # the newest run's facts win
        environments={row.environment: documents[row.document].environment.facts for row in rows},
        runs=tuple(LoadedRun(row.environment, header_of(row)) for row in rows),
        series=tuple(
            LoadedSeries(
                SeriesKey(key, name.case, name.metric),
                name.unit,
                name.direction,
                of_runs,
                of_values,
            )
            for (key, name), of_runs, of_values in zip(numbers, *parts, strict=True)
        ),
        sources=tuple(each.source_hashes for each in documents.values()),
        source_of_run=np.array([places[row.document] for row in rows], dtype=np.intp),
    )
