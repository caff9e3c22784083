"""Everything that leaves the machine: forges, the CI step that posts to one, and webhooks.

Nothing here decides. For a report, a forge gets one comment and one check. For a trend, it gets one
issue per regression. The step's event and the forge say where a report may be posted, never the
report.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from perfci.errors import UsageError

if TYPE_CHECKING:
    from perfci.forges.base import MergeGroup, NothingToPost, PostTarget
    from perfci.forges.forgejo import ForgejoClient
    from perfci.forges.github import GitHubClient
    from perfci.forges.gitlab import GitLabClient
    from perfci.report.links import Addresses

    Forge: TypeAlias = GitHubClient | GitLabClient | ForgejoClient

FORGES = ("github", "gitlab", "forgejo", "gitea")
"""The names that ``--forge`` takes. Gitea is used like Forgejo."""
_TOKEN = re.compile(r"[!-~]+")
"""Printable ASCII without blanks."""


@dataclass(frozen=True, slots=True)
class CiStep:
    """The functions that read a step's environment, one set for each forge.

    ``target`` takes a pull request (a number and a head) and the file of the step's event. It
    returns the former as a target, else that of the event. ``client`` takes a repository and the
    longest wait in s, and uses the step's token. ``run_url``, ``repository_url`` and ``attempt``
    return the address of this run, that of a repository, and an id of this attempt of the run. Each
    is empty if it isn't known. ``addresses`` is where the forge shows commits.
    """

    target: Callable[[int | None, str, Path | None], PostTarget | MergeGroup | NothingToPost]
    client: Callable[[str | None, float], Forge]
    run_url: Callable[[], str]
    repository_url: Callable[[str | None], str]
    attempt: Callable[[], str]
    addresses: Addresses


def step_of(forge: str | None) -> CiStep:
    """Return the step of the named forge, or of the forge whose CI this is."""
    name = forge or forge_of(os.environ)
    if name == "gitlab":
        from perfci.forges.gitlab import STEP
    elif name in {"forgejo", "gitea"}:
        from perfci.forges.forgejo import STEP
    else:
        from perfci.forges.actions import STEP
    return STEP


def forge_of(environment: Mapping[str, str]) -> str:
    """Return the forge whose CI this is, and GitHub where none is known.

    Forgejo and Gitea set GitHub's variables as well, GITHUB_ACTIONS among them.
    """
    signs = {"GITLAB_CI": "gitlab", "FORGEJO_ACTIONS": "forgejo", "GITEA_ACTIONS": "gitea"}
    return next((forge for sign, forge in signs.items() if environment.get(sign)), "github")


def given_pull(pull: int | None, head_sha: str) -> PostTarget | None:
    """Return the pull request that the command line names, or None where it names none."""
    from perfci.forges.base import PostTarget, full_sha

    if pull is not None:
        return PostTarget(pull, full_sha(head_sha, "--head-sha") if head_sha else "")
    if head_sha:
        raise UsageError(
            "no-pull", "--head-sha is given without --pull", "Name both, or leave it to the event."
        )
    return None


def token_of(names: Sequence[str], advice: str) -> str:
    """Return the token of the first variable of ``names`` that has one, else UsageError."""
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
