"""A history as numbers: the runs of an environment in order, and one series a case and metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from perfci.model.history import RunHeader
from perfci.model.metric import Direction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SeriesKey(NamedTuple):
    """What names a series. ``case`` is its newest name where it was renamed."""

    environment: str
    case: str
    metric: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The runs of one environment in the order of their commits; of one commit, as measured.

    ``vanished`` holds the commits that the repository no longer has on the branch: their runs
    are not among ``runs``.
    """

    environment: str
    runs: tuple[RunHeader, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    vanished: tuple[str, ...] = ()


def dates_of(timeline: Timeline) -> tuple[str, ...]:
    """Return the time at which each run stands: its commit's, so that an import is in order.

    A further run of the same commit stands at when it was measured, or on a quiet branch all
    runs would have one date; so does a run whose commit is not known.
    """
    seen: set[str] = set()
    dates = []
    for run in timeline.runs:
        first = run.sha not in seen
        seen.add(run.sha)
        dates.append((first and run.committed_at) or run.measured_at)
    return tuple(dates)


@dataclass(frozen=True, slots=True)
class Series:
    """One case's metric over a timeline.

    ``rows`` (n,) int32 are indices into the timeline's ``runs``, rising; ``values`` (n,)
    float64 are finite, in ``unit``. ``source_changes`` are the indices into ``rows`` where the
    benchmark's own source became another: what moves there may be the benchmark.
    """

    key: SeriesKey
    unit: str
    direction: Direction
    rows: NDArray[np.int32]
    values: NDArray[np.float64]
    source_changes: tuple[int, ...] = ()


# What the store hands over: the recorded runs and their values, in whatever order they came.


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """One recorded run without its points, and the key of its environment."""

    environment: str
    header: RunHeader


Distributions = Mapping[SeriesKey, Mapping[str, tuple[float, ...]]]
"""By series, then by run id: one value for each worker."""


@dataclass(frozen=True, slots=True)
class LoadedSeries:
    """The values of one case's metric as they were recorded, in any order.

    ``runs`` (n,) are indices into ``LoadedHistory.runs``, ``values`` (n,) float64 in ``unit``.
    A metric recorded in two units is two of these.
    """

    key: SeriesKey
    unit: str
    direction: Direction
    runs: NDArray[Any]
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """A whole history. ``environments`` maps a key to its facts.

    ``sources`` maps (environment, case) to an integer for each of ``runs`` (n,): equal numbers
    are equal hashes of the benchmark's source, -1 is not known. A case may be absent.
    """

    environments: Mapping[str, Mapping[str, str]]
    runs: tuple[LoadedRun, ...]
    series: tuple[LoadedSeries, ...]
    sources: Mapping[tuple[str, str], NDArray[Any]] = field(default_factory=dict)
