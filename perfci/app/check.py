"""``check``: head against the stored baseline; a suspicion is confirmed side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from perfci.app.accepting import accepting
from perfci.app.compare import Request, selected_cases, written_on_head
from perfci.app.confirmation import ENDED_EARLY, confirmed, named, unconfirmed
from perfci.app.run import Alone, measure_alone
from perfci.baselines.baseline import Baseline, why_not_comparable
from perfci.baselines.files import BaselineStore
from perfci.errors import UsageError
from perfci.machine.tokens import refuse_secrets
from perfci.model.case import Case
from perfci.model.finding import found
from perfci.model.report import Comparison, Explanation, Report
from perfci.model.run import Run, Side
from perfci.model.worker import WorkerOutput
from perfci.session.opening import open_workplace
from perfci.session.source import Written
from perfci.session.workplace import Surroundings, Wanted, Workplace
from perfci.verdict.comparison.cases import compare_case, left_out
from perfci.verdict.decision import failure_rows, placeholder
from perfci.verdict.explanation import explain
from perfci.verdict.judgement import adjust, suspects
from perfci.verdict.policy import Policy
from perfci.verdict.report import Judged, build_report, decide_on

_TOO_FEW_SESSIONS = 2
"""So many sessions: the 95 % interval is 12.7 standard errors wide to each side, of three 4.3."""


class NothingStored(UsageError):
    """No case that would be measured has a baseline: a pass would mean nothing."""


def check(
    around: Surroundings,
    head: Wanted,
    store: BaselineStore,
    request: Request,
    *,
    confirm: bool,
) -> tuple[Run, Report]:
    """Measure ``head``; return its run, and the report against its environment's baselines.

    NothingStored, before anything is measured, where there is no baseline to compare with.
    """
    policy = around.config.policy
    if not around.token_allowed:
        refuse_secrets(around.inherited, around.repository.root)
    require_stored(store, around.config.baselines)  # a damaged one is said here, too
    with open_workplace(around, (head,), request.log_folder) as workplace:
        environment = workplace.environments["head"]
        baselines = {one.case: one for one in store.load_all(environment.key)}
        _require_baselines(workplace, baselines, store, request)
        alone = measure_alone("check", workplace, request)
        written = written_on_head(workplace)
    measured = replace(alone.measured, base=_base_side(baselines, head))
    alone = replace(alone, measured=measured)
    judged = against_baselines(alone, written, baselines, policy, request.selection)
    suspected = suspects(judged.rows, policy)
    if suspected and not confirm:
        judged = unconfirmed(judged, "measured against the stored baseline only")
    elif suspected and measured.interrupted:
        judged = unconfirmed(judged, ENDED_EARLY)
    elif suspected:
        measured, judged = confirmed(around, alone, judged, suspected, baselines, head, request)
    asking = _asking_for_a_third(judged.rows, baselines, policy)
    judged = replace(judged, notes=(*judged.notes, *asking))
    measured, judged = accepting(around, measured, judged, None, whole=request.is_whole)
    return alone.run, build_report(measured, decide_on(measured, judged, policy))


def require_stored(store: BaselineStore, folder: str) -> None:
    """Raise NothingStored where there is no baseline of any environment in ``folder``."""
    if not store.environments():
        raise _nothing_stored(f"there are no baselines in {folder}/")


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
    alone: Alone,
    written: Mapping[str, Written],
    baselines: Mapping[str, Baseline],
    policy: Policy,
    selection: str,
) -> Judged:
    """Compare each case with its baseline, with Welch's t: head was measured alone.

    ``written`` are the benchmarks as head's files write them, by their names.
    """
    outputs = {case.case.id: case.workers for case in alone.run.cases}
    broken = {failure.case for failure in alone.measured.failures}
    rows: list[Comparison] = []
    for case in alone.part.cases:
        if case.skip or case.id in broken:
            continue
        baseline = baselines.get(case.id)
        if baseline is None:
            rows.append(placeholder(case.id, "new", policy, found("no-baseline")))
            continue
        reason = why_not_comparable(baseline, alone.measured.environment, case)
        if reason:
            rows.append(placeholder(case.id, "not_comparable", policy, reason))
            continue
        rows += _with_baseline(case, baseline, outputs.get(case.id, ()), policy)
        # the baseline is of this very source, which may compute its metrics from other code
        if case.benchmark in written:
            metrics = written[case.benchmark].metrics
            rows += left_out(case, baseline.outputs(), metrics, policy)
    adjusted = adjust(rows, policy)
    explanations: list[Explanation] = []
    for case in alone.part.cases:
        if case.id in baselines and case.id in outputs:
            mine = tuple(row for row in adjusted if row.case == case.id)
            explanations += explain(case, baselines[case.id].outputs(), outputs[case.id], mine)
    known = {case.id for case in alone.part.whole}
    gone = (case for case in baselines if case not in known and alone.part.reports(case))
    removed = () if selection else tuple(gone)
    return Judged(
        (*adjusted, *failure_rows(alone.measured.failures, removed, policy)), tuple(explanations)
    )


def _with_baseline(
    case: Case, baseline: Baseline, head: Sequence[WorkerOutput], policy: Policy
) -> tuple[Comparison, ...]:
    compared = compare_case(
        case,
        baseline.outputs(),
        head,
        policy,
        paired=False,
        base_sessions=tuple(len(session.workers) for session in baseline.sessions),
    )
    return compared or (placeholder(case.id, "inconclusive", policy, found("nothing-measured")),)


def _asking_for_a_third(
    rows: Sequence[Comparison], baselines: Mapping[str, Baseline], policy: Policy
) -> list[str]:
    """Return a note a commit on the cases that its two sessions left undecided."""
    of_commit: dict[str, dict[str, None]] = {}
    for row in rows:
        undecided = row.status == "inconclusive" and row.method == "welch_t"
        costs = row.gate == "fail" and policy.undecided(row.metric) == "inconclusive"
        if undecided and costs and row.base_sessions == _TOO_FEW_SESSIONS:
            of_commit.setdefault(baselines[row.case].sha, {})[row.case] = None
    return [
        f"2 sessions hardly show how sessions vary: {', '.join(cases)} stayed undecided; "
        f"store a third with `perfci baseline update {sha[:12]}`."
        for sha, cases in of_commit.items()
    ]


def _base_side(baselines: Mapping[str, Baseline], head: Wanted) -> Side | None:
    if not baselines:
        return None
    newest = max(baselines.values(), key=lambda one: one.created_at)
    return named(Side(rev="", sha=newest.sha, python=head.python))
