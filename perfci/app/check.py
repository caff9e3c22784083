"""``check``: head against the stored baseline; a suspicion is confirmed side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.app.compare import Request, facts_of, selected_cases, told_failures, written_on_head
from perfci.app.concluding import Facts, assemble
from perfci.app.confirming import ENDED_EARLY, confirmed, named, unconfirmed
from perfci.app.run import measure_alone
from perfci.baselines.baseline import Baseline, why_not_comparable
from perfci.baselines.files import BaselineStore
from perfci.errors import UsageError
from perfci.machine.tokens import refuse_secrets
from perfci.model.case import Failure
from perfci.model.finding import found
from perfci.model.report import Comparison, Explanation, Report
from perfci.model.run import Run, Side
from perfci.session.discovering import Written
from perfci.session.session import SessionResult
from perfci.session.workplace import Surroundings, Wanted, Workplace, open_workplace
from perfci.verdict.comparison import adjust, compare_case, left_out
from perfci.verdict.decision import failure_rows, placeholder
from perfci.verdict.explanation import explain
from perfci.verdict.judgement import suspects
from perfci.verdict.policy import Policy
from perfci.verdict.shards import Part

_TELL_NEXT_TO_NOTHING = 2
"""So many sessions: the 95 % interval is 12.7 standard errors wide to each side, of three 4.3."""


class NothingStored(UsageError):
    """No case that would be measured has a baseline: a pass would mean nothing."""


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
    """Measure ``head``; return its run, and the report against its environment's baselines.

    NothingStored, before anything is measured, where there is none to compare with.
    """
    policy = around.config.policy
    if not around.token_allowed:
        refuse_secrets(around.inherited, around.repository.root)
    if not store.environments():  # a damaged one is said here, too
        raise _nothing_stored(f"there are no baselines in {around.config.baselines}/")
    with open_workplace(around, (head,), request.log_folder) as workplace:
        environment = workplace.environments["head"]
        baselines = {one.case: one for one in store.load_all(environment.key)}
        _require_baselines(workplace, baselines, store, request)
        part, result, run = measure_alone(workplace, request)
        failures = (
            *told_failures(workplace, part),
            *(failure for state in result.states for failure in state.failures),
        )
        facts = facts_of("check", workplace, request, result, part)
        facts = replace(facts, base=_base_side(baselines, head))
        written = written_on_head(workplace)
        measured = _Measured(part, result, run, failures, facts, written)
    report = against_baselines(measured, baselines, policy, request.selection)
    suspected = suspects(report.results, policy)
    if suspected and not confirm:
        report = unconfirmed(report, policy, "measured against the stored baseline only")
    elif suspected and report.interrupted:
        report = unconfirmed(report, policy, ENDED_EARLY)
    elif suspected:
        report = confirmed(around, report, suspected, baselines, head, request)
    asking = _asking_for_a_third(report.results, baselines, policy)
    return run, replace(report, notes=(*report.notes, *asking))


def _require_baselines(
    workplace: Workplace, baselines: Mapping[str, Baseline], store: BaselineStore, request: Request
) -> None:
    """Raise NothingStored where no selected case has a baseline, of whichever shard it is.

    A baseline whose benchmark is gone, and a file that can't be imported, are something to report.
    """
    cases = selected_cases(workplace, request)
    if any(case.id in baselines for case in cases):
        return
    if not baselines:
        own, others = workplace.environments["head"].key, store.environments()
        raise _nothing_stored(
            f"no baseline is of this environment, {own}; there are those of {', '.join(others[:3])}"
        )
    if request.selection and not workplace.failures(cases):
        raise _nothing_stored(f"no case that -k {request.selection!r} selects has a baseline")


def _nothing_stored(what: str) -> NothingStored:
    return NothingStored(
        "no-baseline",
        f"{what}: there is nothing to compare with",
        "`perfci baseline update` measures HEAD and stores it, to be committed; "
        "`perfci compare main` needs no baseline.",
    )


def against_baselines(
    measured: _Measured,
    baselines: Mapping[str, Baseline],
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
            rows.append(placeholder(case.id, "new", policy, found("no-baseline")))
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
        rows += compared or (
            placeholder(case.id, "inconclusive", policy, found("nothing-measured")),
        )
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
