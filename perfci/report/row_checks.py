"""Contradictions within a row: status, numbers and metric must fit one measurement. Pure.

Each rule holds for any row that ``verdict.case_comparisons`` and ``verdict.row_status`` can make.
So every report that perfci writes is believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from perfci.metrics import METRICS, ruled
from perfci.model.report import Comparison
from perfci.model.status import Status, traits
from perfci.stats.t_tests import CONFIDENCE, t_quantile, two_sided_p
from perfci.verdict.acceptance import is_beyond
from perfci.verdict.case_comparisons import exact_status_at
from perfci.verdict.caveats import not_unchanged_reason
from perfci.verdict.policy import is_within, standard_error, threshold_of, worse_by

_SLACK = 1e-9
"""Relative slack for rounding: an interval's ends aren't computed from its middle."""
_DIRECTIONS = ("lower", "higher")
_LEAST_DF = 1.0
"""Least degrees of freedom: two pairs have 1. Welch's test has at least its smaller side's."""
_LARGEST_LOG = 690.0
"""Ratios are cut off at exp(-690) and exp(690)."""
NamedNumber = tuple[str, float | None]
"""A field's name and its value."""
_Scaled = tuple[float | None, float | None, float | None, float]
"""An estimate, the ends of its interval, and the value that means no change."""
_TESTED = ("paired_t", "welch_t")
"""Methods that are a test: their rows have a p and an interval."""
_LEAST_CHANGE = 1e-6
"""A smaller change may be rounding, so its sign means nothing."""
_ROUNDED = 1e-3
"""Relative slack of a bound that needn't be sharp."""
_OF_ROUNDS = ("few-rounds-changed", "round-groups")
"""Caveats of pairs that need a round at least half of the change away."""
_CAVEATS = {
    "paired_t": ("throttled", *_OF_ROUNDS),
    "welch_t": ("throttled", "few-workers-changed", "worker-groups"),
}
"""The caveats that ``verdict.caveats`` gives, by the method of the row."""


def row_contradictions(row: Comparison) -> Iterator[str]:
    """Yield the impossible numbers of ``row``. If there are none, yield its contradictions."""
    impossible = tuple(_impossible_numbers(row))
    yield from impossible or _contradictions(row)


def _impossible_numbers(row: Comparison) -> Iterator[str]:
    for name, value in (("p", row.p), ("p_adjusted", row.p_adjusted), ("welch_p", row.welch_p)):
        if value is not None and not 0.0 <= value <= 1.0:
            yield f"{name} is {value:g}, and a probability is from 0 to 1"
    if not CONFIDENCE <= row.confidence < 1.0:
        yield f"confidence is {row.confidence:g}, and an interval has 0.95 or more"
    names = ("threshold", "detectable", "rounds_set_aside", "base_sessions")
    yield from below_zero("", *((name, getattr(row, name)) for name in names))
    if row.df is not None and row.df < _LEAST_DF - _SLACK:
        yield f"df is {row.df:g}, and no test has fewer than {_LEAST_DF:g}"
    if row.ratio is not None and row.ratio < 0.0 and not _has_negative(row):
        yield f"ratio is {row.ratio:g}, and no side is below zero"
    if row.direction not in _DIRECTIONS:
        yield f"direction is {row.direction!r}, not one of {', '.join(_DIRECTIONS)}"
    for name in ("ratio", "difference"):
        ends = (f"{name}_lo", name, f"{name}_hi")
        yield from _out_of_order(*((end, getattr(row, end)) for end in ends))
    for name, side in (("base", row.base), ("head", row.head)):
        if side is not None:
            counts = (("workers", side.workers), ("samples", side.samples))
            first = min(side.first_calls, default=None)
            yield from below_zero(name, *counts, ("first_calls", first))
            interval = ((f"{name}.lo", side.lo), (f"{name}.center", side.center))
            yield from _out_of_order(*interval, (f"{name}.hi", side.hi))


def _has_negative(row: Comparison) -> bool:
    """Say whether a side is below zero: a benchmark's own metric may be, and so may its ratio."""
    return any(side is not None and (side.center or 0.0) < 0.0 for side in (row.base, row.head))


def below_zero(where: str, *numbers: NamedNumber) -> Iterator[str]:
    """Yield an error for each of the numbers that is below zero."""
    prefix = f"{where}." if where else ""
    for name, value in numbers:
        if value is not None and value < 0:
            yield f"{prefix}{name} is {value:g}, below zero"


def _out_of_order(*numbers: NamedNumber) -> Iterator[str]:
    known = [(name, value) for name, value in numbers if value is not None]
    for (name, value), (other, bound) in pairwise(known):
        if value - bound > _SLACK * max(abs(value), abs(bound)):
            yield f"{name} is {value:g}, above {other}, which is {bound:g}"


