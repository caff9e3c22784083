"""``check``: head against the stored baseline; a suspicion is confirmed side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.errors import UsageError
from perfci.measure.compare import Request, compare, facts_of, told_failures
from perfci.measure.conclude import Facts, assemble
from perfci.measure.run import measure_alone
from perfci.measure.session import SessionResult
from perfci.measure.workplace import Surroundings, Wanted, open_workplace
from perfci.record.case import Case, Failure
from perfci.record.report import Comparison, Explanation, Report, Timing
from perfci.record.run import Environment, Run, Side
from perfci.store.baseline import Baseline
from perfci.store.comparable import why_not_comparable
from perfci.store.files import BaselineStore
from perfci.units import counted
from perfci.verdict.comparing import adjust, compare_case
from perfci.verdict.deciding import decide
from perfci.verdict.explaining import explain
from perfci.verdict.failing import failure_rows, placeholder
from perfci.verdict.policy import Policy
from perfci.verdict.sharding import Part
from perfci.verdict.suspecting import suspects

_LEAST_CONFIRMING_S = 10.0
"""A confirmation gets what head alone has left of the budget, and never less than this."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """Head as it was measured alone."""

    part: Part
    result: SessionResult
    run: Run
    failures: tuple[Failure, ...]
    facts: Facts


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
        measured = _Measured(part, result, run, failures, facts)
    report = against_baselines(measured, baselines, store, policy, request.selection)
    suspected = suspects(report.results, policy)
    if not suspected:
        return run, report
    if not confirm:
        return run, _unconfirmed(report, policy, "measured against the stored baseline only")
    return run, _confirmed(around, report, suspected, baselines, head, request)


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


def _confirmed(
    around: Surroundings,
    report: Report,
    suspected: Sequence[str],
    baselines: Mapping[str, Baseline],
    head: Wanted,
    request: Request,
) -> Report:
    """Measure each suspect's baseline commit and head together; those rows replace the suspicion.

    Suspects whose commit isn't in this clone stay suspicions, and the verdict says so.
    """
    settings = around.config.settings
    left_s = max(_LEAST_CONFIRMING_S, settings.budget - report.timing.wall_s)
    config = replace(around.config, settings=replace(settings, budget=left_s))
    around = replace(around, config=config)
    of_commit: dict[str, list[str]] = {}
    for case in suspected:
        of_commit.setdefault(baselines[case].sha, []).append(case)
    together: list[Report] = []
    gone: list[str] = []
    confirmed: list[str] = []
    for sha, cases in of_commit.items():
        try:
            base = Wanted("base", around.repository.resolve(sha), head.python)
        except UsageError:
            gone.append(sha[:12])
            continue
        confirmed += cases
        together.append(compare(around, base, head, replace(request, only=tuple(cases))))
    short = _too_short(report, confirmed, together, settings.rounds)
    confirmed = [case for case in confirmed if case not in short]
    again = [row for one in together for row in one.results if row.case in confirmed]
    measured = adjust(again, around.config.policy)
    rows = (
        *(row for row in report.results if row.case not in confirmed),
        *(replace(row, confirmed=True) for row in measured),
    )
    reports = (report, *together)
    suspects_said = counted(len(confirmed), "suspected case")
    joined = replace(
        report,
        results=rows,
        failures=tuple(failure for one in reports for failure in one.failures),
        explanations=(
            *(one for one in report.explanations if one.case not in confirmed),
            *(each for one in together for each in one.explanations if each.case in confirmed),
        ),
        base=_named(together[0].base) if len(together) == 1 else report.base,
        interrupted=any(one.interrupted for one in reports),
        durations=_summed(reports),
        notes=(
            *report.notes,
            *([f"{suspects_said} measured again, both sides together."] if confirmed else []),
            *(note for one in together for note in one.notes),
        ),
        timing=Timing(
            sum(one.timing.wall_s for one in reports),
            sum(one.timing.measured_s for one in reports),
            sum(one.timing.rounds for one in reports),
        ),
    )
    why = [f"the baseline's commit {', '.join(gone)} isn't in this clone"] if gone else []
    if short:
        why.append(f"no time was left to measure {', '.join(short)} again; raise --budget")
    if why:
        return _unconfirmed(joined, around.config.policy, "; ".join(why))
    return replace(joined, verdict=decide(rows, joined.failures, around.config.policy))


def _too_short(
    report: Report, again: Sequence[str], together: Sequence[Report], rounds: int
) -> tuple[str, ...]:
    """Return those measured ``again`` that had regressed and got fewer than ``rounds`` now.

    Their confirmation says less than the suspicion.
    """
    enough = {
        row.case
        for one in together
        for row in one.results
        if row.status == "failed" or (row.base and row.base.workers >= rounds)
    }
    regressed = (
        row.case for row in report.results if row.status == "regressed" and row.gate == "fail"
    )
    return tuple(dict.fromkeys(case for case in regressed if case in again and case not in enough))


def _summed(reports: Sequence[Report]) -> dict[str, float]:
    """Return how long each case was measured in all ``reports`` together, in s."""
    total: dict[str, float] = {}
    for report in reports:
        for case, spent in report.durations.items():
            total[case] = round(total.get(case, 0.0) + spent, 3)
    return total


def _unconfirmed(report: Report, policy: Policy, why: str) -> Report:
    rows = tuple(
        replace(row, confirmed=False)
        if row.status == "regressed" and row.confirmed is None
        else row
        for row in report.results
    )
    return replace(
        report,
        results=rows,
        verdict=decide(rows, report.failures, policy, unconfirmed=True),
        notes=(*report.notes, f"Unconfirmed: {why}."),
    )


def _base_side(baselines: Mapping[str, Baseline], head: Wanted) -> Side | None:
    if not baselines:
        return None
    newest = max(baselines.values(), key=lambda one: one.created_at)
    return _named(Side(rev="", sha=newest.sha, python=head.python))


def _named(side: Side | None) -> Side | None:
    """Call a side what it is to a reader: the baseline's commit, whatever rev found it."""
    return side and replace(side, rev=f"baseline of {side.sha[:12]}")


def _without_baseline(
    case: Case, environment: Environment, store: BaselineStore, policy: Policy
) -> Comparison:
    others = [key for key in store.environments() if key != environment.key]
    if others and not store.load_all(environment.key):
        reason = f"baselines are of other environments ({', '.join(others[:3])})"
        return placeholder(case.id, "not_comparable", policy, reason)
    return placeholder(case.id, "new", policy, "no baseline yet: `perfci baseline update`")
