"""Reports on GitHub: one comment and one check, and what they say.

A write whose answer is lost may have been done. So no write is simply repeated. After a failure,
``GitHubClient.retry`` looks at GitHub again, and sees if the write was done after all. The pull
request's head is checked just before each write. If a push comes in between the check and the
write, then that push's own run writes over it.

Paths, titles and messages of annotations are untrusted: invisible characters are removed, and a
remark whose path leaves the repository becomes no annotation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfci.errors import UsageError
from perfci.forges.actions import SHA, NothingToPost, PostTarget, same_name
from perfci.forges.github import (
    CHECK,
    Annotation,
    CheckContent,
    Comment,
    Conclusion,
    GitHubClient,
    Level,
    Pull,
)
from perfci.model.report import Comparison, Report
from perfci.report.clean import clean_line, escape, sentences
from perfci.report.exporters.markdown import MARKER
from perfci.report.rows import Row
from perfci.report.view import WORST_FIRST, ReportView, shown_failures
from perfci.units import counted, first_of

_LONGEST_TITLE = 200
"""Characters of a check's title."""
_IDENTITY = "perfci/1 "
"""The beginning of the external id of a check that perfci set."""
_ReviewedLine = tuple[str, int, str, str]
"""A path, a line in it, the remark's title and its text."""
_LEVELS: tuple[Level, ...] = ("failure", "warning", "notice")
"""The gravest first."""
MOST_REMARKS = 50
"""Most annotations: GitHub takes them with the check. The comment has the rest."""
_MOST_CASES = 5
"""Cases that an annotation names. The rest are counted."""
_LONGEST_PATH = 300
_LAST_LINE = 10_000_000
"""Largest line number that is believed."""
_NAMED = re.compile(r"(?P<file>[^:\n]+):(?P<line>[1-9]\d{0,7}): (?P<text>.*)", re.DOTALL)
"""A failure's message that begins with the line of the user's code that is to blame."""
_COMPARING = ("compare", "check")
"""Commands whose reports compare two sides."""


@dataclass(frozen=True, slots=True)
class MeasuredHead:
    """The head of a pull request into ``base``, or of a merge group, whose ``number`` is 0."""

    sha: str
    number: int = 0
    base: str = ""


def find_head(client: GitHubClient, wanted: PostTarget) -> MeasuredHead:
    """Return the pull request as GitHub has it now. NothingToPost if it isn't there, or moved on.

    A merge group is returned as it is, because it never changes.
    """
    if wanted.group:
        return MeasuredHead(wanted.head_sha)
    if wanted.number:
        pull = client.pull(wanted.number)
        return _posted_to(pull, wanted.head_sha or pull.head.sha)
    branch = clean_line(wanted.branch, 200)
    mine = [
        pull
        for pull in client.open_pulls(wanted.branch)
        if pull.head.repo and same_name(pull.head.repo.full_name, wanted.source)
    ]
    if not mine:
        raise NothingToPost(f"no open pull request comes from {branch}: closed or merged meanwhile")
    heads = [pull for pull in mine if pull.head.sha == wanted.head_sha] or mine[:1]
    if len(heads) > 1:
        numbers = ", ".join(f"#{pull.number}" for pull in heads)
        raise NothingToPost(
            f"{branch} is in several pull requests ({numbers}), and a commit has one check: close "
            "all but one, or choose by --pull NUMBER"
        )
    return _posted_to(heads[0], wanted.head_sha)


def _posted_to(pull: Pull, head_sha: str) -> MeasuredHead:
    """Return the head of ``pull``. NothingToPost if ``head_sha`` isn't its open head."""
    if pull.state != "open":
        raise NothingToPost(f"pull request #{pull.number} is closed")
    if pull.head.sha != head_sha:
        raise NothingToPost(
            f"pull request #{pull.number} has a newer head: {head_sha[:12]} was measured, "
            f"{pull.head.sha[:12]} is there now"
        )
    return MeasuredHead(head_sha, pull.number, pull.base.ref)


def require_measured(client: GitHubClient, measured: Sequence[str], head: MeasuredHead) -> None:
    """Raise UsageError unless each of the commits ``measured`` is ``head``.

    `actions/checkout` checks out the merge of a pull request into its base. So a commit is accepted
    if its parents show that it is a merge of the head. The pull request's ``merge_commit_sha`` is
    no help: it belongs to the base's present tip, and may have been another one at the measurement.
    Of a merge group, the head itself is checked out. A child of the head is the next group's.
    """
    for sha in dict.fromkeys(measured):
        if sha == head.sha or (head.number and _is_merge(client, sha, head.sha)):
            continue
        wanted = f"{head.sha[:12]}{' or a merge of it' if head.number else ''}"
        raise UsageError(
            "other-head",
            f"the report is of {clean_line(sha, 40) or 'no commit'}, not of {wanted}",
            "Hand over the report of the run that the event is about, and of a commit.",
        )


