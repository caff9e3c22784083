"""``perfci baseline update``: measure a commit, and store it as this environment's baseline."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import configuration, interpreter, measuring_options, python_option
from perfci.cli.printing import say, say_red
from perfci.cli.uncommitted import require_commit
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, MeasureError
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.record.report import Report
    from perfci.record.run import CaseRun, Run
    from perfci.record.settings import MeasureSettings
    from perfci.store.baseline import Baseline
    from perfci.store.files import BaselineStore


@click.command("update", epilog="Example: perfci baseline update main -k encoder")
@click.argument("rev", default="HEAD")
@measuring_options
@python_option
@click.option(
    "--sessions", type=click.IntRange(1, 10), default=1, help="Measure it so many times over."
)
@click.option("--log-dir", type=click.Path(file_okay=False, path_type=Path))
def update(
    rev: str,
    selection: str,
    python: str | None,
    sessions: int,
    log_dir: Path | None,
    **options: Any,
) -> int:
    """Measure REV (default: HEAD) and store it as this environment's baseline.

    Measuring the stored commit again adds a session to it; another commit replaces it, sessions
    and all. Have one, or three and more, best measured on different days: two see next to nothing.
    A case that the time budget cut short is not stored.
    """
    from perfci.cli.surroundings import open_here, surroundings
    from perfci.measure.compare import Request
    from perfci.measure.run import run
    from perfci.measure.workplace import Wanted
    from perfci.store.files import BaselineStore

    repository = open_here()
    config = configuration(repository.root, **options)
    resolved = repository.resolve(rev)
    require_commit(
        repository,
        resolved,
        "dirty-baseline",
        "a baseline belongs to a commit",
        "update from a commit: perfci baseline update HEAD",
    )
    store = BaselineStore(repository.root / config.baselines)
    store.require_writable()
    storing = _Storing(store, config.settings)
    wanted = Wanted("head", resolved, interpreter(python, config.python, repository.root))
    with surroundings(repository, config) as around:
        for number in range(1, sessions + 1):
            logs = log_dir and (log_dir / f"session-{number}" if sessions > 1 else log_dir)
            try:
                measured, report = run(around, wanted, Request(selection, log_folder=logs))
            except KeyboardInterrupt:
                if number == 1:
                    raise
                raise storing.interrupted() from None
            storing.add(measured, report)
    if storing.written:
        say("Commit these files: they are reviewed and merged like code.")
    return EXIT_NO_VERDICT if storing.left_out else EXIT_PASS


@dataclass(slots=True)
class _Storing:
    """Stores session after session and says what it did; ``left_out`` are cases, and why."""

    store: BaselineStore
    settings: MeasureSettings
    written: dict[Path, None] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)

    def add(self, measured: Run, report: Report) -> None:
        """Store the cases that were measured whole. MeasureError where the session wasn't."""
        from perfci.measure.schedule import is_whole
        from perfci.report.clean import clean_line

        for note in report.notes:
            say(clean_line(note, 500), err=True)
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
                    say(f"stored {os.path.relpath(path)}{_replacing(old) if old else ''}")
                    self.written[path] = None
        for line in left_out:
            if line not in self.left_out:
                say_red(line)
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
    from perfci.measure.schedule import least_workers

    least = least_workers(measured, settings)
    said = f"the time was over after {len(measured.workers)} of {counted(least, 'worker')}"
    if least == settings.rounds:
        return said
    cold = settings.compile_rounds
    return f"{said} (`compile_rounds` = {cold}, and {least - cold} with a warm cache)"
