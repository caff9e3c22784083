"""How the job that comments installs perfci: what it depends on by hash, perfci by its commit.

That job's token can write. A package that isn't pinned by its content is code of whoever can
upload its next version.
"""

from __future__ import annotations

from perfci.cli.own_requirement import own_requirement
from perfci.errors import UsageError

REQUIREMENTS = "perfci-requirements.txt"
"""Beside the workflows: `make lock` wrote it, with hashes."""

REPORT_PYTHON = "3.12"
"""One that the requirements have wheels for, and perfci's own tests run on."""


def locked_install(folder: str) -> tuple[str, ...]:
    """Return the commands, with the requirements in ``folder``.

    UsageError where perfci is of a place that no other machine can install from.
    """
    own = own_requirement()
    if own.doubt:
        raise UsageError(
            "of-a-folder",
            own.doubt,
            "Install perfci from its repository, `pip install 'perfci @ git+https://…@COMMIT'`, or "
            "say both how the jobs that measure get it, --install, and how the one that comments "
            "does, whose token can write: --report-install.",
        )
    # the build backend is among the requirements: none is fetched for the build
    return (
        f"python -m pip install --require-hashes --only-binary :all: -r {folder}/{REQUIREMENTS}",
        f"python -m pip install --no-deps --no-build-isolation '{own.text}'",
    )
