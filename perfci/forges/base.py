"""Pure: what is posted to a forge (a comment and a check run), and to what.

A report is posted to a pull request or a merge group.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from perfci.errors import UsageError
from perfci.forges.annotations import Annotation, annotations_of
from perfci.model.report import Report
from perfci.report.clean import clean_line, escape
from perfci.report.exporters.markdown import MARKER
from perfci.report.outline import headline, outline
from perfci.report.templates import cut
from perfci.units import counted

NAME = "perfci"
"""The name of the check."""
Conclusion = Literal["success", "failure", "neutral"]
_LONGEST_SUMMARY = 65_535
"""Longest summary of a check, in characters for GitHub. Bytes are limited, too, to be safe."""
_LONGEST_TITLE = 200
"""Characters of a check's title."""
_WORST_FIRST = ("fail", "error", "inconclusive", "pass")
"""Verdicts, the worst first."""
_COMPARING = ("compare", "check")
"""Commands whose reports compare two sides."""
SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A whole SHA-1 or SHA-256."""


@dataclass(frozen=True, slots=True)
class PostTarget:
    """The pull request that a report may be posted to.

    ``number`` is 0 where GitHub has to be asked for the pull request of ``branch``
    (``owner:branch``) in the repository ``source``. ``head_sha`` is the commit that was measured.
    Empty means: the pull request's present head. ``own``: the event says that the head is a branch
    of the repository itself, not of a fork.
    """

    number: int = 0
    head_sha: str = ""
    branch: str = ""
    source: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """A commit that a merge queue made of the commit before it, ``base_sha``, and what is to go in.

    It is no pull request's head, and never moves. ``base_sha`` is empty if the event lacks it.
    """

    head_sha: str
    base_sha: str = ""


@dataclass(frozen=True, slots=True)
class NothingToPost:
    """The reason why there is nothing to post to, which is no error."""

    reason: str


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request into the branch ``target``.

    ``source`` is the repository of its own branch, empty if that is gone.
    """

    number: int
    head_sha: str
    source: str
    open: bool
    target: str


@dataclass(frozen=True, slots=True)
class AmbiguousPull:
    """The head of several pull requests. A commit has one check, which can't be for all of them."""

    head_sha: str
    reason: str


def choose(pulls: Sequence[Pull], wanted: PostTarget) -> Pull | AmbiguousPull | NothingToPost:
    """Return the open pull request among a branch's ``pulls`` whose head was measured."""
    branch = clean_line(wanted.branch, 200)
    mine = [pull for pull in pulls if pull.open and same_name(pull.source, wanted.source)]
    if not mine:
        return NothingToPost(
            f"no open pull request comes from {branch}: closed or merged meanwhile"
        )
    heads = [pull for pull in mine if pull.head_sha == wanted.head_sha]
    if not heads:
        return NothingToPost(_moved(branch, wanted.head_sha, mine[0].head_sha))
    if len(heads) > 1:
        numbers = ", ".join(f"#{pull.number}" for pull in heads)
        why = f"{branch} is in several pull requests ({numbers}), and a commit has one check"
        return AmbiguousPull(
            wanted.head_sha, f"{why}: close all but one, or choose by --pull NUMBER"
        )
    return heads[0]


def post_refusal(pull: Pull, head_sha: str) -> NothingToPost | None:
    """Return why nothing is posted to ``pull`` about ``head_sha``, or None if it may be posted."""
    named = f"pull request #{pull.number}"
    if not pull.open:
        return NothingToPost(f"{named} is closed")
    if pull.head_sha != head_sha:
        return NothingToPost(_moved(named, head_sha, pull.head_sha))
    return None


def _moved(what: str, measured: str, now: str) -> str:
    return f"{what} has a newer head: {measured[:12]} was measured, {now[:12]} is there now"


@dataclass(frozen=True, slots=True)
class User:
    """An account."""

    login: str

    @staticmethod
    def is_named(user: User | None, name: str) -> bool:
        """Return whether ``user`` is ``name``. None is an account that is gone."""
        return user is not None and same_name(user.login, name)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a pull request."""

    id: int
    html_url: str
    user: User | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Create a comment, update ``comment``, or leave it, then delete the ``twins``."""

    action: Literal["create", "update", "leave"]
    comment: Comment | None = None
    twins: tuple[Comment, ...] = ()


def decide(comments: Sequence[Comment], author: str, body: str) -> Decision:
    """Return what makes ``body`` the only comment of ``author`` that begins with ``MARKER``.

    Author and marker both have to match: anyone can write the marker, and the author writes for
    other tools, too. The oldest comment stays, because people have seen it and perhaps linked to
    it.
    """
    ours = sorted(
        (comment for comment in comments if _is_ours(comment, author)),
        key=lambda comment: comment.id,
    )
    if not ours:
        return Decision("create")
    oldest, *twins = ours
    action: Literal["update", "leave"] = "leave" if _same(oldest.body or "", body) else "update"
    return Decision(action, oldest, tuple(twins))


