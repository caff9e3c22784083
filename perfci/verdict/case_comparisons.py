"""The comparisons of one case: a row for each of its metrics, exact where workers agree.

A metric whose workers don't agree is compared as a sampled one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from perfci.finding import NO_EVIDENCE, Evidence, Finding, finding
from perfci.metrics import METRICS, Ruling, rulings
from perfci.metrics.accuracy import comparable
from perfci.model import inherited
from perfci.model.case import Case, Metric
from perfci.model.measuring import AGREEING_ROUNDS, DECIDING_ROUNDS, WorkerOutput
from perfci.model.report import Comparison
from perfci.model.status import Status
from perfci.stats.quantile import upper_median
from perfci.stats.t_tests import DayShift, no_evidence, sign_flip_p
from perfci.verdict.caveats import caveat_of_quota
from perfci.verdict.policy import Policy, threshold_at, worsening
from perfci.verdict.sampled_comparisons import (
    Values,
    compare_pairs,
    compare_unpaired,
    paired_workers,
    with_calls,
)

LEFT_OUT = finding("left-out")
_METRIC_OF_CALLS = "latency_p50"
"""The metric whose rows have the quantiles of all calls."""
_ABOUT_THREADS = {"torch_threads": "threads-differ", "busy_after_calls": "busy-threads"}
"""Codes of the remarks on the latency that these metrics' rows cause."""
_AGREEING_SHARE = 0.1
"""Workers agree on an exact metric if they differ by no more than this share of the threshold. Such
a difference can't decide the comparison."""
_DELAY_ALPHA = 0.05
"""Level of the test of delayed bursts. Five rounds reach it if head has more of them in each round.
A false alarm only keeps delayed bursts on both sides; it decides nothing by itself."""


def compare_case(
    case: Case,
    base: Sequence[WorkerOutput],
    head: Sequence[WorkerOutput],
    policy: Policy,
    *,
    paired: bool,
    base_sessions: Sequence[int] = (),
    days: Mapping[str, DayShift] = MappingProxyType({}),
) -> tuple[Comparison, ...]:
    """Return a comparison for each metric of ``case`` that both sides have.

    ``paired`` sides were measured together: workers of one round make a pair. Otherwise base is
    a stored baseline: its workers are ordered by session, and ``base_sessions`` has each session's
    number of workers. ``days`` has by metric how far today lies from those sessions. A gating
    metric that head's workers no longer give is reported as inconclusive.
    """
    rows, compared, ruled = list[Comparison](), dict[str, Metric](), rulings(base, head)
    base, head = comparable(base, head)
    remarks = _remarks(head)
    disturbance, throttled = _disturbance((*base, *head)), caveat_of_quota((*base, *head))
    delayed = delayed_more(base, head) if paired else None
    affected_metrics: set[str] = set()
    if delayed:
        affected_metrics = {name for output in (*base, *head) for name in output.with_delayed}
        base, head = _with_delayed(base), _with_delayed(head)
    metrics = tuple(_metrics(case, (*base, *head), policy))
    base, head = _with_zeros(metrics, base, head)
    for metric in metrics:
        delay = (delayed,) if delayed and metric.name in affected_metrics else ()
        empty = empty_row(case.id, metric, "inconclusive", *remarks.get(metric.name, ()), *delay)
        before, after = Values.of(base, metric.name), Values.of(head, metric.name)
        ruling = ruled.get(metric.name)
        if ruling and (ruling.ratio is None or ruling.ratio > 1.0 + metric.threshold):
            rows.append(_ruled_row(empty, ruling, before, after))
        elif before.values and after.values and not _partly_lost(metric, before, after, head):
            compared[metric.name] = metric
            sessions = None if paired else _by_session(base, base_sessions, metric.name)
            day, sides = days.get(metric.name), (before, after)
            row = _compare_values(empty, metric, policy, sides, sessions, day)
            if row.ratio is not None and row.method != "exact" and "s" in metric.unit.split("/"):
                row = replace(row, caveat=throttled or row.caveat)
            rows.append(replace(row, disturbance=disturbance))
        elif before.values and head and (empty.gate == "fail" or metric.name not in METRICS):
            lost = _lost_finding(metric.name, after, head)
            rows.append(empty.noting(lost, base=before.estimate(logarithmic=True)))
        elif metric.name not in METRICS and (why := _reason_for_lack(metric.name, (*base, *head))):
            none = empty.noting(finding("no-value", metric=metric.name, why=why))
            rows.append(replace(none, head=after.exact_estimate()))
    return _with_blame(_with_threads(_with_thresholds(rows, compared)))


