"""Which pull request an event is about, and that only GitHub is believed about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfci.errors import UsageError
from perfci.forges.actions import NothingToPost, PostTarget, read_event
from tests.forges.github.conftest import BASE, HEAD

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
    assert read_event(json.dumps(event), "event.json") == PostTarget(HEAD, 7)


def test_a_run_of_a_fork_is_looked_up_by_its_branch() -> None:
    wanted = read_event(run_event(), "event.json")
    assert wanted == PostTarget(HEAD, branch="stranger:feature", source=FORK)


@pytest.mark.parametrize(
    "event", ["push", "pull_request_target", "pull_request_review", "pull_request\n", ""]
)
def test_a_run_that_no_pull_request_event_started_is_not_posted(event: str) -> None:
    with pytest.raises(NothingToPost):
        read_event(run_event(event=event), "event.json")


def test_a_merge_group_is_its_commit() -> None:
    event = {"action": "checks_requested", "merge_group": {"head_sha": HEAD, "base_sha": BASE}}
    assert read_event(json.dumps(event), "event.json") == PostTarget(HEAD, own=True, group=True)


HERE = {"full_name": "octo/models", "owner": {"login": "octo"}}


def queued(branch: str = f"gh-readonly-queue/release/1.x/pr-7-{BASE}", **changed: Any) -> str:
    of_run: dict[str, Any] = {"event": "merge_group", "head_branch": branch}
    run = json.loads(run_event(**of_run | {"head_repository": HERE} | changed))
    return json.dumps(run | {"repository": {**HERE, "full_name": "Octo/Models"}})


def test_a_run_of_a_merge_group_is_about_its_commit() -> None:
    assert read_event(queued(), "event.json") == PostTarget(HEAD, own=True, group=True)


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
    with pytest.raises(NothingToPost):
        read_event(text, "event.json")


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
    ],
)
def test_what_is_no_event_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"event\.json"):
        read_event(text, "event.json")
