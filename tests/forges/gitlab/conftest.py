"""A fake GitLab with merge request 7, a client of it that never sleeps, and a job's command."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from perfci.forges.gitlab import GitLabClient
from perfci.forges.http import Pace, RetryPolicy
from tests.builders.project import Done, Project
from tests.forges.github.conftest import BASE, HEAD, MERGE
from tests.forges.gitlab.server import PROJECT, TOKEN, FakeGitLab, MergeRequest

PAGE = "https://gitlab.example/octo/models"


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitLab]:
    """A GitLab; at the end, nothing may have broken the description of its API."""
    monkeypatch.setattr("perfci.forges.rest.GUIDE", Pace())
    fake = FakeGitLab()
    fake.merge_requests[7] = MergeRequest(7, HEAD)
    fake.commits |= {BASE: (), HEAD: (BASE,), MERGE: (BASE, HEAD)}
    fake.branches |= {"main": BASE, "feature": HEAD}
    fake.pipelines.add(HEAD)
    yield fake
    fake.close()
    assert fake.violations == []


@pytest.fixture
def client(gitlab: FakeGitLab, slept: list[float]) -> Iterator[GitLabClient]:
    """A client with a token that may do everything."""
    policy = RetryPolicy(most=120.0, tries=4, timeout=120.0, option="--patience")
    one = GitLabClient(
        *(str(PROJECT), TOKEN, gitlab.api, policy, Pace(), slept.append, lambda: 1_000_000.0),
        page=PAGE,
    )
    yield one
    one.close()


@pytest.fixture
def job(project: Project, gitlab: FakeGitLab) -> Callable[..., Done]:
    """Run the command in a job of the merge request's pipeline."""

    def perfci(*arguments: object, **environment: str) -> Done:
        variables = {
            "GITLAB_CI": "true",
            "CI_SERVER_URL": "https://gitlab.example",
            "CI_API_V4_URL": gitlab.api,
            "CI_PROJECT_ID": str(PROJECT),
            "CI_PROJECT_URL": PAGE,
            "CI_COMMIT_SHA": HEAD,
            "CI_DEFAULT_BRANCH": "main",
            "CI_JOB_ID": "99",
            "CI_JOB_URL": f"{PAGE}/-/jobs/99",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_MERGE_REQUEST_PROJECT_ID": str(PROJECT),
            "CI_MERGE_REQUEST_PROJECT_URL": PAGE,
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": str(PROJECT),
            "PERFCI_GITLAB_TOKEN": TOKEN,
        }
        given = {name: text for name, text in (variables | environment).items() if text}
        done = project.perfci("comment", *map(str, arguments), **given)
        assert TOKEN not in done.text
        return done.without_traceback()

    return perfci
