"""What of one policy lets more pass than another. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from perfci.metrics import METRICS
from perfci.units import format_share, format_value
from perfci.verdict.policy import Policy, metric_policy

_STRICTEST_FIRST = ("fail", "warn", "info")


def laxer_than(base: Policy, here: Policy, benchmarks: Collection[str]) -> tuple[str, ...]:
    """Return in words what ``here`` lets pass that ``base`` does not, a metric at a time.

    Thresholds of single benchmarks count for ``benchmarks``, those that base has; thresholds of
    metrics that only inform on base don't count.
    """
    return (*_of_reports(base, here), *_of_metrics(base, here), *_of_cases(base, here, benchmarks))


def _of_reports(base: Policy, here: Policy) -> Iterator[str]:
    if base.strict and not here.strict:
        yield "strict true → false"
    if here.alpha < base.alpha:
        yield f"alpha {base.alpha:g} → {here.alpha:g}"


def _of_metrics(base: Policy, here: Policy) -> Iterator[str]:
    for name, metric in METRICS.items():
        was = base.metrics.get(name) or metric_policy(metric)
        now = here.metrics.get(name) or metric_policy(metric)
        if _STRICTEST_FIRST.index(now.gate) > _STRICTEST_FIRST.index(was.gate):
            yield f"{name} gate {was.gate} → {now.gate}"
        if was.gate == "info":
            continue
        if now.threshold > was.threshold:
            yield f"{name} threshold {_amounts(name, was.threshold, now.threshold)}"
        if now.share > was.share:
            yield f"{name} share {format_share(was.share)} → {format_share(now.share)}"
        if (was.undecided, now.undecided) == ("inconclusive", "pass"):
            yield f"{name} undecided {was.undecided} → {now.undecided}"


def _of_cases(base: Policy, here: Policy, benchmarks: Collection[str]) -> Iterator[str]:
    for benchmark in sorted(benchmarks):
        was_set, now_set = (one.thresholds.get(benchmark, {}) for one in (base, here))
        for name, metric in METRICS.items():
            if name not in was_set and name not in now_set:
                continue
            general_was = base.metrics.get(name) or metric_policy(metric)
            general_now = here.metrics.get(name) or metric_policy(metric)
            was = was_set.get(name, general_was.threshold)
            now = now_set.get(name, general_now.threshold)
            if general_was.gate != "info" and now > was:
                yield f"{benchmark} {name} threshold {_amounts(name, was, now)}"


def _amounts(metric: str, was: float, now: float) -> str:
    if METRICS[metric].absolute:
        unit = METRICS[metric].unit
        return f"{format_value(was, unit)} → {format_value(now, unit)}"
    return f"{format_share(was)} → {format_share(now)}"
