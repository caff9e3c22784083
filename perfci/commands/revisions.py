"""Named revisions compared, checked, run, explained or stored as a baseline."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.baselines import BaselineStore, keep_alike, kept_alike
from perfci.commands.check import alike_cases, check
from perfci.commands.compare import MeasureOptions, compare, run, selected_cases
from perfci.commands.history import recorder, require_commit, say_what_is_left_out
from perfci.commands.project import Project, cache_folder, load_report
from perfci.config.loading import OWN_FILE, PROJECT_FILE, parse_config
from perfci.errors import MeasureError, UsageError, refusal
from perfci.finding import Why
from perfci.measure.checkout.commits import file_at, newer_on_base
from perfci.measure.checkout.git import WORKING_TREE
from perfci.measure.explaining import explain_case
from perfci.measure.progress import case_states
from perfci.measure.selection import is_whole, least_workers
from perfci.measure.workplace import open_workplace
from perfci.model.report import Comparison
from perfci.outputs import Say
from perfci.report.clean import clean_line
from perfci.units import counted, first_of
from perfci.verdict.policy import Policy

if TYPE_CHECKING:
    from perfci.commands.history import Recorder
    from perfci.config.keys import MeasureSettings
    from perfci.measure.checkout.git import Repository, ResolvedRev
    from perfci.measure.workplace import RequestedSide
    from perfci.model.report import Report
    from perfci.model.run import Run

_FILES = (OWN_FILE, PROJECT_FILE)
_RULES = ("alpha", "cohens_d", "allow_broken", "thresholds")
"""Rules of a policy, besides those of each metric, by which a change of the code could pass."""


@dataclass(frozen=True, slots=True)
class RecordableReport:
    """A report, and the recorder of its runs if they are recorded."""

    report: Report
    runs: tuple[Run, ...]
    recorder: Recorder | None

    def record(self) -> None:
        """Add the runs to the history if that was requested. Callers deliver the report before."""
        if self.recorder is not None:
            self.recorder.record(self.runs, self.report)


def compare_revisions(
    project: Project,
    base: str,
    head: str,
    options: MeasureOptions,
    *,
    benchmarks_of: str | None = None,
) -> RecordableReport:
    """Measure both revisions side by side, with head's benchmark files or those of a revision."""
    project.check_outputs(options.outputs)
    base, head = _sides_of(project.repository, base, head)

    base_side = project.side("base", base, options.base_python)
    head_side = project.side("head", head, options.head_python)
    if not options.same and not project.config.settings.inject:
        require_two_sides(base_side, head_side)
    sides = (base_side.resolved, head_side.resolved)
    say_what_is_left_out(project.repository, project.caller.say, *sides)
    recording = _recorder(project, options, *sides)
    session_options = replace(
        options,
        why=project.config.why,
        benchmarks_of=project.repository.resolve(benchmarks_of) if benchmarks_of else None,
    )
    runs, report = compare(
        project.session_context(), base_side, head_side, session_options, project.caller.announce
    )
    notes = (*_newer_base(project, *sides), *_changed_rules(project, sides[0]))
    return RecordableReport(replace(report, notes=(*report.notes, *notes)), runs, recording)


def _sides_of(repository: Repository, base: str, head: str) -> tuple[str, str]:
    """Return both revisions. A base ``A...B`` is where A and B parted, and head is then B."""
    left, dots, right = base.partition("...")
    if not dots:
        return base, head
    parted = repository.merge_base(left, right or head)
    if parted is None:
        raise UsageError(
            "no-fork-point",
            f"{left} and {right or head} have no common ancestor in this clone",
            "Fetch more of their history (actions/checkout: `fetch-depth: 0`), or name a base.",
        )
    return parted, right if right and head == WORKING_TREE else head


def _newer_base(project: Project, base: ResolvedRev, head: ResolvedRev) -> Iterator[str]:
    """Yield a note if base has commits that head lacks, which may hide or feign a change."""
    count, parted = newer_on_base(project.repository, base.commit, head.commit)
    if not parted:
        return
    name, tip = ("the working tree", "") if head.rev == WORKING_TREE else (head.rev, head.rev)
    yield (
        f"{base.rev} has {counted(count, 'commit')} that {name} lacks, which may be why they "
        f"differ: `perfci compare {base.rev}...{tip}` measures from the fork point, {parted[:12]}."
    )


