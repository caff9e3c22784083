"""The tokens beside which nothing is measured: a benchmark could read them, and write elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

TOKEN_NAMES = (
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_PAT",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",  # by it, whoever reads it becomes the job elsewhere
)
OVERRIDE = "PERFCI_ALLOW_TOKEN"


def tokens_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the tokens that are set; an empty one is none."""
    return tuple(name for name in TOKEN_NAMES if environment.get(name))


def overridden(environment: Mapping[str, str]) -> bool:
    """Return whether the environment says to measure beside a token all the same."""
    return environment.get(OVERRIDE) == "1"
