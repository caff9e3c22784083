"""The results of a command, added to the history, and what is remembered in the cache folder.

Remembered are the cases that failed in the last comparison, for ``--last-failed``, and the names of
all cases, for shell completion. No verdict depends on them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perfci.commands.project import Project, cache_folder, require_own
from perfci.errors import DamagedFile, UsageError
from perfci.files import read_regular, write_file
from perfci.measure.checkout.git import Repository
from perfci.model.case import Case
from perfci.model.codec import CodecError, decode, encode
from perfci.model.report import Report
from perfci.model.status import traits
from perfci.outputs import Say
from perfci.units import counted, first_of

if TYPE_CHECKING:
    from perfci.measure.checkout.git import ResolvedRev
    from perfci.model.run import RecordedRun, Run

_NAMED = 3
_NO_BRANCH = "(none)"


def require_commit(
    repository: Repository, side: ResolvedRev, slug: str, why: str, instead: str
) -> None:
    """Raise UsageError ``slug`` where ``side`` has changes, with the first of them and ``why``."""
    from perfci.report.clean import clean_line

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


def say_what_is_left_out(repository: Repository, say: Say, *sides: ResolvedRev) -> None:
    """Report that HEAD's commit is measured without the changes of the working tree."""
    from perfci.measure.checkout.git import WORKING_TREE

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
    """The history for the runs of one command. ``sides`` are the revisions to measure."""

    address: str
    repository: Repository
    sides: Sequence[ResolvedRev]
    say: Say

    def record(self, runs: Sequence[Run], report: Report, *, quiet: bool) -> None:
        """Add ``runs`` and the report's outcome to the history.

        Where the history fails, they are written to a file, which the error names.
        """
        from perfci.history.history import open_history
        from perfci.history.interchange import keeping
        from perfci.history.records import outcome_of

        if report.interrupted:
            self.say("perfci: interrupted. Nothing was recorded.", err=True)
            return
        recorded = [
            self._recorded(run, side, report.command)
            for run, side in zip(runs, self.sides, strict=True)
        ]
        outcome = outcome_of(report, runner=runner_name())
        ended = [outcome] if outcome is not None else []
        with keeping([*recorded, *ended], cache_folder()), open_history(self.address) as history:
            new = history.record(recorded)
            for outcome in ended:
                history.record_outcome(outcome)
            shown = history.shown
        if not quiet:
            self.say(f"perfci: recorded {counted(new, 'run')} in {shown}", err=True)

    def _recorded(self, run: Run, side: ResolvedRev, command: str) -> RecordedRun:
        from perfci.history.records import recorded_run
        from perfci.measure.checkout.commits import commit_of

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


def recorder(project: Project, given: str | None, *sides: ResolvedRev) -> Recorder:
    """Return the recorder, after checking that it can write, because measuring takes minutes.

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
            "--inject makes head worse on purpose, which would falsify the history",
            "Leave out --record.",
        )
    address = project.history_address(given)
    with open_history(address) as history:
        history.require_writable()
        require_own(history, project.config, project.root)
    return Recorder(address, project.repository, sides, project.caller.say)


def runner_name() -> str:
    """Return this machine's name: the runner's in GitHub Actions, else the host's."""
    return os.environ.get("RUNNER_NAME") or platform.node()


def _branch(repository: Repository, side: ResolvedRev) -> str:
    """Return the branch that ``side`` is a commit of, as far as it is known.

    A detached commit, as CI checks out a pull request's, may be on no branch here.
    """
    from perfci.measure.checkout.commits import branch_of

    name = branch_of(repository, "HEAD" if side.rev == "." else side.rev)
    try:
        on_it = repository.merge_base(side.commit, name) == side.commit
    except UsageError:  # a branch that this clone doesn't have
        on_it = False
    return name if on_it else _NO_BRANCH


@dataclass(frozen=True, slots=True)
class RememberedCases:
    """Cases of the last comparison, ``asked`` ``at`` a time. Both are empty before the first.

    ``failed`` has by case the metrics that regressed, and no metric for a case or file that failed.
    ``names`` are the ids of all cases, ``tags`` their tags.
    """

    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked: str = ""
    at: str = ""
    schema: Literal["perfci.remembered/1"] = "perfci.remembered/1"


class CaseMemory:
    """The file of one repository, shared by all its worktrees."""

    def __init__(self, cache: Path, repository: Repository) -> None:
        self.path = cache / repository.id / "remembered.json"

    def read(self) -> RememberedCases:
        """Return what is kept, or nothing before the first. DamagedFile for anything else."""
        try:
            return decode(read_regular(self.path), RememberedCases)
        except FileNotFoundError:
            return RememberedCases()
        except (CodecError, OSError) as error:
            raise DamagedFile(
                "damaged-memory",
                f"{self.path}, which says what failed last, can't be read: {error}",
                "Leave out --last-failed. The next comparison writes the file again.",
            ) from error

    def keep_cases(self, cases: Iterable[Case]) -> None:
        """Keep the names of the cases. OSError where the cache folder can't be written."""
        cases = tuple(cases)
        names = tuple(case.id for case in cases)
        tags = tuple(sorted({tag for case in cases for tag in case.tags}))
        before = self._before()
        if (before.names, before.tags) != (names, tags):
            self._write(replace(before, names=names, tags=tags))

    def keep_failed(self, report: Report, *, asked: str, whole: bool) -> None:
        """Keep what failed in ``report``. OSError where the cache folder can't be written.

        Cases that the report lacks stay, unless it is of the ``whole``. So do cases whose metric it
        couldn't decide.
        """
        before = self._before()
        failed = failed_after(before.failed, report, whole=whole)
        self._write(replace(before, failed=failed, asked=asked, at=report.created_at))

    def last_failed(self) -> RememberedCases:
        """Return the kept cases. UsageError where none failed, or nothing was compared yet."""
        kept = self.read()
        if kept.failed:
            return kept
        raise UsageError(
            "nothing-failed",
            f"no case regressed or failed in the last comparison, {kept.asked} of {kept.at}"
            if kept.asked
            else "no comparison of this repository was made on this machine yet",
            "Leave out --last-failed to measure all cases.",
        )

    def _before(self) -> RememberedCases:
        try:
            return self.read()
        except DamagedFile:  # it is written again
            return RememberedCases()

    def _write(self, kept: RememberedCases) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.path, encode(kept))


def failed_after(
    before: Mapping[str, tuple[str, ...]], report: Report, *, whole: bool
) -> dict[str, tuple[str, ...]]:
    """Return what failed after ``report``: its cases as it decided them, the others as before.

    A metric that regressed before and is undecided now may not be mended.
    """
    broken = {failure.case for failure in report.failures}
    failed: dict[str, list[str]] = {}
    for row in report.results:
        again = row.metric in before.get(row.case, ()) and row.status == "inconclusive"
        worse = traits(row.status).sense == "worse"
        if again or (worse and row.gate != "info" and not row.accepted):
            failed.setdefault(row.case, []).append(row.metric)
    seen = broken | {row.case for row in report.results}
    kept = {case: names for case, names in before.items() if case not in seen and not whole}
    now = {case: tuple(names) for case, names in failed.items() if case not in broken}
    return kept | dict.fromkeys(sorted(broken), ()) | now


def taken_text(kept: RememberedCases) -> str:
    """Return the cases that ``--last-failed`` measures, and their comparison, in words."""
    shown = first_of(list(kept.failed), 5)
    return f"--last-failed: {counted(len(kept.failed), 'case')} of {kept.asked}, {kept.at}: {shown}"