def _ruled_row(empty: Comparison, ruling: Ruling, before: Values, after: Values) -> Comparison:
    row = empty.noting(ruling.finding, method="exact", status=ruling.status)
    base, head = before.exact_estimate(), after.exact_estimate()
    return replace(row, base=base, head=head, ratio=ruling.ratio)


def _lost_finding(metric: str, after: Values, head: Sequence[WorkerOutput]) -> Finding:
    """Return the remark on a metric that all or some of head's workers no longer give."""
    why = _reason_for_lack(metric, head) or "head's workers did not report it"
    if not after.values:
        return finding("base-only", why=why)
    without = len(head) - len(after.values)
    return finding("partly-lost", lacking=without, workers=len(head), why=why)


def _compare_values(
    empty: Comparison,
    metric: Metric,
    policy: Policy,
    sides: tuple[Values, Values],
    sessions: Sequence[Sequence[float]] | None,
    day: DayShift | None,
) -> Comparison:
    """Return the row ``empty`` with the change between both sides: exact, or else tested.

    ``sessions`` are base's values by session; None for sides that were measured in pairs. ``day``
    is the distance of today from them, where it is known.
    """
    base, head = sides
    if is_exact(metric, base.values, head.values):
        threshold = threshold_at(metric, upper_median(base.values))
        row = _compare_exactly(replace(empty, threshold=threshold), metric, base, head)
    elif sessions is None:
        row = compare_pairs(empty, metric, policy, base, head)
    else:
        row = compare_unpaired(empty, metric, policy.alpha, sessions, base, head, day)
    return with_calls(row, base, head) if metric.name == _METRIC_OF_CALLS else row


def number_rows(
    case: Case, outputs: Sequence[WorkerOutput], policy: Policy
) -> tuple[Comparison, ...]:
    """Return the metrics of a side that was measured alone. They are compared with nothing."""
    rows = []
    remarks = _remarks(outputs)
    for metric in _metrics(case, outputs, policy):
        side = Values.of(outputs, metric.name)
        if side.values:
            row = empty_row(case.id, metric, "new", *remarks.get(metric.name, ()))
            exact = (
                metric.kind == "exact"
                and all(map(math.isfinite, side.values))
                and is_exact(metric, side.values, side.values)
            )
            estimate = (
                side.exact_estimate() if exact else side.estimate(logarithmic=not metric.absolute)
            )
            row = replace(row, head=estimate)
            rows.append(with_calls(row, None, side) if metric.name == _METRIC_OF_CALLS else row)
    return tuple(rows)


def left_out(
    case: Case,
    base: Sequence[WorkerOutput],
    base_reported: Collection[str] | None,
    policy: Policy,
) -> tuple[Comparison, ...]:
    """Return a ``removed`` row for each metric that base has and ``case`` no longer reports.

    Both sides run head's benchmark, so its ``metrics=`` limits both. ``base_reported`` are the
    metrics that base's own benchmark reports, None for all metrics.
    """
    if case.metrics is None:
        return ()
    rows = []
    for metric in METRICS.values():
        side = Values.of(base, metric.name)
        reported = base_reported is None or metric.name in base_reported
        if metric.name not in case.metrics and reported and side.values:
            known = policy.for_case(metric, case.id, case.thresholds)
            row = empty_row(case.id, known, "removed", LEFT_OUT)
            rows.append(replace(row, base=side.estimate(logarithmic=not metric.absolute)))
    return tuple(rows)


def empty_row(case: str, metric: Metric, status: Status, *findings: Finding) -> Comparison:
    """Return a comparison without numbers."""
    return Comparison(
        **inherited(Evidence, replace(NO_EVIDENCE, findings=findings)),
        case=case,
        metric=metric.name,
        unit=metric.unit,
        status=status,
        gate=metric.gate,
        threshold=metric.threshold,
        direction=metric.direction,
        base=None,
        head=None,
        p_adjusted=None,
    )


def delayed_more(base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]) -> Finding | None:
    """Return a finding if a test by rounds shows that head's bursts were delayed more often."""
    pairs = paired_workers(base, head)
    p = sign_flip_p([after.bursts_delayed - prior.bursts_delayed for prior, after in pairs])
    if p > _DELAY_ALPHA:
        return None
    return finding(
        "delayed-more",
        head=sum(after.bursts_delayed for _, after in pairs),
        base=sum(prior.bursts_delayed for prior, _ in pairs),
        bursts=sum(after.bursts_measured for _, after in pairs),
        p=p,
    )


