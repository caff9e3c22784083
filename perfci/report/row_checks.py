"""Pure: where a row contradicts itself: status, figures and metric have to be of one measurement.

Each rule is what ``verdict.comparison`` and ``verdict.judgement`` make of any values at all, so
that what perfci writes is always believed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from perfci.metrics import METRICS, ruled
from perfci.model.finding import IN_WORDS, Finding
from perfci.model.report import Comparison
from perfci.model.status import traits
from perfci.stats.t_tests import t_quantile, two_sided_p
from perfci.verdict.acceptance import is_beyond
from perfci.verdict.caveats import why_not_unchanged
from perfci.verdict.comparisons import judge_exactly
from perfci.verdict.policy import margin, standard_error, threshold_of, worse_by

_SLACK = 1e-9
_LARGEST_LOG = 690.0
"""Ratios are kept between exp(-690) and exp(690)."""
_Scaled = tuple[float | None, float | None, float | None, float]
"""An estimate, the ends of its interval, and where nothing has changed."""
_TESTED = ("paired_t", "welch_t")
_MOVED = ("regressed", "improved")
_LEAST_CHANGE = 1e-6
"""A smaller change may be rounding, and its sign with it."""
_ROUGHLY = 1e-3
_SPEEDS = r" fall into two groups.* \(\d+ and \d+ of \d+\): processes may (have|run at) two speeds"
_DOUBTS = {
    "paired_t": re.compile(f"most rounds (don't|do not) show the change|rounds{_SPEEDS}"),
    "welch_t": re.compile(f"most workers (don't|do not) show the change|workers{_SPEEDS}"),
}
"""The words of ``verdict.caveats`` for either, in files from before there were codes."""
_CAVEATS = {
    "paired_t": ("few-rounds-changed", "round-groups"),
    "welch_t": ("few-workers-changed", "worker-groups"),
}
"""The codes of ``verdict.caveats`` for either."""


def row_contradictions(row: Comparison) -> Iterator[str]:
    """Yield what of ``row`` can't be true together."""
    yield from _of_the_metric(row)
    yield from _of_the_sessions(row)
    for side in traits(row.status).lacks:
        if getattr(row, side) is not None:
            yield f"it is `{row.status}`, and {side} has numbers"
    if row.method == "none":
        yield from _of_no_method(row)
    elif row.base is None or row.head is None:
        if row.method == "exact" and row.base is not row.head:  # without a finite number, neither
            yield from _of_counts_of_one_side(row)
        if row.method in _TESTED and row.status in (*_MOVED, "unchanged"):
            yield f"it is `{row.status}`, and one side has no number"
    else:
        yield from _of_the_centres(row)
    if row.method in _TESTED:
        yield from _of_the_interval(row)
        yield from _of_the_caveat(row)
    elif row.p is not None or row.p_adjusted is not None or row.se is not None:
        yield f"it has a p or a standard error, and its method is `{row.method}`"
    yield from _of_the_values(row)
    yield from _of_the_status(row)
    if row.accepted and row.status != "regressed":
        yield f"it is accepted, and `{row.status}`"
    if row.accepted and is_beyond(row, row.accepted.up_to):
        yield "it is accepted, and changed by more than it is accepted for"


def _of_the_values(row: Comparison) -> Iterator[str]:
    """Yield what is wrong with the drawn values: pairs share a position, outliers are pairs."""
    base, head = (side.values if side else () for side in (row.base, row.head))
    if row.method == "paired_t" and len(base) != len(head):
        yield f"it has pairs, {len(base)} values of base and {len(head)} of head"
    if any(not 0 <= place < len(base) for place in row.outliers):
        yield "an outlier is none of its values"
    for side in (row.base, row.head):
        if side is not None and list(side.quantiles) != sorted(side.quantiles):
            yield "its quantiles are not in order"


def _of_the_sessions(row: Comparison) -> Iterator[str]:
    """Sessions are those of a stored baseline, each with a worker: more would widen every check."""
    if row.base_sessions and row.method != "welch_t":
        yield f"it has {row.base_sessions} sessions of a baseline, and its method is `{row.method}`"
    elif row.base_sessions > (row.base.workers if row.base else 0):
        yield f"its baseline has {row.base_sessions} sessions, and fewer workers"


def _of_counts_of_one_side(row: Comparison) -> Iterator[str]:
    """Without a graph on head, counts are worse, whatever they are. Without one on base, better."""
    if row.metric not in ruled():
        yield f"its method is `{row.method}`, and one side has no number"
        return
    if row.base is not None and row.status != "regressed":
        yield f"it is `{row.status}`, and head has no graph"
    if row.head is not None and row.status != "improved":
        yield f"it is `{row.status}`, and base has no graph"


