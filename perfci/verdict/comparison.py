"""Two sides' workers to comparisons, one per metric. Statuses of tested metrics come later.

``compare_case`` says what was seen; ``adjust`` decides, once every comparison of the report is
there to be corrected for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

from perfci.metrics import METRICS, rulings
from perfci.model.case import Case
from perfci.model.finding import Finding, found
from perfci.model.metric import Metric
from perfci.model.report import MOST_VALUES, Comparison, Estimate, Status
from perfci.model.settings import DECIDING_ANCESTORS, DECIDING_ROUNDS
from perfci.model.worker import WorkerOutput
from perfci.stats.evidence import Evidence, paired_evidence, unpaired_evidence
from perfci.stats.outliers import SIGNIFICANCE
from perfci.stats.quantile import median, upper_median
from perfci.stats.student import no_evidence
from perfci.stats.summary import summarise
from perfci.verdict.caveats import caveat_of_rounds, caveat_of_workers
from perfci.verdict.exact import compare_exactly, is_exact, without_numbers
from perfci.verdict.margin import standard_error
from perfci.verdict.pairs import pair_values
from perfci.verdict.policy import MetricPolicy, Policy

# A comparison before anything is known: what a metric and its policy alone say.


def empty_row(
    case: str, metric: Metric, rule: MetricPolicy, status: Status, *findings: Finding
) -> Comparison:
    """Return a comparison without numbers."""
    return Comparison(
        case=case,
        metric=metric.name,
        unit=metric.unit,
        status=status,
        gate=rule.gate,
        method="none",
        base=None,
        head=None,
        ratio=None,
        ratio_lo=None,
        ratio_hi=None,
        threshold=rule.threshold,
        p=None,
        p_adjusted=None,
        cohens_d=None,
        detectable=None,
        findings=findings,
        direction=metric.direction,
    )


LEFT_OUT = found("left-out")
_OF_EVIDENCE = {one.name for one in fields(Evidence)} & {one.name for one in fields(Comparison)}


@dataclass(frozen=True, slots=True)
class _Values:
    """One side's values of one metric, with the workers they were taken from."""

    outputs: tuple[WorkerOutput, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, outputs: Iterable[WorkerOutput], metric: str) -> _Values:
        having = tuple(output for output in outputs if metric in output.values)
        return cls(having, tuple(float(output.values[metric]) for output in having))

    def at_least(self, floor: float | None) -> _Values:
        if floor is None:
            return self
        return _Values(self.outputs, tuple(max(value, floor) for value in self.values))

    def without(self, indices: Sequence[int]) -> _Values:
        kept = [index for index in range(len(self.values)) if index not in indices]
        return _Values(
            tuple(self.outputs[index] for index in kept),
            tuple(self.values[index] for index in kept),
        )

    @property
    def samples(self) -> int:
        return sum(output.samples for output in self.outputs)

    def estimate(self, *, logarithmic: bool) -> Estimate:
        summary, count = summarise(self.values, logarithmic=logarithmic), len(self.values)
        lo, hi = (summary.lo, summary.hi) if count >= DECIDING_ROUNDS else (None, None)
        return Estimate(summary.center, lo, hi, count, self.samples, _shown(self.values))

    def exact_estimate(self) -> Estimate:
        """The upper median; the ends are what the workers gave, not an interval."""
        center, lo, hi = upper_median(self.values), min(self.values), max(self.values)
        return Estimate(center, lo, hi, len(self.values), self.samples)


def compare_case(
    case: Case,
    base: Sequence[WorkerOutput],
    head: Sequence[WorkerOutput],
    policy: Policy,
    *,
    paired: bool,
    base_sessions: Sequence[int] = (),
) -> tuple[Comparison, ...]:
    """Return a comparison for each metric of ``case`` that both sides have.

    ``paired`` sides were measured together: workers of one round make a pair. Otherwise base is
    a stored baseline, whose workers stand session after session, ``base_sessions`` of them in
    each. A gating metric that head's workers no longer give is reported as inconclusive.
    """
    rows = []
    ruled, remarks = rulings(base, head), _remarks(head)
    disturbance = _disturbance((*base, *head))
    for metric in _metrics(case, (*base, *head)):
        empty = empty_row(
            case.id,
            metric,
            policy.for_metric(metric, case),
            "inconclusive",
            *remarks.get(metric.name, ()),
        )
        before, after = _Values.of(base, metric.name), _Values.of(head, metric.name)
        if metric.name in ruled:
            sides = (side.exact_estimate() if side.values else None for side in (before, after))
            rows.append(without_numbers(empty, ruled[metric.name], *sides))
        elif before.values and after.values:
            rule = policy.for_metric(metric, case)
            if metric.kind == "exact" and is_exact(
                metric, before.values, after.values, rule.threshold
            ):
                row = _exactly(empty, metric, before, after)
            elif paired:
                row = _paired(empty, metric, policy.alpha, before, after)
            else:
                sessions = _sessions(base, base_sessions, metric.name)
                row = _unpaired(empty, metric, policy.alpha, sessions, before, after)
            center = row.base.center if row.base else None
            row = replace(row, threshold=rule.threshold_for(center), disturbance=disturbance)
            if metric.name == _OF_CALLS:
                row = _with_calls(row, before, after)
            rows.append(row)
        elif before.values and head and empty.gate == "fail":
            rows.append(_vanished(empty, before, head))
    return tuple(rows)