def _with_delayed(outputs: Sequence[WorkerOutput]) -> tuple[WorkerOutput, ...]:
    """Return the outputs with the values that include delayed bursts."""
    return tuple(
        replace(output, values={**output.values, **output.with_delayed}) for output in outputs
    )


def _by_session(
    base: Sequence[WorkerOutput], counts: Sequence[int], metric: str
) -> tuple[tuple[float, ...], ...]:
    """Return base's values of ``metric`` by session: the first has ``counts[0]`` workers."""
    if not counts:
        return (Values.of(base, metric).values,)
    if sum(counts) != len(base):
        raise ValueError(f"sessions of {sum(counts)} workers, but base has {len(base)}")
    ends = [sum(counts[: index + 1]) for index in range(len(counts))]
    return tuple(
        Values.of(base[end - count : end], metric).values
        for end, count in zip(ends, counts, strict=True)
    )


def _with_thresholds(
    rows: Sequence[Comparison], compared: Mapping[str, Metric]
) -> list[Comparison]:
    """Return ``rows`` with the thresholds of the metrics ``compared``, at base's values.

    A threshold may depend on the value of another metric (``Metric.whole``), so all rows are
    needed.
    """
    base = {row.metric: row.base.center for row in rows if row.base}

    def threshold(row: Comparison) -> float:
        metric = compared.get(row.metric)
        if metric is None:
            return row.threshold
        return threshold_at(metric, base.get(metric.name), base.get(metric.whole))

    return [replace(row, threshold=threshold(row)) for row in rows]


def _with_blame(rows: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the rows. Their findings on a slow rank are left out if equal ranks may show it, too.

    It counts if the whole interval shows that head's ranks are less equal than base's.
    """
    if any(row.metric == "rank_imbalance" and (row.ratio_lo or 0.0) > 1.0 for row in rows):
        return tuple(rows)
    return tuple(
        replace(row, findings=tuple(each for each in row.findings if each.code != "slow-rank"))
        for row in rows
    )


def _with_threads(rows: Sequence[Comparison]) -> list[Comparison]:
    """Add remarks to the latency's row: on other threads of torch, and on work left to threads."""
    remarks = tuple(
        finding(code, base=row.base.center, head=row.head.center)
        for row in rows
        if (code := _ABOUT_THREADS.get(row.metric))
        if row.difference_lo is not None and row.base and row.head
        if row.base.center is not None and row.head.center is not None
        if row.difference_lo >= row.threshold > 0.0 or (row.difference and not row.threshold)
    )
    return [
        replace(row, findings=(*remarks, *row.findings)) if row.metric == _METRIC_OF_CALLS else row
        for row in rows
    ]


def _partly_lost(
    metric: Metric, before: Values, after: Values, head: Sequence[WorkerOutput]
) -> bool:
    """Say whether some of head's workers lack a metric of the benchmark's own that base has."""
    own = metric.name not in METRICS
    return own and len(after.values) < min(len(before.values), len(head))


def _with_zeros(
    metrics: Iterable[Metric], base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]
) -> tuple[tuple[WorkerOutput, ...], tuple[WorkerOutput, ...]]:
    """Return both sides with zeros for absent metrics that count as zero (``zero_if_absent``).

    Another worker has to have the metric. A worker that says why it is missing gets no zero.
    """
    known = {name for output in (*base, *head) for name in output.values}
    names = [each.name for each in metrics if each.zero_if_absent and each.name in known]

    def filled(output: WorkerOutput) -> WorkerOutput:
        zeros = {name: 0.0 for name in names if name not in output.missing}
        return replace(output, values=zeros | dict(output.values))

    return tuple(map(filled, base)), tuple(map(filled, head))


def _remarks(outputs: Iterable[WorkerOutput]) -> dict[str, tuple[Finding, ...]]:
    """Return the workers' remark on each metric. All workers remark alike: the first counts."""
    findings: dict[str, tuple[Finding, ...]] = {}
    for output in outputs:
        for metric, remark in output.remarks.items():
            findings.setdefault(metric, (remark,))
    return findings


def _metrics(case: Case, outputs: Sequence[WorkerOutput], policy: Policy) -> Iterator[Metric]:
    """Yield the metrics to report, in their order, each with its policy for ``case``.

    ``Case.metrics`` limits perfci's own only.
    """
    extra = {metric.name: metric for output in outputs for metric in output.extra_metrics}
    own = [m for m in METRICS.values() if case.metrics is None or m.name in case.metrics]
    for metric in (*own, *(extra[name] for name in sorted(extra.keys() - METRICS.keys()))):
        yield policy.for_case(metric, case.id, case.thresholds)


