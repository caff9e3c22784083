"""``check``: head against the stored baseline, and in pairs with its commit where that decides.

The stored numbers lack how far today lies from the day that they were measured on. A few cases, the
anchors, are measured in pairs with the baseline's commit and show it (``verdict.anchors``). Head
alone is compared with the stored numbers less that shift. What this doesn't decide is measured in
pairs, too, and only pairs can make a case ``regressed``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from perfci.baselines import Baseline, BaselineStore, incomparable_reason
from perfci.commands.compare import (
    MeasureOptions,
    measure_alone,
    measure_pairs,
    selected_cases,
    selected_part,
    within,
    written_on_head,
)
from perfci.commands.run_to_report import accepting, with_rows
from perfci.errors import PerfciError, UsageError, refusal
from perfci.finding import finding
from perfci.measure.machine.isolation import refuse_secrets
from perfci.measure.selection import DecoratorLiterals
from perfci.measure.workplace import RequestedSide, SessionContext, Workplace, open_workplace
from perfci.model.case import Case, Failure
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison, Report
from perfci.model.run import CaseRun, Environment, Run, Side
from perfci.model.words import words
from perfci.stats.t_tests import DayShift
from perfci.units import counted
from perfci.verdict.anchors import choose_anchors, day_shifts, may_decide
from perfci.verdict.case_comparisons import compare_case, left_out
from perfci.verdict.decision import failed_on_base, placeholder, with_verdict
from perfci.verdict.merge import joined_report
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust, suspects
from perfci.verdict.shards import ShardCases

_ENDED_EARLY = "the session ended before every suspect was measured in pairs"
_LATENCY = "latency_p50"
"""The metric whose shift stands for the day."""
_LEAST_S = 10.0
"""Least time, in s, for a baseline's commit. It gets what is left of the budget. The slowest case
gets as much in pairs where head alone has used the budget up."""


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

    Without ``confirm`` head is measured alone. Raises NoBaseline before anything is measured if
    there is no baseline to compare with.
    """
    options = replace(options, command="check")
    if not context.token_allowed:
        refuse_secrets(context.inherited, context.repository.root)
    require_stored(store, context.config.baselines)  # also reports a damaged one
    began = context.executor.now()
    with open_workplace(context, (head,), options.log_folder) as workplace:
        environment = workplace.environments["head"]
        baselines = {baseline.case: baseline for baseline in store.load_all(environment.key)}
        _require_baselines(workplace, baselines, store, options)
        part = selected_part(workplace, options)
        measured = _Measurements(context, head, options, baselines, part, began)
        commits = _commits(part, baselines, environment) if confirm else {}
        bases = measured.resolved(commits)
        paired = {case for sha in bases for case in commits[sha]}
        alone = part.only([case.id for case in part.cases if case.id not in paired])
        run, report = measure_alone(workplace, options, alone)
        measured.add(run)
        written = written_on_head(workplace)
    if confirm and report.interrupted:
        measured.reasons.append(_ENDED_EARLY)
    else:
        measured.against(bases, commits)
    parts = (report, *measured.reports)
    report = replace(
        report,
        base=_base_side([baselines[c.id] for c in part.cases if c.id in baselines], head),
        failures=tuple(failure for each in parts for failure in each.failures),
        skipped={case: why for each in parts for case, why in each.skipped.items()},
    )
    run, policy = measured.run(run), context.config.policy
    screen = against_baselines(
        run, report, part, written, baselines, policy, options.selection, measured.days
    )
    joined = _joined(screen, measured, policy, part.scale)
    report = _with_reasons(joined, measured, policy, confirm=confirm)
    report = accepting(context, report, None, whole=options.is_whole)
    return run, with_verdict(report, policy)


def _with_reasons(
    report: Report, measured: _Measurements, policy: Policy, *, confirm: bool
) -> Report:
    """Return the report with the reasons why suspects were not measured in pairs, if any."""
    if not confirm:
        measured.reasons.append("measured against the stored baseline only")
    if measured.reasons and suspects(report.results, policy):
        return _unconfirmed(report, "; ".join(measured.reasons))
    return report


def _commits(
    part: ShardCases, baselines: Mapping[str, Baseline], environment: Environment
) -> dict[str, list[str]]:
    """Return the cases that can be compared with a baseline, by the baseline's commit."""
    commits: dict[str, list[str]] = {}
    for case in part.cases:
        baseline = baselines.get(case.id)
        if baseline and not case.skip and not incomparable_reason(baseline, environment, case):
            commits.setdefault(baseline.sha, []).append(case.id)
    return commits


