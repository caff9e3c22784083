"""``check``: head against the stored baseline; a suspicion is confirmed side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.measure.compare import Request, facts_of, told_failures, written_on_head
from perfci.measure.conclude import Facts, assemble
from perfci.measure.confirming import ENDED_EARLY, confirmed, named, unconfirmed
from perfci.measure.run import measure_alone
from perfci.measure.session import SessionResult
from perfci.measure.workplace import Surroundings, Wanted, open_workplace
from perfci.measure.written import Written
from perfci.record.case import Case, Failure
from perfci.record.report import Comparison, Explanation, Report
from perfci.record.run import Environment, Run, Side
from perfci.store.baseline import Baseline
from perfci.store.comparable import why_not_comparable
from perfci.store.files import BaselineStore
from perfci.verdict.comparing import adjust, compare_case, left_out
from perfci.verdict.explaining import explain
from perfci.verdict.failing import failure_rows, placeholder
from perfci.verdict.policy import Policy
from perfci.verdict.sharding import Part
from perfci.verdict.suspecting import suspects

_TELL_NEXT_TO_NOTHING = 2
"""So many sessions: the 95 % interval is 12.7 standard errors wide to each side, of three 4.3."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """Head as it was measured alone."""

    part: Part
    result: SessionResult
    run: Run
    failures: tuple[Failure, ...]
    facts: Facts
    written: Mapping[str, Written]


def check(
    around: Surroundings,
    head: Wanted,
    store: BaselineStore,
    request: Request,
    *,
    confirm: bool,
) -> tuple[Run, Report]:
    """Measure ``head``; return its run, and the report against its environment's baselines."""
    policy = around.config.policy
    store.environments()  # a damaged one is said before minutes are spent on measuring
    with open_workplace(around, (head,), request.log_folder) as workplace:
        environment = workplace.environments["head"]
        baselines = {one.case: one for one in store.load_all(environment.key)}
        part, result, run = measure_alone(workplace, request)
        failures = (
            *told_failures(workplace, part),
            *(failure for state in result.states for failure in state.failures),
        )
        facts = facts_of("check", workplace, result, part)
        facts = replace(facts, base=_base_side(baselines, head))
        written = written_on_head(workplace)
        measured = _Measured(part, result, run, failures, facts, written)
    report = against_baselines(measured, baselines, store, policy, request.selection)
    suspected = suspects(report.results, policy)
    if suspected and not confirm:
        report = unconfirmed(report, policy, "measured against the stored baseline only")
    elif suspected and report.interrupted:
        report = unconfirmed(report, policy, ENDED_EARLY)
    elif suspected:
        report = confirmed(around, report, suspected, baselines, head, request)
    asking = _asking_for_a_third(report.results, baselines, policy)
    return run, replace(report, notes=(*report.notes, *asking))


def against_baselines(
    measured: _Measured,
    baselines: Mapping[str, Baseline],
    store: BaselineStore,
    policy: Policy,
    selection: str,
) -> Report:
    """Compare each case with its baseline, with Welch's t: head was measured alone."""
    environment = measured.facts.environment
    broken = {failure.case for failure in measured.failures}
    rows: list[Comparison] = []
    explanations: list[Explanation] = []
    outputs = {case.case.id: case.workers for case in measured.run.cases}
    for case in measured.part.cases:
        if case.skip or case.id in broken:
            continue
        baseline = baselines.get(case.id)
        if baseline is None:
            rows.append(_without_baseline(case, environment, store, policy))
            continue
        reason = why_not_comparable(baseline, environment, case)
        if reason:
            rows.append(placeholder(case.id, "not_comparable", policy, reason))
            continue
        base, head = baseline.outputs(), outputs.get(case.id, ())
        compared = compare_case(
            case,
            base,
            head,
            policy,
            paired=False,
            base_sessions=tuple(len(session.workers) for session in baseline.sessions),
        )
        rows += compared or (placeholder(case.id, "inconclusive", policy, "nothing measured"),)
        # the baseline is of this very source, which may compute its metrics from other code
        written = measured.written.get(case.benchmark)
        if written is not None:
            rows += left_out(case, base, written.metrics, policy)
    adjusted = adjust(rows, policy)
    for case in measured.part.cases:
        if case.id in baselines and case.id in outputs:
            mine = tuple(row for row in adjusted if row.case == case.id)
            base = baselines[case.id].outputs()
            explanations += explain(case, base, outputs[case.id], mine)
    known = {case.id for case in measured.part.whole}
    gone = (case for case in baselines if case not in known and measured.part.tells(case))
    removed = () if selection else tuple(gone)
    return assemble(
        (*adjusted, *failure_rows(measured.failures, removed, policy)),
        measured.failures,
        explanations,
        measured.part.cases,
        measured.result,
        policy,
        measured.facts,
    )


def _asking_for_a_third(
    rows: Sequence[Comparison], baselines: Mapping[str, Baseline], policy: Policy
) -> list[str]:
    """Return a note a commit on the cases that its two sessions left undecided."""
    of_commit: dict[str, dict[str, None]] = {}
    for row in rows:
        undecided = row.status == "inconclusive" and row.method == "welch_t"
        costs = row.gate == "fail" and policy.undecided(row.metric) == "inconclusive"
        if undecided and costs and row.base_sessions == _TELL_NEXT_TO_NOTHING:
            of_commit.setdefault(baselines[row.case].sha, {})[row.case] = None
    return [
        f"2 sessions tell next to nothing of how days differ: {', '.join(cases)} stayed undecided; "
        f"store a third with `perfci baseline update {sha[:12]}`."
        for sha, cases in of_commit.items()
    ]


def _base_side(baselines: Mapping[str, Baseline], head: Wanted) -> Side | None:
    if not baselines:
        return None
    newest = max(baselines.values(), key=lambda one: one.created_at)
    return named(Side(rev="", sha=newest.sha, python=head.python))


def _without_baseline(
    case: Case, environment: Environment, store: BaselineStore, policy: Policy
) -> Comparison:
    others = [key for key in store.environments() if key != environment.key]
    if others and not store.load_all(environment.key):
        reason = f"baselines are of other environments ({', '.join(others[:3])})"
        return placeholder(case.id, "not_comparable", policy, reason)
    return placeholder(case.id, "new", policy, "no baseline yet: `perfci baseline update`")
