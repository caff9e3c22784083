"""Stored baselines as the rows of a table, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from perfci.baselines.baseline import Baseline, StoredSession, StoredWorker
from perfci.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd

_BOTH = ("environment", "case", "metric", "unit", "sha")
_COLUMNS = (*_BOTH, "created_at", "sessions", "workers", "median", "lowest", "highest")
_WORKER_COLUMNS = (*_BOTH, "session", "created_at", "round", "samples", "value")


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baselines of a folder, one a case and environment."""

    baselines: tuple[Baseline, ...]

    def __len__(self) -> int:
        return len(self.baselines)

    def __iter__(self) -> Iterator[Baseline]:
        return iter(self.baselines)

    def to_frame(self, *, workers: bool = False) -> pd.DataFrame:
        """Return a row for each case and metric, with its median over all sessions' workers.

        With ``workers`` a row for each worker's value. Values are in ``unit``, times in UTC.
        """
        import pandas as pd

        rows = [row for one in self.baselines for row in (_values if workers else _summary)(one)]
        frame = pd.DataFrame(rows, columns=list(_WORKER_COLUMNS if workers else _COLUMNS))
        frame["created_at"] = pd.to_datetime(frame["created_at"], utc=True, format="ISO8601")
        return frame


def _values(baseline: Baseline) -> Iterator[tuple[object, ...]]:
    units = _units(baseline)
    for session, worker in _workers(baseline):
        for metric, value in worker.values.items():
            own = (baseline.environment, baseline.case, metric, units.get(metric, ""), baseline.sha)
            yield (*own, session.id, session.created_at, worker.round, worker.samples, value)


def _summary(baseline: Baseline) -> Iterator[tuple[object, ...]]:
    units = _units(baseline)
    values: dict[str, list[float]] = {}
    for _, worker in _workers(baseline):
        for metric, value in worker.values.items():
            values.setdefault(metric, []).append(value)
    for metric, found in sorted(values.items()):
        own = (baseline.environment, baseline.case, metric, units.get(metric, ""), baseline.sha)
        numbers = (median(found), min(found), max(found))
        yield (*own, baseline.created_at, len(baseline.sessions), len(found), *numbers)


def _workers(baseline: Baseline) -> Iterator[tuple[StoredSession, StoredWorker]]:
    return ((session, worker) for session in baseline.sessions for worker in session.workers)


def _units(baseline: Baseline) -> dict[str, str]:
    return {one.name: one.unit for one in (*METRICS.values(), *baseline.extra_metrics)}