@dataclass(slots=True)
class _Measurements:
    """The measurements of a check: head alone, and commits of baselines in pairs with head.

    ``part`` has all cases, and ``began`` is a time of the executor's clock. ``alone`` and
    ``paired`` have head's workers by case, ``days`` the shifts that each case is compared with.
    ``reasons`` say why commits were not measured.
    """

    context: SessionContext
    head: RequestedSide
    options: MeasureOptions
    baselines: dict[str, Baseline]
    part: ShardCases
    began: float
    reports: list[Report] = field(default_factory=list)
    alone: dict[str, CaseRun] = field(default_factory=dict)
    paired: dict[str, CaseRun] = field(default_factory=dict)
    days: dict[str, Mapping[str, DayShift]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    interrupted: bool = False

    def add(self, run: Run) -> None:
        """Add a run of head alone."""
        self.alone |= {case.case.id: case for case in run.cases}

    def run(self, run: Run) -> Run:
        """Return ``run`` with all of head's cases, those measured alone as they were then."""
        measured = self.paired | self.alone
        cases = (measured.get(case.id) for case in self.part.cases)
        return replace(run, cases=tuple(case for case in cases if case))

    def resolved(self, commits: Iterable[str]) -> dict[str, RequestedSide]:
        """Return the sides of those ``commits`` that this clone has."""
        sides: dict[str, RequestedSide] = {}
        for sha in commits:
            try:
                commit = self.context.repository.resolve(sha)
                sides[sha] = RequestedSide("base", commit, self.head.python)
            except UsageError:
                self.reasons.append(f"the baseline's commit {sha[:12]} isn't in this clone")
        return sides

    def against(
        self, bases: Mapping[str, RequestedSide], commits: Mapping[str, Sequence[str]]
    ) -> None:
        """Measure the cases of each commit, in pairs with it or head alone, within the budget."""
        for sha, base in bases.items():
            logs = self.options.log_folder and self.options.log_folder / f"against-{sha[:12]}"
            options = replace(self.options, only=tuple(commits[sha]), log_folder=logs)
            try:
                self._against(base, options)
            except KeyboardInterrupt:  # in a checkout or a build
                self.interrupted = True
            if self.interrupted:
                self.reasons.append(_ENDED_EARLY)
                return

    def _against(self, base: RequestedSide, options: MeasureOptions) -> None:
        """Measure the cases of one baseline's commit, or head alone if it can't be measured."""
        try:
            with self._opened(options, base, self.head) as workplace:
                self._cases(workplace, options)
        except (PerfciError, OSError) as error:
            known = error if isinstance(error, PerfciError) else refusal(error)
            why = known.message.splitlines()[0]
            short = base.resolved.sha[:12]
            self.reasons.append(f"the baseline's commit {short} can't be measured: {why}")
            with self._opened(options, self.head) as workplace:
                self._head_alone(workplace, options, selected_part(workplace, options))

    def _opened(
        self, options: MeasureOptions, *sides: RequestedSide
    ) -> AbstractContextManager[Workplace]:
        """Open a workplace with the time that is left of the budget."""
        left_s = self.context.config.settings.budget - (self.context.executor.now() - self.began)
        limited = within(self.context, max(_LEAST_S, left_s))
        return open_workplace(limited, sides, options.log_folder)

    def _cases(self, workplace: Workplace, options: MeasureOptions) -> None:
        """Measure the anchors in pairs, other cases alone if that may decide them, then suspects.

        If an anchor ran no changed file, pairs are cheap, and all cases are measured in pairs.
        """
        part = selected_part(workplace, options)
        for case in part.cases:  # sessions of other commits would count with their differences
            self.baselines[case.id] = self.baselines[case.id].of_commit()
        seed = f"{self.context.config.settings.seed} {workplace.plan.head.tree}"
        anchors = choose_anchors([case.id for case in part.cases if not case.skip], seed)
        base = self._pairs(workplace, options, self.part.some(anchors))
        if self.interrupted:
            return
        left = part.only([case.id for case in part.cases if case.id not in anchors])
        changed = all(row.status != "untouched" for row in self.reports[-1].results)
        if left.cases and changed:
            stored = {case: self.baselines[case].by_session() for case in anchors}
            days = day_shifts(stored, {case.case.id: case.workers for case in base.cases})
            self.days |= {case.id: days for case in part.cases}
            decided = self._decided_alone(workplace.of_head(), options, left, days)
            left = left.only([case.id for case in left.cases if case.id not in decided])
        soonest_end = self.context.executor.now() + _LEAST_S
        if soonest_end > workplace.budget_end:  # perhaps a case hangs, which a pair shows
            left = left.only(self._slowest(left.cases))
            workplace = replace(workplace, budget_end=soonest_end)
        if left.cases and not self.interrupted:
            self._pairs(workplace, options, self.part.some([case.id for case in left.cases]))

    def _pairs(self, workplace: Workplace, options: MeasureOptions, part: ShardCases) -> Run:
        """Measure cases in pairs, and return base's run."""
        (base, head), report = measure_pairs(workplace, self.context, options, part)
        self.reports.append(report)
        self.paired |= {case.case.id: case for case in head.cases}
        self.interrupted = report.interrupted
        return base

    def _head_alone(self, workplace: Workplace, options: MeasureOptions, part: ShardCases) -> None:
        run, report = measure_alone(workplace, options, part)
        self.reports.append(replace(report, results=()))
        self.add(run)
        self.interrupted = report.interrupted

    def _decided_alone(
        self,
        workplace: Workplace,
        options: MeasureOptions,
        part: ShardCases,
        days: Mapping[str, DayShift],
    ) -> set[str]:
        """Measure head alone where that may decide a case, and return the cases that it decides."""
        policy = self.context.config.policy

        def rows(case: Case, workers: Sequence[WorkerOutput]) -> tuple[Comparison, ...]:
            return _with_baseline(case, self.baselines[case.id], workers, policy, days)

        def expected(case: Case) -> tuple[WorkerOutput, ...]:
            return self.baselines[case.id].by_session()[-1]

        hopeful = [case for case in part.cases if may_decide(rows(case, expected(case)), policy)]
        self._head_alone(workplace, options, part.only([case.id for case in hopeful]))
        screened = [row for case in hopeful for row in rows(case, self._workers(case.id))]
        return {case.id for case in hopeful}.difference(suspects(adjust(screened, policy), policy))

    def _workers(self, case: str) -> Sequence[WorkerOutput]:
        return self.alone[case].workers if case in self.alone else ()

    def _slowest(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Return the case whose workers took longest by its stored start, if one began."""

        def slowness(case: str) -> float:
            stored = [each.values.get("cold_start", 1.0) for each in self.baselines[case].outputs()]
            workers = 1 + len(self._workers(case))
            return self.reports[-1].durations[case] / workers / max(stored, default=1.0)

        begun = [case.id for case in cases if case.id in self.reports[-1].durations]
        return tuple(sorted(begun, key=slowness)[-1:])


def require_stored(store: BaselineStore, folder: str) -> None:
    """Raise NoBaseline if there is no baseline of any environment in ``folder``."""
    if not store.environments():
        raise _no_baseline(f"no baselines in {folder}/")


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
        f"{what}, so nothing can be compared",
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
    days: Mapping[str, Mapping[str, DayShift]] = MappingProxyType({}),
) -> Report:
    """Compare head's workers of each case with its baseline, with Welch's t.

    ``written`` are the benchmarks as head's files write them, by their names. ``days`` has by case
    how far today lies from the stored sessions.
    """
    outputs = {case.case.id: case.workers for case in run.cases}
    broken = {failure.case for failure in report.failures}
    rows: list[Comparison] = []
    for case in part.cases:
        if case.id in report.skipped or case.id in broken:
            continue
        baseline = baselines.get(case.id)
        if baseline is None:
            rows.append(placeholder(case.id, "new", policy, finding("no-baseline")))
            continue
        reason = incomparable_reason(baseline, report.environment, case)
        if reason:
            rows.append(placeholder(case.id, "not_comparable", policy, reason))
            continue
        rows += _with_baseline(
            case, baseline, outputs.get(case.id, ()), policy, days.get(case.id, {})
        )
        # the benchmark's own source is as it was, but code that it calls may define other metrics
        if case.benchmark in written:
            metrics = written[case.benchmark].metrics
            rows += left_out(case, baseline.outputs(), metrics, policy)
    known = {case.id for case in part.whole}
    gone = [case for case in baselines if case not in known and part.reports(case)]
    both = {
        case: (baselines[case].outputs(), workers)
        for case, workers in outputs.items()
        if case in baselines
    }
    return with_rows(report, rows, both, () if selection else gone, policy)


def _with_baseline(
    case: Case,
    baseline: Baseline,
    head: Sequence[WorkerOutput],
    policy: Policy,
    days: Mapping[str, DayShift],
) -> tuple[Comparison, ...]:
    compared = compare_case(
        case,
        baseline.outputs(),
        head,
        policy,
        paired=False,
        base_sessions=tuple(len(session.workers) for session in baseline.sessions),
        days=days,
    )
    return compared or (placeholder(case.id, "inconclusive", policy, finding("nothing-measured")),)


def _base_side(baselines: Sequence[Baseline], head: RequestedSide) -> Side | None:
    if not baselines:
        return None
    newest = max(baselines, key=lambda baseline: baseline.created_at)
    commits = len({baseline.sha for baseline in baselines})
    many = f"baselines of {commits} commits, the newest"
    rev = many if commits > 1 else f"baseline of {newest.sha[:12]}"
    return Side(rev=rev, sha=newest.sha, python=head.python)


def _joined(screen: Report, measured: _Measurements, policy: Policy, scale: float) -> Report:
    """Return the report of all measurements: the pairs' rows, and the screen's of other cases.

    The pairs' rows have Cohen's d and Welch's p of head against the stored sessions.
    """
    stored = {(row.case, row.metric): row for row in screen.results}
    unreached = {"not_measured", "new"}
    paired = (row for part in measured.reports for row in part.results)
    pairs = [row for row in paired if row.status not in unreached]
    cases = {row.case for row in pairs}
    rows = (
        *(row for row in screen.results if row.case not in cases),
        *(_with_screen(row, stored.get((row.case, row.metric))) for row in pairs),
    )
    place = {row.case: index for index, row in enumerate(screen.results)}
    rows = adjust(sorted(rows, key=lambda row: place.get(row.case, len(place))), policy, scale)
    explanations = tuple(why for why in screen.explanations if why.case not in cases)
    parts = (replace(screen, explanations=explanations), *measured.reports)
    joined = joined_report(parts, rows)
    findings = {found.code: found for part in parts for found in part.findings}
    repeated = {f"{words(found)}." for part in parts for found in part.findings}
    repeated -= {f"{words(found)}." for found in findings.values()}
    notes = dict.fromkeys(n for part in parts for n in part.notes if n not in repeated)
    wall_s = measured.context.executor.now() - measured.began
    return replace(
        joined,
        interrupted=measured.interrupted or joined.interrupted,
        timing=replace(joined.timing, wall_s=wall_s),
        notes=(*_how_decided(rows, cases, measured), *_unused(joined.failures), *notes),
        findings=tuple(findings.values()),
    )


def _with_screen(row: Comparison, stored: Comparison | None) -> Comparison:
    if stored is None or row.method != "paired_t":
        return replace(row, confirmed=True)
    return replace(row, confirmed=True, welch_p=stored.welch_p, cohens_d=stored.cohens_d)


def _how_decided(
    rows: Iterable[Comparison], paired: Collection[str], measured: _Measurements
) -> tuple[str, ...]:
    """Return a note on how many cases were decided by which numbers, and on the day's shift."""
    paired = measured.paired.keys() & paired
    if not paired:
        return ()
    screened = {row.case for row in rows if row.anchors}
    sessions = max(len(measured.baselines[case].sessions) for case in (*screened, *paired))
    text = f"{counted(len(paired), 'case')} measured in pairs with the baseline's commit"
    if not screened:
        return (f"{text}.",)
    shifts = [days[_LATENCY].mean for days in measured.days.values() if _LATENCY in days]
    shift = math.expm1(shifts[0]) if shifts else 0.0
    day = f"{abs(shift):.1%} {'slower' if shift > 0.0 else 'faster'}".replace("%", " %")
    stored = counted(sessions, "session")
    decided = (
        f"{counted(len(screened), 'case')} against the baseline of {stored}, {text}. "
        f"Today this machine is {day} than then (median latency)."
    )
    return (decided,)


def _unused(failures: Iterable[Failure]) -> tuple[str, ...]:
    """Return a note on cases whose stored numbers decide nothing because base fails here."""
    cases = failed_on_base(failures)
    note = (
        f"The baseline's commit fails here in {counted(len(cases), 'case')}: their stored numbers "
        "were not used. `--no-confirm` compares HEAD with them."
    )
    return (note,) if cases else ()


def alike_cases(report: Report, store: BaselineStore, policy: Policy) -> dict[str, str]:
    """Return the cases of a check that don't differ from their baselines, with those's commits."""
    differ = {row.case for row in report.results if row.gate != "info" and _differs(row, policy)}
    alike = {row.case for row in report.results} - differ
    return {
        baseline.case: baseline.sha
        for baseline in store.load_all(report.environment.key)
        if baseline.case in alike
    }


def _differs(row: Comparison, policy: Policy) -> bool:
    """Say whether a row may differ from its baseline. Cold start may stay undecided."""
    if row.status == "inconclusive":
        return policy.undecided(row.metric) == "inconclusive"
    return row.status not in {"unchanged", "untouched"}


def _unconfirmed(report: Report, why: str) -> Report:
    """Return ``report`` with its regressed rows marked unconfirmed, and a note on ``why``."""
    rows = tuple(
        replace(row, confirmed=False)
        if row.status == "regressed" and row.confirmed is None
        else row
        for row in report.results
    )
    doubted = any(row.confirmed is False for row in rows)
    note = f"{'Unconfirmed' if doubted else 'Not measured in pairs'}: {why}."
    return replace(report, results=rows, notes=(*report.notes, note))