def _changed_rules(project: Project, base: ResolvedRev) -> Iterator[str]:
    """Yield a note if base's own configuration has other rules."""
    texts = ((name, file_at(project.repository, base.commit, name)) for name in _FILES)
    configured = (parse_config(text, name).policy for name, text in texts if text is not None)
    try:
        bases = next(configured, Policy())
    except UsageError:  # base is configured for another version of perfci
        return
    ours = project.config.policy
    changed = [name for name in _RULES if getattr(ours, name) != getattr(bases, name)]
    both = {**ours.metrics, **bases.metrics}
    changed += [f"metrics.{n}" for n in both if ours.metrics.get(n) != bases.metrics.get(n)]
    if changed:
        yield (
            f"[tool.perfci] decides by other rules than in {base.rev}: {first_of(changed, 8)}. "
            "Review them with the code."
        )


def check_revision(
    project: Project, head: str, options: MeasureOptions, *, confirm: bool = True
) -> RecordableReport:
    """Measure ``head`` against its environment's baseline. NoBaseline without one."""
    project.check_outputs(options.outputs)
    resolved = project.repository.resolve(head)
    say_what_is_left_out(project.repository, project.caller.say, resolved)
    recording = _recorder(project, options, resolved)
    store = BaselineStore(project.root / project.config.baselines)
    measured, report = check(
        project.session_context(), project.side("head", head), store, options, confirm=confirm
    )
    if not (resolved.dirty or report.injected):
        alike = alike_cases(report, store, project.config.policy)
        try:
            checked = {row.case for row in report.results}
            keep_alike(cache_folder() / project.repository.id, resolved.sha, checked, alike)
        except OSError as error:
            why = refusal(error).message
            project.caller.say(
                f"perfci: `baseline update` won't know of this check: {why}", err=True
            )
    return RecordableReport(report, (measured,), recording)


def run_revision(project: Project, rev: str, options: MeasureOptions) -> RecordableReport:
    """Measure ``rev`` alone."""
    project.check_outputs(options.outputs)
    head = project.side("head", rev)
    recording = _recorder(project, options, head.resolved)
    measured, report = run(project.session_context(), head, options)
    return RecordableReport(report, (measured,), recording)


def update_baseline(
    project: Project, rev: str, options: MeasureOptions, sessions: int = 1
) -> BaselineUpdate:
    """Measure ``rev`` in several ``sessions``, and store each when it is done.

    MeasureError if a session is interrupted. Earlier sessions stay stored.
    """
    resolved = project.repository.resolve(rev)
    require_commit(
        project.repository,
        resolved,
        "dirty-baseline",
        "a baseline belongs to a commit",
        "update from a commit: perfci baseline update HEAD",
    )
    store = BaselineStore(project.root / project.config.baselines)
    store.require_writable()
    alike = kept_alike(cache_folder() / project.repository.id, resolved.sha)
    updated = BaselineUpdate(store, project.config.settings, project.caller.say, alike)
    wanted = project.side("head", rev)
    for number in range(1, sessions + 1):
        logs = options.log_folder
        if logs is not None and sessions > 1:
            logs = logs / f"session-{number}"
        try:
            measured, report = run(
                project.session_context(), wanted, replace(options, log_folder=logs)
            )
        except KeyboardInterrupt:
            if number == 1:
                raise
            raise updated.interrupted() from None
        updated.add(measured, report)
    return updated


@dataclass(slots=True)
class BaselineUpdate:
    """The files that sessions stored, and the cases that were left out, with the reasons."""

    store: BaselineStore
    settings: MeasureSettings
    say: Say
    alike: Mapping[str, str]
    written: dict[Path, None] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)

    def add(self, measured: Run, report: Report) -> None:
        """Store the cases that were measured whole. MeasureError if the session wasn't."""
        for note in report.notes:
            self.say(clean_line(note, 500), err=True)
        if report.interrupted:
            raise self.interrupted()
        left_out = [f"failed {failure.case}: {failure.message}" for failure in report.failures]
        whole = []
        for case in measured.cases:
            if case.failures:
                continue
            if is_whole(case, self.settings):
                whole.append(case)
            else:
                done, least = len(case.workers), least_workers(case, self.settings)
                time = f"the time was over after {done} of {counted(least, 'worker')}"
                left_out.append(f"not stored {case.case.id}: {time}")
        if whole:
            session_id = f"{measured.created_at}-{secrets.token_hex(4)}"
            storable = replace(measured, cases=tuple(whole))
            for path in self.store.save_run(storable, session_id, self.alike):
                if path not in self.written:
                    self.say(f"stored {os.path.relpath(path)}")
                    self.written[path] = None
        for line in left_out:
            if line not in self.left_out:
                self.say(line, err=True)
                self.left_out[line] = None

    def interrupted(self) -> MeasureError:
        """Return the error for a session that ended early."""
        return MeasureError(
            "interrupted",
            "interrupted: this session is not stored as a baseline",
            "Earlier sessions were stored." if self.written else "Nothing was stored.",
        )