def number_rows(
    case: Case, outputs: Sequence[WorkerOutput], policy: Policy
) -> tuple[Comparison, ...]:
    """Return the metrics of a side that was measured alone: numbers, with nothing beside them."""
    rows = []
    remarks = _remarks(outputs)
    for metric in _metrics(case, outputs):
        side = _Values.of(outputs, metric.name)
        if side.values:
            rule = policy.for_metric(metric, case)
            row = empty_row(case.id, metric, rule, "new", *remarks.get(metric.name, ()))
            exact = (
                metric.kind == "exact"
                and all(map(math.isfinite, side.values))
                and is_exact(metric, side.values, side.values, row.threshold)
            )
            estimate = (
                side.exact_estimate() if exact else side.estimate(logarithmic=not metric.absolute)
            )
            row = replace(row, head=estimate)
            rows.append(_with_calls(row, None, side) if metric.name == _OF_CALLS else row)
    return tuple(rows)


def left_out(
    case: Case,
    base: Sequence[WorkerOutput],
    before: Collection[str] | None,
    policy: Policy,
) -> tuple[Comparison, ...]:
    """Return a ``removed`` row for each metric that base has and ``case`` no longer reports.

    Both sides run head's benchmark, so its ``metrics=`` limits both: ``before`` are those that
    base's own benchmark reports, None for all.
    """
    if case.metrics is None:
        return ()
    rows = []
    for metric in METRICS.values():
        side = _Values.of(base, metric.name)
        reported = before is None or metric.name in before
        if metric.name not in case.metrics and reported and side.values:
            row = empty_row(case.id, metric, policy.for_metric(metric, case), "removed", LEFT_OUT)
            rows.append(replace(row, base=side.estimate(logarithmic=not metric.absolute)))
    return tuple(rows)


def _remarks(outputs: Iterable[WorkerOutput]) -> dict[str, tuple[Finding, ...]]:
    """Return what workers remark beside each metric: the first one's words, as all are alike."""
    found: dict[str, tuple[Finding, ...]] = {}
    for output in outputs:
        for metric, remark in output.remarks.items():
            found.setdefault(metric, (remark,))
    return found


def _metrics(case: Case, outputs: Sequence[WorkerOutput]) -> Iterator[Metric]:
    """The metrics to report, in their order; ``Case.metrics`` can't limit those it added itself."""
    for metric in METRICS.values():
        if case.metrics is None or metric.name in case.metrics:
            yield metric
    extra = {metric.name: metric for output in outputs for metric in output.extra_metrics}
    for name in sorted(extra.keys() - METRICS.keys()):
        yield extra[name]


def _paired(
    empty: Comparison, metric: Metric, alpha: float, base: _Values, head: _Values
) -> Comparison:
    before = {output.round: output for output in base.outputs}
    after = {output.round: output for output in head.outputs}
    rounds = sorted(before.keys() & after.keys())
    alone = sorted(before.keys() ^ after.keys())
    if alone:
        which = ", ".join(map(str, alone))
        warning = found("round-on-one-side", which=which)
        empty = replace(empty, findings=(*empty.findings, warning))
    pairs = [pair_values(before[number], after[number], metric.name) for number in rounds]
    base = _Values(tuple(before[number] for number in rounds), tuple(pair[0] for pair in pairs))
    head = _Values(tuple(after[number] for number in rounds), tuple(pair[1] for pair in pairs))
    base, head = base.at_least(metric.floor), head.at_least(metric.floor)
    every = base, head
    evidence = paired_evidence(
        base.values,
        head.values,
        alpha=alpha,
        absolute=metric.absolute,
        step=metric.step,
        fewest=DECIDING_ROUNDS,
        ancestors=[_common_ancestor(before[number], after[number]) for number in rounds],
        fewest_ancestors=DECIDING_ANCESTORS,
    )
    caveat = caveat_of_rounds(base.values, head.values, evidence.ratio)
    outliers = evidence.outliers
    if outliers:
        which = ", ".join(str(rounds[index]) for index in outliers)
        warning = found(
            "rounds-excluded",
            excluded=len(outliers),
            rounds=len(rounds),
            which=which,
            p=SIGNIFICANCE,
        )
        worse = sum(_is_worse(metric, base.values[index], head.values[index]) for index in outliers)
        empty = replace(
            empty,
            rounds_set_aside=len(outliers),
            set_aside_worse=worse,
            findings=(*empty.findings, warning),
        )
        base, head = base.without(outliers), head.without(outliers)
    row = _tested(empty, evidence, base, head)
    return replace(_with_pairs(row, *every, outliers), caveat=caveat, ancestors=evidence.ancestors)


def _common_ancestor(base: WorkerOutput, head: WorkerOutput) -> int:
    return base.ancestor if base.ancestor == head.ancestor else 0


