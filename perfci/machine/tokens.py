"""Tokens and git credentials. A benchmark could read them, so nothing is measured beside one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfci.checkout.credentials import git_secrets
from perfci.errors import UsageError

TOKEN_NAMES = (
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_PAT",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "PERFCI_GITLAB_TOKEN",
    "GITLAB_TOKEN",
    "FORGEJO_TOKEN",
    "GITEA_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",  # by it, whoever reads it becomes the job elsewhere
)
OVERRIDE = "PERFCI_ALLOW_TOKEN"


def tokens_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the tokens that are set and not empty."""
    return tuple(name for name in TOKEN_NAMES if environment.get(name))


def overridden(environment: Mapping[str, str]) -> bool:
    """Return whether the environment says to measure beside a token all the same."""
    return environment.get(OVERRIDE) == "1"


def refuse_secrets(inherited: Mapping[str, str], root: Path) -> None:
    """Raise UsageError where benchmarks could read a token: in the environment, or kept by git."""
    if overridden(inherited):
        return
    trusting = f"Where you trust the code on both sides: --allow-token, or {OVERRIDE}=1."
    if present := tokens_in(inherited):
        raise UsageError(
            "token-in-environment",
            f"{present[0]} is set, and benchmarks are other people's code",
            f"Measure in a job without it (docs/security.md). {trusting}",
        )
    if kept := git_secrets(root).settings:
        raise UsageError(
            "token-in-git",
            f"git keeps a credential ({kept[0]}), and benchmarks are other people's code",
            f"Take it away; of actions/checkout: `persist-credentials: false`. {trusting}",
        )
