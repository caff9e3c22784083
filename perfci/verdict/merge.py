"""Merge the reports of shards to one, correct it as one family, and decide it again. Pure.

The statuses in a shard's report were corrected for its own comparisons only. They are provisional,
and nothing here relies on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from perfci.errors import UsageError
from perfci.finding import NOTHING_EXERCISED, Finding, Reason
from perfci.model.case import Failure
from perfci.model.report import Comparison, Report, Timing, Verdict
from perfci.verdict.decision import kept_from_passing, with_verdict
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import adjust
from perfci.verdict.shards import Shard, parse_shard

Named = tuple[str, Report]
"""The name of a report's file, for messages, and the report."""
_Traits = Mapping[str, Callable[[Report], object]]

_ALIKE_IN_A_RUN: _Traits = {
    "perfci's version": lambda report: report.perfci_version,
    "the command": lambda report: report.command,
    "head's commit": lambda report: report.head.sha,
    # a check's cases may have baselines of different commits
    "base's commit": lambda report: (
        report.base.sha if report.base and report.command != "check" else ""
    ),
    "the commit of the benchmark files": lambda report: report.benchmarks_of,
    "what is injected": lambda report: dict(report.injected),
}
"""Traits that all reports of one run have in common, by their names in messages."""
_ALIKE_IN_AN_ENVIRONMENT: _Traits = {
    "base's environment": lambda report: (
        report.base_environment.key if report.base_environment else ""
    ),
    "the number of shards": lambda report: report.shard.partition("/")[2],
    "the split": lambda report: report.split,
}
"""Traits that all shards of one environment have in common, too."""


def numbered(named: Sequence[Named], expect: int | None) -> dict[Shard, Report]:
    """Return one environment's reports by their shards, in order; a whole report is shard 1/1.

    Raises UsageError if they are not shards of one report, if a shard occurs twice, or if the
    shards' own count is not ``expect``.
    """
    by_shard: dict[Shard, Named] = {}
    for name, report in named:
        shard = _shard(name, report, alone=len(named) == 1)
        if shard in by_shard:
            raise UsageError(
                "not-one-report",
                f"{name} and {by_shard[shard][0]} are both shard {shard} of "
                f"{report.environment.key!r}",
                "Give each shard's report once: of two attempts, the later one.",
            )
        if expect is not None and shard.count != expect:
            raise UsageError(
                "other-count",
                f"{name} is shard {shard}, and --expect asks for {expect}",
                "Give as --expect the N of their --shard I/N.",
            )
        by_shard[shard] = (name, report)
    advice = "All shards need the same --shard count, benchmarks and -k."
    _require_alike(named, _ALIKE_IN_AN_ENVIRONMENT, advice)
    return {shard: by_shard[shard][1] for shard in sorted(by_shard)}


def _shard(name: str, report: Report, *, alone: bool) -> Shard:
    if report.shard:
        return parse_shard(report.shard)
    if alone:
        return Shard(1, 1)
    raise UsageError(
        "not-one-report",
        f"{name} is a whole report, but not the only one of {report.environment.key!r}",
        "Measure the parts with `--shard 1/2` and `--shard 2/2`.",
    )


def _require_alike(named: Sequence[Named], traits: _Traits, advice: str) -> None:
    (name, first), *others = named
    for other, report in others:
        for what, trait in traits.items():
            if trait(first) != trait(report):
                raise UsageError(
                    "not-one-report",
                    f"{name} and {other} are not parts of one report: "
                    f"{what} is {trait(first)!r} and {trait(report)!r}",
                    advice,
                )


def merge(
    named: Sequence[Named],
    policy: Policy,
    *,
    expect: int | None = None,
    notes: Sequence[str] = (),
) -> tuple[Report, ...]:
    """Return one report for each environment, in the order of the environments' keys.

    Raises UsageError if they are not parts of one report. ``expect`` is the number of shards that
    every environment should have, by default the shards' own count. ``notes`` are added to each
    report's notes.
    """
    _require_alike(named, _ALIKE_IN_A_RUN, "Merge the reports of one run only.")
    groups: dict[str, list[Named]] = {}
    for name, report in named:
        groups.setdefault(report.environment.key, []).append((name, report))
    environments = [numbered(groups[key], expect) for key in sorted(groups)]
    return tuple(_merged(shards, policy, notes) for shards in environments)


