"""Two moments of a history compared: each series' value at an older and at a newer run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from perfci.errors import UsageError
from perfci.trend import Series, SeriesKey, Timeline, dates_of
from perfci.trend.change_points import NOISY_SERIES
from perfci.trend.noise import prepare

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SHORTEST_HASH = 4
_WIDTH = NormalDist().inv_cdf(0.975) * math.sqrt(2.0)
"""Standard deviations of one run within which two runs of one level differ, with 95 %."""


@dataclass(frozen=True, slots=True)
class MomentPair:
    """A series at two runs. ``noise`` is the log ratio that two runs of one level stay within.

    It holds for 95 % of such pairs. None if the series is too short, or not always positive.
    """

    series: SeriesKey
    unit: str
    old: float
    new: float
    old_at: str
    new_at: str
    worse: bool
    noise: float | None

    @property
    def ratio(self) -> float | None:
        """Return new ÷ old, or None if that means nothing."""
        return self.new / self.old if self.old > 0.0 and self.new > 0.0 else None

    @property
    def size(self) -> float:
        """Return the magnitude of the log ratio, infinite if there is none."""
        if self.old == self.new:
            return 0.0
        return math.inf if self.ratio is None else abs(math.log(self.ratio))

    @property
    def beyond_noise(self) -> bool:
        """Return whether the difference is larger than the series' noise."""
        return self.size > (self.noise or 0.0)


def pairs_at(
    series: Sequence[Series], timelines: Mapping[str, Timeline], old: str, new: str
) -> tuple[MomentPair, ...]:
    """Return the pair of each series that has both values: beyond noise first, then by size.

    At a date, a series has the value of its last run up to the end of that date. At a commit or a
    run, it has the value of that run. UsageError if no timeline has a moment.
    """
    ends = {key: (row_at(line, old), row_at(line, new)) for key, line in timelines.items()}
    for moment, place in ((old, 0), (new, 1)):
        if all(rows[place] is None for rows in ends.values()):
            raise UsageError(
                "no-such-moment",
                f"no run of the history is at {moment!r}",
                "Give a date as in 2026-03-31, a commit's hash, or a run's id.",
            )
    dates = {key: dates_of(line) for key, line in timelines.items()}
    pairs = []
    for entry in series:
        old_row, new_row = ends[entry.key.environment]
        first, last = _index(entry, old_row, old), _index(entry, new_row, new)
        if first is not None and last is not None:
            pairs.append(_pair(entry, first, last, dates[entry.key.environment]))
    return tuple(sorted(pairs, key=lambda pair: (not pair.beyond_noise, -pair.size, pair.series)))


def row_at(timeline: Timeline, moment: str) -> int | None:
    """Return the last row at ``moment``, or up to it if it is a date. None without such a row."""
    if _DATE.fullmatch(moment):
        rows = [row for row, date in enumerate(dates_of(timeline)) if date[:10] <= moment]
    else:
        long = len(moment) >= _SHORTEST_HASH
        rows = [
            row
            for row, run in enumerate(timeline.runs)
            if run.id == moment or (long and run.sha.startswith(moment))
        ]
    return max(rows, default=None)


def _index(series: Series, row: int | None, moment: str) -> int | None:
    """Return the index of the series' point at ``row``, for a date also of the last one before."""
    if row is None:
        return None
    index = int(series.rows.searchsorted(row, side="right")) - 1
    there = index >= 0 and (int(series.rows[index]) == row or _DATE.fullmatch(moment))
    return index if there else None


def _pair(series: Series, first: int, last: int, dates: Sequence[str]) -> MomentPair:
    old, new = float(series.values[first]), float(series.values[last])
    noise = None
    if len(series.values) >= NOISY_SERIES:
        prepared = prepare(series.values)
        noise = 0.0 if prepared.exact else _WIDTH * prepared.sigma
        noise = noise if prepared.logarithmic else None
    return MomentPair(
        series=series.key,
        unit=series.unit,
        old=old,
        new=new,
        old_at=dates[int(series.rows[first])][:10],
        new_at=dates[int(series.rows[last])][:10],
        worse=(new > old) == (series.direction == "lower"),
        noise=noise,
    )
