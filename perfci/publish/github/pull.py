"""Pure: a pull request as GitHub has it now, and whether it is the one that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfci.publish.github.event import PULL_REQUEST, Nothing, Term, Wanted, same_name
from perfci.render.clean import clean_line


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request into the branch ``target``.

    ``source`` is the repository of its own branch, empty where that is gone; ``own``: it is the
    one that the pull request is in. ``author`` is empty where the account is gone. ``pushed_at``:
    when anything was last pushed to ``source``, in GitHub's own time. ``term`` is what the forge
    calls it.
    """

    number: int
    head_sha: str
    source: str
    open: bool
    target: str
    author: str = ""
    own: bool = False
    pushed_at: str = ""
    term: Term = PULL_REQUEST

    @property
    def reference(self) -> str:
        """Its number as the forge writes it."""
        return f"{self.term.sign}{self.number}"


@dataclass(frozen=True, slots=True)
class Several:
    """One branch in several pull requests: a check can't say of which of them it is."""

    head_sha: str
    reason: str


def choose(pulls: Sequence[Pull], wanted: Wanted) -> Pull | Several | Nothing:
    """Return the one of a branch's open ``pulls`` whose head was measured."""
    branch = clean_line(wanted.branch, 200)
    mine = [one for one in pulls if one.open and same_name(one.source, wanted.source)]
    if not mine:
        none = f"no open {wanted.term.name} comes from {branch}"
        known = not wanted.advice  # the event was one's own
        return Nothing(f"{none}: closed or merged meanwhile" if known else none, wanted.advice)
    heads = [one for one in mine if one.head_sha == wanted.head_sha]
    if not heads:
        return Nothing(_moved(branch, wanted.head_sha, mine[0].head_sha))
    if len(heads) > 1:
        numbers = ", ".join(one.reference for one in heads)
        why = f"{branch} is in several {wanted.term.name}s ({numbers}), and a commit has one check"
        return Several(wanted.head_sha, f"{why}: close all but one, or choose by --pull NUMBER")
    return heads[0]


def why_not(pull: Pull, head_sha: str) -> Nothing | None:
    """Return why nothing is posted to ``pull`` about ``head_sha``; None where it may be."""
    named = f"{pull.term.name} {pull.reference}"
    if not pull.open:
        return Nothing(f"{named} is closed")
    if pull.head_sha != head_sha:
        return Nothing(_moved(named, head_sha, pull.head_sha))
    return None


def _moved(what: str, measured: str, now: str) -> str:
    return f"{what} has a newer head: {measured[:12]} was measured, {now[:12]} is there now"
