"""``perfci compare``: the main command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.exporting import ExportingCommand
from perfci.cli.options import (
    configuration,
    history_place,
    inject_option,
    interpreter,
    measuring_options,
    python_option,
    record_options,
    shard_options,
    showing_options,
    strict_option,
)
from perfci.errors import UsageError
from perfci.verdict.shards import Shard

if TYPE_CHECKING:
    from perfci.session.workplace import Wanted


@click.command(
    "compare",
    cls=ExportingCommand,
    epilog="Example: perfci compare main HEAD -k encoder --markdown comment.md\n\n"
    "Exit codes: 0 no regression was found (also inconclusive), 1 regression, 2 usage, "
    "3 no trustworthy verdict, 4 git, disk or database.",
)
@click.argument("base")
@click.argument("head", default=".")
@measuring_options
@python_option
@click.option("--base-python", metavar="PATH", help="Another Python that runs base.")
@click.option("--head-python", metavar="PATH", help="Another Python that runs head.")
@click.option(
    "--fail-fast",
    is_flag=True,
    help="Stop at the first regression or failure. Not with --shard.",
)
@click.option(
    "--same",
    is_flag=True,
    help="Measure although both sides are one commit (an A/A); `calibrate` tells more.",
)
@shard_options
@inject_option
@strict_option
@record_options
@showing_options
def command(
    base: str,
    head: str,
    python: str | None,
    base_python: str | None,
    head_python: str | None,
    selection: str,
    fail_fast: bool,
    same: bool,
    shard: Shard | None,
    durations_path: Path | None,
    record: bool,
    history: str | None,
    outputs: Mapping[str, Path],
    log_dir: Path | None,
    verbose: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Measure BASE and HEAD side by side and decide whether HEAD got worse.

    BASE and HEAD are git revisions; HEAD defaults to `.`, the working tree with its uncommitted
    changes. Your checkout is not touched.
    """
    if shard and fail_fast:
        raise UsageError(
            "shard-fail-fast",
            "--fail-fast ends the one shard that sees a regression: the others measure on, and "
            "their merge would lack the cases that it left out",
            "Choose one: --shard, or --fail-fast for a session of all cases.",
        )
    from perfci.app.compare import Request, compare_runs
    from perfci.cli.output import check_writable, deliver, exit_code, history_files
    from perfci.cli.past import with_past
    from perfci.cli.recording import recorder, tell_left_out
    from perfci.cli.report import durations_of_shard
    from perfci.cli.surroundings import open_here, surroundings
    from perfci.session.workplace import Wanted

    durations = durations_of_shard(shard, durations_path)
    repository = open_here()
    config = configuration(repository.root, **options)
    check_writable(outputs, history_files(history, config, repository.root))

    def wanted(side: str, rev: str, own: str | None) -> Wanted:
        option = f"--{side}-python" if own else "--python"
        path = interpreter(own or python, config.python, repository.root, option)
        return Wanted(side, repository.resolve(rev), path)

    base_side = wanted("base", base, base_python)
    head_side = wanted("head", head, head_python)
    if not same and not config.settings.inject:
        _require_two_sides(base_side, head_side)
    sides = (base_side.resolved, head_side.resolved)
    tell_left_out(repository, *sides)
    recording = recorder(history, repository, config, *sides) if record else None
    with surroundings(repository, config, quiet=quiet) as around:
        measured, report = compare_runs(
            around,
            base_side,
            head_side,
            Request(
                selection,
                fail_fast=fail_fast,
                log_folder=log_dir,
                shard=shard,
                durations=durations,
            ),
        )
    if record or history or config.history:
        place = history_place(history, config, repository.root)
        report = with_past(report, place, repository, config.aliases)
    deliver(report, outputs, verbose=verbose, quiet=quiet)
    if recording:
        recording.record(measured, report, quiet=quiet)
    return exit_code(report, strict=config.policy.strict)


def _require_two_sides(base: Wanted, head: Wanted) -> None:
    """Raise UsageError where both sides are one commit under one Python.

    Not for two commits of one tree: which an empty commit, to start CI again, is as well.
    """
    from perfci.checkout.repository import WORKING_TREE

    one, other = base.resolved, head.resolved
    if one.sha != other.sha or base.python != head.python:
        return
    tree = WORKING_TREE in {one.rev, other.rev} and not one.dirty
    clean = ", and the working tree has no changes" if tree else ""
    raise UsageError(
        "same-sides",
        f"base and head are the same commit, {one.short}{clean}: there is nothing to compare",
        "Name another base, as in `perfci compare HEAD~1` or `perfci compare main`. To measure a "
        "commit against itself on purpose: `perfci calibrate`, or --same.",
    )
