"""What Forgejo's and Gitea's Actions say in a step's environment: GitHub's words, another forge."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from perfci.app.step.github import attempt, named, repository_url, run_url, token_of, wanted
from perfci.render.links import FORGEJO

if TYPE_CHECKING:
    from perfci.publish.forgejo.client import Client

__all__ = ["addresses", "attempt", "client", "repository_url", "run_url", "wanted"]
addresses = FORGEJO


def client(repository: str | None, most_wait_s: float) -> Client:
    """Return the client of a repository, with the step's token."""
    token = token_of(
        ("FORGEJO_TOKEN", "GITEA_TOKEN", "GITHUB_TOKEN"),
        "Run it in a workflow, or set FORGEJO_TOKEN to a token that may write issues and the "
        "repository (docs/forges.md).",
    )
    repository = named(repository)
    from perfci.publish.forgejo.client import Client
    from perfci.publish.rest import policy_of

    api_url = os.environ.get("GITHUB_API_URL", "")
    return Client(repository, token, api_url, policy_of(most_wait_s))
