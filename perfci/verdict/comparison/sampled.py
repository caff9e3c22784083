"""Sampled metrics: both sides' values, tested by pairs, or head beside a stored baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from perfci.model.finding import found
from perfci.model.metric import Metric
from perfci.model.report import Comparison
from perfci.model.settings import DECIDING_ANCESTORS, DECIDING_ROUNDS
from perfci.model.worker import WorkerOutput
from perfci.stats.evidence import Evidence, paired_evidence, unpaired_evidence
from perfci.verdict.caveats import caveat_of_rounds, caveat_of_workers
from perfci.verdict.comparison.pairs import pair_values
from perfci.verdict.comparison.values import Values, with_pairs
from perfci.verdict.margin import standard_error
from perfci.verdict.policy import Policy

_OF_EVIDENCE = {one.name for one in fields(Evidence)} & {one.name for one in fields(Comparison)}


def compare_pairs(
    empty: Comparison, metric: Metric, policy: Policy, base: Values, head: Values
) -> Comparison:
    """Return the row ``empty`` with the evidence of rounds: each is a pair of workers."""
    before = {output.round: output for output in base.outputs}
    after = {output.round: output for output in head.outputs}
    rounds = sorted(before.keys() & after.keys())
    alone = sorted(before.keys() ^ after.keys())
    if alone:
        which = ", ".join(map(str, alone))
        warning = found("round-on-one-side", which=which)
        empty = replace(empty, findings=(*empty.findings, warning))
    pairs = [pair_values(before[number], after[number], metric.name) for number in rounds]
    base = Values(tuple(before[number] for number in rounds), tuple(pair[0] for pair in pairs))
    head = Values(tuple(after[number] for number in rounds), tuple(pair[1] for pair in pairs))
    base, head = base.at_least(metric.floor), head.at_least(metric.floor)
    evidence = paired_evidence(
        base.values,
        head.values,
        alpha=policy.alpha,
        absolute=metric.absolute,
        step=metric.step,
        fewest=DECIDING_ROUNDS,
        ancestors=[_common_ancestor(before[number], after[number]) for number in rounds],
        fewest_ancestors=DECIDING_ANCESTORS,
        confidence=policy.confidence(metric),
    )
    caveat = caveat_of_rounds(base.values, head.values, evidence.ratio)
    row = _tested(empty, evidence, base, head)
    return replace(with_pairs(row, base, head), caveat=caveat, ancestors=evidence.ancestors)


def compare_unpaired(
    empty: Comparison,
    metric: Metric,
    alpha: float,
    sessions: Sequence[Sequence[float]],
    base: Values,
    head: Values,
) -> Comparison:
    """Return the row ``empty`` with the evidence of sides that were measured apart.

    ``sessions`` are base's values by the session they are of.
    """
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


def by_session(
    base: Sequence[WorkerOutput], counts: Sequence[int], metric: str
) -> tuple[tuple[float, ...], ...]:
    """Return base's values of ``metric``, of the first ``counts[0]`` workers and so on."""
    if not counts:
        return (Values.of(base, metric).values,)
    if sum(counts) != len(base):
        raise ValueError(f"sessions of {sum(counts)} workers, but base has {len(base)}")
    ends = [sum(counts[: index + 1]) for index in range(len(counts))]
    return tuple(
        Values.of(base[end - count : end], metric).values
        for end, count in zip(ends, counts, strict=True)
    )


def _tested(empty: Comparison, evidence: Evidence, base: Values, head: Values) -> Comparison:
    row = replace(
        empty,
        **{name: getattr(evidence, name) for name in _OF_EVIDENCE},
        base=base.estimate(logarithmic=evidence.logarithmic),
        head=head.estimate(logarithmic=evidence.logarithmic),
        findings=(*empty.findings, *evidence.warnings),
    )
    of_shares = not evidence.logarithmic and evidence.difference is None
    return replace(row, se=standard_error(row)) if of_shares else row


def _common_ancestor(base: WorkerOutput, head: WorkerOutput) -> int:
    return base.ancestor if base.ancestor == head.ancestor else 0
