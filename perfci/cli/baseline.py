"""``perfci baseline``: update, list, show, diff and remove stored baselines."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import (
    config_option,
    configuration,
    interpreter,
    measuring_options,
    python_option,
)
from perfci.cli.printing import say, say_red
from perfci.cli.recording import require_commit
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, MeasureError, UsageError
from perfci.units import counted, format_change, format_value

if TYPE_CHECKING:
    from perfci.baselines.baseline import Baseline
    from perfci.baselines.files import BaselineStore
    from perfci.model.report import Report
    from perfci.model.run import CaseRun, Run
    from perfci.model.settings import MeasureSettings


# ``perfci baseline update``: measure a commit, and store it as this environment's baseline.


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
    from perfci.app.compare import Request
    from perfci.app.run import run
    from perfci.baselines.files import BaselineStore
    from perfci.cli.surroundings import open_here, surroundings
    from perfci.session.workplace import Wanted

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
        from perfci.render.clean import clean_line
        from perfci.session.schedule import is_whole

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
    from perfci.session.schedule import least_workers

    least = least_workers(measured, settings)
    said = f"the time was over after {len(measured.workers)} of {counted(least, 'worker')}"
    if least == settings.rounds:
        return said
    cold = settings.compile_rounds
    return f"{said} (`compile_rounds` = {cold}, and {least - cold} with a warm cache)"


@click.group("baseline", epilog="Example: perfci baseline update HEAD")
def command() -> None:
    """Update, list, show, diff or remove stored baselines."""


command.add_command(update)


@command.command("list", epilog="Example: perfci baseline list")
@config_option
def list_baselines(config_path: Path | None) -> None:
    """List the stored baselines, environment by environment."""
    store = _store(config_path)
    environments = store.environments()
    if not environments:
        say("No baselines yet; `perfci baseline update` stores the first.")
    for key in environments:
        say(key)
        for one in store.load_all(key):
            workers = sum(len(session.workers) for session in one.sessions)
            say(
                f"  {one.case}  commit {one.sha[:12]}  {counted(len(one.sessions), 'session')}, "
                f"{counted(workers, 'worker')}  {one.created_at}"
            )


@command.command("show", epilog="Example: perfci baseline show 'encoder[batch=1]'")
@click.argument("case")
@click.option("--environment", "key", help="The environment's key (default: every one).")
@config_option
def show(case: str, key: str | None, config_path: Path | None) -> None:
    """Show the numbers of CASE's baseline."""
    from statistics import median

    from perfci.metrics import METRICS

    store = _store(config_path)
    shown = 0
    for environment in store.environments() if key is None else (key,):
        baseline = store.load(environment, case)
        if baseline is None:
            continue
        shown += 1
        say(f"{environment}  commit {baseline.sha}  source {baseline.source_hash}")
        workers = [worker for session in baseline.sessions for worker in session.workers]
        for name in sorted({name for worker in workers for name in worker.values}):
            values = sorted(worker.values[name] for worker in workers if name in worker.values)
            unit = METRICS[name].unit if name in METRICS else ""
            low, middle, high = (
                format_value(value, unit) for value in (values[0], median(values), values[-1])
            )
            say(f"  {name:<28} {middle:>12}   ({low} … {high}, {len(values)} workers)")
    if not shown:
        raise _unknown(case, store)


@command.command("diff", epilog="Example: perfci baseline diff ENVIRONMENT_A ENVIRONMENT_B")
@click.argument("first")
@click.argument("second")
@config_option
def diff(first: str, second: str, config_path: Path | None) -> None:
    """Show how the baselines of two environments differ: their facts, and their medians."""
    store = _store(config_path)
    known = store.environments()
    for key in (first, second):
        if key not in known:
            raise UsageError(
                "unknown-environment",
                f"there are no baselines of environment {key}",
                f"Stored: {', '.join(known) or 'none'}",
            )
    for name, (one, other) in store.differences(first, second).items():
        say(f"{name}: {one} → {other}")
    for row in store.diff(first, second):
        say(
            f"{row.case}  {row.metric}: {format_value(row.first, row.unit)} → "
            f"{format_value(row.second, row.unit)}  {format_change(row.ratio)}"
        )


@command.command("remove", epilog="Example: perfci baseline remove ENVIRONMENT 'encoder[batch=1]'")
@click.argument("environment")
@click.argument("case", required=False)
@config_option
def remove(environment: str, case: str | None, config_path: Path | None) -> None:
    """Remove CASE's baseline of ENVIRONMENT, or all of that environment's."""
    store = _store(config_path)
    removed = store.remove(environment, case)
    if not removed:
        raise _unknown(case or environment, store)
    for path in removed:
        say(f"removed {os.path.relpath(path)}")


def _store(config_path: Path | None) -> BaselineStore:
    from perfci.baselines.files import BaselineStore
    from perfci.cli.surroundings import open_here

    repository = open_here()
    config = configuration(repository.root, config_path)
    return BaselineStore(repository.root / config.baselines)


def _unknown(what: str, store: BaselineStore) -> UsageError:
    known = [one.case for key in store.environments() for one in store.load_all(key)]
    import difflib

    near = difflib.get_close_matches(what, known, n=1)
    hint = f"Did you mean `{near[0]}`? " if near else ""
    return UsageError(
        "unknown-baseline",
        f"no baseline is stored for {what}",
        f"{hint}`perfci baseline list` shows all.",
    )
