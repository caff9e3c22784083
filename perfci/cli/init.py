"""``perfci init``: a configuration, a first benchmark, and the next steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from perfci.cli.printing import is_quiet, say, show
from perfci.commands.workflows import ASKED_FOR, MOST_SHARDS, CiOptions
from perfci.report.clean import clean_lines

_NEXT = """
Next:
  1. perfci doctor             what on this machine disturbs measurements
  2. git add and commit        both sides run head's benchmark files
  3. perfci list               the cases that were found
  4. perfci compare HEAD       your uncommitted changes against HEAD
  5. perfci baseline update    store HEAD's numbers, for `perfci check`"""

_NEXT_ON_GITHUB = """
Next:
  1. perfci list               the cases that were found
  2. look at `runs-on` and the step Install in .github/workflows/perfci*.yml
  3. merge all of it into the default branch: GitHub takes stage 2 from there alone
  4. open a pull request       its first comment comes when stage 2 has run
  5. Settings > Actions > General > Require approval for all external contributors
Asked for by --with: nightly runs, baselines that a bot commits, and measuring on demand."""

_NEXT_ON_GITLAB = """
Next:
  1. perfci list               the cases that were found
  2. look at `tags` and `image` in .gitlab/perfci.yml
  3. Settings > Access tokens: one of the role Developer that may use the API
  4. Settings > CI/CD > Variables: PERFCI_GITLAB_TOKEN, masked, environment scope `perfci`
  5. merge all of it, then open a merge request
Under --with nightly: Build > Pipeline schedules, the variable PERFCI_NIGHTLY=true."""


@click.command("init", epilog="Example: perfci init --github --runner self-hosted --runner gpu")
@click.option("--benchmarks", default="benchmarks", show_default=True, help="The folder to use.")
@click.option("--github", is_flag=True, help="Write GitHub workflows too.")
@click.option("--gitlab", is_flag=True, help="Write a GitLab pipeline too.")
@click.option("--kubernetes", is_flag=True, help="Write an indexed job, a pod for each shard, too.")
@click.option(
    "--image",
    default="python:3.12",
    show_default=True,
    metavar="NAME",
    help="The image of the job's pods, with Python and git.",
)
@click.option(
    "--runner",
    multiple=True,
    metavar="LABEL",
    help="A label of the measuring machine (default: self-hosted and gpu).",
)
@click.option(
    "--shards",
    type=click.IntRange(1, MOST_SHARDS),
    default=1,
    show_default=True,
    help="Jobs that share a pull request's cases, or a merge request's.",
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
    "--report-install",
    multiple=True,
    metavar="COMMAND",
    help="How the commenting job installs perfci.",
)
@click.option(
    "--nightly-runner",
    multiple=True,
    metavar="LABEL,…",
    help="All labels of a machine of the nightly runs, which it adds; once for each type of GPU.",
)
@click.option(
    "--with",
    "more",
    multiple=True,
    type=click.Choice(ASKED_FOR),
    help="Write this workflow, too; can be repeated. `baseline` commits to the default branch; "
    "`on-demand` measures where a maintainer comments `/perfci -k EXPR`. GitLab has `nightly`.",
)
@click.option(
    "--package",
    default="",
    metavar="NAME",
    help="The package to measure where there are several: its name, or its folder.",
)
def init_command(
    benchmarks: str,
    github: bool,
    gitlab: bool,
    kubernetes: bool,
    image: str,
    package: str,
    **given: Any,
) -> None:
    """Write a configuration and a first benchmark, and show what to do next.

    Nothing that exists is overwritten. --github adds the workflows that measure and comment,
    --gitlab the pipeline, --kubernetes a job of --shards, --install and --image. The other options
    are about these files.
    """
    from perfci.commands.init import initialise
    from perfci.commands.pipelines import KubernetesOptions
    from perfci.measure.checkout.git import open_repository
    from perfci.outputs import silent

    options = CiOptions(**given)
    pods = KubernetesOptions(options.shards, image, options.install) if kubernetes else None
    of_pods = CiOptions(shards=options.shards, install=options.install)
    known = github or gitlab or (kubernetes and options == of_pods)
    if options != CiOptions() and not known:
        raise click.UsageError("these options are about workflows. Add --github or --gitlab")
    notify = silent if is_quiet() else say
    on_github, on_gitlab = (options if wanted else None for wanted in (github, gitlab))
    initialise(open_repository(Path.cwd()), benchmarks, on_github, notify, package, on_gitlab, pods)
    if is_quiet():
        return
    after = _NEXT_ON_GITHUB if github else _NEXT_ON_GITLAB if gitlab else _NEXT
    show(clean_lines(f"{after}\n"))
