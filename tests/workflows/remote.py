"""A bare repository that jobs push to, and the step that pushes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.workflows.examples import run_step, step

IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "T"), ("EMAIL", "t@example.invalid"))
}


class Remote:
    """A bare repository that stands where GitHub's would, and clones of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bare = folder / "server" / "owner" / "name"
        self.bare.mkdir(parents=True)
        self.git(self.bare, "init", "--quiet", "--bare", "--initial-branch=main")
        first = folder / "first"
        self.git(folder, "clone", "--quiet", str(self.bare), str(first))
        (first / "lib.py").write_text("1\n")
        self.git(first, "add", "--all")
        self.git(first, "commit", "--quiet", "--message", "first")
        self.git(first, "push", "--quiet", "origin", "HEAD:main")

    def git(self, where: Path, *arguments: str) -> str:
        identity = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=where, check=True, capture_output=True, text=True
        )
        return done.stdout

    def checkout(self, name: str) -> Path:
        """Return a clone as actions/checkout leaves it: one commit deep, no credentials."""
        url = self.bare.as_uri()
        self.git(self.folder, "clone", "--quiet", "--depth=1", url, str(self.folder / name))
        return self.folder / name

    def push(
        self, workflow: dict[str, Any], checkout: Path, temporary: Path, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the workflow's step that commits and pushes, in ``checkout``."""
        return run_step(
            step(workflow, "Commit and push")["run"],
            checkout,
            **IDENTITY,
            RUNNER_TEMP=str(temporary),
            GITHUB_TOKEN="a-token",
            GITHUB_SERVER_URL=(self.folder / "server").as_uri(),
            GITHUB_REPOSITORY="owner/name",
            COMMIT="0123456789abcdef",
            **environment,
        )