def _of_the_caveat(row: Comparison) -> Iterator[str]:
    """Yield a caveat, or an effect, that values with this change can't give."""
    change, _, _ = worse_by(replace(row, direction="lower"))
    if row.caveat and (row.ratio is None or not _is_ours(row.caveat, row.method)):
        yield f"its caveat is not one that perfci gives: {row.doubt!r}"
    if change is None or abs(change) < _LEAST_CHANGE:
        return
    pooled = row.method == "welch_t" and row.base_sessions > 1  # weighs workers, not sessions
    if row.cohens_d is not None and not pooled and row.cohens_d * change <= 0.0:
        yield f"its cohens_d is {row.cohens_d:g}, and its change the other way or none"
    if not row.caveat or row.method != "paired_t" or row.rounds_set_aside or row.df is None:
        return
    # half of the change away, one round at least spreads them so far that t is no larger
    if row.se and abs(change) / row.se > 2.0 * row.df * (1.0 + _ROUGHLY):
        yield "its caveat is of rounds that differ more than its interval allows"


def _is_ours(caveat: Finding, method: str) -> bool:
    if caveat.code == IN_WORDS:
        return bool(_DOUBTS[method].fullmatch(str(caveat.arguments.get("text"))))
    return caveat.code in _CAVEATS[method]


def _of_the_metric(row: Comparison) -> Iterator[str]:
    metric = METRICS.get(row.metric)
    if metric is None:
        return
    if row.unit != metric.unit:
        yield f"its unit is {row.unit!r}, and {metric.name} is in {metric.unit}"
    if row.direction != metric.direction:
        yield f"its direction is {row.direction!r}, and {metric.name}'s is {metric.direction!r}"
    if row.method == "exact" and metric.kind != "exact":  # one that isn't sure is tested
        yield f"its method is `{row.method}`, and {metric.name} is {metric.kind}"
    if metric.absolute and row.ratio is not None:
        yield f"it has a ratio, and {metric.name} is compared by its difference"
    if not metric.absolute and row.difference is not None:
        yield f"it has a difference, and {metric.name} is compared by its ratio"


def _of_no_method(row: Comparison) -> Iterator[str]:
    if row.ratio is not None or row.difference is not None or row.p is not None:
        yield "its method is `none`, and it has a change"
    if row.status in (*_MOVED, "unchanged"):
        yield f"it is `{row.status}`, and its method is `none`"


def _of_the_centres(row: Comparison) -> Iterator[str]:
    """The change is that of the centres, or of the means of a baseline's several sessions.

    Sessions of unequal size weigh their workers otherwise than the centre does: the two differ by
    at most ``√(k - 1)`` standard deviations of the sessions' means, and so half intervals.
    """
    before = row.base.center if row.base else None
    after = row.head.center if row.head else None
    if before is None or after is None:
        if row.difference is not None or row.ratio is not None:
            yield "it has a change, and one side has no centre"
        return
    known = METRICS.get(row.metric)
    if known is not None and known.floor is not None:  # it is in the ratio, not in exact sides
        before, after = max(before, known.floor), max(after, known.floor)
    ends = (row.difference_lo, row.ratio_lo)
    if row.base_sessions > 1 and ends == (None, None):  # too few rounds to say how far they differ
        return
    between = math.sqrt(row.base_sessions - 1.0) if row.base_sessions > 1 else 0.0
    if row.difference is not None:
        scale = max(abs(before), abs(after))
        half = _half(row.difference_lo, row.difference_hi)
        if abs(after - before - row.difference) > 1e-6 * scale + between * half:
            yield "its difference isn't that of its sides"
    elif row.ratio is not None and not _fits(row, before, after):
        yield f"its ratio is {row.ratio:g}, and its sides are {before:g} and {after:g}"


def _fits(row: Comparison, before: float, after: float) -> bool:
    ratio = row.ratio or 0.0
    between = math.sqrt(row.base_sessions - 1.0) if row.base_sessions > 1 else 0.0
    if before > 0.0 and after > 0.0 and ratio > 0.0:
        log = min(max(math.log(after) - math.log(before), -_LARGEST_LOG), _LARGEST_LOG)
        half = _half(_log(row.ratio_lo), _log(row.ratio_hi))
        if abs(log - math.log(ratio)) <= 1e-6 + between * half:
            return True
    if before == 0.0:
        return after == before and ratio == 1.0  # exact values that are the same
    half = _half(row.ratio_lo, row.ratio_hi)
    return abs(after / before - ratio) <= 1e-6 * max(1.0, abs(ratio)) + between * half


