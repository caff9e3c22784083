"""``baseline update``: a commit measured, and stored as its environment's baseline."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.baselines.files import BaselineStore
from perfci.commands.recorder import require_commit
from perfci.commands.run import run
from perfci.errors import MeasureError
from perfci.measure.selection import is_whole, least_workers
from perfci.report.clean import clean_line
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.baselines.baseline import Baseline
    from perfci.commands.project import Project
    from perfci.commands.revisions import Asked
    from perfci.model.report import Report
    from perfci.model.run import CaseRun, Run
    from perfci.model.worker import MeasureSettings
    from perfci.notices import Say


def update_baseline(project: Project, rev: str, asked: Asked, sessions: int = 1) -> Updated:
    """Measure ``rev`` so many ``sessions`` over, and store each when it is done.

    MeasureError where a session is interrupted; those before it stay stored.
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
    updated = Updated(store, project.config.settings, project.caller.say)
    wanted = project.side("head", rev, asked.python)
    for number in range(1, sessions + 1):
        request = asked.request()
        if request.log_folder is not None and sessions > 1:
            request = replace(request, log_folder=request.log_folder / f"session-{number}")
        try:
            measured, report = run(project.surroundings(), wanted, request)
        except KeyboardInterrupt:
            if number == 1:
                raise
            raise updated.interrupted() from None
        updated.add(measured, report)
    return updated


@dataclass(slots=True)
class Updated:
    """What sessions stored: the files, and the cases that were left out, and why."""

    store: BaselineStore
    settings: MeasureSettings
    say: Say
    written: dict[Path, None] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)

    def add(self, measured: Run, report: Report) -> None:
        """Store the cases that were measured whole. MeasureError where the session wasn't."""
        for note in report.notes:
            self.say(clean_line(note, 500), err=True)
        if report.interrupted:
            raise self.interrupted()
        left_out = [f"failed {one.case}: {one.message}" for one in report.failures]
        whole = []
        for case in measured.cases:
            if case.failures:
                continue
            if is_whole(case, self.settings):
                whole.append(case)
            else:
                left_out.append(f"not stored {case.case.id}: {cut_short(case, self.settings)}")
        if whole:
            session_id = f"{measured.created_at}-{secrets.token_hex(4)}"
            storable = replace(measured, cases=tuple(whole))
            replaced = self.store.replaced_by(storable)
            for path in self.store.save_run(storable, session_id):
                if path not in self.written:
                    old = replaced.get(path)
                    self.say(f"stored {os.path.relpath(path)}{_replacing(old) if old else ''}")
                    self.written[path] = None
        for line in left_out:
            if line not in self.left_out:
                self.say(line, err=True)
                self.left_out[line] = None

    def interrupted(self) -> MeasureError:
        """Return the error for a session that ended early."""
        return MeasureError(
            "interrupted",
            "interrupted: what was measured until then is no baseline",
            "Earlier sessions were stored." if self.written else "Nothing was stored.",
        )


def _replacing(old: Baseline) -> str:
    return f" (replaces {counted(len(old.sessions), 'session')} of {old.sha[:12]})"


def cut_short(measured: CaseRun, settings: MeasureSettings) -> str:
    """Return how much of a case was measured, and what a compiled one needs beyond ``rounds``."""
    least = least_workers(measured, settings)
    said = f"the time was over after {len(measured.workers)} of {counted(least, 'worker')}"
    if least == settings.rounds:
        return said
    cold = settings.compile_rounds
    return f"{said} (`compile_rounds` = {cold}, and {least - cold} with a warm cache)"