def _reason_for_lack(metric: str, outputs: Iterable[WorkerOutput]) -> str:
    """Return the first reason why a worker lacks the metric, or an empty text."""
    return next((each.missing[metric] for each in outputs if metric in each.missing), "")


def _disturbance(outputs: Iterable[WorkerOutput]) -> str:
    """Return the commonest reason why a worker's bursts were mostly disturbed, or nothing."""
    reasons = Counter(output.disturbance for output in outputs if output.bursts_disturbed)
    return reasons.most_common(1)[0][0] if reasons else ""


def is_exact(metric: Metric, base: Sequence[float], head: Sequence[float]) -> bool:
    """Say whether the workers agree, so that the metric is compared exactly, without a test.

    Workers agree if each side's values lie within a tenth of the threshold. With a threshold of 0
    (one more graph break is one too many) the values have to be equal. With fewer than
    ``DECIDING_ROUNDS`` workers, an amount (bytes, for example) may agree by chance. Then both sides
    *together* must lie within a tenth of the threshold, with at least ``AGREEING_ROUNDS`` workers
    each. A value that isn't finite counts as agreeing, because such a row is not tested.

    A benchmark's own metric that isn't ``exact`` is compared so if enough workers of each side give
    a single value: a test would see no spread.
    """
    few = min(len(base), len(head)) < DECIDING_ROUNDS
    if metric.kind != "exact":
        constant = len({*base}) == len({*head}) == 1
        return metric.name not in METRICS and constant and not few
    if metric.absolute and metric.threshold > 0.0 and few:
        enough = min(len(base), len(head)) >= AGREEING_ROUNDS
        return enough and _agree(metric, (*base, *head))
    return all(_agree(metric, values) for values in (base, head))


def _agree(metric: Metric, values: Sequence[float]) -> bool:
    lo, hi = min(values), max(values)
    if not math.isfinite(lo) or not math.isfinite(hi):
        return True
    if metric.absolute:
        return hi - lo <= _AGREEING_SHARE * metric.threshold
    if metric.floor is not None:
        lo, hi = max(lo, metric.floor), max(hi, metric.floor)
    most = _AGREEING_SHARE * math.log1p(metric.threshold)
    return lo == hi or (lo > 0.0 and math.log(hi / lo) <= most)


def _compare_exactly(empty: Comparison, metric: Metric, base: Values, head: Values) -> Comparison:
    """Return the row ``empty`` with the change of the upper medians of workers that agree.

    Medians, not means: a mean need not be a value that was seen. An exact change is its own
    interval.
    """
    empty = replace(empty, method="exact")
    if problem := no_evidence((*base.values, *head.values)):
        return empty.noting(problem)
    empty = replace(empty, base=base.exact_estimate(), head=head.exact_estimate())
    before, after = upper_median(base.values), upper_median(head.values)
    if metric.absolute:
        change = after - before
        row = replace(empty, difference=change, difference_lo=change, difference_hi=change)
        return replace(row, status=_status_of(row))
    if metric.floor is not None and min(before, after) < metric.floor:
        before, after = max(before, metric.floor), max(after, metric.floor)
        empty = empty.noting(finding("below-floor", floor=metric.floor))
    if before != after and min(before, after) <= 0.0:
        worse = (after > before) == (metric.direction == "lower")
        moved: Status = "regressed" if worse else "improved"
        return empty.noting(finding("no-ratio"), status=moved)
    ratio = 1.0 if before == after else after / before
    row = replace(empty, ratio=ratio, ratio_lo=ratio, ratio_hi=ratio)
    return replace(row, status=_status_of(row))


def _status_of(row: Comparison) -> Status:
    """Return the status of a row with an exact change."""
    worse = worsening(row)
    if not worse.reaches:
        return "unchanged"
    return "regressed" if worse.change > 0.0 else "improved"


def exact_status_at(row: Comparison, threshold: float) -> Status:
    """Return the status of an exact ``row`` at another threshold than its own.

    An unknown change exceeds every threshold. A change that reaches ``threshold`` is inconclusive
    if the sides' values overlap: workers that agree by the row's own threshold may not agree by a
    smaller one.
    """
    if math.isnan(worsening(row).change) or row.base is None or row.head is None:
        return row.status
    status = _status_of(replace(row, threshold=threshold))
    ends = (row.base.lo, row.base.hi, row.head.lo, row.head.hi)
    base_lo, base_hi, head_lo, head_hi = (math.nan if end is None else end for end in ends)
    agree = base_hi < head_lo or head_hi < base_lo or not row.threshold
    return status if agree or status == "unchanged" else "inconclusive"