def _is_merge(client: GitHubClient, sha: str, head_sha: str) -> bool:
    """Return whether ``sha`` is a merge of the head as GitHub makes it.

    Such a merge has two parents, the target first and the head second. A commit on top of the head,
    as in a stacked pull request, has the head as its first parent.
    """
    # only a whole SHA is asked for: what a report says must not become another request
    return SHA.fullmatch(sha) is not None and client.parents(sha)[1:] == (head_sha,)


def leave_comment(client: GitHubClient, head: MeasuredHead, author: str, body: str) -> str:
    """Leave ``body`` as the one comment of ``author`` on a pull request, and return what was done.

    A comment is perfci's own if it is by ``author`` and begins with ``MARKER``: anyone can write
    the marker, and the author writes for other tools, too. The oldest stays, because people have
    seen it and perhaps linked to it. The others are deleted.
    """

    def look_and_write() -> str:
        ours = sorted(
            (each for each in client.comments(head.number) if _is_ours(each, author)),
            key=lambda comment: comment.id,
        )
        _posted_to(client.pull(head.number), head.sha)
        if not ours:
            text = f"comment created: {client.create_comment(head.number, body).html_url}"
        elif _lines(ours[0].body or "") != _lines(body):
            text = f"comment updated: {client.update_comment(ours[0], body).html_url}"
        else:
            text = f"comment is up to date: {ours[0].html_url}"
        for twin in ours[1:]:
            client.delete_comment(twin)
        deleted = f"; {counted(len(ours) - 1, 'twin')} deleted" if len(ours) > 1 else ""
        return clean_line(text) + deleted

    return client.retry(look_and_write)


def _is_ours(comment: Comment, author: str) -> bool:
    user = comment.user
    known = user is not None and same_name(user.login, author)
    return known and (comment.body or "").startswith(MARKER)


def _lines(text: str) -> list[str]:
    """Return a text's lines. A browser's edit turns line ends into CRLF."""
    return text.rstrip().splitlines()


def set_check(client: GitHubClient, head_sha: str, check: CheckContent) -> str:
    """Set the check run of ``head_sha``, and return what was done.

    If a job has set a check of this name, which is not a verdict, the check is a failure.
    """

    def look_and_write() -> str:
        shown, run = check, None
        for other in client.checks(head_sha):
            if other.external_id == check.identity:
                run = other
            elif not (other.external_id or "").startswith(_IDENTITY):
                title = (
                    f"a job called `{CHECK}` is on this commit and is not a verdict; {check.title}"
                )
                shown = replace(
                    check, conclusion="failure", title=clean_line(title, _LONGEST_TITLE)
                )
        run = run or client.create_check(head_sha, shown)
        where = f": {run.html_url}" if run.html_url else ""
        return clean_line(f"check is {shown.conclusion}{where}")

    return client.retry(look_and_write)


def check_content(
    reports: Sequence[Report],
    body: str,
    head: MeasuredHead,
    url: str,
    attempt: str,
    *,
    strict: bool,
) -> CheckContent:
    """Return the check of ``reports`` whose comment is ``body``.

    ``attempt`` identifies this attempt of the workflow's run: another one makes another check.
    """
    concluded = conclusion(reports, strict=strict)
    check = CheckContent("", concluded, verdict_title(reports), body, annotations_of(reports), url)
    return _identified(check, head, attempt)


def unreadable_content(why: str, head: MeasuredHead, url: str, attempt: str) -> CheckContent:
    """Return the check of a commit whose report can't be read. ``why`` is untrusted.

    A failure: an earlier, readable report of the same commit may have left a success.
    """
    summary = f"No report of this commit can be read: {escape(why, 1000)}"
    check = CheckContent("", "failure", f"error: {why}", summary, url=url)
    return _identified(check, head, attempt)


def _identified(check: CheckContent, head: MeasuredHead, attempt: str) -> CheckContent:
    """Return ``check`` with its pull request in the title, and with its identity."""
    where = f" (#{head.number} into {clean_line(head.base, 60)})" if head.number else ""
    title = clean_line(check.title, _LONGEST_TITLE - len(where)) + where
    check = replace(check, title=title)
    digest = hashlib.sha256(repr((attempt, check)).encode("utf-8", "replace")).hexdigest()
    return replace(check, identity=f"{_IDENTITY}{digest[:24]}")


