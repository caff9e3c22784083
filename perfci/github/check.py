"""Pure: the check run ``perfci`` and its poorer sister, the commit status, of a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.github.annotations import Annotation, annotations_of
from perfci.record.report import Report
from perfci.report.clean import clean_line
from perfci.report.cutting import cut
from perfci.report.escape import escape
from perfci.report.outline import headline
from perfci.units import counted

NAME = "perfci"
Conclusion = Literal["success", "failure", "neutral"]
State = Literal["success", "failure"]
_MOST = 65_535
"""Of a check's summary. GitHub says characters; bytes are counted too, to be on the safe side."""
_LONGEST_TITLE = 200
_LONGEST_DESCRIPTION = 140
_WORST_FIRST = ("fail", "error", "inconclusive", "pass")
_COMPARING = ("compare", "check")


@dataclass(frozen=True, slots=True)
class CheckContent:
    """What a check run shows. ``identity`` tells it from every other posting's."""

    identity: str
    conclusion: Conclusion
    title: str
    summary: str
    annotations: tuple[Annotation, ...]
    url: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """A commit status. It knows no neutral: what a check calls so is a success, and says more."""

    state: State
    description: str
    url: str = ""


def check_content(
    reports: Sequence[Report],
    body: str,
    url: str = "",
    posting: str = "",
    *,
    strict: bool = False,
) -> CheckContent:
    """Return the check of ``reports`` whose comment is ``body``; ``posting`` names this attempt."""
    concluded = conclusion(reports, strict=strict)
    title = verdict_title(reports)
    summary = fitting(body)
    lines = annotations_of(reports)
    identity = _identity(posting, concluded, title, summary, lines)
    return CheckContent(identity, concluded, title, summary, lines, url)


def unreadable_content(why: str, url: str = "", posting: str = "") -> CheckContent:
    """Return the check of a commit whose report can't be read; ``why`` may be a stranger's words.

    A failure: an earlier, readable report of the same commit may have left a success.
    """
    title = clean_line(f"error: {why}", _LONGEST_TITLE)
    summary = f"There is no report of this commit that can be read: {escape(why, 1000)}"
    identity = _identity(posting, "failure", title, summary, ())
    return CheckContent(identity, "failure", title, summary, (), url)


def status_of(check: CheckContent) -> Status:
    """Return the commit status that stands for ``check`` where checks may not be written."""
    state: State = "failure" if check.conclusion == "failure" else "success"
    return Status(state, clean_line(check.title, _LONGEST_DESCRIPTION), check.url)


def conclusion(reports: Sequence[Report], *, strict: bool = False) -> Conclusion:
    """Return the worst of the reports' conclusions.

    GitHub lets ``neutral`` pass a check that is required. So half a measurement is a failure, and
    with ``strict`` a whole one that could not decide is one, too.
    """
    each = {_concluded(report, strict=strict) for report in reports}
    worst: tuple[Conclusion, ...] = ("failure", "neutral", "success")
    return next(one for one in worst if one in each)


def verdict_title(reports: Sequence[Report]) -> str:
    """Return the worst report's verdict in one line of plain text."""
    worst = min(reports, key=lambda report: _WORST_FIRST.index(report.verdict.status))
    halves = "".join(f"{one}: " for one in _halves(worst))
    many = f" (worst of {counted(len(reports), 'environment')})" if len(reports) > 1 else ""
    said = f"{halves}{worst.verdict.status}: {headline(worst)}"
    return clean_line(said, _LONGEST_TITLE - len(many)) + many


def fitting(body: str) -> str:
    """Return ``body`` cut at a line so that GitHub takes it as a check's summary."""
    limit = _MOST
    text = cut(body, limit)
    while len(text.encode("utf-8", "replace")) > _MOST:
        limit = limit * 9 // 10
        text = cut(body, limit)
    return text


def _identity(posting: str, *shown: object) -> str:
    digest = hashlib.sha256(repr(shown).encode("utf-8", "replace"))
    return "-".join(filter(None, (posting, digest.hexdigest()[:24])))


def _concluded(report: Report, *, strict: bool) -> Conclusion:
    if report.missing or _halves(report):
        return "failure"
    match report.verdict.status:
        case "fail" | "error":
            return "failure"
        case "pass":
            return "success"
        case "inconclusive":
            return "failure" if strict else "neutral"


def _halves(report: Report) -> tuple[str, ...]:
    """Return what makes this no measurement of the whole pull request.

    That shards are missing is not among it: the verdict's first reason says so.
    """
    said = {
        "slowed down on purpose": bool(report.injected),
        f"`{report.command}` compares nothing": report.command not in _COMPARING,
        f"shard {report.shard} only": bool(report.shard),
        "interrupted": report.interrupted,
    }
    return tuple(words for words, true in said.items() if true)
