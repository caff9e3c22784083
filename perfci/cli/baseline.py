"""``perfci baseline``: update, list, show, diff and remove stored baselines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import (
    FOLDER,
    config_option,
    configuration_here,
    measuring_options,
    opened_project,
    python_option,
)
from perfci.cli.printing import is_quiet, say
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, UsageError
from perfci.units import counted, format_change, format_value

if TYPE_CHECKING:
    from perfci.baselines import BaselineStore


@click.command("update", epilog="Example: perfci baseline update main -k encoder")
@click.argument("rev", default="HEAD")
@measuring_options
@python_option
@click.option(
    "--sessions", type=click.IntRange(1, 10), default=1, help="Number of sessions to measure."
)
@click.option("--log-dir", "log_folder", type=FOLDER)
def update(rev: str, sessions: int, **given: Any) -> int:
    """Measure REV (default: HEAD) and store it as this environment's baseline.

    Measuring the stored commit again adds a session to it. So does a commit in which `perfci check`
    has just found no difference; any other commit replaces the sessions. A case that the time
    budget cut short is not stored.
    """
    from perfci.commands.compare import MeasureOptions
    from perfci.commands.revisions import update_baseline

    with opened_project() as project:
        updated = update_baseline(project, rev, MeasureOptions(**given), sessions)
    if updated.written and not is_quiet():
        say("Commit these files. They are reviewed and merged like code.")
    return EXIT_NO_VERDICT if updated.left_out else EXIT_PASS


@click.group("baseline", epilog="Example: perfci baseline update HEAD")
def baseline_command() -> None:
    """Update, list, show, diff or remove stored baselines."""


baseline_command.add_command(update)


@baseline_command.command("list", epilog="Example: perfci baseline list")
@config_option
def list_baselines() -> None:
    """List the stored baselines, environment by environment."""
    store = _store()
    environments = store.environments()
    if not environments:
        say("No baselines yet; `perfci baseline update` stores the first.")
    for key in environments:
        say(key)
        for baseline in store.load_all(key):
            sessions = counted(len(baseline.sessions), "session")
            workers = counted(sum(len(session.workers) for session in baseline.sessions), "worker")
            commit = f"commit {baseline.sha[:12]}"
            say(f"  {baseline.case}  {commit}  {sessions}, {workers}  {baseline.created_at}")


@baseline_command.command("show", epilog="Example: perfci baseline show 'encoder[batch=1]'")
@click.argument("case")
@config_option
def show(case: str) -> None:
    """Show the numbers of CASE's baseline in each environment."""
    from perfci.baselines import Baselines

    store = _store()
    baselines = [each for key in store.environments() if (each := store.load(key, case))]
    if not baselines:
        raise _unknown(case)
    for baseline in baselines:
        say(f"{baseline.environment}  commit {baseline.sha}  source {baseline.source_hash}")
        frame = Baselines((baseline,)).to_frame().sort_values("metric")
        for row in frame.to_dict("records"):
            middle, low, high = (
                format_value(row[name], row["unit"]) for name in ("median", "lowest", "highest")
            )
            spread = f"({low} … {high}, {row['workers']} workers)"
            say(f"  {row['metric']:<28} {middle:>12}   {spread}")


@baseline_command.command(
    "diff", epilog="Example: perfci baseline diff ENVIRONMENT_A ENVIRONMENT_B"
)
@click.argument("first")
@click.argument("second")
@config_option
def diff(first: str, second: str) -> None:
    """Show how the baselines of two environments differ: their facts, and their medians."""
    from perfci.baselines import Baselines

    store = _store()
    _require_known(store, first, second)
    for name, (fact, other) in store.differences(first, second).items():
        say(f"{name}: {fact} → {other}")
    one, two = (Baselines(store.load_all(key)).to_frame() for key in (first, second))
    for row in one.merge(two, on=["case", "metric", "unit"]).to_dict("records"):
        before, after = row["median_x"], row["median_y"]
        values = " → ".join(format_value(value, row["unit"]) for value in (before, after))
        change = format_change(after / before if before > 0 else None)
        say(f"{row['case']}  {row['metric']}: {values}  {change}")


@baseline_command.command(
    "remove", epilog="Example: perfci baseline remove ENVIRONMENT 'encoder[batch=1]'"
)
@click.argument("environment")
@click.argument("case", required=False)
@config_option
def remove(environment: str, case: str | None) -> None:
    """Remove CASE's baseline of ENVIRONMENT, or all of that environment's."""
    store = _store()
    _require_known(store, environment)
    removed = store.remove(environment, case)
    if not removed:
        raise _unknown(case or environment)
    for path in removed:
        say(f"removed {os.path.relpath(path)}")


def _store() -> BaselineStore:
    from perfci.baselines import BaselineStore

    root, config = configuration_here()
    return BaselineStore(root / config.baselines)


def _require_known(store: BaselineStore, *keys: str) -> None:
    known = store.environments()
    for key in keys:
        if key not in known:
            raise UsageError(
                "no-baseline",
                f"no baselines of environment {key}",
                f"Stored: {', '.join(known) or 'none'}",
            )


def _unknown(what: str) -> UsageError:
    return UsageError(
        "no-baseline", f"no baseline is stored for {what}", "`perfci baseline list` shows all."
    )
