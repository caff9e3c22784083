"""``check``: head against the stored baseline. A suspicion is confirmed side by side.

Where a suspect can't be measured again, its result from head alone is kept as a suspicion, and the
verdict gives the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfci.baselines.store import Baseline, BaselineStore, incomparable_reason
from perfci.commands.compare import (
    MeasureOptions,
    PairedResult,
    measure_alone,
    measure_both,
    selected_cases,
    selected_part,
    within,
    written_on_head,
)
from perfci.commands.run_to_report import accepting
from perfci.errors import PerfciError, UsageError, refusal
from perfci.measure.machine.isolation import refuse_secrets
from perfci.measure.selection import DecoratorLiterals
from perfci.measure.workplace import RequestedSide, SessionContext, Workplace, open_workplace
from perfci.model.case import Case
from perfci.model.finding import finding
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison, Explanation, Report, Timing
from perfci.model.run import Run, Side
from perfci.model.words import words
from perfci.units import counted
from perfci.verdict.case_comparisons import compare_case, left_out
from perfci.verdict.decision import (
    failed_on_base,
    failure_rows,
    placeholder,
    reason_of,
    with_verdict,
)
from perfci.verdict.merge import joined_copies
from perfci.verdict.metric_explanations import explain
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust, suspects
from perfci.verdict.shards import ShardCases

ENDED_EARLY = "the session ended before every suspect was measured again"
"""The reason for unconfirmed suspects after an interruption, or with a full disk."""
_LEAST_CONFIRMING_S = 10.0
"""Least time of a confirmation, in s. It gets what measuring head alone left of the budget."""


class NoBaseline(UsageError):
    """No case that would be measured has a baseline: a pass would mean nothing."""


def check(
    context: SessionContext,
    head: RequestedSide,
    store: BaselineStore,
    options: MeasureOptions,
    *,
    confirm: bool,
) -> tuple[Run, Report]:
    """Measure ``head`` and return its run, and the report against its environment's baselines.

    Raises NoBaseline before anything is measured if there is no baseline to compare with.
    """
    policy = context.config.policy
    if not context.token_allowed:
        refuse_secrets(context.inherited, context.repository.root)
    require_stored(store, context.config.baselines)  # also reports a damaged one
    with open_workplace(context, (head,), options.log_folder) as workplace:
        environment = workplace.environments["head"]
        baselines = {baseline.case: baseline for baseline in store.load_all(environment.key)}
        _require_baselines(workplace, baselines, store, options)
        part = selected_part(workplace, options)
        run, report = measure_alone("check", workplace, options, part)
        written = written_on_head(workplace)
    report = replace(report, base=_base_side(baselines, head))
    report = against_baselines(run, report, part, written, baselines, policy, options.selection)
    suspected = suspects(report.results, policy)
    if suspected and not confirm:
        report = unconfirmed(report, "measured against the stored baseline only")
    elif suspected and report.interrupted:
        report = unconfirmed(report, ENDED_EARLY)
    elif suspected:
        report = confirmed(context, report, suspected, baselines, head, options)
    report = accepting(context, report, None, whole=options.is_whole)
    return run, with_verdict(report, policy)


def require_stored(store: BaselineStore, folder: str) -> None:
    """Raise NoBaseline if there is no baseline of any environment in ``folder``."""
    if not store.environments():
        raise _no_baseline(f"there are no baselines in {folder}/")


def _require_baselines(
    workplace: Workplace,
    baselines: Mapping[str, Baseline],
    store: BaselineStore,
    options: MeasureOptions,
) -> None:
    """Raise NoBaseline if no selected case of any shard has a baseline.

    A baseline whose benchmark is gone and a file that can't be imported belong in a report, so they
    don't raise.
    """
    cases = selected_cases(workplace, options)
    if any(case.id in baselines for case in cases):
        return
    if not baselines:
        key, others = workplace.environments["head"].key, store.environments()
        raise _no_baseline(
            f"no baseline is of this environment, {key}; there are those of {', '.join(others[:3])}"
        )
    if options.selection and not workplace.failures(cases):
        raise _no_baseline(f"no case that -k {options.selection!r} selects has a baseline")


def _no_baseline(what: str) -> NoBaseline:
    return NoBaseline(
        "no-baseline",
        f"{what}, so there is nothing to compare with",
        "`perfci baseline update` measures HEAD and stores it, to be committed. "
        "`perfci compare main` needs no baseline.",
    )


def against_baselines(
    run: Run,
    report: Report,
    part: ShardCases,
    written: Mapping[str, DecoratorLiterals],
    baselines: Mapping[str, Baseline],
    policy: Policy,
    selection: str,
) -> Report:
    """Compare each case with its baseline, with Welch's t: head was measured alone.

    ``written`` are the benchmarks as head's files write them, by their names.
    """
    outputs = {case.case.id: case.workers for case in run.cases}
    broken = {failure.case for failure in report.failures}
    rows: list[Comparison] = []
    for case in part.cases:
        if case.skip or case.id in broken:
            continue
        baseline = baselines.get(case.id)
        if baseline is None:
            rows.append(placeholder(case.id, "new", policy, finding("no-baseline")))
            continue
        reason = incomparable_reason(baseline, report.environment, case)
        if reason:
            rows.append(placeholder(case.id, "not_comparable", policy, reason))
            continue
        rows += _with_baseline(case, baseline, outputs.get(case.id, ()), policy)
        # the benchmark's own source is as it was, but code that it calls may define other metrics
        if case.benchmark in written:
            metrics = written[case.benchmark].metrics
            rows += left_out(case, baseline.outputs(), metrics, policy)
    adjusted = adjust(rows, policy)
    explanations: list[Explanation] = []
    for case in part.cases:
        if case.id in baselines and case.id in outputs:
            case_rows = tuple(row for row in adjusted if row.case == case.id)
            explanations += explain(case, baselines[case.id].outputs(), outputs[case.id], case_rows)
    known = {case.id for case in part.whole}
    gone = (case for case in baselines if case not in known and part.reports(case))
    removed = () if selection else tuple(gone)
    return replace(
        report,
        results=(*adjusted, *failure_rows(report.failures, removed, policy)),
        explanations=tuple(explanations),
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
    return compared or (placeholder(case.id, "inconclusive", policy, finding("nothing-measured")),)


def _base_side(baselines: Mapping[str, Baseline], head: RequestedSide) -> Side | None:
    if not baselines:
        return None
    newest = max(baselines.values(), key=lambda baseline: baseline.created_at)
    return baseline_side(Side(rev="", sha=newest.sha, python=head.python))


@dataclass(slots=True)
class _Confirmation:
    """Commits measured again with head, their cases, and the reasons for missing commits."""

    commits: list[PairedResult] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def rows(self) -> tuple[Comparison, ...]:
        return tuple(row for _, report in self.commits for row in report.results)


def confirmed(
    context: SessionContext,
    report: Report,
    suspected: Sequence[str],
    baselines: Mapping[str, Baseline],
    head: RequestedSide,
    options: MeasureOptions,
) -> Report:
    """Measure each suspect's baseline commit in pairs with head.

    The new rows replace the suspicion. Suspects that can't be measured again stay suspicions, and
    the verdict gives the reason.
    """
    cases_by_commit: dict[str, list[str]] = {}
    for case in suspected:
        cases_by_commit.setdefault(baselines[case].sha, []).append(case)
    again = _measured_again(context, cases_by_commit, head, options, report.timing.wall_s)
    kept, why_kept = _kept(report.results, again, context.config.settings.rounds)
    cases = [case for case in again.cases if case not in kept]
    later_notes = dict.fromkeys(
        f"measured again: {note}"
        for _, paired in again.commits
        for note in paired.notes
        if note not in report.notes
    )
    note = f"{counted(len(cases), 'suspected case')} measured again, both sides in pairs."
    both = replace(
        _joined(report, again, cases, context.config.policy),
        notes=(*report.notes, *([note] if cases else [])),
    )
    why = "; ".join((*again.reasons, *why_kept))
    if why:
        both = unconfirmed(both, why)
    return replace(both, notes=(*both.notes, *later_notes))


def _joined(report: Report, again: _Confirmation, cases: Sequence[str], policy: Policy) -> Report:
    """Return what both measurements gave, with the rows of ``cases`` as measured again."""
    commits = [paired for _, paired in again.commits]
    parts = (report, *commits)
    measured = adjust([row for row in again.rows if row.case in cases], policy)
    rows = (
        *(row for row in report.results if row.case not in cases),
        *(replace(row, confirmed=True) for row in measured),
    )
    with_numbers = {row.metric for row in rows if row.head}
    return replace(
        report,
        base=baseline_side(commits[0].base) if len(commits) == 1 else report.base,
        results=rows,
        explanations=(
            *(why for why in report.explanations if why.case not in cases),
            *(why for part in commits for why in part.explanations if why.case in cases),
        ),
        failures=tuple(failure for part in parts for failure in part.failures),
        interrupted=again.interrupted or any(part.interrupted for part in parts),
        durations=_summed(parts),
        not_measured={
            metric: why for metric, why in report.not_measured.items() if metric not in with_numbers
        },
        installed=joined_copies(parts),
        timing=Timing(
            sum(part.timing.wall_s for part in parts),
            sum(part.timing.measured_s for part in parts),
            sum(part.timing.rounds for part in parts),
        ),
    )


def unconfirmed(report: Report, why: str) -> Report:
    """Return ``report`` with its regressed rows marked unconfirmed, and a note on ``why``."""
    rows = tuple(
        replace(row, confirmed=False)
        if row.status == "regressed" and row.confirmed is None
        else row
        for row in report.results
    )
    return replace(report, results=rows, notes=(*report.notes, f"Unconfirmed: {why}."))


def baseline_side(side: Side | None) -> Side | None:
    """Return ``side`` with the name that readers know: the commit of the baseline."""
    return side and replace(side, rev=f"baseline of {side.sha[:12]}")


def _measured_again(
    context: SessionContext,
    cases_by_commit: Mapping[str, Sequence[str]],
    head: RequestedSide,
    options: MeasureOptions,
    spent_s: float,
) -> _Confirmation:
    """Measure each commit's suspects in pairs with head, within the rest of the budget.

    Each session has log files of its own, because its rounds are counted from one.
    """
    began = context.executor.now() - spent_s
    again = _Confirmation()
    try:
        for sha, cases in cases_by_commit.items():
            left_s = context.config.settings.budget - (context.executor.now() - began)
            limited = within(context, max(_LEAST_CONFIRMING_S, left_s))
            logs = options.log_folder and options.log_folder / f"confirming-{sha[:12]}"
            suspects_alone = replace(options, only=tuple(cases), log_folder=logs)
            both = _paired_with_head(limited, sha, head, suspects_alone)
            if isinstance(both, str):
                again.reasons.append(both)
                continue
            again.commits.append(both)
            again.cases += cases
            if both[1].interrupted:
                again.interrupted = True
                break
    except KeyboardInterrupt:  # in a checkout or a build. An interrupted session returns a report
        again.interrupted = True
    if again.interrupted:
        again.reasons.append(ENDED_EARLY)
    return again


def _paired_with_head(
    context: SessionContext, sha: str, head: RequestedSide, options: MeasureOptions
) -> PairedResult | str:
    """Measure a baseline's commit in pairs with head, or return why it can't be measured."""
    try:
        resolved = context.repository.resolve(sha)
    except UsageError:
        return f"the baseline's commit {sha[:12]} isn't in this clone"
    try:
        return measure_both(context, RequestedSide("base", resolved, head.python), head, options)
    except (PerfciError, OSError) as error:
        known = error if isinstance(error, PerfciError) else refusal(error)
        what = known.message.splitlines()[0]
        return f"the baseline's commit {sha[:12]} could not be measured: {what}"


def _kept(
    suspicion: Sequence[Comparison], again: _Confirmation, rounds: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the cases that stay suspicions although they were measured again, and the reasons.

    Either base can't be measured, or the case had regressed and now got fewer than ``rounds``.
    """
    regressed = {row.case for row in suspicion if row.status == "regressed" and row.gate == "fail"}
    kept: list[str] = []
    why: list[str] = []
    short: list[str] = []
    on_base = failed_on_base(failure for _, report in again.commits for failure in report.failures)
    for case in again.cases:
        rows = [row for row in again.rows if row.case == case]
        if any(_is_decided(row, rounds) for row in rows):
            continue
        if case not in on_base and any(row.status == "failed" for row in rows):
            continue
        without_base = next((row for row in rows if row.status in {"new", "failed"}), None)
        if without_base:
            kept.append(case)
            reason = reason_of(without_base)
            because = f" ({words(reason)})" if reason else ""
            why.append(f"the baseline's commit no longer runs {case}{because}")
        elif not rows:
            kept.append(case)
            why.append(f"the baseline's commit does not have {case}")
        elif case in regressed:
            short.append(case)
    if short and not again.interrupted:
        why.append(f"no time was left to measure {', '.join(short)} again; raise --budget")
    return (*kept, *short), tuple(why)


def _is_decided(row: Comparison, rounds: int) -> bool:
    """Return whether a row had enough workers, or ran no changed file."""
    return row.status == "untouched" or (row.base is not None and row.base.workers >= rounds)


def _summed(parts: Sequence[Report]) -> dict[str, float]:
    """Return how long each case was measured in all ``parts``, in s."""
    total: dict[str, float] = {}
    for part in parts:
        for case, spent in part.durations.items():
            total[case] = round(total.get(case, 0.0) + spent, 3)
    return total
