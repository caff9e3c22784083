"""A history as numbers: the runs of an environment in order, their series, and what they lack."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from perfci.model.case import Direction
from perfci.model.run import RunHeader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MARGIN = 1.2
"""A commit is begun where there is this much more time than the slowest one took."""


class SeriesKey(NamedTuple):
    """Identity of a series. ``case`` is its newest name where it was renamed."""

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


@dataclass(frozen=True, slots=True)
class Gap:
    """A commit, and those of its cases that have neither a point nor a recorded failure."""

    sha: str
    cases: tuple[str, ...]


def gaps(
    shas: Sequence[str], cases: Sequence[str], known: Collection[tuple[str, str]]
) -> tuple[Gap, ...]:
    """Return what ``known``, pairs of (sha, case), lacks of ``cases``, in the order of ``shas``."""
    missing = (Gap(sha, tuple(case for case in cases if (sha, case) not in known)) for sha in shas)
    return tuple(gap for gap in missing if gap.cases)


def last_of_each_day(committed_at: Mapping[str, str]) -> tuple[str, ...]:
    """Return of each UTC day the commit that stands first, where the newest come first.

    Times are ISO 8601 in UTC by commit. A nightly run would have seen these and no others.
    """
    days: dict[str, str] = {}
    for sha, moment in committed_at.items():
        days.setdefault(moment[:10], sha)
    return tuple(days.values())


def slowest_case(took: Sequence[tuple[int, float]]) -> float | None:
    """Return the most s that one case took, of commits with (how many cases, how many s)."""
    return max((seconds / cases for cases, seconds in took if cases), default=None)


def time_for(gap: Gap, left_s: float, case_s: float | None) -> float | None:
    """Return how many s of ``left_s`` the gap may take, None where it would not be done in time.

    ``case_s`` is what a case took at the most until now, None before the first. A commit gets
    twice that or half of what is left, whichever is more: one that hangs leaves time for others,
    and one that is only slow is not cut.
    """
    if left_s <= 0:
        return None
    if case_s is None:
        return left_s
    expected = case_s * len(gap.cases)
    if expected * _MARGIN > left_s:
        return None
    return min(left_s, max(2 * expected, left_s / 2))
