"""A verdict that was reached elsewhere, held to what is known here: never laxer. Pure.

Whoever measures decides by the configuration of its own checkout, which in a pull request is the
pull request's. A pass is only one if the policy here gives it, too.
"""

from __future__ import annotations

from dataclasses import replace

from perfci.record.report import Report, Verdict
from perfci.verdict.deciding import decide
from perfci.verdict.policy import Policy

ELSEWHERE = "the report says pass, by the configuration that it was measured with"


def held(report: Report, policy: Policy) -> Report:
    """Return ``report`` with a pass that ``policy`` doesn't give made what it is here.

    The rows stay as they are judged, thresholds, gates and adjusted p: what one session's family
    of comparisons was isn't in a report, and correcting for another one would be no stricter. A
    shard that had nothing to measure passes everywhere.
    """
    if report.verdict.status != "pass" or (report.shard and not report.results):
        return report
    again = decide(report.results, report.failures, policy, interrupted=report.interrupted)
    if again.status == "pass":
        return report
    return replace(report, verdict=Verdict(again.status, (*again.reasons, ELSEWHERE)))


def doubted(report: Report, why: str) -> Report:
    """Return ``report``, which ``why`` keeps from passing; nothing keeps it where that is empty.

    What is worse than undecided stays what it is, with ``why`` as its last reason.
    """
    if not why:
        return report
    status, reasons = report.verdict.status, report.verdict.reasons
    if status in {"fail", "error"}:
        return replace(report, verdict=Verdict(status, (*reasons, why)))
    return replace(report, verdict=Verdict("inconclusive", (why, *reasons)))
