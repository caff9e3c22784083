"""Issues on a GitHub that fails, limits and forbids: one a regression, and none twice."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from perfci.errors import OutsideError
from perfci.forges.github import GitHubClient, Refused
from perfci.forges.notifications import MOST, mark_of, tell_issues
from perfci.trend import Change, SeriesKey, Trend
from tests.forges.github.server import BOT, FakeGitHub, Fault, dropped, limited
from tests.forges.trends import CASE, ENVIRONMENT, SHAS, change, event, many, trend
from tests.report.hostile import NAMES
from tests.report.rendered import with_markdown_it

TAGS = {"comment", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td"}


def tell(client: GitHubClient, told: Trend, **options: Any) -> tuple[str, ...]:
    return tell_issues(client, told, BOT, **options)


def of(*changes: Change) -> Trend:
    return trend(changes=changes)


def texts(github: FakeGitHub) -> list[str]:
    return [one["body"] for one in github.issues]


def test_a_new_regression_opens_an_issue_that_says_what_where_and_since_when(
    github: FakeGitHub, client: GitHubClient
) -> None:
    (outcome,) = tell(client, trend(), report_url="https://ci.example/1")
    assert outcome.startswith("issue opened: https://github.com/octo/models/issues/1")
    (issue,) = github.issues
    assert issue["title"] == f"perfci: {CASE} latency_p50 got worse by +25.0 %"
    assert [label["name"] for label in issue["labels"]] == ["perfci"]
    body = issue["body"]
    assert body.startswith("<!-- perfci-changes: c1 -->\n")
    assert "**+25.0 % (+20.0 … +30.0 %)**" in body
    for said in (ENVIRONMENT, SHAS[1], SHAS[2], "Commit 2", "(https://ci.example/1)"):
        assert said in body
    assert "perfci history acknowledge c1" in body


def test_the_same_report_again_writes_nothing(github: FakeGitHub, client: GitHubClient) -> None:
    tell(client, trend())
    assert tell(client, trend()) == ()
    assert tell(client, of(change(status="known"))) == ()
    assert [method for method, _ in github.wrote()] == ["POST"]


def test_improvements_and_what_was_known_before_open_no_issue(
    github: FakeGitHub, client: GitHubClient
) -> None:
    others = [change(status, status=status) for status in ("known", "acknowledged", "fixed")]
    assert tell(client, of(change("better", worse=False), *others)) == ()
    assert github.issues == []


def test_a_size_that_is_known_better_now_is_written_into_the_issue_and_notes_below_stay(
    github: FakeGitHub, client: GitHubClient
) -> None:
    tell(client, trend())
    github.issues[0]["body"] += "\r\nIt is the new allocator.\r\n"
    github.issues[0]["title"] = "Slow encoder"
    tell(client, of(change(status="known", ratio=1.22)))
    (issue,) = github.issues
    assert "**+22.0 % (" in issue["body"]
    assert issue["body"].endswith("It is the new allocator.\n")
    assert (issue["title"], issue["state"]) == ("Slow encoder", "open")
    tell(client, of(change(status="known", ratio=1.22)))
    assert len(github.wrote("PATCH")) == 1


@pytest.mark.parametrize(
    ("status", "reason", "said"),
    [
        ("fixed", "completed", "**Fixed**"),
        ("acknowledged", "not_planned", "**Acknowledged**: worth &#64;&#8203;it"),
    ],
)
def test_what_is_fixed_or_acknowledged_says_so_and_is_closed_once(
    github: FakeGitHub, client: GitHubClient, status: Any, reason: str, said: str
) -> None:
    tell(client, trend())
    over = of(change(status=status, note="worth @it"))
    assert tell(client, over)[0].startswith("issue closed: ")
    (issue,) = github.issues
    assert (issue["state"], issue["state_reason"]) == ("closed", reason)
    assert said in issue["body"]
    assert "perfci closes this" not in issue["body"]
    assert tell(client, over) == ()


def test_who_opens_or_closes_an_issue_by_hand_has_the_last_word(
    github: FakeGitHub, client: GitHubClient
) -> None:
    tell(client, trend())
    github.issues[0]["state"] = "closed"
    assert tell(client, of(change(ratio=2.0))) == ()
    github.issues[0]["state"] = "open"
    tell(client, of(change(status="fixed")))
    github.issues[0]["state"] = "open"
    assert tell(client, of(change(status="fixed"))) == ()
    assert len(github.issues) == 1


def test_an_issue_that_lost_its_label_is_found_and_so_is_one_that_github_never_labelled(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.may_label = False
    tell(client, trend())
    assert github.issues[0]["labels"] == []
    assert tell(client, trend()) == ()
    assert len(github.issues) == 1


def test_a_strangers_issue_with_our_mark_is_not_ours(
    github: FakeGitHub, client: GitHubClient
) -> None:
    for author in ("stranger", None):
        github.issue("x", "<!-- perfci-changes: c1 -->\nmine", author, ["perfci"])
    tell(client, trend())
    assert len(github.issues) == 3
    assert [body.endswith("mine") for body in texts(github)] == [True, True, False]


def test_a_pull_request_in_the_list_is_no_issue(github: FakeGitHub, client: GitHubClient) -> None:
    one = github.issue("x", "<!-- perfci-changes: c1 -->\n", BOT, ["perfci"])
    one["pull_request"] = {"url": "", "html_url": "", "diff_url": "", "patch_url": ""}
    tell(client, trend())
    assert len(github.issues) == 2


def test_our_issue_is_found_behind_two_hundred_others(
    github: FakeGitHub, client: GitHubClient
) -> None:
    tell(client, trend())
    for number in range(230):
        github.issue(f"chat {number}", "", BOT, ["perfci"])
    assert tell(client, trend()) == ()


def test_beyond_the_cap_no_issue_is_opened_and_the_rest_is_counted(
    github: FakeGitHub, client: GitHubClient
) -> None:
    told = of(*many(MOST + 5))
    assert tell(client, told)[-1] == "no issue for 5 more regressions in the report"
    assert len(github.issues) == MOST


def test_thousands_of_hostile_regressions_keep_to_githubs_limits(
    github: FakeGitHub, client: GitHubClient
) -> None:
    name = "@<#1" * 200
    bad = [
        replace(one, series=SeriesKey(name, name + str(number), name), commits=(name, name))
        for number, one in enumerate(many(3100))
    ]
    tell(client, of(*bad))
    assert len(github.issues) == MOST
    assert max(map(len, texts(github))) <= 65_536
    assert max(len(one["title"]) for one in github.issues) <= 256


@pytest.mark.parametrize("fault", [Fault("POST", "", "after"), dropped("POST", "", "after")])
def test_an_issue_whose_answer_was_lost_is_not_opened_twice(
    github: FakeGitHub, client: GitHubClient, fault: Fault
) -> None:
    github.faults = [replace(fault, times=1)]
    tell(client, trend())
    assert len(github.issues) == 1
    assert len(github.wrote()) == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["POST", "PATCH", "GET"])
def test_each_regression_has_one_issue_whatever_fails_and_when(
    github: FakeGitHub, client: GitHubClient, method: str, when: str
) -> None:
    tell(client, of(*many(2)))
    changes = [replace(one, ratio=1.5) for one in many(9)]
    github.faults = [Fault(method, "", when, times=2)]
    tell(client, of(*changes))
    marks = sorted(body.split()[2] for body in texts(github))
    assert marks == sorted(mark_of(one.id) for one in changes)
    assert all("+50.0 %" in body for body in texts(github))


def test_what_was_opened_just_now_is_known_although_the_list_lags(
    github: FakeGitHub, client: GitHubClient
) -> None:
    def fail_the_third(operation: str) -> None:
        github.lag = len(github.issues) + 1
        if operation == "issues/create" and len(github.issues) == 1:
            github.faults = [Fault("POST", "")]

    github.before = fail_the_third
    tell(client, of(*many(4)))
    assert len(github.wrote()) == 5
    assert len(github.issues) == 4


def test_a_rate_limit_is_waited_for(
    github: FakeGitHub, client: GitHubClient, slept: list[float]
) -> None:
    github.faults = [limited("POST", "/issues$", 9), limited("GET", "/issues$", 7, status=429)]
    tell(client, trend())
    assert sorted(slept) == [7.0, 9.0]
    assert len(github.issues) == 1


def test_the_end_of_patience_is_an_error_and_the_next_report_goes_on(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.faults = [Fault("POST", "", times=5)]
    with pytest.raises(OutsideError, match="5 times over"):
        tell(client, of(*many(2)))
    tell(client, of(*many(2)))
    assert len(github.issues) == 2


def test_a_token_without_the_right_is_told_and_nothing_is_written(
    github: FakeGitHub, client: GitHubClient
) -> None:
    github.rights.discard("issues")
    with pytest.raises(Refused, match="Resource not accessible"):
        tell(client, trend())
    assert github.issues == []


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_stay_text_and_the_mark_stays_whole(
    github: FakeGitHub, client: GitHubClient, name: str
) -> None:
    key = SeriesKey(name + "e", name + "c", name + "m")
    told = of(change(name or "x", key, commits=(name, name), note=name))
    tell(client, told)
    (issue,) = github.issues
    page = with_markdown_it(issue["body"])
    assert set(page.tags) <= TAGS
    assert page.tags.count("comment") == 2
    assert not re.search(r"@octocat|https?://e|#123", page.plain + issue["title"])
    assert tell(client, told) == ()
    assert len(github.issues) == 1


def test_a_step_between_nights_of_one_commit_is_not_blamed_on_it(
    github: FakeGitHub, client: GitHubClient
) -> None:
    tell(client, of(change(commits=(SHAS[2], SHAS[2]))))
    (body,) = texts(github)
    assert "not the code" in body
    assert "Commit 2" not in body


def test_an_event_of_many_series_is_one_issue_that_names_each_and_is_closed_with_the_last(
    github: FakeGitHub, client: GitHubClient
) -> None:
    some = many(30)
    tell(client, trend(changes=some, events=(event(*some, identity="e1"),)))
    (issue,) = github.issues
    names = "case0, case1, case10 and 27 more"
    size = "+25.0 %, the largest +25.0 %"
    assert issue["title"] == f"perfci: 30 series of {names} got worse by {size}"
    body = issue["body"]
    assert body.startswith("<!-- perfci-changes: e1 -->\n")
    assert f"30 of 200 series got worse: **{size}**" in body
    assert "perfci history acknowledge e1 " in body
    assert "<code>case29</code>" in body
    known = [replace(one, status="known") for one in some]
    half = (*known[:29], replace(known[29], status="fixed"))
    tell(client, trend(changes=half, events=(event(*half, identity="e1"),)))
    assert github.issues[0]["state"] == "open"
    over = tuple(replace(one, status="fixed") for one in some)
    tell(client, trend(changes=over, events=(event(*over, identity="e1"),)))
    assert (github.issues[0]["state"], len(github.issues)) == ("closed", 1)
