"""With which commit a pull request has to be compared, asked of a GitHub that knows the history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfci.forges.base import MergeGroup, Pull
from perfci.forges.github import GitHubClient
from perfci.forges.posting import caveat_of_base
from perfci.model.report import Report
from perfci.model.run import Side
from tests.forges.github.conftest import BASE, HEAD, MERGE, OLDER, report_of
from tests.forges.github.server import REPOSITORY, FakeGitHub

FIRST, TIP, OWN = "1" * 40, "2" * 40, "3" * 40
MAIN = Pull(7, HEAD, REPOSITORY, True, "main")
RELEASE = replace(MAIN, target="release/1.x #old")


@pytest.fixture
def history(github: FakeGitHub) -> FakeGitHub:
    """FIRST - OLDER - BASE - TIP are main's, BASE - OWN - HEAD the pull request's."""
    github.commits |= {FIRST: (), OLDER: (FIRST,), BASE: (OLDER,), TIP: (BASE,)}
    github.commits |= {OWN: (BASE,), HEAD: (OWN,), MERGE: (TIP, HEAD)}
    github.branches |= {"main": TIP, RELEASE.target: OLDER}
    return github


def compared(base: str, head: str = HEAD, **changed: Any) -> Report:
    return replace(report_of(head, **changed), base=Side("base", base, "python"))


@pytest.mark.parametrize(
    ("base", "head", "pull"),
    [(BASE, HEAD, MAIN), (TIP, HEAD, MAIN), (TIP, MERGE, MAIN), (OLDER, HEAD, RELEASE)],
    ids=["where it left", "the tip", "a merge with the tip", "another target"],
)
def test_where_it_left_its_target_or_later_there_is_no_doubt(
    history: FakeGitHub, client: GitHubClient, base: str, head: str, pull: Pull
) -> None:
    assert caveat_of_base(client, pull, compared(base, head)) == ""


@pytest.mark.parametrize(
    ("base", "pull"),
    [(OLDER, MAIN), (FIRST, MAIN), (OWN, MAIN), (BASE, RELEASE), (FIRST, RELEASE)],
    ids=["older", "oldest", "its own", "another target's", "older than that"],
)
def test_another_commit_is_doubted_and_both_are_named(
    history: FakeGitHub, client: GitHubClient, base: str, pull: Pull
) -> None:
    left = BASE if pull is MAIN else OLDER
    assert caveat_of_base(client, pull, compared(base)) == (
        f"compared with {base[:12]}, but the pull request leaves {pull.target} at {left[:12]}"
    )


@pytest.mark.parametrize("base", ["", "main", "../../issues/1", "a" * 39, f"{BASE}...{HEAD}"])
def test_what_is_no_commit_is_doubted_and_not_asked_for(
    history: FakeGitHub, client: GitHubClient, base: str
) -> None:
    assert "but the pull request leaves main at" in caveat_of_base(client, MAIN, compared(base))
    assert history.requests == [("GET", f"/repos/{REPOSITORY}/compare/main...{HEAD}")]


def test_a_comparison_without_a_base_is_doubted(history: FakeGitHub, client: GitHubClient) -> None:
    report = replace(report_of(), base=None)
    assert caveat_of_base(client, MAIN, report).startswith("compared with no commit, but")


def test_histories_that_github_does_not_know_together_are_doubted(
    history: FakeGitHub, client: GitHubClient
) -> None:
    history.commits[HEAD] = ()
    assert caveat_of_base(client, MAIN, compared(BASE)).endswith("at no commit that GitHub knows")


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_stored_baseline_is_no_commit_of_the_pull_requests_history(
    history: FakeGitHub, client: GitHubClient, command: str
) -> None:
    assert caveat_of_base(client, MAIN, compared(FIRST, command=command)) == ""
    assert history.requests == []


def test_a_merge_group_has_to_be_compared_with_what_it_is_built_on(
    history: FakeGitHub, client: GitHubClient
) -> None:
    group = MergeGroup(HEAD, OWN)  # the commit of the group before it, not yet on the target
    assert caveat_of_base(client, group, compared(OWN)) == ""
    said = f"compared with {BASE[:12]}, but the merge group is built on {OWN[:12]}"
    assert caveat_of_base(client, group, compared(BASE)) == said
    assert caveat_of_base(client, group, replace(compared(OWN), base=None)).startswith(
        "compared with no commit, but"
    )
    assert "isn't known" in caveat_of_base(client, MergeGroup(HEAD), compared(OWN))
    assert caveat_of_base(client, group, compared(FIRST, command="check")) == ""
    assert history.requests == []
