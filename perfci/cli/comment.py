"""``perfci comment``: leaves a report on its pull request. The one command that wants a token."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli import actions
from perfci.cli.options import Duration, config_option, configuration
from perfci.cli.output import exit_code, unwritable
from perfci.cli.report_file import load_report
from perfci.cli.surroundings import root_here
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, EXIT_REGRESSION, OutsideError
from perfci.report.clean import clean_line
from perfci.writing import write_file

if TYPE_CHECKING:
    from perfci.github.check import CheckContent
    from perfci.github.client import Client
    from perfci.github.event import Nothing
    from perfci.github.posting import Outcome
    from perfci.github.pull import Pull
    from perfci.record.report import Report


@click.command(
    "comment",
    epilog="Example: perfci comment report.json\n\n"
    "Exit codes: 0 posted, nothing to post to, or no right to post; 2 usage; 4 GitHub or the disk "
    "failed. The verdict changes them only with --exit-with-verdict.",
)
@click.argument(
    "files", metavar="REPORT...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
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
@click.option("--check/--no-check", default=True, help="Set the check `perfci`, too.")
@click.option(
    "--patience",
    type=Duration(),
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
@click.option("--dry-run", is_flag=True, help="Look at GitHub, and say what would be written.")
@click.option("--exit-with-verdict", is_flag=True, help="Exit as `compare` would: 0, 1 or 3.")
@click.option(
    "--strict",
    is_flag=True,
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
    check: bool,
    patience: float,
    history: str | None,
    dry_run: bool,
    exit_with_verdict: bool,
    strict: bool,
    config_path: Path | None,
) -> int:
    """Leave the REPORTs (one an environment) as one comment and one check on their pull request.

    Which pull request that is comes from the event or --pull, never from a report. The token is
    read from GITHUB_TOKEN: keep it away from the job that runs the pull request's code.
    """
    from perfci.github.check import check_content
    from perfci.github.event import Nothing
    from perfci.github.failing import Refused
    from perfci.github.posting import find_pull, require_measured

    # of the checkout that this runs in, never of the report: whoever measures must not decide it
    strict = configuration(root_here(), config_path, strict=strict).policy.strict
    reports = [load_report(path) for path in files]
    if history:
        from perfci.cli.branch_order import repository_here
        from perfci.cli.past import with_past

        checkout = repository_here()
        reports = [with_past(report, history, checkout) for report in reports]
    code = _verdict(reports, strict=strict) if exit_with_verdict else EXIT_PASS
    wanted = actions.wanted(pull, head_sha, event_path)
    if isinstance(wanted, Nothing):
        _leave(body_file, reports, "")
        return _nothing(wanted, code)
    body = _leave(body_file, reports, wanted.head_sha)
    with closing(actions.client(repository, patience)) as client:
        try:
            found = find_pull(client, wanted)
            if isinstance(found, Nothing):
                return _nothing(found, code)
            require_measured(client, [report.head.sha for report in reports], found.head_sha)
        except Refused as failure:
            unsaid = _say_refused(failure.message, body, body_file)
            if unsaid is not None:
                raise unsaid from failure
            return code
        if not wanted.head_sha:
            body = _leave(body_file, reports, found.head_sha)
        content = (
            check_content(reports, body, actions.run_url(), actions.attempt(), strict=strict)
            if check
            else None
        )
        _post(client, found, content, body, body_file, author, dry_run=dry_run)
    return code


def _post(
    client: Client,
    pull: Pull,
    check: CheckContent | None,
    body: str,
    body_file: Path,
    author: str,
    *,
    dry_run: bool,
) -> None:
    from perfci.github.posting import leave_comment, set_check

    unsaid = None

    def set_the_check() -> None:
        if check is not None:
            _say(set_check(client, pull.head_sha, check, dry_run=dry_run))

    try:
        left = leave_comment(client, pull, author, body, dry_run=dry_run)
    except OutsideError:
        actions.summarise(body, body_file)
        try:
            set_the_check()  # it is what gates; that the comment failed is told all the same
        except OutsideError as another:
            click.echo(f"check not set: {clean_line(another.message, 600)}", err=True)
        raise
    if left.kind == "refused":
        unsaid = _say_refused(left.text, body, body_file)
    else:
        _say(left)
    if left.kind != "stale":
        set_the_check()
    if unsaid is not None:
        raise unsaid


def _leave(body_file: Path, reports: Sequence[Report], head_sha: str) -> str:
    """Write the comment's text, and return it."""
    from perfci.report.markdown import render_comment

    body = render_comment(reports, head_sha=head_sha)
    try:
        body_file.parent.mkdir(parents=True, exist_ok=True)
        write_file(body_file, body)
    except OSError as error:
        raise unwritable(body_file, error, "Nothing was posted.") from error
    return body


def _nothing(nothing: Nothing, code: int) -> int:
    click.echo(f"nothing posted: {nothing.reason}", err=True)
    return code


def _say(outcome: Outcome) -> None:
    before = {"posted": "", "refused": "check not set: ", "stale": "nothing posted: "}
    click.echo(before[outcome.kind] + outcome.text, err=outcome.kind != "posted")


def _say_refused(why: str, body: str, body_file: Path) -> OutsideError | None:
    click.echo(f"comment not posted, the token may not: {why}", err=True)
    return actions.summarise(body, body_file)


def _verdict(reports: Sequence[Report], *, strict: bool) -> int:
    codes = {exit_code(report, strict=strict) for report in reports}
    return next(one for one in (EXIT_REGRESSION, EXIT_NO_VERDICT, EXIT_PASS) if one in codes)