def _contradictions(row: Comparison) -> Iterator[str]:
    yield from _metric_contradictions(row)
    yield from _session_contradictions(row)
    for side in traits(row.status).lacks:
        if getattr(row, side) is not None:
            yield f"it is `{row.status}`, and {side} has numbers"
    if row.method == "none" and (row.ratio, row.difference, row.p) != (None, None, None):
        yield "its method is `none`, and it has a change"
    if row.method != "none" and row.base and row.head:
        yield from _centre_contradictions(row)
    if row.method in _TESTED:
        yield from _interval_contradictions(row)
        yield from _caveat_contradictions(row)
    elif row.p is not None or row.p_adjusted is not None or row.se is not None:
        yield f"it has a p or a standard error, and its method is `{row.method}`"
    yield from _value_contradictions(row)
    yield from _status_contradictions(row)
    if row.accepted and row.status != "regressed":
        yield f"it is accepted, and `{row.status}`"
    if row.accepted and is_beyond(row, row.accepted.up_to):
        yield "it is accepted, and changed by more than it is accepted for"


def _value_contradictions(row: Comparison) -> Iterator[str]:
    """Yield contradictions of a row's values: in pairs, outliers and quantiles."""
    base, head = (side.values if side else () for side in (row.base, row.head))
    if row.method == "paired_t" and len(base) != len(head):
        yield f"it has pairs, {len(base)} values of base and {len(head)} of head"
    if any(not 0 <= place < len(base) for place in row.outliers):
        yield "an outlier is not one of its values"
    for side in (row.base, row.head):
        if side is not None and list(side.quantiles) != sorted(side.quantiles):
            yield "its quantiles are not in order"


def _session_contradictions(row: Comparison) -> Iterator[str]:
    """Yield impossible numbers of sessions, as more sessions make all other checks laxer."""
    if row.base_sessions and row.method != "welch_t":
        yield f"it has {row.base_sessions} sessions of a baseline, and its method is `{row.method}`"
    elif row.base_sessions > (row.base.workers if row.base else 0):
        yield f"its baseline has {row.base_sessions} sessions, and fewer workers"


def _caveat_contradictions(row: Comparison) -> Iterator[str]:
    """Yield a caveat or an effect that no values with this change can give."""
    change, _, _ = worse_by(replace(row, direction="lower"))
    if row.caveat and (row.ratio is None or row.caveat.code not in _CAVEATS[row.method]):
        yield f"its caveat is not one that perfci gives: {row.doubt!r}"
    if change is None or abs(change) < _LEAST_CHANGE:
        return
    # Cohen's d of several sessions weighs workers, and the change weighs sessions
    pooled = row.method == "welch_t" and row.base_sessions > 1
    if row.cohens_d is not None and not pooled and row.cohens_d * change <= 0.0:
        yield f"its cohens_d is {row.cohens_d:g}, and its change the other way or none"
    if not row.caveat or row.caveat.code not in _OF_ROUNDS or row.df is None:
        return
    # that much spread bounds t
    if row.se and abs(change) / row.se > 2.0 * row.df * (1.0 + _ROUNDED):
        yield "its caveat is of rounds that differ more than its interval allows"


def _metric_contradictions(row: Comparison) -> Iterator[str]:
    metric = METRICS.get(row.metric)
    if metric is None:
        return
    if row.unit != metric.unit:
        yield f"its unit is {row.unit!r}, and {metric.name} is in {metric.unit}"
    if row.direction != metric.direction:
        yield f"its direction is {row.direction!r}, and {metric.name}'s is {metric.direction!r}"
    if (
        row.method == "exact" and metric.kind != "exact"
    ):  # an exact metric may be tested, but no other metric is exact
        yield f"its method is `{row.method}`, and {metric.name} is {metric.kind}"
    if metric.absolute and row.ratio is not None:
        yield f"it has a ratio, and {metric.name} is compared by its difference"
    if not metric.absolute and row.difference is not None:
        yield f"it has a difference, and {metric.name} is compared by its ratio"


def _centre_contradictions(row: Comparison) -> Iterator[str]:
    """Yield a change that doesn't follow from the sides' centres.

    A change against a baseline of ``k`` sessions is from the mean over the sessions. If these have
    unequal sizes, this mean differs from the centre of the workers by at most ``√(k - 1)`` standard
    deviations of the sessions' means, and so by at most ``√(k - 1)`` half intervals.
    """
    before = row.base.center if row.base else None
    after = row.head.center if row.head else None
    if before is None or after is None:
        if row.difference is not None or row.ratio is not None:
            yield "it has a change, and one side has no centre"
        return
    known = METRICS.get(row.metric)
    if (
        known is not None and known.floor is not None
    ):  # the ratio was computed with the floor, the centres of exact sides without
        before, after = max(before, known.floor), max(after, known.floor)
    ends = (row.difference_lo, row.ratio_lo)
    if row.base_sessions > 1 and ends == (None, None):  # too few rounds for an interval
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
    """Say whether the row's ratio follows from the centres, as geometric or arithmetic means."""
    ratio = row.ratio or 0.0
    between = math.sqrt(row.base_sessions - 1.0) if row.base_sessions > 1 else 0.0
    if before > 0.0 and after > 0.0 and ratio > 0.0:
        log = min(max(math.log(after) - math.log(before), -_LARGEST_LOG), _LARGEST_LOG)
        half = _half(_log(row.ratio_lo), _log(row.ratio_hi))
        if abs(log - math.log(ratio)) <= 1e-6 + between * half:
            return True
    if before == 0.0:
        return after == before and ratio == 1.0  # exact values: zero on both sides
    half = _half(row.ratio_lo, row.ratio_hi)
    return abs(after / before - ratio) <= 1e-6 * max(1.0, abs(ratio)) + between * half