def _is_ours(comment: Comment, author: str) -> bool:
    return User.is_named(comment.user, author) and (comment.body or "").startswith(MARKER)


def _same(old: str, new: str) -> bool:
    """Return whether both texts look the same. A browser's edit turns line ends into CRLF."""
    return old.replace("\r\n", "\n").rstrip() == new.replace("\r\n", "\n").rstrip()


def full_sha(text: str, name: str) -> str:
    """Return ``text``, a commit's whole SHA. UsageError on anything else."""
    if SHA.fullmatch(text) is None:
        raise UsageError(
            "bad-sha",
            f"{name}: {clean_line(text, 80)!r} is no commit's SHA",
            "Give all its 40 hexadecimal digits: git rev-parse HEAD",
        )
    return text


def same_name(first: str, second: str) -> bool:
    """Return whether two names are of one repository or account. GitHub ignores their case."""
    return first.casefold() == second.casefold()


@dataclass(frozen=True, slots=True)
class CheckContent:
    """The contents of a check run. ``identity`` tells this posting from others."""

    identity: str
    conclusion: Conclusion
    title: str
    summary: str
    annotations: tuple[Annotation, ...]
    url: str = ""


@dataclass(frozen=True, slots=True)
class Posting:
    """The subject of a check, as its title and its external id name it.

    ``pull`` is 0 for a merge group. ``attempt`` identifies this attempt of the workflow's run.
    """

    pull: int = 0
    target: str = ""
    attempt: str = ""


@dataclass(frozen=True, slots=True)
class CheckIdentity:
    """The external id of a check that perfci set.

    ``conclusion`` is that of ``pull`` alone, before other checks limit it (``limited_by``).
    """

    pull: int
    conclusion: str


_NOWHERE = Posting()
_IDENTITY = re.compile(
    r"perfci/1 pull=(?P<pull>\d{1,12}) own=(?P<own>success|failure|neutral) run=[\d-]* [0-9a-f]{24}"
)
"""The form of a check's external id."""


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
    return CheckIdentity(int(parts["pull"]), parts["own"]) if parts else None


def unreadable_content(why: str, url: str = "", posting: Posting = _NOWHERE) -> CheckContent:
    """Return the check of a commit whose report can't be read. ``why`` is untrusted.

    A failure: an earlier, readable report of the same commit may have left a success.
    """
    title = _placed(f"error: {why}", posting)
    summary = f"There is no report of this commit that can be read: {escape(why, 1000)}"
    identity = _identity(posting, "failure", title, summary, ())
    return CheckContent(identity, "failure", title, summary, (), url)


def conclusion(reports: Sequence[Report], *, strict: bool = False) -> Conclusion:
    """Return the worst of the reports' conclusions.

    GitHub lets a required check pass if it is ``neutral``. So an incomplete measurement is a
    failure. With ``strict``, a complete measurement that could not decide is a failure, too.
    """
    conclusions = {_concluded(report, strict=strict) for report in reports}
    worst: tuple[Conclusion, ...] = ("failure", "neutral", "success")
    return next(kind for kind in worst if kind in conclusions)


def verdict_title(reports: Sequence[Report]) -> str:
    """Return the worst report's verdict in one line of plain text."""
    worst = min(reports, key=lambda report: _WORST_FIRST.index(report.verdict.status))
    halves = "".join(f"{half}: " for half in _halves(worst))
    many = f" (worst of {counted(len(reports), 'environment')})" if len(reports) > 1 else ""
    title = f"{halves}{worst.verdict.status}: {headline(outline(worst))}"
    return clean_line(title, _LONGEST_TITLE - len(many)) + many


def fitting(body: str) -> str:
    """Return ``body`` cut at a line so that GitHub takes it as a check's summary."""
    limit = _LONGEST_SUMMARY
    text = cut(body, limit)
    while len(text.encode("utf-8", "replace")) > _LONGEST_SUMMARY:
        limit = limit * 9 // 10
        text = cut(body, limit)
    return text


def limited_by(
    check: CheckContent, others: Sequence[tuple[int, str]], *, unknown: bool
) -> CheckContent:
    """Return ``check`` as it may stand on a commit with other checks of its name.

    A commit shows one check of a name. So the conclusion is no better than those of ``others``,
    pull requests with the same head. ``unknown``: a job has the name. Then it is a failure.
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
    """Return ``title`` with the pull request that the check is for. The title is always visible."""
    into = clean_line(posting.target, 60)
    where = f" (#{posting.pull} into {into})" if posting.pull else ""
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
    """Return the reasons why this is no measurement of the whole pull request.

    Missing shards are left out, because the verdict's first reason names them.
    """
    flaws = {
        "slowed down on purpose": bool(report.injected),
        f"`{report.command}` compares nothing": report.command not in _COMPARING,
        f"shard {report.shard} only": bool(report.shard),
        "interrupted": report.interrupted,
    }
    return tuple(words for words, true in flaws.items() if true)
