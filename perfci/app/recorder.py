"""What a command measured, added to the history once its report is delivered."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfci.app.history.place import require_own
from perfci.app.notices import Say
from perfci.app.project import Project, cache_folder
from perfci.errors import UsageError
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.checkout.repository import Repository, Resolved
    from perfci.model.history import RecordedRun
    from perfci.model.report import Report
    from perfci.model.run import Run


# Changes of the working tree: refused where a commit is needed, and named where left out.

_NAMED = 3


def require_commit(
    repository: Repository, side: Resolved, slug: str, why: str, instead: str
) -> None:
    """Raise UsageError ``slug`` where ``side`` has changes: the first of them, and ``why`` not."""
    from perfci.render.clean import clean_line

    if not side.dirty:
        return
    changes = repository.changes(side)
    more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
    named = ", ".join(clean_line(name) for name in changes[:_NAMED])
    raise UsageError(
        slug,
        f"the working tree has changes, and {why}: {named}{more}",
        f"Commit them (what needn't be kept: ignore it, in .gitignore), or {instead}",
    )


def say_what_is_left_out(repository: Repository, say: Say, *sides: Resolved) -> None:
    """Say so where HEAD's commit is measured beside changes of the working tree, which are not."""
    from perfci.checkout.repository import WORKING_TREE

    if any(side.rev == WORKING_TREE for side in sides):
        return
    if repository.resolve("HEAD").sha in {side.sha for side in sides} and repository.is_dirty():
        say(
            "perfci: the working tree's uncommitted changes are on neither side; "
            "`.` in HEAD's place would measure them.",
            err=True,
        )


_NO_BRANCH = "(none)"


@dataclass(frozen=True, slots=True)
class Recorder:
    """Where the runs of one command go. ``sides`` are what was asked to be measured."""

    place: str
    repository: Repository
    sides: Sequence[Resolved]
    say: Say

    def record(self, runs: Sequence[Run], report: Report, *, quiet: bool) -> None:
        """Add ``runs`` and how the report ended.

        Where the history fails, what was measured goes to a file, which the error names.
        """
        from perfci.history.history import open_history
        from perfci.history.interchange import keeping
        from perfci.history.records import outcome_of

        if report.interrupted:
            self.say("perfci: interrupted; nothing was recorded.", err=True)
            return
        recorded = [
            self._recorded(run, side, report.command)
            for run, side in zip(runs, self.sides, strict=True)
        ]
        outcome = outcome_of(report, runner=runner_name())
        ended = [outcome] if outcome is not None else []
        with keeping([*recorded, *ended], cache_folder()), open_history(self.place) as history:
            new = history.record(recorded)
            for one in ended:
                history.record_outcome(one)
            shown = history.shown
        if not quiet:
            self.say(f"perfci: recorded {counted(new, 'run')} in {shown}", err=True)

    def _recorded(self, run: Run, side: Resolved, command: str) -> RecordedRun:
        from perfci.checkout.commits import commit_of
        from perfci.history.records import recorded_run

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


def recorder(project: Project, given: str | None, *sides: Resolved) -> Recorder:
    """Return where to record, after seeing that it can be done: measuring takes minutes.

    UsageError where a side is no commit, or is made worse on purpose.
    """
    from perfci.history.history import open_history

    for side in sides:
        require_commit(
            project.repository,
            side,
            "dirty-record",
            "the history holds commits",
            "name a commit: perfci run HEAD --record",
        )
    if project.config.settings.inject:
        raise UsageError(
            "injected-record",
            "--inject makes head worse on purpose, and the history holds what is true",
            "Leave out --record.",
        )
    place = project.history_place(given)
    with open_history(place) as history:
        history.require_writable()
        require_own(history, project.config, project.root)
    return Recorder(place, project.repository, sides, project.caller.say)


def runner_name() -> str:
    """Return this machine's name: the runner's in GitHub Actions, else the host's."""
    return os.environ.get("RUNNER_NAME") or platform.node()


def _branch(repository: Repository, side: Resolved) -> str:
    """Return the branch that ``side`` is a commit of, as far as it is known.

    A commit by itself, as CI checks out a pull request's, may be on no branch here.
    """
    from perfci.checkout.commits import branch_of

    name = branch_of(repository, "HEAD" if side.rev == "." else side.rev)
    try:
        on_it = repository.merge_base(side.commit, name) == side.commit
    except UsageError:  # a branch that this clone doesn't have
        on_it = False
    return name if on_it else _NO_BRANCH
