"""Turns what a session measured into runs, judged rows, acceptances, and a report's notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from perfci.config.loading import parse_config
from perfci.errors import UsageError
from perfci.files import read_regular
from perfci.finding import NOTHING_EXERCISED, Finding, finding
from perfci.measure.checkout.commits import file_at
from perfci.measure.checkout.git import Repository, ResolvedRev
from perfci.measure.discovery import CUT_SHORT
from perfci.measure.progress import SessionResult
from perfci.measure.selection import DecoratorLiterals
from perfci.metrics import explain
from perfci.model.case import Case, Failure
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison, Definition, Report
from perfci.model.run import CaseRun, Environment, Run
from perfci.model.status import Status
from perfci.model.words import widens, words
from perfci.units import counted, first_of
from perfci.verdict.acceptance import Acceptance, accept
from perfci.verdict.case_comparisons import delayed_more, left_out, number_rows
from perfci.verdict.decision import failed_on_base, failure_rows, placeholder
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust, regressed_metrics

if TYPE_CHECKING:
    from perfci.measure.workplace import SessionContext

_ON_BASE = "Base's own benchmark files have this case, so it is not new."
"""Why a case that fails on base alone isn't left out."""
_WHAT_BASE_LACKS = (
    "Import modules that base lacks inside the benchmarks that need them. `--benchmarks-of BASE` "
    "measures both by base's definition."
)
_LACKS = frozenset(
    {"AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "TypeError"}
)
"""Kinds of failure of code that base may lack."""
_SHOWN_FILES = 3
"""Changed files that a finding names."""
_MOST_CASES = 3
"""Cases that a note names. The others are counted."""
_MOST_NOTES = 20
"""Different warnings that a report shows. The others are counted."""
_LONGEST_WARNING = 300
"""Characters of a warning that are kept."""


def run_of(result: SessionResult, name: str, report: Report, environment: Environment) -> Run:
    """Return one side of a session as a run."""
    side = report.base if name == "base" else None
    return Run(
        side=side or report.head,
        environment=environment,
        created_at=report.created_at,
        cases=tuple(
            CaseRun(
                case=state.case,
                workers=tuple(state.outputs[name]),
                failures=tuple(f for f in state.failures if f.side == name),
            )
            for state in result.states
        ),
    )


def with_session(
    report: Report, cases: Sequence[Case], result: SessionResult, failures: Sequence[Failure]
) -> Report:
    """Return ``report`` with a session's facts. ``failures`` are those of finding its cases."""
    outputs = _outputs(result)
    of_bursts = burst_findings(outputs)
    # what makes intervals much wider goes first
    texts = [f"{words(each)}." for each in sorted(of_bursts, key=lambda each: not widens(each))]
    first = sum(map(widens, of_bursts))
    return replace(
        report,
        failures=(
            *failures,
            *(failure for state in result.states for failure in state.failures),
            *result.failures,
        ),
        notes=(
            *texts[:first],
            *report.notes,
            *result.notes,
            *texts[first:],
            *warning_notes(outputs),
        ),
        findings=(*report.findings, *of_bursts, *_unexercised(result)),
        skipped={case.id: case.skip for case in cases if case.skip} | {**result.skipped},
        not_measured=_not_measured(result),
        interrupted=result.cut_short,
        durations={
            state.case.id: round(state.wall_s, 3) for state in result.states if state.wall_s
        },
        definitions=tuple(
            dict.fromkeys(
                Definition(state.case.benchmark, state.case.file, state.case.line)
                for state in result.states
                if state.case.line
            )
        ),
        installed=result.installed,
    )


def _unexercised(result: SessionResult) -> tuple[Finding, ...]:
    """Return a finding if no case used what changed."""
    if not (names := result.unexercised):
        return ()
    shown = ", ".join(names[:_SHOWN_FILES])
    return (finding(NOTHING_EXERCISED, names=shown, more=max(0, len(names) - _SHOWN_FILES)),)


def conclude(
    report: Report,
    result: SessionResult,
    removed: Sequence[str],
    new: Sequence[str],
    policy: Policy,
    before: Mapping[str, DecoratorLiterals],
) -> Report:
    """Return ``report`` with the rows of two sides that were measured in pairs.

    ``before`` are the benchmarks as base's own files write them, by their names. If a case
    failed on base alone, the rounds before its failure count.
    """
    on_base = failed_on_base(report.failures)
    broken = {failure.case for failure in report.failures} - on_base.keys()
    compared: list[Comparison] = []
    for state in result.states:
        rows = state.compared(policy)
        if state.case.id in broken or (state.case.id in on_base and not rows):
            continue
        if not rows:
            status: Status = "untouched" if state.untouched else "not_measured"
            reason = finding("harmless") if state.untouched else _unmeasured_reason(result)
            rows = (placeholder(state.case.id, status, policy, reason),)
        compared += rows
        written = before.get(state.case.benchmark)
        if written is not None:
            compared += left_out(state.case, state.outputs["base"], written.metrics, policy)
    outputs = {
        state.case.id: (tuple(state.outputs["base"]), tuple(state.outputs["head"]))
        for state in result.states
    }
    return with_rows(report, compared, outputs, removed, policy, new)


def with_rows(
    report: Report,
    rows: Sequence[Comparison],
    outputs: Mapping[str, tuple[Sequence[WorkerOutput], Sequence[WorkerOutput]]],
    removed: Sequence[str],
    policy: Policy,
    new: Sequence[str] = (),
) -> Report:
    """Return ``report`` with its rows: ``rows``, adjusted, and those of failed or one-sided cases.

    ``outputs`` are base's and head's workers of each case, which explain what regressed.
    """
    adjusted = adjust(rows, policy)
    regressed = regressed_metrics(adjusted)
    explanations = (
        explanation
        for case, (base, head) in outputs.items()
        for explanation in explain(case, base, head, regressed.get(case, ()))
    )
    measured = {row.case for row in adjusted}
    failed = failure_rows(report.failures, removed, policy, new, measured)
    return replace(report, results=(*adjusted, *failed), explanations=tuple(explanations))


def advised(failures: Sequence[Failure], absent: Iterable[str]) -> tuple[Failure, ...]:
    """Return ``failures`` with advice for those of base alone, except for the ``absent`` cases."""
    on_base = failed_on_base(failures).keys() - set(absent)
    return tuple(
        replace(failure, message=f"{failure.message}\n{_ON_BASE} {_advice_on_base(failure.kind)}")
        if failure.case in on_base
        else failure
        for failure in failures
    )


def _advice_on_base(kind: str) -> str:
    if kind == CUT_SHORT:
        return "The time was over, by a build for example: raise --budget."
    if kind in _LACKS:
        return f"{_WHAT_BASE_LACKS} If it is base's own code that fails, choose another base."
    return "Choose another base, or mend the case there."


def rows_alone(result: SessionResult, policy: Policy) -> tuple[Comparison, ...]:
    """Return the rows of one side: its numbers, and nothing to compare them with."""
    return tuple(
        row
        for state in result.states
        for row in number_rows(state.case, tuple(state.outputs["head"]), policy)
    )


def _not_measured(result: SessionResult) -> dict[str, str]:
    """Return each metric that no worker could measure, with the reason the workers gave."""
    outputs = _outputs(result)
    measured = {name for output in outputs for name in output.values}
    reasons = {  # the first reason counts
        name: reason for output in reversed(outputs) for name, reason in output.missing.items()
    }
    return {name: reasons[name] for name in sorted(reasons.keys() - measured)}


def _outputs(result: SessionResult) -> list[WorkerOutput]:
    return [
        output
        for state in result.states
        for outputs in state.outputs.values()
        for output in outputs
    ]


def _unmeasured_reason(result: SessionResult) -> Finding:
    codes = {"budget": "budget-ended", "interrupted": "interrupted", "outside": "session-ended"}
    return finding(codes.get(result.ended, "no-round"))


def burst_findings(outputs: Sequence[WorkerOutput]) -> tuple[Finding, ...]:
    """Return the findings on disturbed bursts.

    They say how many bursts were excluded and why, how many workers would have lost most of their
    bursts, and which cases' bursts were delayed more often on head than on base.
    """
    findings = []
    if excluded := sum(output.bursts_set_aside for output in outputs):
        bursts = sum(output.bursts_measured for output in outputs)
        reason = _commonest((output.disturbance, output.bursts_set_aside) for output in outputs)
        findings.append(finding("bursts-excluded", excluded=excluded, bursts=bursts, reason=reason))
    if kept := [output for output in outputs if output.bursts_disturbed]:
        reason = _commonest((output.disturbance, output.bursts_disturbed) for output in kept)
        findings.append(finding("bursts-disturbed", workers=len(kept), reason=reason))
    if cases := _delayed_cases(outputs):
        findings.append(finding("delayed-more-cases", cases=first_of(cases, _MOST_CASES)))
    return tuple(findings)


def _delayed_cases(outputs: Sequence[WorkerOutput]) -> list[str]:
    """Return the cases whose bursts were delayed more often on head than on base."""
    cases: dict[str, dict[str, list[WorkerOutput]]] = {}
    for output in outputs:
        sides = cases.setdefault(output.case, {"base": [], "head": []})
        sides[output.side].append(output)
    return [case for case, sides in cases.items() if delayed_more(sides["base"], sides["head"])]


def _commonest(reasons: Iterable[tuple[str, int]]) -> str:
    counts: Counter[str] = Counter()
    for reason, count in reasons:
        counts[reason] += count
    return counts.most_common(1)[0][0]


def warning_notes(outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    """Return each warning once, with its cases.

    Benchmarks run in the worker's process. A warning may be the benchmark's own, of any length and
    number.
    """
    cases_of: dict[str, dict[str, None]] = {}
    for output in outputs:
        for warning in output.warnings:
            cases_of.setdefault(warning[:_LONGEST_WARNING], {})[output.case] = None
    notes = [
        f"{first_of([*cases], _MOST_CASES)}: {warning}." for warning, cases in cases_of.items()
    ]
    if (more := len(notes) - _MOST_NOTES) > 0:
        notes[_MOST_NOTES:] = [f"Workers gave {counted(more, 'more warning')}."]
    return tuple(notes)


def accepting(
    context: SessionContext, report: Report, base: ResolvedRev | None, *, whole: bool
) -> Report:
    """Return the report with the rows marked that the configuration accepts.

    ``base`` is the commit that head is compared with, None for stored baselines. ``whole``: all
    cases were requested, so a line of the configuration that matches no case gets a note.
    """
    lines = context.config.accept
    if not lines:
        return report
    before = _on_base(context.repository, lines, base)
    old = [line for line in lines if any(line.says_as(earlier) for earlier in before)]
    fork = _is_of_a_fork(context.inherited)
    rows, findings = accept(
        report.results,
        lines,
        report.created_at[:10],
        refused=[line for line in lines if fork and line not in old],
        old=old,
        whole=whole and not report.interrupted,
    )
    return replace(
        report,
        results=rows,
        findings=(*report.findings, *findings),
        notes=(*report.notes, *map(words, findings)),
    )


def _on_base(
    repository: Repository, lines: Sequence[Acceptance], base: ResolvedRev | None
) -> tuple[Acceptance, ...]:
    """Return what base's own configuration accepts, or nothing if it can't be read."""
    file = next((line.file for line in lines if line.file), "")
    if base is None or not file:
        return ()
    path = PurePath(Path(file).absolute())
    if not path.is_relative_to(repository.root):
        return ()
    text = file_at(repository, base.commit, path.relative_to(repository.root).as_posix())
    try:
        return parse_config(text, file).accept if text is not None else ()
    except UsageError:  # a configuration that was mended since
        return ()


def _is_of_a_fork(environment: Mapping[str, str]) -> bool:
    """Return whether this is a job of a fork's pull request. An unreadable event counts as one."""
    event_path = environment.get("GITHUB_EVENT_PATH", "")
    if not event_path:
        return False
    from perfci.forges.actions import NothingToPost, read_event

    try:
        return not read_event(read_regular(Path(event_path)), event_path).own
    except NothingToPost:
        return False
    except (OSError, UsageError):
        return True
