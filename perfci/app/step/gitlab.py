"""What GitLab CI says in a job's environment: the merge request, the project, the token."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.app.step.github import given_pull, token_of
from perfci.errors import UsageError
from perfci.render.links import GITLAB

if TYPE_CHECKING:
    from perfci.publish.github.event import Nothing, Wanted
    from perfci.publish.gitlab.client import Client

addresses = GITLAB
_PROJECT = re.compile(r"[0-9]{1,12}|[A-Za-z0-9_][\w.-]*(/(?!\.{1,2}(/|$))[\w.-]+)+", re.ASCII)


def wanted(pull: int | None, head_sha: str, _event_path: Path | None) -> Wanted | Nothing:
    """Return what is to be posted to: the merge request given, or the pipeline's."""
    from perfci.publish.gitlab.job import read_job

    given = given_pull(pull, head_sha)
    if given is not None:
        return given
    if not os.environ.get("CI_COMMIT_SHA"):
        raise UsageError(
            "no-event",
            "no merge request is named",
            "Run it in a merge request's pipeline, or give --pull NUMBER.",
        )
    return read_job(os.environ)


def client(repository: str | None, most_wait_s: float) -> Client:
    """Return the client of the project that the merge request is in, with the job's token."""
    token = token_of(
        ("PERFCI_GITLAB_TOKEN",),
        "Give the job a variable of that name with a project access token that may use the API "
        "(docs/forges.md).",
    )
    project = repository or _first("CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID")
    if _PROJECT.fullmatch(project) is None:
        raise UsageError(
            "no-repository",
            f"{project!r} is no project" if project else "no project is named",
            "Give --repository GROUP/NAME, or the project's number.",
        )
    from perfci.publish.gitlab.client import SERVICE, Client
    from perfci.publish.rest import policy_of

    api_url = os.environ.get("CI_API_V4_URL") or SERVICE.example
    return Client(project, token, api_url, policy_of(most_wait_s), repository_url(repository))


def run_url() -> str:
    """Return the address of this job; empty outside of GitLab CI."""
    return os.environ.get("CI_JOB_URL", "")


def repository_url(repository: str | None) -> str:
    """Return the page of the project that is posted to; empty where it isn't known."""
    server = os.environ.get("CI_SERVER_URL", "")
    if repository and not repository.isdigit():
        return f"{server}/{repository}" if server else ""
    return "" if repository else _first("CI_MERGE_REQUEST_PROJECT_URL", "CI_PROJECT_URL")


def attempt() -> str:
    """Return an id of this job; GitLab gives a job that is started again another."""
    return os.environ.get("CI_JOB_ID", "")


def _first(*names: str) -> str:
    return next((text for name in names if (text := os.environ.get(name, ""))), "")
