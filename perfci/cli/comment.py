"""``perfci comment``: leaves a report on its pull request or merge group. It wants a token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.app import actions
from perfci.app.outputs import unwritable
from perfci.app.project import configuration
from perfci.cli.calling import root_here
from perfci.cli.commenting import (
    leave_both,
    leave_check,
    leave_failure,
    posting_of,
    tell,
    tell_refused,
)
from perfci.cli.options import config_option, duration
from perfci.cli.output import exit_code
from perfci.cli.printing import say
from perfci.cli.report import load_report
from perfci.errors import (
    EXIT_NO_VERDICT,
    EXIT_PASS,
    EXIT_REGRESSION,
    OutsideError,
    PerfciError,
    UsageError,
)
from perfci.files import write_file
from perfci.render.clean import clean_line

if TYPE_CHECKING:
    from perfci.config.loading import Config
    from perfci.model.report import Report
    from perfci.publish.github.client import Client
    from perfci.publish.github.event import MergeGroup, Nothing, Wanted
    from perfci.publish.github.posting import Outcome
    from perfci.publish.github.pull import Several
    from perfci.session.discovering import Written
    from perfci.verdict.policy import Policy


# What ``perfci comment`` does where a report can't be read: the check says so.


def fail_the_check(
    why: str,
    find_wanted: Callable[[], Wanted | MergeGroup | Nothing],
    connect: Callable[[], Client],
    *,
    dry_run: bool,
) -> Outcome | None:
    """Fail the check of the commit that the event names; None where it names none.

    Raises nothing: that the report can't be read is the error that is told in the end.
    """
    from perfci.cli.commenting import posting_of
    from perfci.publish.github.check import unreadable_content
    from perfci.publish.github.event import Nothing
    from perfci.publish.github.posting import Outcome, find_pull, set_check

    try:
        wanted = find_wanted()
        if isinstance(wanted, Nothing) or not wanted.head_sha:
            return None
        with closing(connect()) as client:
            found = find_pull(client, wanted)
            if isinstance(found, Nothing):
                return Outcome("stale", found.reason)
            posting = posting_of(found)
            content = unreadable_content(why, actions.run_url(), posting)
            return set_check(client, found.head_sha, content, dry_run=dry_run)
    except PerfciError as another:
        return Outcome("refused", clean_line(another.message, 600))


@click.command(
    "comment",
    epilog="Example: perfci comment report.json\n\n"
    "Exit codes: 0 posted, nothing to post to, or no right to post; 2 usage; 4 GitHub or the disk "
    "failed. The verdict changes them only with --exit-with-verdict.",
)
@click.argument("files", metavar="[REPORT]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--pull", type=click.IntRange(1), help="The pull request (default: the event's).")
@click.option("--head-sha", default="", metavar="SHA", help="With --pull: the head measured.")
@click.option(
    "--event",
    "event_path",
    envvar="GITHUB_EVENT_PATH",
    type=click.Path(path_type=Path),
    help="The event of GitHub Actions (default: $GITHUB_EVENT_PATH).",
)
@click.option(
    "--repository",
    envvar="GITHUB_REPOSITORY",
    metavar="OWNER/NAME",
    help="Where the pull request is (default: $GITHUB_REPOSITORY).",
)
@click.option(
    "--author",
    default="github-actions[bot]",
    show_default=True,
    help="Whom the token posts as: no other's comment is touched.",
)
@click.option(
    "--body-file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("perfci-comment.md"),
    show_default=True,
    help="The comment's text is left here before anything is posted.",
)
@click.option(
    "--unreadable",
    metavar="WHY",
    help="Instead of REPORTs: what was left can't be read. Fails the check, as a damaged report.",
)
@click.option("--check/--no-check", default=True, help="Set the check `perfci`, too.")
@click.option(
    "--patience",
    type=duration,
    default="2m",
    show_default=True,
    help="Longest wait for a GitHub that fails or limits the rate.",
)
@click.option(
    "--history",
    envvar="PERFCI_HISTORY",
    metavar="PLACE",
    help="The history, whose newest values are shown beside what moved.",
)
@click.option(
    "--any-base",
    is_flag=True,
    help="A `compare` may be with any commit (default: where the pull request left its target, or "
    "later there; what is compared with another one is inconclusive).",
)
@click.option("--dry-run", is_flag=True, help="Look at GitHub, and say what would be written.")
@click.option("--exit-with-verdict", is_flag=True, help="Exit as `compare` would: 0, 1 or 3.")
@click.option(
    "--strict/--no-strict",
    default=None,
    help="An inconclusive verdict fails the check (default: `strict` of the configuration here).",
)
@config_option
def command(
    files: tuple[Path, ...],
    pull: int | None,
    head_sha: str,
    event_path: Path | None,
    repository: str | None,
    author: str,
    body_file: Path,
    unreadable: str | None,
    check: bool,
    patience: float,
    history: str | None,
    any_base: bool,
    dry_run: bool,
    exit_with_verdict: bool,
    strict: bool | None,
    config_path: Path | None,
) -> int:
    """Leave the REPORTs (one an environment) as one comment and one check on their pull request.

    Which pull request that is comes from the event or --pull, never from a report; of a merge
    group's event, the check alone is set. The token is read from GITHUB_TOKEN: keep it away from
    the job that runs the pull request's code.
    """
    from perfci.publish.github.base import doubt_of_base
    from perfci.publish.github.check import check_content
    from perfci.publish.github.event import MergeGroup, Nothing
    from perfci.publish.github.failing import Refused
    from perfci.publish.github.posting import find_pull, require_measured
    from perfci.publish.github.pull import Several
    from perfci.verdict.enforcement import doubt_of_copies, doubted

    # of the checkout that this runs in, never of the report: whoever measures must not decide it
    root = root_here()
    config = configuration(root, config_path, strict=strict)
    written = _written_here(root, config)
    policy = _with_own_thresholds(config.policy, _by_name(written))
    find_wanted = partial(actions.wanted, pull, head_sha, event_path)
    connect = partial(actions.client, repository, patience)
    try:
        reports = [
            doubted(one, doubt_of_copies(one, config.installed))
            for one in _reports(files, unreadable, policy, written)
        ]
    except OutsideError as error:
        if check:
            failed = fail_the_check(error.message, find_wanted, connect, dry_run=dry_run)
            if failed is not None:
                tell(failed)
        raise
    if history:
        reports = _with_past(reports, history, config)

    def code() -> int:
        return _verdict(reports, strict=policy.strict) if exit_with_verdict else EXIT_PASS

    wanted = find_wanted()
    if isinstance(wanted, Nothing):
        _leave(body_file, reports, "")
        return _nothing(wanted, code())
    body = _leave(body_file, reports, wanted.head_sha)
    with closing(connect()) as client:
        try:
            found = find_pull(client, wanted)
            if isinstance(found, (Nothing, Several)):
                leave_failure(client, found, wanted=check, dry_run=dry_run)
                return _nothing(found, code())
            require_measured(client, [report.head.sha for report in reports], found)
        except Refused as failure:
            unsaid = tell_refused(failure.message, body, body_file)
            if unsaid is not None:
                raise unsaid from failure
            return code()
        if not any_base:
            reports = [doubted(one, doubt_of_base(client, found, one)) for one in reports]
        body = _leave(body_file, reports, found.head_sha)
        content = (
            check_content(reports, body, actions.run_url(), posting_of(found), strict=policy.strict)
            if check
            else None
        )
        if isinstance(found, MergeGroup):
            leave_check(client, found, content, body, body_file, dry_run=dry_run)
        else:
            leave_both(client, found, content, body, body_file, author, dry_run=dry_run)
    return code()


def _written_here(root: Path, config: Config) -> Mapping[str, Mapping[str, Written]]:
    """Return the benchmarks that each file here writes; the files are read, not imported."""
    from perfci.session.discovering import written_in
    from perfci.session.plan import files_in

    return written_in(root, files_in(root, config.benchmarks, config.pattern))


def _by_name(written: Mapping[str, Mapping[str, Written]]) -> Mapping[str, Written]:
    return {name: one for ones in written.values() for name, one in ones.items()}


def _with_own_thresholds(policy: Policy, written: Mapping[str, Written]) -> Policy:
    """Return ``policy`` with the thresholds that stand at the benchmarks, which go before it."""
    own = {name: one.thresholds for name, one in written.items() if one.thresholds}
    configured = policy.thresholds
    both = {name: {**configured.get(name, {}), **own.get(name, {})} for name in {*configured, *own}}
    return replace(policy, thresholds=both)


def _reports(
    files: Sequence[Path],
    unreadable: str | None,
    policy: Policy,
    written: Mapping[str, Mapping[str, Written]],
) -> list[Report]:
    from perfci.verdict.enforcement import held, with_unreported

    if bool(files) == (unreadable is not None):
        raise UsageError(
            "no-report",
            "it is not said which report to post",
            "Give REPORT files, or --unreadable WHY where what was left can't be read; not both.",
        )
    if unreadable is not None:
        raise OutsideError("unreadable-report", unreadable, "See the log of what left it.")
    reported = {name: one.metrics for name, one in _by_name(written).items()}
    everywhere = {
        file: [name for name, one in ones.items() if not one.conditional]
        for file, ones in written.items()
    }
    return [
        with_unreported(held(load_report(path), policy, reported), everywhere, policy)
        for path in files
    ]


def _with_past(reports: Sequence[Report], history: str, config: Config) -> list[Report]:
    from perfci.app.branch import repository_at
    from perfci.app.past import with_past

    checkout = repository_at(Path.cwd())
    return [with_past(report, history, checkout, config.aliases, say) for report in reports]


def _leave(body_file: Path, reports: Sequence[Report], head_sha: str) -> str:
    """Write the comment's text, and return it."""
    from perfci.render.markdown import render_comment

    body = render_comment(reports, head_sha=head_sha)
    try:
        body_file.parent.mkdir(parents=True, exist_ok=True)
        write_file(body_file, body)
    except OSError as error:
        raise unwritable(body_file, error, "Nothing was posted.") from error
    return body


def _nothing(nothing: Nothing | Several, code: int) -> int:
    say(f"nothing posted: {nothing.reason}", err=True)
    return code


def _verdict(reports: Sequence[Report], *, strict: bool) -> int:
    codes = {exit_code(report, strict=strict) for report in reports}
    return next(one for one in (EXIT_REGRESSION, EXIT_NO_VERDICT, EXIT_PASS) if one in codes)
