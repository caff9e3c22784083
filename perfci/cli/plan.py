"""``perfci plan``: how many shards, and what is in each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from perfci.cli.caller import allow_token_option
from perfci.cli.options import config_option, durations_option, python_option, refs, select_option
from perfci.cli.printing import is_terminal, say, say_red, show
from perfci.errors import EXIT_PASS
from perfci.model.case import Case
from perfci.report.clean import clean_json, clean_line
from perfci.units import counted, format_duration
from perfci.verdict.shards import MOST_SHARDS, Shard, expected_s, split

Shares = Sequence[Sequence[Case]]


@click.command("plan", epilog="Example: perfci plan --shards 4 --durations report.json")
@click.argument("rev", default=".", shell_complete=refs)
@click.option(
    "--shards",
    "wanted",
    type=click.IntRange(1, MOST_SHARDS),
    required=True,
    metavar="N",
    help=f"The most shards to make (up to {MOST_SHARDS}); never more than there are cases.",
)
@durations_option
@click.option("--matrix", is_flag=True, help="Print one line of JSON, for fromJSON in a matrix.")
@click.option("--json", "as_json", is_flag=True, help="Print each shard's cases as JSON.")
@config_option
@select_option
@python_option
@allow_token_option
def command(
    rev: str,
    wanted: int,
    durations_path: Path | None,
    matrix: bool,
    as_json: bool,
    config_path: Path | None,
    selection: str,
    python: str | None,
) -> int:
    """Split the cases of REV (default: the working tree) into shards that take about as long.

    `compare` and `check` with `--shard I/N` measure what is planned here, given the same -k and
    --durations; `perfci merge` makes one report of theirs.
    """
    if matrix and as_json:
        raise click.UsageError("--matrix and --json are two answers: choose one")
    from perfci.cli.caller import calling
    from perfci.commands.project import load_durations, open_project
    from perfci.commands.run import list_cases

    durations = load_durations(durations_path, say)
    with calling(quiet=not is_terminal(err=True)) as caller:
        project = open_project(caller, config_path)
        head = project.side("head", rev, python)
        cases, failed, _ = list_cases(project.surroundings(), head, selection)
    # a file that can't be imported holds no plan up: the first shard's report names it
    for line in failed:
        say_red(f"failed: {clean_line(line, 2000)}")
    shares = split(cases, min(wanted, len(cases)), durations)
    if len(shares) < wanted:
        few = f"{counted(len(cases), 'case')} in {counted(len(shares), 'shard')}, not {wanted}"
        say(f"perfci: {few}: a shard has at least one case.", err=True)
    if matrix:
        show(clean_json(json.dumps({"shard": _names(shares)}) + "\n"))
    elif as_json:
        show(clean_json(_listed(shares, cases, durations) + "\n"))
    else:
        for line in _table(shares, cases, durations):
            say(line)
    return EXIT_PASS


def _names(shares: Shares) -> list[str]:
    return [str(Shard(number, len(shares))) for number in range(1, len(shares) + 1)]


def _loads(
    shares: Shares, cases: Sequence[Case], durations: Mapping[str, float]
) -> list[float | None]:
    """Return how long each shard takes, in s, or None for each where nothing is known of any."""
    if not any(case.id in durations for case in cases):
        return [None] * len(shares)
    cost = expected_s(cases, durations)
    return [round(sum(cost[case.id] for case in share), 3) for share in shares]


def _listed(shares: Shares, cases: Sequence[Case], durations: Mapping[str, float]) -> str:
    loads = _loads(shares, cases, durations)
    plan = [
        {"shard": name, "expected_s": load, "cases": [case.id for case in share]}
        for name, load, share in zip(_names(shares), loads, shares, strict=True)
    ]
    return json.dumps({"shards": plan}, indent=2)


def _table(shares: Shares, cases: Sequence[Case], durations: Mapping[str, float]) -> list[str]:
    rows = [("shard", "cases", "expected")]
    for name, load, share in zip(
        _names(shares), _loads(shares, cases, durations), shares, strict=True
    ):
        expected = "unknown" if load is None else format_duration(load)
        rows.append((name, str(len(share)), expected))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return [f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]}" for row in rows]