@dataclass(frozen=True, slots=True)
class ExplainedSides:
    """Both revisions to explain. ``rows`` are the moved rows of a report, None without a report.

    Both sides run the benchmark files of ``benchmarks_of``, or head's where that is empty.
    """

    base: str
    head: str
    rows: tuple[Comparison, ...] | None = None
    benchmarks_of: str = ""


def sides_of_report(path: Path) -> ExplainedSides:
    """Return the sides of a report file. UsageError if it has only one."""
    report = load_report(path)
    if report.base is None or not report.base.sha or not report.head.sha:
        raise UsageError(
            "one-side", f"{path} is not a report of two commits", "Name one that `compare` wrote."
        )
    if report.base.dirty or report.head.dirty or "+" in report.benchmarks_of:
        raise UsageError(
            "working-tree",
            f"{path} is of a working tree, of which only the commit is kept",
            "Name both sides: perfci explain BASE . -k CASE",
        )
    moved = tuple(row for row in report.results if row.status in {"regressed", "improved"})
    return ExplainedSides(report.base.sha, report.head.sha, moved, report.benchmarks_of)


def explain(
    project: Project, explained: ExplainedSides, *, selection: str, within_s: float
) -> tuple[Why, ...]:
    """Run the selected cases of both sides under instruments. Of a report, only those that moved.

    Each case gets ``within_s``.
    """
    rows = explained.rows
    if rows is not None and not rows:
        project.caller.say("perfci: nothing moved in the report.", err=True)
        return ()
    sides = (project.side("base", explained.base), project.side("head", explained.head))
    own = explained.benchmarks_of
    files = project.repository.resolve(own) if own else None
    with open_workplace(project.session_context(), sides, benchmarks_of=files) as workplace:
        chosen = selected_cases(workplace, MeasureOptions(selection))
        on_base = {case.id for case in workplace.plan.sides[0].discovery.cases}
        for case in chosen:
            if case.id not in on_base:
                why = f"perfci: {case.id} exists only on head: nothing to compare it with."
                project.caller.say(why, err=True)
        moved = None if rows is None else {row.case for row in rows}
        cases = tuple(
            case
            for case in chosen
            if not case.skip and case.id in on_base and (moved is None or case.id in moved)
        )
        whys = []
        for state in case_states(cases, ("base", "head")):
            project.caller.step(f"looking inside {state.case.id} …")
            own_rows = [row for row in rows or () if row.case == state.case.id]
            whys.append(explain_case(workplace, state, own_rows, within_s=within_s))
        return tuple(whys)


def _recorder(project: Project, options: MeasureOptions, *sides: ResolvedRev) -> Recorder | None:
    if not options.record:
        return None
    return recorder(project.repository, project.config, project.caller.say, *sides)


def require_two_sides(base: RequestedSide, head: RequestedSide) -> None:
    """Raise UsageError if both sides are one commit under one Python.

    Two commits with the same tree are allowed: an empty commit serves to start CI again.
    """
    commit = base.resolved
    if commit.sha != head.resolved.sha or base.python != head.python:
        return
    tree = WORKING_TREE in {commit.rev, head.resolved.rev} and not commit.dirty
    clean = ", and the working tree has no changes" if tree else ""
    raise UsageError(
        "same-sides",
        f"base and head are the same commit, {commit.short}{clean}: nothing to compare",
        "Name another base, as in `perfci compare HEAD~1` or `perfci compare main`. To measure a "
        "commit against itself on purpose: `perfci calibrate`, or --allow-same-commit.",
    )


def require_commits(*sides: RequestedSide) -> None:
    """Raise UsageError if a side is the working tree with changes."""
    if any(side.resolved.dirty for side in sides):
        raise UsageError(
            "dirty-in-parts",
            "the working tree has changes, but shards and concurrent sessions measure commits",
            "Commit them, or name a commit as HEAD.",
        )
