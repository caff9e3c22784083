"""Pure: where a report contradicts itself: a verdict, a status or a shard that its rest denies.

What the policy would have to say (whether an undecided row holds a pass back) isn't asked here: a
report doesn't hold the policy. ``verdict.holding`` asks it, where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfci.record.ran import WRONG_CODE
from perfci.record.report import Report
from perfci.verdict.deciding import was_measured
from perfci.verdict.sharding import parse_shard


def why_contradicted(report: Report) -> Iterator[str]:
    """Yield what can't be true together, gravest first."""
    yield from _of_the_shards(report)
    yield from _of_the_verdict(report)


def _of_the_shards(report: Report) -> Iterator[str]:
    for name, text in (("shard", report.shard), *(("missing", one) for one in report.missing)):
        if not text:
            continue
        try:
            parse_shard(text)
        except ValueError:
            yield f"{name} is {text!r}, not like 2/4"
    if report.missing and report.shard:
        yield "it is a shard, and says that shards are missing: a merged report says that"
    if report.missing and report.verdict.status == "pass":
        yield "the verdict is `pass`, and shards are missing"


def _of_the_verdict(report: Report) -> Iterator[str]:
    """``fail`` means that a gating row regressed, and nothing else means it."""
    gating = [row for row in report.results if row.status == "regressed" and row.gate == "fail"]
    status = report.verdict.status
    if gating and status != "fail":
        row = gating[0]
        yield f"the verdict is `{status}`, and {row.case} {row.metric} regressed"
    if not gating and status == "fail":
        yield "the verdict is `fail`, and no row that gates regressed"
    if status == "pass":
        yield from _of_a_pass(report)


def _of_a_pass(report: Report) -> Iterator[str]:
    """What fails on head is an error, or undecided where base fails alike: never a pass."""
    broken = next(
        (one for one in report.failures if one.side != "base" or one.kind == WRONG_CODE), None
    )
    if broken is not None:
        yield f"the verdict is `pass`, and {broken.case} failed on {broken.side}"
    without_cases = report.shard and not report.results
    if not any(map(was_measured, report.results)) and not without_cases:
        yield "the verdict is `pass`, and nothing was measured"
