"""A metric's recorded values and the one just measured, as a line of eight heights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfci.model.report import Comparison, Report
from perfci.stats.quantile import median

_HEIGHTS = "▁▂▃▄▅▆▇█"
_LEAST_SPAN = 0.1
"""Of the median: noise of a few per cent must not look like mountains."""
_FEWEST = 3


def past_lines(report: Report) -> Mapping[tuple[str, str], str]:
    """Return by (case, metric) the line of each row of ``report`` that has a past, head last."""
    rows = {(row.case, row.metric): row for row in report.results}
    lines = {}
    for one in report.past:
        row = rows.get((one.case, one.metric))
        if row is not None and len(one.values) >= _FEWEST:
            lines[one.case, one.metric] = sparkline((*one.values, *_measured(row)))
    return lines


def sparkline(values: Sequence[float]) -> str:
    """Return a character for each of the finite ``values``, higher for more.

    >>> sparkline([1.0, 1.01, 1.0, 1.5])
    '▁▁▁█'
    """
    lo, hi = min(values), max(values)
    span = max(hi - lo, abs(median(values)) * _LEAST_SPAN)
    if not span > 0.0:
        return _HEIGHTS[0] * len(values)
    return "".join(_HEIGHTS[round((value - lo) / span * (len(_HEIGHTS) - 1))] for value in values)


def _measured(row: Comparison) -> tuple[float, ...]:
    center = row.head.center if row.head else None
    return () if center is None else (center,)