def conclusion(reports: Sequence[Report], *, strict: bool = False) -> Conclusion:
    """Return the worst of the reports' conclusions.

    GitHub lets a required check pass if it is ``neutral``. So an incomplete measurement and an
    undecided row that looks slower are a failure. With ``strict``, so is any other measurement that
    could not decide.
    """
    statuses = {report.verdict.status for report in reports}
    if any(report.missing or _flaws(report) for report in reports) or statuses & {"fail", "error"}:
        return "failure"
    if any(report.verdict.looks_slower for report in reports):
        return "failure"
    if "inconclusive" in statuses:
        return "failure" if strict else "neutral"
    return "success"


def verdict_title(reports: Sequence[Report]) -> str:
    """Return the worst report's verdict in one line of plain text."""
    worst = min(reports, key=lambda report: WORST_FIRST.index(report.verdict.status))
    flaws = "".join(f"{flaw}: " for flaw in _flaws(worst))
    many = f" (worst of {counted(len(reports), 'environment')})" if len(reports) > 1 else ""
    title = f"{flaws}{worst.verdict.status}: {ReportView(worst).headline}"
    return clean_line(title, _LONGEST_TITLE - len(many)) + many


def _flaws(report: Report) -> tuple[str, ...]:
    """Return the reasons why this is not a measurement of the whole pull request.

    Missing shards are left out, because the verdict's first reason names them.
    """
    flaws = {
        "slowed down on purpose": bool(report.injected),
        f"`{report.command}` compares nothing": report.command not in _COMPARING,
        f"shard {report.shard} only": bool(report.shard),
        "interrupted": report.interrupted,
    }
    return tuple(words for words, true in flaws.items() if true)


def annotations_of(reports: Sequence[Report]) -> tuple[Annotation, ...]:
    """Return at most ``MOST_REMARKS``, the gravest first. Equal remarks at a line are one."""
    cases: dict[_ReviewedLine, list[str]] = {}
    levels: dict[_ReviewedLine, Level] = {}
    for report in reports:
        for place, case, level in _remarks(report):
            if place is not None:
                cases.setdefault(place, []).append(case)
                levels[place] = min(levels.get(place, level), level, key=_LEVELS.index)
    every = []
    for (path, line, title, text), of_place in cases.items():
        level = levels[path, line, title, text]
        names = first_of([clean_line(case, 200) for case in dict.fromkeys(of_place)], _MOST_CASES)
        message = f"{text or title}\nin {names}"
        every.append(Annotation(path, line, line, level, title, message))
    every.sort(key=lambda annotation: _LEVELS.index(annotation.annotation_level))
    return tuple(every[:MOST_REMARKS])


def _remarks(report: Report) -> Iterator[tuple[_ReviewedLine | None, str, Level]]:
    """Yield for each remark its place, the words that name its case, and its level."""
    rows = {(row.case, row.metric): row for row in report.results}
    for cause in report.explanations:
        place = _place(cause.file, cause.line, cause.kind.replace("_", " "), cause.text)
        yield place, cause.case, _level(rows.get((cause.case, cause.metric)))
    yield from _at_definitions(report)
    for failure in shown_failures(report):
        named = _NAMED.match(failure.message)
        # the forge shows head's code, so a line of base's is no place for a remark
        if named is not None and "head" in failure.side.split():
            title = f"failed in {failure.stage} ({failure.kind})"
            place = _place(named["file"], int(named["line"]), title, named["text"])
            yield place, failure.case, "failure"


def _at_definitions(report: Report) -> Iterator[tuple[_ReviewedLine | None, str, Level]]:
    """Yield a remark at a benchmark's own line for each regression that no other line explains."""
    definitions = {definition.benchmark: definition for definition in report.definitions}
    named = {(cause.case, cause.metric) for cause in report.explanations if cause.file}
    for row in report.results:
        definition = definitions.get(row.case.partition("[")[0])
        if row.status != "regressed" or definition is None or (row.case, row.metric) in named:
            continue
        place = _place(definition.file, definition.line, f"{row.metric} regressed", "")
        yield place, f"{row.case}: {Row(row).change}", _level(row)


def _place(file: str, line: int, title: str, text: str) -> _ReviewedLine | None:
    """Return a remark's place and words, or None if it names no line of the repository."""
    inside = not file.startswith(("/", "~")) and "\\" not in file
    known = inside and not {"", ".", ".."} & set(file.split("/"))
    if not known or clean_line(file, _LONGEST_PATH) != file or not 1 <= line <= _LAST_LINE:
        return None
    return file, line, f"perfci: {clean_line(title, 200)}", clean_line(sentences(text), 1000)


def _level(row: Comparison | None) -> Level:
    if row is None or row.status != "regressed":
        return "notice"
    return "failure" if Row(row).gates else "warning"
