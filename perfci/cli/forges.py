"""``perfci comment`` and ``init``: a pull request's reports, a forge's files."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from perfci.cli.options import FILE, config_option, configuration_here, strict_option
from perfci.cli.printing import is_quiet, is_terminal, say, show
from perfci.cli.report import exit_code, worst_code
from perfci.commands.workflows import ASKED_FOR, MOST_SHARDS, TRIGGERS, CiOptions
from perfci.errors import EXIT_PASS
from perfci.report.clean import clean_lines


@click.command(
    "comment",
    epilog="Example: perfci comment report.json\n\n"
    "Exit codes: 0 posted, nothing to post to, or no right to post; 2 usage; 4 GitHub or the "
    "disk failed. The verdict changes them only with --exit-with-verdict.",
)
@click.argument("files", metavar="[REPORT]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--pull", type=click.IntRange(1), help="The pull request (default: the event's).")
@click.option("--head-sha", default="", metavar="SHA", help="With --pull: the head measured.")
@click.option(
    "--event",
    envvar="GITHUB_EVENT_PATH",
    type=click.Path(path_type=Path),
    help="The event of GitHub Actions (default: $GITHUB_EVENT_PATH).",
)
@click.option(
    "--repository",
    envvar="GITHUB_REPOSITORY",
    metavar="OWNER/NAME",
    help="The repository of the pull request (default: the job's).",
)
@click.option(
    "--author",
    default="github-actions[bot]",
    metavar="LOGIN",
    show_default=True,
    help="The account that the token posts as. Comments of others stay.",
)
@click.option(
    "--body-file",
    type=FILE,
    default=Path("perfci-comment.md"),
    show_default=True,
    help="Write the comment's text here before anything is posted.",
)
@click.option(
    "--page",
    "page_file",
    type=FILE,
    metavar="FILE",
    help="Write the report's page here, with this verdict; a second report's is FILE-2.",
)
@click.option(
    "--details", default="", metavar="URL", help="Where that page will be; the comment links it."
)
@click.option(
    "--unreadable",
    metavar="WHY",
    help="Instead of REPORTs: why no report can be read. Fails the check.",
)
@click.option("--check/--no-check", default=True, help="Set the check `perfci`, too.")
@click.option("--exit-with-verdict", is_flag=True, help="Exit as `compare` would: 0, 1 or 3.")
@strict_option
@config_option
def comment_command(exit_with_verdict: bool, **given: Any) -> int:
    """Leave the REPORTs, one per environment, as one comment and one check on their pull request.

    The event or --pull names the pull request, never a report. A merge group gets
    the check alone. The token is read from GITHUB_TOKEN. Keep it away from the job that runs the
    pull request's code.
    """
    from perfci.commands.comment import CommentRequest, comment

    root, config = configuration_here()
    reports = comment(CommentRequest(root, config, **given), say)
    if not exit_with_verdict:
        return EXIT_PASS
    return worst_code(exit_code(report, strict=config.policy.strict) for report in reports)


_STRICT = "Shall an inconclusive verdict fail the check?"


@click.command("init", epilog="Example: perfci init --github --runner self-hosted --runner gpu")
@click.option("--benchmarks", default="benchmarks", show_default=True, help="The folder to use.")
@click.option("--github", is_flag=True, help="Write GitHub workflows too.")
@click.option(
    "--runner",
    multiple=True,
    metavar="LABEL",
    help="A label of the measuring machine (default: self-hosted and gpu if a GPU is here, "
    "else ubuntu-latest).",
)
@click.option(
    "--shards",
    type=click.IntRange(1, MOST_SHARDS),
    default=1,
    show_default=True,
    help="Jobs that share a pull request's cases.",
)
@click.option(
    "--python-version",
    "python",
    default="",
    metavar="3.x",
    help="Python of the jobs that measure (default: this one's).",
)
@click.option(
    "--install", multiple=True, metavar="COMMAND", help="How a measuring job installs its needs."
)
@click.option(
    "--action",
    default="",
    metavar="OWNER/NAME@COMMIT",
    help="The repository that GitHub's runners get perfci from (default: the one that this perfci "
    "was installed from).",
)
@click.option(
    "--trigger",
    type=click.Choice(TRIGGERS),
    default=TRIGGERS[0],
    show_default=True,
    help="Measure each push, or only pull requests with the label `perfci`.",
)
@click.option(
    "--nightly-runner",
    multiple=True,
    metavar="LABEL,…",
    help="Add nightly runs on a machine with all these labels; once for each type of GPU.",
)
@click.option(
    "--with",
    "more",
    multiple=True,
    type=click.Choice(ASKED_FOR),
    help="Write this workflow, too; can be repeated. `baseline` commits to the default branch.",
)
@click.option(
    "--package",
    default="",
    metavar="FOLDER",
    help="The package to measure, by its folder (default: the one at the root or in src).",
)
@click.option(
    "--python",
    "measuring_python",
    default="",
    metavar="PATH",
    help="The Python that runs the benchmarks (default: .venv's or venv's, else perfci's own).",
)
@click.option(
    "--strict/--no-strict",
    default=None,
    help="Whether an inconclusive verdict fails the check (default: --github asks, else not).",
)
def init_command(
    benchmarks: str,
    github: bool,
    package: str,
    measuring_python: str,
    strict: bool | None,
    **given: Any,
) -> None:
    """Write a configuration and a first benchmark, and show what to do next.

    Nothing that exists is overwritten. --github adds the workflows that measure and comment.
    --python and --strict complete a configuration that lacks them.
    """
    from perfci.commands.init import initialise
    from perfci.measure.checkout.git import open_repository
    from perfci.outputs import silent
    from perfci.report.templates import read_template

    options = CiOptions(**given)
    if options != CiOptions() and not github:
        raise click.UsageError("these options are about workflows. Add --github")
    asks = sys.stdin.isatty() and is_terminal() and not is_quiet()
    initialise(
        open_repository(Path.cwd()),
        silent if is_quiet() else say,
        benchmarks=benchmarks,
        package=package,
        workflows=options if github else None,
        python=measuring_python,
        strict=strict,
        ask_strict=partial(click.confirm, _STRICT) if asks else bool,
    )
    if is_quiet():
        return
    next_steps = read_template(f"init/{'next-github' if github else 'next'}.txt")
    show(clean_lines(f"\n{next_steps}"))
