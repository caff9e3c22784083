"""``perfci nightly``: records a branch's history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.caller import allow_token_option, calling
from perfci.cli.options import (
    config_option,
    duration,
    history_option,
    python_option,
    refs,
    select_option,
)
from perfci.cli.printing import say, say_red
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS
from perfci.report.clean import clean_line
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.commands.bisect import ChangeSearch
    from perfci.commands.nightly import NightSummary
    from perfci.model.run import GateOutcome, RecordedRun

_FEW = 5


@click.command(
    "nightly",
    epilog="Example: perfci nightly --commits main~20..main --budget 2h\n\n"
    "Exit codes: 0 recorded, 2 usage, 3 the newest commit failed, or interrupted, "
    "4 git, disk or database.",
)
@click.argument("branch", required=False, shell_complete=refs)
@click.option(
    "--commits",
    metavar="OLD..NEW",
    shell_complete=refs,
    help="Fill the gaps of these commits.",
)
@click.option("--last", type=click.IntRange(1), help="The tip, and the gaps of the last N commits.")
@click.option(
    "--nights", "last_of_each_day", is_flag=True, help="Of each day (UTC) only its last commit."
)
@history_option
@click.option(
    "--budget",
    "budget_s",
    type=duration,
    default="1h",
    show_default=True,
    help="Time for everything.",
)
@click.option(
    "--same/--no-same",
    default=True,
    help="Compare the tip with itself, once a day in a fifth of the time: the gate's own health.",
)
@click.option(
    "--bisect/--no-bisect",
    default=None,
    help="Search for the commits of new changes, in the rest of the budget.",
)
@click.option("--retry-failed", is_flag=True, help="Try again what failed on an earlier night.")
@click.option("--runner", metavar="NAME", help="This machine's name (default: its host name).")
@config_option
@select_option
@click.option("--seed", type=int, help="Seed of the order of cases and of the benchmarks' data.")
@python_option
@allow_token_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def nightly_command(config_path: Path | None, seed: int | None, quiet: bool, **given: Any) -> int:
    """Measure BRANCH's tip and record it. With --commits, fill the gaps of a range.

    BRANCH defaults to the default branch. The tip is measured once a day. A gap is a commit without
    a run in this environment, or a case that its run lacks. The newest come first, each is recorded
    when it is done, and nothing is measured twice. After a kill, start it again.
    """
    if given["commits"] and (given["branch"] or given["last"]):
        raise click.UsageError("--commits names the commits. Leave out BRANCH and --last")
    from perfci.commands.nightly import nightly
    from perfci.commands.nightly_scope import NightlyOptions
    from perfci.commands.project import open_project

    with calling(quiet=quiet) as caller:
        summary = nightly(open_project(caller, config_path, seed=seed), NightlyOptions(**given))
    _show(summary)
    summary.require_progress()
    # an older commit that fails now, or lacks a new case, fails no night
    failed = any(run.failed for run in summary.recorded if run.sha == summary.commits[0].sha)
    return EXIT_NO_VERDICT if failed or summary.interrupted else EXIT_PASS


def _show(summary: NightSummary) -> None:

    subjects = {commit.sha: commit.subject for commit in summary.commits}
    if summary.environment:  # it is known once the first commit was looked at
        say(f"environment {summary.environment}")
    for run in summary.recorded:
        say(clean_line(f"recorded  {run.sha[:10]}  {_counts(run)}  {run.subject}", 200))
        for case, why in list(run.failed.items())[:_FEW]:
            say_red(clean_line(f"failed    {case}: {why}", 300))
    if summary.outcome:
        say(_same(summary.outcome))
    if summary.no_time_for_same:
        say("the tip was not compared with itself: a fifth of the budget is too short")
    for search in summary.searched:
        _show_search(search)
    for gap, why in [
        *((gap, "interrupted") for gap in summary.cut),
        *((gap, "no time") for gap in summary.left),
        *((gap, "another runner has it") for gap in summary.taken),
    ]:
        subject = subjects.get(gap.sha, "")
        line = f"left      {gap.sha[:10]}  {counted(len(gap.cases), 'case')}: {why}  {subject}"
        say(clean_line(line, 200))
    if summary.interrupted:
        for note in summary.notes:
            say(clean_line(note, 300), err=True)
        say("interrupted. Recorded commits stay, and the next start continues there")
    elif not (summary.recorded or summary.left or summary.taken):
        say("nothing to record: every case of these commits is in the history")


def _show_search(search: ChangeSearch) -> None:
    from perfci.report.bisection import render_bisection

    change = f"{search.change.id}  {search.change.series.case}  {search.change.series.metric}"
    if search.answer is None:
        say(clean_line(f"not found {change}: {search.reason}", 300))
        return
    say(clean_line(f"bisected  {change}", 200))
    for line in render_bisection(search.answer):
        say(f"  {line}")


def _counts(run: RecordedRun) -> str:
    measured = counted(len({point.case for point in run.points}), "case")
    return f"{measured}, {len(run.failed)} failed" if run.failed else measured


def _same(outcome: GateOutcome) -> str:
    alarm = "a false alarm" if outcome.verdict == "fail" else "no alarm"
    return (
        f"the tip against itself: {alarm} in {counted(outcome.comparisons, 'comparison')}, "
        f"{outcome.inconclusive} undecided"
    )
