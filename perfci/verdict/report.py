"""A report of what was measured and decided. Every report is built here, and none is patched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from perfci.model.case import Failure
from perfci.model.finding import NOTHING_EXERCISED, Finding, Reason
from perfci.model.ran import Ran
from perfci.model.report import Comparison, Definition, Explanation, Past, Report, Timing, Verdict
from perfci.model.run import Environment, Side
from perfci.model.version import VERSION
from perfci.model.why import Why
from perfci.verdict.decision import decide, require_gate
from perfci.verdict.policy import Policy


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, when, where and by whom: all of a report but its rows and its verdict.

    The fields are those of ``Report``.
    """

    command: str
    created_at: str
    base: Side | None
    head: Side
    environment: Environment
    timing: Timing
    base_environment: Environment | None = None
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    not_measured: Mapping[str, str] = field(default_factory=dict)
    injected: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    shard: str = ""
    split: str = ""
    durations: Mapping[str, float] = field(default_factory=dict)
    definitions: tuple[Definition, ...] = ()
    ran: Ran | None = None
    same_code: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    benchmarks_of: str = ""
    perfci_version: str = VERSION


@dataclass(frozen=True, slots=True)
class Judged:
    """Rows with their statuses, why they have them, and what judging them adds to the notes."""

    rows: tuple[Comparison, ...]
    explanations: tuple[Explanation, ...] = ()
    notes: tuple[str, ...] = ()
    why: tuple[Why, ...] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    """Judged rows with their verdict; ``missing`` shards, and recorded values of what moved."""

    judged: Judged
    verdict: Verdict
    missing: tuple[str, ...] = ()
    past: tuple[Past, ...] = ()


def decide_on(measured: Measured, judged: Judged, policy: Policy) -> Decided:
    """Return the verdict on ``judged``. A shard that has nothing to measure holds nothing up."""
    # judged in another family, a row may be none that regressed any more
    rows = tuple(
        replace(row, accepted=None) if row.accepted and row.status != "regressed" else row
        for row in judged.rows
    )
    judged = replace(judged, rows=rows)
    if measured.shard and not (rows or measured.failures or measured.interrupted):
        note = f"Shard {measured.shard} has nothing to measure."
        return Decided(Judged((), (), (*judged.notes, note)), Verdict("pass", ()))
    verdict = decide(
        rows,
        measured.failures,
        policy,
        unconfirmed=any(
            row.confirmed is False and row.status == "regressed" and not row.accepted
            for row in rows
        ),
        interrupted=measured.interrupted,
    )
    if measured.shard:  # whether anything gates, or is exercised, the report of all shards says
        return Decided(judged, verdict)
    return Decided(judged, _with_exercise(require_gate(verdict, rows), measured, rows, policy))


def _with_exercise(
    verdict: Verdict, measured: Measured, rows: Sequence[Comparison], policy: Policy
) -> Verdict:
    """Say where no case used what changed; a strict policy doesn't let that pass.

    A new case may use it: there nothing is said.
    """
    finding = next((one for one in measured.findings if one.code == NOTHING_EXERCISED), None)
    if finding is None or any(row.status == "new" for row in rows):
        return verdict
    reason = Reason(finding.code, arguments=finding.arguments)
    if verdict.status in {"fail", "error"}:
        return Verdict(verdict.status, (*verdict.findings, reason))
    strict = policy.strict or verdict.status == "inconclusive"
    return Verdict("inconclusive" if strict else "pass", (reason, *verdict.findings))


def build_report(measured: Measured, decided: Decided) -> Report:
    """Return the report of what was measured and decided."""
    of_measured: dict[str, Any] = {
        one.name: getattr(measured, one.name) for one in fields(measured) if one.name != "notes"
    }
    return Report(
        **of_measured,
        verdict=decided.verdict,
        results=decided.judged.rows,
        explanations=decided.judged.explanations,
        why=decided.judged.why,
        notes=(*measured.notes, *decided.judged.notes),
        missing=decided.missing,
        past=decided.past,
    )


def opened(report: Report) -> tuple[Measured, Decided]:
    """Return what a report was built from; all its notes are among what was measured."""
    measured = Measured(**{one.name: getattr(report, one.name) for one in fields(Measured)})
    judged = Judged(report.results, report.explanations, why=report.why)
    return measured, Decided(judged, report.verdict, report.missing, report.past)
