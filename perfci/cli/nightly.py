"""``perfci nightly``: records a branch's history."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import (
    config_option,
    configuration,
    duration,
    history_option,
    history_place,
    interpreter,
    python_option,
    select_option,
)
from perfci.cli.printing import say, say_red
from perfci.cli.surroundings import allow_token_option
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, MeasureError
from perfci.units import counted, format_duration

if TYPE_CHECKING:
    from perfci.app.nightly import Summary
    from perfci.checkout.commits import Commit
    from perfci.checkout.repository import Repository
    from perfci.model.history import GateOutcome, RecordedRun

_FEW = 5


@click.command(
    "nightly",
    epilog="Example: perfci nightly --commits main~20..main --budget 2h\n\n"
    "Exit codes: 0 recorded, 2 usage, 3 the newest commit failed, or interrupted, "
    "4 git, disk or database.",
)
@click.argument("branch", required=False)
@click.option("--commits", "wanted", metavar="OLD..NEW", help="Fill the gaps of these commits.")
@click.option("--last", type=click.IntRange(1), help="The tip, and the gaps of the last N commits.")
@click.option("--nights", is_flag=True, help="Of each day (UTC) only its last commit.")
@history_option
@click.option(
    "--budget", type=duration, default="1h", show_default=True, help="Time for everything."
)
@click.option(
    "--same/--no-same",
    default=True,
    help="Compare the tip with itself, once a day in a fifth of the time: the gate's own health.",
)
@click.option("--retry-failed", is_flag=True, help="Try again what failed on an earlier night.")
@click.option("--runner", metavar="NAME", help="This machine's name (default: its host name).")
@config_option
@select_option
@click.option("--seed", type=int, help="Of the order of cases and of the benchmarks' data.")
@python_option
@allow_token_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    branch: str | None,
    wanted: str | None,
    last: int | None,
    history: str | None,
    runner: str | None,
    python: str | None,
    config_path: Path | None,
    seed: int | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Measure BRANCH's tip and record it; with --commits, fill the gaps of a range.

    BRANCH defaults to the default branch. The tip is measured once a day. A gap is a commit
    without a run in this environment, or a case that its run lacks. The newest come first, each
    is recorded when it is done, and nothing is measured twice: start it again after a kill.
    """
    if wanted and (branch or last):
        raise click.UsageError("--commits names the commits; leave out BRANCH and --last")
    from perfci.app.nightly import Task, record_nights
    from perfci.checkout.commits import branch_of
    from perfci.cli.own_history import require_own
    from perfci.cli.recording import runner_name
    from perfci.cli.surroundings import open_here, surroundings
    from perfci.history.history import open_history

    repository = open_here()
    config = configuration(repository.root, config_path, seed=seed)
    rev = wanted.rpartition("..")[2] if wanted else branch or repository.default_base() or "HEAD"
    chosen, older = _commits(repository, wanted or rev, None if wanted else last or 1)
    task = Task(
        commits=_nights(chosen) if options.pop("nights") else chosen,
        older=older,
        branch=branch_of(repository, rev),
        python=interpreter(python, config.python, repository.root),
        runner=runner or runner_name(),
        budget_s=options.pop("budget"),
        once_a_day=wanted is None,
        **options,
    )
    with (
        open_history(history_place(history, config, repository.root)) as opened,
        surroundings(repository, config, quiet=quiet) as around,
    ):
        require_own(opened, config, repository.root)
        began = time.monotonic()
        summary = record_nights(around, opened, task)
        went_by_s = time.monotonic() - began
    _show(summary, task.commits)
    if not summary.recorded and summary.left and not summary.interrupted:
        raise MeasureError(
            "budget-too-short",
            f"not one case was done: {format_duration(went_by_s)} went by, and what is left of "
            f"the {format_duration(task.budget_s)} of --budget is too short for more",
            "Raise --budget (a commit's cases are measured in turns, and all are done near its "
            "end), or choose fewer cases with -k.",
        )
    # an older commit that fails now, or lacks a new case, is news to nobody
    failed = any(run.failed for run in summary.recorded if run.sha == task.commits[0].sha)
    return EXIT_NO_VERDICT if failed or summary.interrupted else EXIT_PASS


def _commits(
    repository: Repository, wanted: str, most: int | None
) -> tuple[tuple[Commit, ...], tuple[Commit, ...]]:
    """Return the commits that are wanted, and a few before them."""
    from perfci.checkout.commits import commits

    chosen = commits(repository, wanted, most=most)
    return chosen, commits(repository, chosen[-1].sha, most=1 + _FEW)[1:]


def _nights(chosen: tuple[Commit, ...]) -> tuple[Commit, ...]:
    from perfci.trend.timeline.gaps import last_of_each_day

    kept = last_of_each_day({commit.sha: commit.committed_at for commit in chosen})
    return tuple(commit for commit in chosen if commit.sha in kept)


def _show(summary: Summary, commits: tuple[Commit, ...]) -> None:
    from perfci.render.clean import clean_line

    subjects = {commit.sha: commit.subject for commit in commits}
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
    for gap, why in [(gap, "no time") for gap in summary.left] + [
        (gap, "another runner has it") for gap in summary.taken
    ]:
        subject = subjects.get(gap.sha, "")
        line = f"left      {gap.sha[:10]}  {counted(len(gap.cases), 'case')}: {why}  {subject}"
        say(clean_line(line, 200))
    if summary.interrupted:
        for note in summary.notes:
            say(clean_line(note, 300), err=True)
        say("interrupted; what was recorded stays, and the next start goes on there")
    elif not (summary.recorded or summary.left or summary.taken):
        say("nothing to record: every case of these commits is in the history")


def _counts(run: RecordedRun) -> str:
    measured = counted(len({point.case for point in run.points}), "case")
    return f"{measured}, {len(run.failed)} failed" if run.failed else measured


def _same(outcome: GateOutcome) -> str:
    said = "a false alarm" if outcome.verdict == "fail" else "no alarm"
    return (
        f"the tip against itself: {said} in {counted(outcome.comparisons, 'comparison')}, "
        f"{outcome.inconclusive} undecided"
    )