def _of_the_interval(row: Comparison) -> Iterator[str]:
    """An interval is the test's: its middle the estimate, its width that of p and of df."""
    scales: list[_Scaled] = [(row.difference, row.difference_lo, row.difference_hi, 0.0)]
    if row.difference is None:
        logs = (_log(row.ratio), _log(row.ratio_lo), _log(row.ratio_hi), 0.0)
        scales = [logs, (row.ratio, row.ratio_lo, row.ratio_hi, 1.0)]
    ends = scales[-1][1:3]
    if (ends[0] is None) != (ends[1] is None):
        yield "its interval has one end"
    elif ends[0] is None or ends[1] is None:
        if row.p is not None and scales[-1][0] is not None:
            yield "it has a p, and no interval"
    elif ends[0] != ends[1] and (row.p is None or row.df is None):
        yield "it has an interval, and no p or no degrees of freedom"
    elif not any(_one_test(row, *scale) for scale in scales):
        yield "its interval, p and degrees of freedom are not of one test"
    if row.se is not None and not _is_of_the_interval(row, row.se):
        yield "its standard error isn't that of its interval"


def _is_of_the_interval(row: Comparison, se: float) -> bool:
    own, (_, lo, hi) = standard_error(row), worse_by(row)
    if own is None or lo is None or hi is None:
        return False
    cut_off = max(abs(lo), abs(hi)) >= _LARGEST_LOG
    slack = 1e-6 * own + 1e-12 * max(1.0, abs(lo), abs(hi))
    return abs(se - own) <= slack or (cut_off and row.difference is None)


def _one_test(
    row: Comparison, middle: float | None, lo: float | None, hi: float | None, nothing: float
) -> bool:
    if middle is None or lo is None or hi is None:
        return False
    half = (hi - lo) / 2.0
    slack = 1e-6 * half + 1e-12 * max(1.0, abs(middle))
    if max(abs(lo), abs(hi)) >= _LARGEST_LOG:  # cut off
        return True
    if abs((lo + hi) / 2.0 - middle) > slack:
        return False
    if row.p is None or row.df is None or half <= 0.0:
        return half <= slack
    t = abs(middle - nothing) / half * t_quantile(0.5 + row.confidence / 2, row.df)
    around = 1e-3 * (1.0 + t) + 1e-11 / half
    least, most = two_sided_p(t + around, row.df), two_sided_p(max(0.0, t - around), row.df)
    return least * (1.0 - 1e-6) <= row.p <= most * (1.0 + 1e-6)


def _of_the_status(row: Comparison) -> Iterator[str]:
    change, least, most = worse_by(row)
    threshold = threshold_of(row)
    if row.method == "exact" and change is not None and row.base and row.head:
        ends = (threshold * (1.0 - _SLACK), threshold * (1.0 + _SLACK))
        if row.status not in {judge_exactly(row, change, end) for end in ends}:
            yield f"it is `{row.status}`, and its change and threshold say otherwise"
        return
    if row.status not in (*_MOVED, "unchanged"):
        return
    if change is None:
        yield from _without_change(row)
    elif row.status == "unchanged":
        low, high = _margin(row)
        within = least is not None and most is not None and low < least and most < high
        if not (within or least == most == 0.0):  # no change at all is within any threshold
            yield "it is `unchanged`, and its interval isn't within the threshold"
        elif row.method in _TESTED and why_not_unchanged(row):
            yield f"it is `unchanged`, and {why_not_unchanged(row)}"
    else:
        if (change > 0.0) != (row.status == "regressed") or change == 0.0:
            yield f"it is `{row.status}`, and its change is the other way"
        if abs(change) < threshold * (1.0 - _SLACK):
            yield f"it is `{row.status}`, and its change is below the threshold"
        if row.method in _TESTED and (row.p is None or row.p_adjusted is None):
            yield f"it is `{row.status}`, and without a p"


def _without_change(row: Comparison) -> Iterator[str]:
    """Counts of a benchmark without a graph, and exact values without a ratio, may have none."""
    if row.method == "same_code" and row.status == "unchanged":
        return
    if row.method != "exact" or row.status == "unchanged":
        yield f"it is `{row.status}`, and has no change"
    elif row.metric not in ruled() and row.base and row.head:
        before, after = row.base.center, row.head.center
        if before is None or after is None or before == after:
            yield f"it is `{row.status}`, and has no change"
        elif ((after > before) == (row.direction == "lower")) != (row.status == "regressed"):
            yield f"it is `{row.status}`, and its change is the other way"


def _margin(row: Comparison) -> tuple[float, float]:
    if row.difference is not None:
        return -row.threshold, row.threshold
    low, high = margin(row.threshold)
    return math.log(low) - _SLACK, math.log(high) + _SLACK


def _half(lo: float | None, hi: float | None) -> float:
    return (hi - lo) / 2.0 if lo is not None and hi is not None else 0.0


def _log(value: float | None) -> float | None:
    return math.log(value) if value is not None and value > 0.0 else None