def _unpaired(
    empty: Comparison,
    metric: Metric,
    alpha: float,
    sessions: Sequence[Sequence[float]],
    base: _Values,
    head: _Values,
) -> Comparison:
    base, head = base.at_least(metric.floor), head.at_least(metric.floor)
    if metric.floor is not None:
        sessions = [[max(value, metric.floor) for value in one] for one in sessions]
    evidence = unpaired_evidence(
        sessions,
        head.values,
        alpha=alpha,
        absolute=metric.absolute,
        step=metric.step,
        fewest=DECIDING_ROUNDS,
    )
    row = _tested(empty, evidence, base, head)
    return replace(
        row,
        caveat=caveat_of_workers(base.values, head.values, row.ratio),
        base_sessions=len(list(filter(None, sessions))),
    )


def _is_worse(metric: Metric, base: float, head: float) -> bool:
    return head > base if metric.direction == "lower" else head < base


def _exactly(empty: Comparison, metric: Metric, base: _Values, head: _Values) -> Comparison:
    if problem := no_evidence((*base.values, *head.values)):
        return replace(empty, method="exact", findings=(*empty.findings, problem))
    empty = replace(empty, base=base.exact_estimate(), head=head.exact_estimate())
    return compare_exactly(empty, metric, base.values, head.values)


def _vanished(empty: Comparison, base: _Values, head: Sequence[WorkerOutput]) -> Comparison:
    reasons = [o.missing[empty.metric] for o in head if empty.metric in o.missing]
    return replace(
        empty,
        base=base.estimate(logarithmic=True),
        findings=(
            *empty.findings,
            found("base-only", why=reasons[0]) if reasons else found("base-only"),
        ),
    )


def _sessions(
    base: Sequence[WorkerOutput], counts: Sequence[int], metric: str
) -> tuple[tuple[float, ...], ...]:
    if not counts:
        return (_Values.of(base, metric).values,)
    if sum(counts) != len(base):
        raise ValueError(f"sessions of {sum(counts)} workers, but base has {len(base)}")
    ends = [sum(counts[: index + 1]) for index in range(len(counts))]
    return tuple(
        _Values.of(base[end - count : end], metric).values
        for end, count in zip(ends, counts, strict=True)
    )


def _tested(empty: Comparison, evidence: Evidence, base: _Values, head: _Values) -> Comparison:
    row = replace(
        empty,
        **{name: getattr(evidence, name) for name in _OF_EVIDENCE},
        base=base.estimate(logarithmic=evidence.logarithmic),
        head=head.estimate(logarithmic=evidence.logarithmic),
        findings=(*empty.findings, *evidence.warnings),
    )
    of_shares = not evidence.logarithmic and evidence.difference is None
    return replace(row, se=standard_error(row)) if of_shares else row


# What a reader can draw: workers' values, quantiles of calls. No figure rests on it.

_OF_CALLS = "latency_p50"
"""The metric beside which the quantiles of all calls stand."""


def _shown(values: Sequence[float]) -> tuple[float, ...]:
    """Return the first of the values, to six digits; none where one is no finite number."""
    if not all(map(math.isfinite, values)):
        return ()
    return tuple(float(f"{value:.6g}") for value in values[:MOST_VALUES])


def _with_pairs(
    row: Comparison, base: _Values, head: _Values, outliers: Sequence[int]
) -> Comparison:
    """Return ``row`` with all pairs' values, outliers' too; where one is no number, with none."""
    before, after = _shown(base.values), _shown(head.values)
    if not (before and after and row.base and row.head):
        before = after = ()
    return replace(
        row,
        base=replace(row.base, values=before) if row.base else None,
        head=replace(row.head, values=after) if row.head else None,
        outliers=tuple(index for index in outliers if index < len(before)),
    )


def _with_calls(row: Comparison, before: _Values | None, after: _Values) -> Comparison:
    """Return ``row`` with the median worker's calls on each side that has a number."""
    base, head = (
        replace(
            estimate, quantiles=_quantiles(side.outputs), first_calls=_first_calls(side.outputs)
        )
        if estimate and side
        else estimate
        for estimate, side in ((row.base, before), (row.head, after))
    )
    return replace(row, base=base, head=head)


def _quantiles(outputs: Sequence[WorkerOutput]) -> tuple[float, ...]:
    known = [output.quantiles for output in outputs if output.quantiles]
    if len({len(one) for one in known}) != 1:
        return ()
    return _shown([median(at) for at in zip(*known, strict=True)])


def _first_calls(outputs: Sequence[WorkerOutput]) -> tuple[float, ...]:
    """Return the median over the workers of each of the calls that all of them made first."""
    known = [output.first_calls for output in outputs if output.first_calls]
    return _shown([median(at) for at in zip(*known, strict=False)])


def _disturbance(outputs: Iterable[WorkerOutput]) -> str:
    """Return the commonest reason why most bursts of a worker were disturbed, or nothing."""
    reasons = Counter(one.disturbance for one in outputs if one.bursts_disturbed)
    return reasons.most_common(1)[0][0] if reasons else ""
