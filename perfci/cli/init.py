"""``perfci init``: a configuration and a first benchmark, and what to do next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from perfci.cli.init_github import LEAVABLE, MOST_SHARDS, GitHubOptions, write_workflows
from perfci.cli.printing import say, show
from perfci.errors import UsageError
from perfci.files import read_regular
from perfci.render.clean import clean_lines

_CONFIGURATION = """\
[tool.perfci]
benchmarks = "{benchmarks}"   # the folder of bench_*.py files
budget = "10m"              # for everything a command measures

[tool.perfci.metrics.latency_p50]
threshold = "5%"            # a slow-down of 5 % fails
"""

_BENCHMARK = '''\
"""A first benchmark. Replace the model by yours; `perfci list` shows the cases."""

import torch

import perfci


@perfci.benchmark(batch=[1, 16], mode=["eager"])
def feed_forward(batch, mode):
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)
    ).eval()
    return perfci.inference(model, torch.randn(batch, 256), mode=mode, items=batch)
'''

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
  5. read docs/security.md     which settings of the repository the workflows rely on"""


@click.command("init", epilog="Example: perfci init --github --runner self-hosted --runner gpu")
@click.option("--benchmarks", default="benchmarks", show_default=True, help="The folder to use.")
@click.option("--github", is_flag=True, help="Write GitHub workflows too.")
@click.option(
    "--runner",
    multiple=True,
    metavar="LABEL",
    help="A label of the machine that measures (default: self-hosted and gpu).",
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
    help="All labels of a machine of the nightly runs; once for each type of GPU.",
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(LEAVABLE),
    help="Leave this workflow out; can be given twice.",
)
def command(
    benchmarks: str,
    github: bool,
    runner: tuple[str, ...],
    shards: int,
    python_version: str,
    install: tuple[str, ...],
    report_install: tuple[str, ...],
    nightly_runner: tuple[str, ...],
    without: tuple[str, ...],
) -> None:
    """Write a configuration and a first benchmark, and say what to do next.

    Nothing that exists is overwritten. With --github also the workflows that measure and
    comment; the options after it are about these.
    """
    from perfci.checkout.repository import open_repository

    options = GitHubOptions(
        runner, shards, python_version, install, report_install, nightly_runner, without
    )
    if options != GitHubOptions() and not github:
        raise click.UsageError("this is about workflows: add --github")
    if nightly_runner and "nightly" in without:
        raise click.UsageError("--nightly-runner is about what --without nightly leaves out")
    repository = open_repository(Path.cwd())
    root = repository.root
    folder = (root / benchmarks).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise UsageError(
            "outside-repository",
            f"{benchmarks} lies outside the repository",
            "Choose a folder inside it, so that its files are part of every commit.",
        )
    _configure(root, folder.relative_to(root.resolve()).as_posix())
    first = folder / "bench_first.py"
    if any(folder.glob("bench_*.py")):
        say(f"kept     {benchmarks}/ has benchmarks already")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        first.write_text(_BENCHMARK, encoding="utf-8")
        say(f"wrote    {benchmarks}/bench_first.py")
    if github:
        write_workflows(repository, options)
    show(clean_lines(f"{_NEXT_ON_GITHUB if github else _NEXT}\n"))


def _configure(root: Path, benchmarks: str) -> None:
    """Put a first configuration where none is: into pyproject.toml, where its layout takes it."""
    from perfci.config.loading import OWN_FILE, PROJECT_FILE

    path, own = root / PROJECT_FILE, root / OWN_FILE
    text = _text(path)
    tool = _parsed(path, text).get("tool", {})
    if (isinstance(tool, dict) and "perfci" in tool) or os.path.lexists(own):
        say("kept     the configuration that is there")
        return
    mine = _CONFIGURATION.format(benchmarks=benchmarks)
    both = text + ("\n" if text else "") + mine
    if "\r\n" in text:
        both = both.replace("\r\n", "\n").replace("\n", "\r\n")
    if not _is_toml(both):  # `tool` is an inline table: no other place may add to it
        own.write_text(mine, encoding="utf-8")
        say(f"wrote    [tool.perfci] to a new {own.name}")
        return
    path.write_bytes(both.encode("utf-8"))
    say(f"wrote    [tool.perfci] {'in' if text else 'to a new'} {path.name}")


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(
            "unreadable-configuration",
            f"{path} can't be read: {reason}",
            "Mend it, then run `perfci init` again.",
        ) from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            "bad-toml", f"{path} can't be read: {error}", "Mend it, then run `perfci init` again."
        ) from error


def _is_toml(text: str) -> bool:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
