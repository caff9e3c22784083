"""Which pull request an event is about, and that only GitHub is believed about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfci.errors import UsageError
from perfci.forges.actions import read_event
from perfci.forges.base import (
    AmbiguousPull,
    MergeGroup,
    NothingToPost,
    PostTarget,
    Pull,
    choose,
    post_refusal,
)
from tests.forges.github.conftest import BASE, HEAD, OLDER

FORK = "stranger/models"


def run_event(**changed: Any) -> str:
    run = {
        "event": "pull_request",
        "head_sha": HEAD,
        "head_branch": "feature",
        "head_repository": {"full_name": FORK, "owner": {"login": "stranger"}},
        "pull_requests": [],
        **changed,
    }
    return json.dumps({"action": "completed", "workflow_run": run})


def test_a_pull_request_event_names_its_pull_request_and_head() -> None:
    event = {"pull_request": {"number": 7, "head": {"sha": HEAD, "ref": "feature"}}}
    assert read_event(json.dumps(event), "event.json") == PostTarget(7, HEAD)


def test_a_run_of_a_fork_is_looked_up_by_its_branch() -> None:
    wanted = read_event(run_event(), "event.json")
    assert wanted == PostTarget(0, HEAD, "stranger:feature", FORK)


@pytest.mark.parametrize(
    "event", ["push", "pull_request_target", "pull_request_review", "pull_request\n", ""]
)
def test_a_run_that_no_pull_request_event_started_is_not_posted(event: str) -> None:
    assert isinstance(read_event(run_event(event=event), "event.json"), NothingToPost)


def test_a_merge_group_is_its_commit_and_the_one_before() -> None:
    event = {"action": "checks_requested", "merge_group": {"head_sha": HEAD, "base_sha": BASE}}
    assert read_event(json.dumps(event), "event.json") == MergeGroup(HEAD, BASE)


HERE = {"full_name": "octo/models", "owner": {"login": "octo"}}


def queued(branch: str = f"gh-readonly-queue/release/1.x/pr-7-{BASE}", **changed: Any) -> str:
    of_run: dict[str, Any] = {"event": "merge_group", "head_branch": branch}
    run = json.loads(run_event(**of_run | {"head_repository": HERE} | changed))
    return json.dumps(run | {"repository": {**HERE, "full_name": "Octo/Models"}})


def test_a_run_of_a_merge_group_says_what_it_is_built_on_by_its_branch() -> None:
    assert read_event(queued(), "event.json") == MergeGroup(HEAD, BASE)


@pytest.mark.parametrize(
    "branch",
    [
        f"gh-readonly-queue/main/pr-7-{BASE[1:]}",
        f"gh-readonly-queue/main/pr-{BASE}",
        f"queue/main/pr-7-{BASE}",
        f"gh-readonly-queue/main/pr-7-{BASE}\n",
        "main",
    ],
)
def test_a_branch_of_another_name_does_not_say_it(branch: str) -> None:
    assert read_event(queued(branch), "event.json") == MergeGroup(HEAD)


@pytest.mark.parametrize(
    "text",
    [
        queued(head_repository={"full_name": FORK, "owner": {"login": "stranger"}}),
        queued(head_repository=None),
        run_event(event="merge_group", head_repository=HERE),
    ],
    ids=["a fork's", "nobody's", "whose isn't said"],
)
def test_a_merge_group_that_is_not_known_to_be_ours_is_not_posted(text: str) -> None:
    assert isinstance(read_event(text, "event.json"), NothingToPost)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"pull_request": {"number": "7", "head": {"sha": "' + HEAD + '"}}}',
        '{"pull_request": {"number": 7, "head": {"sha": "main"}}}',
        '{"pull_request": {"number": 0, "head": {"sha": "' + HEAD + '"}}}',
        '{"pull_request": {"number": -7, "head": {"sha": "' + HEAD + '"}}}',
        run_event(head_sha="$(id)"),
        queued(head_sha="$(id)"),
        '{"merge_group": {"head_sha": "main", "base_sha": "' + BASE + '"}}',
        '{"merge_group": {"head_sha": "' + HEAD + '", "base_sha": "main"}}',
        '{"merge_group": {"head_sha": "' + HEAD + '"}}',
    ],
)
def test_what_is_no_event_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"event\.json"):
        read_event(text, "event.json")


WANTED = PostTarget(0, HEAD, "stranger:feature", FORK)


def test_the_pull_request_with_the_measured_head_is_chosen() -> None:
    pulls = [Pull(6, OLDER, FORK, True, "main"), Pull(7, HEAD, FORK.upper(), True, "main")]
    assert choose(pulls, WANTED) == pulls[1]


@pytest.mark.parametrize(
    ("pulls", "why"),
    [
        ([], "no open pull request"),
        ([Pull(7, HEAD, FORK, False, "main")], "no open pull request"),
        ([Pull(7, HEAD, "octo/models", True, "main")], "no open pull request"),
        ([Pull(7, OLDER, FORK, True, "main")], "newer head"),
        ([Pull(7, HEAD, FORK, True, "main"), Pull(8, HEAD, FORK, True, "main")], "#7, #8"),
    ],
)
def test_nothing_is_chosen_where_it_is_not_certain(pulls: list[Pull], why: str) -> None:
    chosen = choose(pulls, WANTED)
    assert isinstance(chosen, AmbiguousPull if "#8" in why else NothingToPost)
    assert why in chosen.reason


def test_only_an_open_pull_request_at_the_measured_head_is_posted_to() -> None:
    assert post_refusal(Pull(7, HEAD, FORK, True, "main"), HEAD) is None
    assert post_refusal(Pull(7, HEAD, FORK, False, "main"), HEAD) == NothingToPost(
        "pull request #7 is closed"
    )
    moved = post_refusal(Pull(7, OLDER, FORK, True, "main"), HEAD)
    assert moved is not None
    assert "newer head" in moved.reason
