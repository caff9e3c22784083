"""Anchors: cases of a ``check`` that show how far today lies from the day of the baseline. Pure.

The baseline's commit is measured again in the anchors, in pairs with head. Base's values of today
and the stored ones give the day's shift, which every other case is compared with.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from perfci.metrics import METRICS
from perfci.model.case import Metric
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.stats.t_tests import DayShift, mean, no_evidence, variance, variance_of_means
from perfci.verdict.policy import Policy, worsening
from perfci.verdict.sampled_comparisons import Values

_SMALL_SUITE = 6
"""A suite of up to so many cases is measured in pairs as a whole."""
_FEWEST, _MOST = 5, 8
"""Fewest and most anchors of a larger suite. In between, they are a quarter of the cases."""
_FEWEST_SHIFTS = 3
"""Fewest anchors with a metric from which its shift is known."""
_SCREENED_SHARE = 0.75
"""Longest half of an interval that is expected to decide a case, as a share of the threshold."""

Session = Sequence[WorkerOutput]


def choose_anchors(cases: Collection[str], seed: str) -> tuple[str, ...]:
    """Return the anchors among ``cases``: all of a small suite, else a random quarter."""
    if len(cases) <= _SMALL_SUITE:
        return tuple(cases)
    count = max(_FEWEST, min(_MOST, len(cases) // 4))

    def drawn(case: str) -> bytes:
        return hashlib.sha256(f"{seed} {case}".encode()).digest()

    return tuple(sorted(cases, key=drawn)[:count])


def day_shifts(
    stored: Mapping[str, Sequence[Session]], today: Mapping[str, Session]
) -> dict[str, DayShift]:
    """Return by metric how far base's outputs of ``today`` lie from the ``stored`` sessions.

    Both are by case, and ``today`` has the anchors. A metric that fewer than three anchors have
    isn't in the result.
    """
    shifts: dict[str, list[tuple[float, float]]] = {}
    for case, outputs in today.items():
        extra = {metric.name: metric for output in outputs for metric in output.extra_metrics}
        for metric in {**extra, **METRICS}.values():
            now = _scaled(outputs, metric)
            then = [values for each in stored[case] if (values := _scaled(each, metric))]
            if now and then:
                shift = mean(now) - mean([mean(values) for values in then])
                of_workers = variance_of_means(then) + variance_of_means([now])
                shifts.setdefault(metric.name, []).append((shift, of_workers))
    return {
        name: DayShift(
            mean([shift for shift, _ in known]),
            variance([shift for shift, _ in known]),
            mean([of_workers for _, of_workers in known]),
            len(known),
        )
        for name, known in shifts.items()
        if len(known) >= _FEWEST_SHIFTS
    }


def _scaled(outputs: Session, metric: Metric) -> Sequence[float]:
    """Return a session's values on the scale of the test, or none if they can't be tested."""
    values = Values.of(outputs, metric.name).at_least(metric.floor).values
    if no_evidence(values) or (not metric.absolute and min(values, default=0.0) <= 0.0):
        return ()
    return values if metric.absolute else [math.log(value) for value in values]


def may_decide(rows: Iterable[Comparison], policy: Policy) -> bool:
    """Say whether head alone may decide a case, from the stored sessions compared with the last.

    Pairs take less time in all where head alone would leave many cases undecided.
    """

    def is_narrow(row: Comparison) -> bool:
        worse = worsening(row)
        return (worse.hi - worse.lo) / 2.0 <= _SCREENED_SHARE * worse.threshold

    return all(
        row.anchors and is_narrow(row)
        for row in rows
        if row.gate == "fail"
        and row.method == "welch_t"
        and policy.undecided(row.metric) == "inconclusive"
    )
