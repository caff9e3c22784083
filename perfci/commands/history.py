"""A project's history: its address, and what commands add to it.

Without an address it is a file per repository, named by its first commit, because two projects may
have benchmarks of one name.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.errors import UsageError
from perfci.files import expanded
from perfci.history.address import files_at, own_file
from perfci.measure.checkout.commits import branch_of, commit_of, first_commit
from perfci.measure.checkout.git import WORKING_TREE
from perfci.report.clean import clean_line
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.config.loading import Config
    from perfci.history.store import OpenHistory
    from perfci.measure.checkout.git import Repository, ResolvedRev
    from perfci.model.report import Report
    from perfci.model.run import RecordedRun, Run
    from perfci.outputs import Say

_CHANGES_NAMED = 3
"""Changed files of the working tree that an error names."""
_NO_BRANCH = "(none)"
"""Recorded as the branch of a commit that is on no known branch."""


def history_address(config: Config, root: Path) -> str:
    """Return the address of the history: as configured, or the repository's own file.

    A path is relative to the repository's ``root``. UsageError if nothing is named and no project
    is known: outside a repository, or in a shallow clone.
    """
    if config.history:
        return config.history if "://" in config.history else str(root / expanded(config.history))
    project = config.project or first_commit(root)
    if project is None:
        raise UsageError(
            "whose-history",
            f"the project of {root} is unknown: it is not a repository, or has no "
            "commits, or is a shallow clone, which lacks the first one",
            "Name the history, --history PLACE, or the project, `project` in [tool.perfci].",
        )
    return str(own_file(project))


def history_files(config: Config, root: Path) -> tuple[Path, ...]:
    """Return the files of a command's history. Empty if it is on a server, or is not known.

    A command that needs a project reports by itself that none is known.
    """
    try:
        return files_at(history_address(config, root))
    except UsageError:
        return ()


def require_own(history: OpenHistory, config: Config, root: Path) -> None:
    """Raise UsageError if ``history`` is another project's. An unknown project passes."""
    if project := config.project or first_commit(root):
        history.require_project(project)


def require_commit(
    repository: Repository, side: ResolvedRev, slug: str, why: str, instead: str
) -> None:
    """Raise UsageError ``slug`` if ``side`` has uncommitted changes.

    The message names the first changes and says ``why`` they matter. The advice ends with
    ``instead``.
    """
    if not side.dirty:
        return
    changes = repository.changes(side)
    more = f" and {len(changes) - _CHANGES_NAMED} more" if len(changes) > _CHANGES_NAMED else ""
    named = ", ".join(clean_line(name) for name in changes[:_CHANGES_NAMED])
    raise UsageError(
        slug,
        f"the working tree has changes, and {why}: {named}{more}",
        f"Commit them (or list them in .gitignore), or {instead}",
    )


def say_what_is_left_out(repository: Repository, say: Say, *sides: ResolvedRev) -> None:
    """Report if HEAD's commit is measured without the changes of the working tree."""
    if any(side.rev == WORKING_TREE for side in sides):
        return
    if repository.resolve("HEAD").sha in {side.sha for side in sides} and repository.is_dirty():
        say(
            "perfci: the working tree's uncommitted changes are on neither side. "
            "Name `.` instead of HEAD to measure them.",
            err=True,
        )


@dataclass(frozen=True, slots=True)
class Recorder:
    """Adds the runs of one command to the history at ``address``. ``sides`` are the revisions."""

    address: str
    repository: Repository
    sides: Sequence[ResolvedRev]
    say: Say

    def record(self, runs: Sequence[Run], report: Report) -> None:
        """Add ``runs``, which ``report`` is of, to the history."""
        from perfci.history.store import open_history

        if report.interrupted:
            self.say("perfci: interrupted. Nothing was recorded.", err=True)
            return
        recorded = [
            self._recorded(run, side, report.command)
            for run, side in zip(runs, self.sides, strict=True)
        ]
        with open_history(self.address) as history:
            new = history.record(recorded)
            shown = history.shown
        self.say(f"perfci: recorded {counted(new, 'run')} in {shown}", err=True)

    def _recorded(self, run: Run, side: ResolvedRev, command: str) -> RecordedRun:
        from perfci.history.runs import recorded_run

        commit = commit_of(self.repository, side.commit)
        return recorded_run(
            run,
            source=command,
            runner=runner_name(),
            subject=commit.subject,
            branch=_branch(self.repository, side),
            committed_at=commit.committed_at,
            position=commit.position,
        )


def recorder(repository: Repository, config: Config, say: Say, *sides: ResolvedRev) -> Recorder:
    """Return the recorder, after a check that it can write: measuring first would take minutes.

    UsageError if a side is not a commit, or is made worse on purpose.
    """
    from perfci.history.store import open_history

    for side in sides:
        require_commit(
            repository,
            side,
            "dirty-record",
            "the history holds commits",
            "name a commit: perfci run HEAD --record",
        )
    if config.settings.inject:
        raise UsageError(
            "injected-record",
            "--inject makes head worse on purpose, which would falsify the history",
            "Leave out --record.",
        )
    address = history_address(config, repository.root)
    with open_history(address) as history:
        history.require_writable()
        require_own(history, config, repository.root)
    return Recorder(address, repository, sides, say)


def runner_name() -> str:
    """Return this machine's name: the runner's in GitHub Actions, else the host's."""
    return os.environ.get("RUNNER_NAME") or platform.node()


def _branch(repository: Repository, side: ResolvedRev) -> str:
    """Return the branch that the commit of ``side`` is on, as far as it is known.

    A detached commit may be on no branch of this clone. CI checks out a pull request's commit so.
    """
    name = branch_of(repository, "HEAD" if side.rev == WORKING_TREE else side.rev)
    try:
        on_it = repository.merge_base(side.commit, name) == side.commit
    except UsageError:  # a branch that this clone doesn't have
        on_it = False
    return name if on_it else _NO_BRANCH