def _merged(
    shards: Mapping[Shard, Report],
    policy: Policy,
    notes: Sequence[str],
) -> Report:
    parts = tuple(shards.values())
    count = next(iter(shards)).count
    all_shards = (Shard(number, count) for number in range(1, count + 1))
    missing = (
        *(shard for shard in all_shards if shard not in shards),
        # a merged report that is merged again lacks what it lacked
        *(parse_shard(lost) for part in parts for lost in part.missing),
    )
    rows = adjust(_joined(shards), policy)
    known = (note for part in parts for note in part.notes)
    all_notes = dict.fromkeys((*known, *notes))
    joined = replace(joined_report(parts, rows), notes=tuple(all_notes), shard="", split="")
    report = with_verdict(replace(joined, missing=tuple(map(str, missing))), policy)
    return replace(report, verdict=_incomplete(report.verdict, missing))


def joined_report(parts: Sequence[Report], rows: tuple[Comparison, ...]) -> Report:
    """Return one report of ``rows`` and everything else in ``parts``, for a verdict to decide."""
    durations: Counter[str] = Counter()
    for part in parts:
        durations.update(part.durations)
    known = {row.metric for row in rows if row.base or row.head}
    regressed = {row.case for row in rows if row.status == "regressed"}
    moved = {row.case for row in rows if row.status in {"regressed", "improved"}}
    return replace(
        parts[0],
        created_at=max(part.created_at for part in parts),
        base=next((part.base for part in parts if part.base), None),
        timing=Timing(
            wall_s=max(part.timing.wall_s for part in parts),
            measured_s=sum(part.timing.measured_s for part in parts),
            rounds=sum(part.timing.rounds for part in parts),
        ),
        results=rows,
        failures=_distinct(failure for part in parts for failure in part.failures),
        explanations=tuple(
            dict.fromkeys(
                explanation
                for part in parts
                for explanation in part.explanations
                if explanation.case in regressed
            )
        ),
        why=tuple(why for part in parts for why in part.why if why.case in moved),
        findings=joined_findings(parts),
        skipped={case: why for part in parts for case, why in part.skipped.items()},
        not_measured={
            metric: why
            for part in parts
            for metric, why in part.not_measured.items()
            if metric not in known
        },
        interrupted=any(part.interrupted for part in parts),
        durations={case: round(spent, 3) for case, spent in durations.items()},
        installed=tuple(sorted({name for part in parts for name in part.installed})),
        definitions=tuple(dict.fromkeys(each for part in parts for each in part.definitions)),
    )


def _joined(shards: Mapping[Shard, Report]) -> tuple[Comparison, ...]:
    rows: dict[tuple[str, str], tuple[Shard, Comparison]] = {}
    for shard, report in shards.items():
        for row in report.results:
            where, _ = rows.setdefault((row.case, row.metric), (shard, row))
            if where != shard:
                raise UsageError(
                    "not-one-report",
                    f"{row.case!r} {row.metric!r} is in shard {where} and in shard {shard}",
                    "Measure the shards of one run, with the same benchmarks on every machine.",
                )
    return tuple(row for _, row in rows.values())


def _distinct(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Return one failure of each sort: their messages differ in addresses or folders at most."""
    unlike: dict[tuple[str, ...], Failure] = {}
    for failure in failures:
        unlike.setdefault((failure.case, failure.side, failure.stage, failure.kind), failure)
    return tuple(unlike.values())


def _incomplete(verdict: Verdict, missing: Sequence[Shard]) -> Verdict:
    """Return ``verdict`` with the missing shards. A report without all its shards never passes."""
    if not missing:
        return verdict
    numbers = ", ".join(str(shard.number) for shard in missing)
    reason = Reason(
        "incomplete",
        arguments={"missing": numbers, "lacking": len(missing), "shards": missing[0].count},
    )
    if verdict.status in {"fail", "error"}:
        deciding, *others = verdict.findings
        return Verdict(verdict.status, (deciding, reason, *others))
    return kept_from_passing(verdict, reason)


def joined_findings(reports: Sequence[Report]) -> tuple[Finding, ...]:
    """Return each finding once.

    That nothing was exercised counts only if all reports that have rows say it.
    """
    with_rows = [report for report in reports if report.results]
    exercised = any(
        NOTHING_EXERCISED not in {finding.code for finding in report.findings}
        for report in with_rows
    )
    findings = dict.fromkeys(finding for report in reports for finding in report.findings)
    return tuple(
        finding for finding in findings if not (exercised and finding.code == NOTHING_EXERCISED)
    )
