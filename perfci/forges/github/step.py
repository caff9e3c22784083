"""What GitHub Actions says in a step's environment: the event, the repository, the token."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.errors import OutsideError, UsageError
from perfci.files import read_regular, require_file
from perfci.notices import Say
from perfci.outputs import unwritable
from perfci.report.links import GITHUB

if TYPE_CHECKING:
    from perfci.forges.github.client import Client
    from perfci.forges.github.event import MergeGroup, Nothing, Wanted
    from perfci.forges.github.issues import IssueClient

addresses = GITHUB
_TOKEN = re.compile(r"[!-~]+")
_REPOSITORY = re.compile(r"[A-Za-z0-9_-]+/(?!\.{1,2}$)[A-Za-z0-9._-]+")
_MOST_SUMMARY = 1 << 20
"""What GitHub takes of a step's summary, in bytes; it drops all of a larger one."""


def wanted(
    pull: int | None, head_sha: str, event_path: Path | None
) -> Wanted | MergeGroup | Nothing:
    """Return what is to be posted to: the pull request given, or the event's."""
    from perfci.forges.github.event import read_event

    given = given_pull(pull, head_sha)
    if given is not None:
        return given
    if event_path is None:
        raise UsageError(
            "no-event",
            "no pull request is named",
            "Run it in a workflow, which sets GITHUB_EVENT_PATH, or give --pull NUMBER.",
        )
    return read_event(read_input(event_path, "Name the event's file."), str(event_path))


def given_pull(pull: int | None, head_sha: str) -> Wanted | None:
    """Return the pull request that the command line names; None where it names none."""
    from perfci.forges.github.event import Wanted, full_sha

    if pull is not None:
        return Wanted(pull, full_sha(head_sha, "--head-sha") if head_sha else "")
    if head_sha:
        raise UsageError(
            "no-pull", "--head-sha is given without --pull", "Name both, or leave it to the event."
        )
    return None


def read_input(path: Path, advice: str) -> bytes:
    """Return the bytes of a file that was named; OutsideError where it can't be read."""
    try:
        return read_regular(path)
    except OSError as error:
        raise OutsideError(
            "unreadable", f"{path} can't be read: {error.strerror or error}", advice
        ) from error


def client(repository: str | None, most_wait_s: float) -> Client:
    """Return the client of a repository, with the step's token."""
    token = _own_token("pull-requests: write and checks: write")
    repository = named(repository)
    from perfci.forges.github.client import Client
    from perfci.forges.rest import policy_of

    return Client(repository, token, _api_url(), policy_of(most_wait_s))


def issue_client(repository: str | None, most_wait_s: float) -> IssueClient:
    """Return the client of a repository's issues, with the step's token."""
    token = _own_token("issues: write")
    repository = named(repository)
    from perfci.forges.github.issues import IssueClient
    from perfci.forges.rest import policy_of

    return IssueClient(repository, token, _api_url(), policy_of(most_wait_s))


def _own_token(rights: str) -> str:
    return token_of(
        ("GITHUB_TOKEN",),
        "Give the step `env: GITHUB_TOKEN: ${{ github.token }}`, and its job the rights "
        f"{rights}.",
    )


def token_of(names: Sequence[str], advice: str) -> str:
    """Return the token of the first variable of ``names`` that has one; else UsageError."""
    token, name = next(
        ((text, name) for name in names if (text := os.environ.get(name, "").strip())),
        ("", names[0]),
    )
    if not token:
        raise UsageError("no-token", f"{name} is not set", advice)
    if _TOKEN.fullmatch(token) is None:
        raise UsageError(
            "bad-token",
            f"{name} holds a character that no token has",
            "Set it to the token alone, without quotes and line breaks.",
        )
    return token


def named(repository: str | None) -> str:
    """Return a repository's name as ``owner/name``; UsageError where it is none."""
    if repository is None or _REPOSITORY.fullmatch(repository) is None:
        raise UsageError(
            "no-repository",
            f"{repository!r} is no repository" if repository else "no repository is named",
            "Give --repository OWNER/NAME, or set GITHUB_REPOSITORY.",
        )
    return repository


def _api_url() -> str:
    return os.environ.get("GITHUB_API_URL") or "https://api.github.com"


def summarise(text: str, body_file: Path, say: Say) -> OutsideError | None:
    """Leave ``text`` where a reader of the job finds it, and say where.

    Return why that could not be, as a step that has more to do says in the end.
    """
    named = os.environ.get("GITHUB_STEP_SUMMARY", "")
    try:
        written = bool(named) and _append_summary(Path(named), text)
    except OSError as error:
        problem = unwritable(Path(named), error, f"The text is in {body_file}.")
        say(f"warning: {problem.message}; its text is in {body_file}", err=True)
        return problem
    where = "on the job's summary page and in" if written else "in"
    say(f"its text is {where} {body_file}", err=True)
    return None


def _append_summary(path: Path, text: str) -> bool:
    """Append ``text`` to the step's summary; False, and nothing written, where it is full.

    Raises OSError where the file can't be written.
    """
    require_file(path)
    content = ("\n" + text.rstrip("\n") + "\n").encode("utf-8", "replace")
    with path.open("ab") as file:
        if os.fstat(file.fileno()).st_size + len(content) > _MOST_SUMMARY:
            return False
        file.write(content)
    return True


def run_url() -> str:
    """Return the address of this run of the workflow; empty outside Actions."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, run = (os.environ.get(name, "") for name in names)
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""


def repository_url(repository: str | None) -> str:
    """Return the address of the repository that is posted to; empty outside Actions."""
    server = os.environ.get("GITHUB_SERVER_URL", "")
    return f"{server}/{repository}" if server and repository else ""


def attempt() -> str:
    """Return an id of this attempt of a run; empty outside Actions."""
    names = ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT")
    return "-".join(filter(None, (os.environ.get(name, "") for name in names)))
