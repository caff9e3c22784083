"""Where a step runs, and so where its report goes: each forge's module has what ``Place`` asks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perfci.forges.forge import Forge
    from perfci.forges.github.event import MergeGroup, Nothing, Wanted
    from perfci.report.links import Addresses

FORGES = ("github", "gitlab", "forgejo", "gitea")
"""What ``--forge`` takes; a Gitea is asked as a Forgejo is."""


class Place(Protocol):
    """What a forge's CI says in a step's environment."""

    @property
    def wanted(self) -> Callable[[int | None, str, Path | None], Wanted | MergeGroup | Nothing]:
        """What is to be posted to: the pull request given, or that of the step's event."""

    @property
    def client(self) -> Callable[[str | None, float], Forge]:
        """The client of a repository, with the step's token."""

    def run_url(self) -> str:
        """Return the address of this run; empty outside of the forge's CI."""

    @property
    def repository_url(self) -> Callable[[str | None], str]:
        """The address of the repository that is posted to; empty where it isn't known."""

    @property
    def addresses(self) -> Addresses:
        """Where the forge shows commits, lines and comments."""

    def attempt(self) -> str:
        """Return an id of this attempt of a run; empty outside of the forge's CI."""


def place_of(forge: str | None) -> Place:
    """Return the place of a forge's name; without one, that which the environment speaks of."""
    name = forge or found(os.environ)
    if name == "gitlab":
        from perfci.forges import gitlab

        return gitlab
    if name in {"forgejo", "gitea"}:
        from perfci.forges import forgejo

        return forgejo
    from perfci.forges.github import step

    return step


def found(environment: Mapping[str, str]) -> str:
    """Return the forge whose CI this is; GitHub where it is none that is known.

    Forgejo and Gitea set GitHub's variables as well, GITHUB_ACTIONS among them.
    """
    signs = {"GITLAB_CI": "gitlab", "FORGEJO_ACTIONS": "forgejo", "GITEA_ACTIONS": "gitea"}
    return next((forge for sign, forge in signs.items() if environment.get(sign)), "github")
