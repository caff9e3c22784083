"""``perfci comment`` and ``perfci on-demand``: reports and answers on a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from perfci.cli.caller import root_here
from perfci.cli.options import config_option, posting_options
from perfci.cli.printing import say
from perfci.cli.report import exit_code, worst_code
from perfci.errors import EXIT_PASS
from perfci.forges import FORGES
from perfci.report.clean import clean_line


@click.command(
    "comment",
    epilog="Example: perfci comment report.json\n\n"
    "Exit codes: 0 posted, nothing to post to, or no right to post; 2 usage; 4 the forge or the "
    "disk failed. The verdict changes them only with --exit-with-verdict.",
)
@click.argument("files", metavar="[REPORT]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--forge",
    type=click.Choice(FORGES),
    default=None,
    help="The forge of the pull request (default: the forge whose CI runs this, else GitHub).",
)
@click.option("--pull", type=click.IntRange(1), help="The pull request (default: the event's).")
@click.option("--head-sha", default="", metavar="SHA", help="With --pull: the head measured.")
@posting_options
@click.option(
    "--body-file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("perfci-comment.md"),
    show_default=True,
    help="The comment's text is left here before anything is posted.",
)
@click.option(
    "--page",
    "page_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Leave the report's page here, as it is judged; a second report's is FILE-2.",
)
@click.option(
    "--details", default="", metavar="URL", help="Where that page will be; the comment links it."
)
@click.option(
    "--unreadable",
    metavar="WHY",
    help="Instead of REPORTs: why there is no readable report. Fails the check.",
)
@click.option("--check/--no-check", default=True, help="Set the check `perfci`, too.")
@click.option(
    "--history",
    envvar="PERFCI_HISTORY",
    metavar="PLACE",
    help="The history, whose newest values are shown with what moved.",
)
@click.option(
    "--any-base",
    is_flag=True,
    help="A `compare` may be with any commit (default: where the pull request left its target, or "
    "later there; what is compared with another one is inconclusive).",
)
@click.option(
    "--answer",
    type=click.IntRange(1),
    metavar="ID",
    help="With --pull and --head-sha: the comment that asked for this measurement. The report "
    "answers it, and sets no check.",
)
@click.option("--dry-run", is_flag=True, help="Look at the forge, and say what would be written.")
@click.option("--exit-with-verdict", is_flag=True, help="Exit as `compare` would: 0, 1 or 3.")
@click.option(
    "--strict/--no-strict",
    default=None,
    help="An inconclusive verdict fails the check (default: `strict` of the configuration here).",
)
@config_option
def comment_command(exit_with_verdict: bool, **given: Any) -> int:
    """Leave the REPORTs, one per environment, as one comment and one check on their pull request.

    The pull request is that of the event or of --pull. A report never names it. A merge group gets
    the check alone. The token is read from GITHUB_TOKEN, on GitLab from PERFCI_GITLAB_TOKEN, on
    Forgejo from FORGEJO_TOKEN. Keep it away from the job that runs the pull request's code.
    """
    from perfci.commands.comment import CommentRequest, comment

    commented = comment(CommentRequest(root_here(), **given), say)
    if not exit_with_verdict:
        return EXIT_PASS
    return worst_code(exit_code(report, strict=commented.strict) for report in commented.reports)


@click.command(
    "on-demand",
    epilog="Example: perfci on-demand, in a workflow `on: issue_comment`\n\n"
    "Exit codes: 0 asked for or not; 2 usage; 4 GitHub or the disk failed.",
)
@posting_options
def on_demand_command(**given: Any) -> None:
    """Decide whether a comment `/perfci -k EXPR` has its pull request measured, and what.

    If its author may write to the repository, this leaves a reaction and an answer, and sets the
    step's outputs number, comment, base, head and selection. For any other comment it sets and
    leaves nothing, and gives the reason on standard error.
    """
    from perfci.commands.on_demand import OnDemandRequest, on_demand

    measuring = on_demand(OnDemandRequest(**given), say)
    if measuring is not None:
        sides = f"{measuring.base_sha} {measuring.head_sha}"
        say(f"to measure: {sides} -k {clean_line(repr(measuring.selection), 400)}")
