"""The worst regressions as a Mermaid bar chart, which GitHub draws.

Nothing can be escaped in a Mermaid label, so of a stranger's text only letters, digits and a few
marks survive. The table above the chart has the names as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from perfci.model.report import Comparison, Report
from perfci.render.escape import Safe
from perfci.stats.quantile import median

MOST_BARS = 8
LONGEST_LABEL = 30
_UNSAFE = re.compile(r"[^A-Za-z0-9_.,= -]+")
_LEAST = 0.05
"""In %: less would be drawn as a bar of 0.0."""
_LONGEST_BAR = 1000.0
"""In %: one bar of a million would hide all others."""


def chart(rows: Sequence[Comparison]) -> Safe:
    """Return a bar for each of the first ``rows`` that regressed; nothing for fewer than two."""
    worse = [
        (row, percent)
        for row in rows
        if row.status == "regressed" and (percent := _percent_worse(row)) > _LEAST
    ][:MOST_BARS]
    if len(worse) < 2:
        return Safe("")
    bars = [min(percent, _LONGEST_BAR) for _, percent in worse]
    labels = ", ".join(f'"{_label(number, row)}"' for number, (row, _) in enumerate(worse, 1))
    ended = any(percent > _LONGEST_BAR for _, percent in worse)
    title = "Worse by, in %" + (f" (bars end at {_LONGEST_BAR:.0f})" if ended else "")
    return Safe(
        "```mermaid\n"
        "xychart-beta horizontal\n"
        f'    title "{title}"\n'
        f"    x-axis [{labels}]\n"
        f'    y-axis "%" 0 --> {max(bars) * 1.05:.1f}\n'
        f"    bar [{', '.join(f'{bar:.1f}' for bar in bars)}]\n"
        "```"
    )


def _percent_worse(row: Comparison) -> float:
    """Return how much worse head is, in % of base; 0 where that isn't known, or it is better."""
    if row.ratio is None or not math.isfinite(row.ratio):
        return 0.0
    return (row.ratio - 1.0 if row.direction == "lower" else 1.0 - row.ratio) * 100.0


def _label(number: int, row: Comparison) -> str:
    """Return number, case and metric; the case is cut first, the number identifies it."""
    case, metric = (
        " ".join(_UNSAFE.sub(" ", text[:300]).split()) for text in (row.case, row.metric)
    )
    room = max(0, LONGEST_LABEL - len(f"{number}  {metric}"))
    return " ".join(f"{number} {case[:room]} {metric}".split())[:LONGEST_LABEL].rstrip()


# A metric's recorded values and the one just measured, as a line of eight heights.

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
