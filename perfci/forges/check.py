"""Pure: the check run ``perfci`` and its poorer sister, the commit status, of a verdict."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from perfci.model.report import Report
from perfci.report.clean import clean_line, escape
from perfci.report.exporters.codequality import Annotation, annotations_of
from perfci.report.outline import headline, outline
from perfci.report.templates import cut
from perfci.units import counted

NAME = "perfci"
Conclusion = Literal["success", "failure", "neutral"]
State = Literal["success", "failure"]
_MOST = 65_535
"""Of a check's summary. GitHub says characters. Bytes are counted too, to be on the safe side."""
_LONGEST_TITLE = 200
_LONGEST_DESCRIPTION = 140
_WORST_FIRST = ("fail", "error", "inconclusive", "pass")
_COMPARING = ("compare", "check")


@dataclass(frozen=True, slots=True)
class CheckContent:
    """The contents of a check run. ``identity`` is of this posting alone."""

    identity: str
    conclusion: Conclusion
    title: str
    summary: str
    annotations: tuple[Annotation, ...]
    url: str = ""


@dataclass(frozen=True, slots=True)
class Posting:
    """The subject of a check, as its title and its external id name it.

    ``pull`` is 0 for a merge group. ``sign`` goes before it where it is shown. ``attempt`` is of
    this run of the workflow alone.
    """

    pull: int = 0
    target: str = ""
    attempt: str = ""
    sign: str = "#"


@dataclass(frozen=True, slots=True)
class CheckIdentity:
    """The external id of a check that perfci set. ``conclusion`` is of ``pull`` alone."""

    pull: int
    conclusion: str


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """A commit status. It knows no neutral: what a check calls so is a success, and says more."""

    state: State
    description: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """A commit status as a forge has it."""

    context: str
    state: str
    description: str | None = None
    target_url: str | None = None


_NOWHERE = Posting()
_IDENTITY = re.compile(
    r"perfci/1 pull=(?P<pull>\d{1,12}) own=(?P<own>success|failure|neutral) run=[\d-]* [0-9a-f]{24}"
    r"|(?:\d+-\d+-)?[0-9a-f]{24}"
)
"""As it is written, and as it was before a pull request stood in it."""


def check_content(
    reports: Sequence[Report],
    body: str,
    url: str = "",
    posting: Posting = _NOWHERE,
    *,
    strict: bool = False,
) -> CheckContent:
    """Return the check of ``reports`` whose comment is ``body``."""
    concluded = conclusion(reports, strict=strict)
    title = _placed(verdict_title(reports), posting)
    summary = fitting(body)
    lines = annotations_of(reports)
    identity = _identity(posting, concluded, title, summary, lines)
    return CheckContent(identity, concluded, title, summary, lines, url)


def read_identity(external_id: str | None) -> CheckIdentity | None:
    """Return what perfci wrote into a check's external id, or None of a check that another set."""
    parts = _IDENTITY.fullmatch(external_id or "")
    return CheckIdentity(int(parts["pull"] or 0), parts["own"] or "") if parts else None


def unreadable_content(why: str, url: str = "", posting: Posting = _NOWHERE) -> CheckContent:
    """Return the check of a commit whose report can't be read. ``why`` is untrusted.

    A failure: an earlier, readable report of the same commit may have left a success.
    """
    title = _placed(f"error: {why}", posting)
    summary = f"There is no report of this commit that can be read: {escape(why, 1000)}"
    identity = _identity(posting, "failure", title, summary, ())
    return CheckContent(identity, "failure", title, summary, (), url)


def status_of(check: CheckContent) -> CommitStatus:
    """Return the commit status that stands for ``check`` where checks may not be written."""
    state: State = "failure" if check.conclusion == "failure" else "success"
    return CommitStatus(state, clean_line(check.title, _LONGEST_DESCRIPTION), check.url)


def conclusion(reports: Sequence[Report], *, strict: bool = False) -> Conclusion:
    """Return the worst of the reports' conclusions.

    GitHub lets ``neutral`` pass a check that is required. So half a measurement is a failure, and
    with ``strict`` a whole one that could not decide is one, too.
    """
    each = {_concluded(report, strict=strict) for report in reports}
    worst: tuple[Conclusion, ...] = ("failure", "neutral", "success")
    return next(kind for kind in worst if kind in each)


def verdict_title(reports: Sequence[Report]) -> str:
    """Return the worst report's verdict in one line of plain text."""
    worst = min(reports, key=lambda report: _WORST_FIRST.index(report.verdict.status))
    halves = "".join(f"{half}: " for half in _halves(worst))
    many = f" (worst of {counted(len(reports), 'environment')})" if len(reports) > 1 else ""
    title = f"{halves}{worst.verdict.status}: {headline(outline(worst))}"
    return clean_line(title, _LONGEST_TITLE - len(many)) + many


def fitting(body: str) -> str:
    """Return ``body`` cut at a line so that GitHub takes it as a check's summary."""
    limit = _MOST
    text = cut(body, limit)
    while len(text.encode("utf-8", "replace")) > _MOST:
        limit = limit * 9 // 10
        text = cut(body, limit)
    return text


def limited_by(
    check: CheckContent, others: Sequence[tuple[int, str]], *, unknown: bool
) -> CheckContent:
    """Return ``check`` as it may stand on a commit with other checks of its name.

    A commit shows one check of a name. So it is no better than those of the ``others``, which are
    pull requests with the same head. Next to a job of that name no check is a pass.
    """
    remarks = [f"#{number} has the same head: {concluded}" for number, concluded in others]
    if unknown:
        remarks.insert(0, f"a job called `{NAME}` is on this commit, and is no verdict")
    if not remarks:
        return check
    every = {check.conclusion, *(concluded for _, concluded in others)}
    worst: Conclusion = "failure" if unknown or "failure" in every else "neutral"
    title = clean_line("; ".join((*remarks, check.title)), _LONGEST_TITLE)
    return replace(check, conclusion=worst, title=title)


def _placed(title: str, posting: Posting) -> str:
    """Say in the one line that is always seen what the check is of: it may be older than that."""
    into = clean_line(posting.target, 60)
    where = f" ({posting.sign}{posting.pull} into {into})" if posting.pull else ""
    return clean_line(title, _LONGEST_TITLE - len(where)) + where


def _identity(posting: Posting, conclusion: str, *shown: object) -> str:
    digest = hashlib.sha256(repr((conclusion, *shown)).encode("utf-8", "replace"))
    parts = (f"pull={posting.pull}", f"own={conclusion}", f"run={posting.attempt}")
    return " ".join(("perfci/1", *parts, digest.hexdigest()[:24]))


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
    flaws = {
        "slowed down on purpose": bool(report.injected),
        f"`{report.command}` compares nothing": report.command not in _COMPARING,
        f"shard {report.shard} only": bool(report.shard),
        "interrupted": report.interrupted,
    }
    return tuple(words for words, true in flaws.items() if true)
