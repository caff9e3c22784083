"""Pure: the analysis of whole histories: which series moved, by how much, and how surely.

This module has the records: a history's series on their timelines, and the analysis of them.
``docs/reference/fields.toml`` explains the fields of a report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from perfci.model.case import Direction
from perfci.model.run import RunHeader
from perfci.values import Chance, Share, about

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ChangeKind = Literal["step", "ramp"]
EventKind = Literal["code", "environment", "excursion"]
Evidence = Literal["same_commit", "runner", "unmoved_elsewhere"]
"""Why the environment is an event's cause: the commit stayed, the runner changed, or the same
series didn't move elsewhere."""
ChangeStatus = Literal["new", "known", "acknowledged", "fixed"]


class SeriesKey(NamedTuple):
    """Identity of a series. ``case`` is its newest name where it was renamed."""

    environment: str
    case: str
    metric: str


@dataclass(frozen=True)
class Timeline:
    """The runs of one environment in the order of their commits, then of measuring.

    ``vanished`` holds the commits that the repository no longer has on the branch. Their runs are
    not among ``runs``.
    """

    environment: str
    runs: tuple[RunHeader, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    vanished: tuple[str, ...] = ()

    @cached_property
    def dates(self) -> tuple[str, ...]:
        """Return each run's date on the timeline: its commit's, so that an import is in order.

        A further run of a commit has the date when it was measured: otherwise, on a quiet branch,
        all runs would have one date. So does a run whose commit's date is not known.
        """
        seen: set[str] = set()
        dates = []
        for run in self.runs:
            first = run.sha not in seen
            seen.add(run.sha)
            dates.append((first and run.committed_at) or run.measured_at)
        return tuple(dates)


@dataclass(frozen=True, slots=True)
class Series:
    """One case's metric over a timeline.

    ``rows`` (n,) int32 are indices into the timeline's ``runs``, rising; ``values`` (n,)
    float64 are finite, in ``unit``. ``source_changes`` are the indices into ``rows`` at which the
    benchmark's own source changed. A move there may be the benchmark's own.
    """

    key: SeriesKey
    unit: str
    direction: Direction
    rows: NDArray[np.int32]
    values: NDArray[np.float64]
    source_changes: tuple[int, ...] = ()


# The records that the store hands over: the recorded runs and their values, in any order.
@dataclass(frozen=True, slots=True)
class LoadedRun:
    """One recorded run without its points, and the key of its environment."""

    environment: str
    header: RunHeader


@dataclass(frozen=True, slots=True)
class LoadedSeries:
    """The values of one case's metric as they were recorded, in any order.

    ``runs`` (n,) are indices into ``LoadedHistory.runs``, ``values`` (n,) float64 in ``unit``.
    A metric that was recorded in two units makes two of these records.
    """

    key: SeriesKey
    unit: str
    direction: Direction
    runs: NDArray[Any]
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """A whole history. ``environments`` maps a key to its facts.

    ``sources`` map cases to the hashes of their benchmarks' sources. ``source_of_run`` (n,) has for
    each of ``runs`` its index in ``sources``, because most runs share one.
    """

    environments: Mapping[str, Mapping[str, str]]
    runs: tuple[LoadedRun, ...]
    series: tuple[LoadedSeries, ...]
    sources: Sequence[Mapping[str, str]]
    source_of_run: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Move:
    """A lasting move of a series' level: its place, and its size with a 95 % interval.

    ``before`` and ``after`` are indices into the series: the last point of the old level and the
    first of the new one (a ramp's beginning and end), where they fit best. ``within`` is the same
    pair with 95 % confidence. The levels are in the metric's unit. ``ratio`` and its interval are
    None if any value is not positive. ``p`` is not corrected for the number of series.
    """

    kind: ChangeKind
    before: int
    after: int
    within: tuple[int, int]
    level_before: float
    level_after: float
    ratio: float | None
    ratio_lo: float | None
    ratio_hi: float | None
    p: float

    @property
    def difference(self) -> float:
        """Return by how much the level rose, in the metric's unit."""
        return self.level_after - self.level_before


@dataclass(frozen=True, slots=True)
class Change(Move):
    """A move with its commits, as a report names it.

    ``commits`` are the shas of ``before`` and ``after``, and ``commits_within`` those of
    ``within``: the cause is in this range, the first commit excluded. ``names`` are ``sha_before``
    and ``sha_after`` of its ``KnownChange``. ``q`` is p, corrected for the number of series.
    """

    id: str
    series: SeriesKey
    commits: tuple[str, str]
    commits_within: tuple[str, str]
    names: tuple[str, str]
    at: str
    q: float
    worse: bool
    status: ChangeStatus = "new"
    first_seen_at: str = ""
    note: str = ""
    benchmark_changed: bool = False

    @property
    def cost(self) -> float | None:
        """Return the ratio, inverted where needed so that above 1 is worse, or None."""
        if not self.ratio:
            return None
        return self.ratio if (self.ratio > 1.0) == self.worse else 1.0 / self.ratio

    @property
    def same_commit(self) -> bool:
        """Return whether the series moved between runs of one commit: then no commit caused it."""
        return self.commits_within[0] != "" and self.commits_within[0] == self.commits_within[1]


@dataclass(frozen=True, slots=True)
class TrendEvent:
    """Changes at one place, in one direction and environment. Each change is in one event.

    ``rows`` (of the timeline) and ``commits`` bound the range that all ``changes`` have in common.
    The event is in this range, the first excluded. ``back`` are the changes that end an excursion,
    at ``ended_at``. ``measured`` counts the environment's series that have runs on both sides.
    """

    id: str
    kind: EventKind
    environment: str
    changes: tuple[Change, ...]
    back: tuple[Change, ...]
    rows: tuple[int, int]
    commits: tuple[str, str]
    at: str
    ended_at: str
    measured: int
    evidence: tuple[Evidence, ...]

    @property
    def worse(self) -> bool:
        """Return whether its series got worse. All of them moved in the same direction."""
        return self.changes[0].worse

    @property
    def status(self) -> ChangeStatus:
        """Return ``new`` for news, else the least settled: known, then acknowledged, then fixed."""
        if self.news:
            return "new"
        order: tuple[ChangeStatus, ...] = ("known", "acknowledged", "fixed")
        statuses = {change.status for change in self.changes}
        return "known" if "new" in statuses else min(statuses, key=order.index)

    @property
    def outstanding(self) -> tuple[Change, ...]:
        """Return the changes that are new or known; where all are settled, all of them."""
        left = tuple(change for change in self.changes if change.status in {"new", "known"})
        return left or self.changes

    @property
    def news(self) -> bool:
        """Return whether to notify people: most of its changes are in no earlier report."""
        new = sum(change.status == "new" for change in self.changes)
        return 2 * new > len(self.changes)

    @property
    def series(self) -> int:
        """Return the number of series that moved."""
        return len({change.series for change in self.changes})

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Return the benchmarks of the series that moved, sorted by name."""
        return tuple(sorted({benchmark_of(change.series.case) for change in self.changes}))

    @property
    def costs(self) -> tuple[float, ...]:
        """Return the cost of each of its ``outstanding`` changes. Above 1 is worse."""
        return tuple(change.cost for change in self.outstanding if change.cost is not None)

    @property
    def largest_cost(self) -> float | None:
        """Return the cost furthest from 1 among ``costs``, or None if there are no costs."""
        return max(self.costs, key=lambda cost: abs(math.log(cost)), default=None)


def benchmark_of(case: str) -> str:
    """Return the benchmark of ``case``, which is its id without axes."""
    return case.partition("[")[0] or case


@dataclass(frozen=True, slots=True)
class KnownChange:
    """A change as the history remembers it, to be found again in the next report.

    ``sha_before`` and ``sha_after`` are its commits. They are the ids of its runs instead if no
    commit is known, or if both commits are the same. ``event`` is the id of the event that it was
    reported with. ``acknowledged``: people accepted it, for the reason in ``note``. ``withdrawn``:
    the last report took it back.
    """

    id: str
    series: SeriesKey
    sha_before: str
    sha_after: str
    worse: bool
    first_seen_at: str
    acknowledged: bool = False
    note: str = ""
    event: str = ""
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Drift:
    """The last days of a series against its last accepted level (``baseline_sha``)."""

    series: SeriesKey
    baseline_sha: str
    days: int
    points: int
    ratio: float
    ratio_lo: float
    ratio_hi: float
    q: float
    worse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Result of an analysis: changes and drifts, the worst first.

    The series in ``too_few`` are too short to be examined. ``withdrawn`` are known changes whose
    runs don't show them any more.
    """

    changes: tuple[Change, ...]
    drifts: tuple[Drift, ...]
    too_few: frozenset[SeriesKey] = frozenset()
    withdrawn: tuple[KnownChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(Analysis):
    """An analysed history, ready to be rendered.

    ``events`` group the changes by place, the newest first. ``reported_before``: whether an earlier
    report named a change. In a first report the changes of the last ``recent_days`` are new.
    ``forge`` is the repository's page on the web.
    """

    created_at: str
    perfci_version: str
    timelines: Mapping[str, Timeline]
    series: tuple[Series, ...]
    releases: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()
    reported_before: bool = True
    events: tuple[TrendEvent, ...] = ()
    recent_days: int = 14
    forge: str = ""


@dataclass(frozen=True, slots=True)
class TrendSettings:
    """Settings of what `perfci trend` calls a change or a drift."""

    alpha: Annotated[Chance, about("Chance of any false change in a quiet series.", 1e-6)] = 0.001
    false_discoveries: Annotated[
        Chance, about("Largest share of false changes, and of drifts, in a report.", 0.01)
    ] = 0.05
    floor: Annotated[
        Share, about("Smallest change worth reporting, as a share of the level.", "1%")
    ] = 0.005
    drift_days: Annotated[
        int, about("Last days that are compared with the accepted level.", 30, ge=2)
    ] = 14
    drift_floor: Annotated[Share, about("Smallest drift worth reporting.", "3%")] = 0.02
