"""A fake GitHub with pull request 7, a client of it that never sleeps, and reports about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfci.forges.github import GitHubClient
from perfci.model.case import Failure
from perfci.model.report import Report, Verdict
from perfci.model.run import Side
from perfci.verdict.decision import decide, failure_rows
from perfci.verdict.policy import Policy
from tests.builders.project import Done, Project
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub, Pull
from tests.report.examples import passing_report, rich_report

HEAD = "b" * 40
OLDER = "c" * 40
BASE = "a" * 40
MERGE = "d" * 40
FORK = "stranger/models"
PASSING: dict[str, Any] = {
    "verdict": Verdict("pass", ()),
    "results": passing_report().results,
    "failures": (),
    "explanations": (),
    "not_measured": dict.fromkeys(
        ("peak_host_memory", "host_memory_over_setup"), "no memory in /proc"
    ),
}
"""What makes the report one in which nothing moved."""
_KILLED = Failure("killed", "base", "measure", "SIGKILL", "crashed with SIGKILL")
_ROWS = (*passing_report().results, *failure_rows((_KILLED,), (), Policy()))
BASE_FAILED: dict[str, Any] = PASSING | {
    "verdict": decide(_ROWS, (_KILLED,), Policy()),
    "results": _ROWS,
    "failures": (_KILLED,),
}
"""What makes the report one in which base alone failed a case that it has."""
Comment = Callable[..., Done]


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """A GitHub; at the end, nothing may have broken GitHub's description."""
    fake = FakeGitHub()
    fake.pulls[7] = Pull(7, HEAD)
    fake.commits |= {BASE: (), HEAD: (BASE,), MERGE: (BASE, HEAD)}
    yield fake
    fake.close()
    assert fake.violations == []


@pytest.fixture
def client(github: FakeGitHub, slept: list[float]) -> Iterator[GitHubClient]:
    """A client with a token that may do everything."""
    one = GitHubClient(REPOSITORY, TOKEN, github.url, 120.0, slept.append, lambda: 1_000_000.0)
    yield one
    one.close()


@pytest.fixture
def comment(project: Project, github: FakeGitHub, tmp_path: Path) -> Comment:
    """Run the command in a step of the run that measured pull request 7 of a fork."""
    github.pulls[7] = Pull(7, HEAD, source=FORK)
    event = tmp_path / "event.json"
    run = {
        "event": "pull_request",
        "head_sha": HEAD,
        "head_branch": "feature",
        "head_repository": {"full_name": FORK, "owner": {"login": "stranger"}},
    }
    event.write_text(json.dumps({"workflow_run": run}))

    def perfci(*arguments: object, **environment: str) -> Done:
        step = {
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": github.url,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "12",
            "GITHUB_RUN_ATTEMPT": "1",
        }
        done = project.perfci("comment", *map(str, arguments), **step | environment)
        assert TOKEN not in done.text
        return done.without_traceback()

    return perfci


def report_of(sha: str = HEAD, **changed: Any) -> Report:
    """Return a report with something of everything, whose head is the commit ``sha``."""
    report = rich_report(**changed)
    return replace(report, head=Side("HEAD", sha, report.head.python))