def _interval_contradictions(row: Comparison) -> Iterator[str]:
    """Yield an interval that isn't the test's: its middle is the estimate, p and df give its width.

    A ratio's interval is tried on the scale of logarithms, and on that of ratios of means.
    """
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
    elif not any(_is_one_test(row, *scale) for scale in scales):
        yield "its interval, p and degrees of freedom are not of one test"
    if row.se is not None and not _matches_interval(row, row.se):
        yield "its standard error isn't that of its interval"


def _matches_interval(row: Comparison, se: float) -> bool:
    """Say whether ``se`` is the standard error that the row's interval implies."""
    expected, (_, lo, hi) = standard_error(row), worse_by(row)
    if expected is None or lo is None or hi is None:
        return False
    cut_off = max(abs(lo), abs(hi)) >= _LARGEST_LOG
    slack = 1e-6 * expected + 1e-12 * max(1.0, abs(lo), abs(hi))
    return abs(se - expected) <= slack or (cut_off and row.difference is None)


def _is_one_test(
    row: Comparison, middle: float | None, lo: float | None, hi: float | None, nothing: float
) -> bool:
    """Say whether estimate, interval, p and df fit each other. ``nothing`` means no change."""
    if middle is None or lo is None or hi is None:
        return False
    half = (hi - lo) / 2.0
    slack = 1e-6 * half + 1e-12 * max(1.0, abs(middle))
    if max(abs(lo), abs(hi)) >= _LARGEST_LOG:  # an end was cut off, so nothing can be checked
        return True
    if abs((lo + hi) / 2.0 - middle) > slack:
        return False
    if row.p is None or row.df is None or half <= 0.0:
        return half <= slack
    t = abs(middle - nothing) / half * t_quantile(0.5 + row.confidence / 2, row.df)
    around = 1e-3 * (1.0 + t) + 1e-11 / half
    least, most = two_sided_p(t + around, row.df), two_sided_p(max(0.0, t - around), row.df)
    return least * (1.0 - 1e-6) <= row.p <= most * (1.0 + 1e-6)


def _status_contradictions(row: Comparison) -> Iterator[str]:
    """Yield a status that the row's numbers don't allow. A tested row may always be undecided."""
    change, _, _ = worse_by(row)
    counted = row.method == "exact"
    bound = counted and (change is not None or (row.base is None) != (row.head is None))
    if bound or row.status in ("regressed", "improved", "unchanged"):
        made = _statuses_of_counts(row) if counted else _statuses_of_values(row)
        if row.status not in made:
            others = " or ".join(sorted(made)) or "none that is decided"
            yield f"it is `{row.status}`, and its numbers make it {others}"


def _statuses_of_counts(row: Comparison) -> set[Status]:
    """Return the statuses that exact sides allow. A side without a graph is worse."""
    (change, _, _), threshold = worse_by(row), threshold_of(row)
    if row.base is None or row.head is None:
        if row.base is row.head or row.metric not in ruled():
            return set()
        return {"improved"} if row.base is None else {"regressed"}
    if change is not None:
        ends = (threshold * (1.0 - _SLACK), threshold * (1.0 + _SLACK))
        return {exact_status_at(row, change, end) for end in ends}
    if row.metric in ruled():
        return {"regressed", "improved"}
    before, after = row.base.center, row.head.center
    if before is None or after is None or before == after:
        return set()
    return {"regressed" if (after > before) == (row.direction == "lower") else "improved"}


def _statuses_of_values(row: Comparison) -> set[Status]:
    """Return the decided statuses that a tested change and its interval allow."""
    change, lo, hi = worse_by(row)
    threshold = threshold_of(row)
    made: set[Status] = set()
    if row.status == "untouched":
        return {"untouched"} if row.method == "none" else made
    if row.method == "none" or change is None or row.base is None or row.head is None:
        return made
    tested = row.p is not None and row.p_adjusted is not None
    if tested and change != 0.0 and abs(change) >= threshold * (1.0 - _SLACK):
        made.add("regressed" if change > 0.0 else "improved")
    within = lo is not None and hi is not None and is_within(lo, hi, threshold * (1.0 + _SLACK))
    # no change at all is unchanged by any threshold, even by 0
    if (within or lo == hi == 0.0) and not not_unchanged_reason(row):
        made.add("unchanged")
    return made


def _half(lo: float | None, hi: float | None) -> float:
    return (hi - lo) / 2.0 if lo is not None and hi is not None else 0.0


def _log(value: float | None) -> float | None:
    return math.log(value) if value is not None and value > 0.0 else None
