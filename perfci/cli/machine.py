"""``perfci calibrate`` and ``perfci doctor``: what this machine sees, and what disturbs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.caller import allow_token_option
from perfci.cli.options import (
    config_option,
    duration,
    launcher_option,
    python_option,
    refs,
    select_option,
    showing_options,
)
from perfci.cli.printing import is_coloured, is_quiet, say, show, styled
from perfci.config.loading import Config
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, UsageError
from perfci.report.clean import clean_styled, one_line
from perfci.units import counted
from perfci.verdict.shards import MOST_SHARDS

if TYPE_CHECKING:
    from perfci.calibrate.calibration import Calibration
    from perfci.report.clean import Clean

_BUDGET_S = 165.0
_FILE = click.Path(dir_okay=False, path_type=Path)
_MARKS = {"ok": ("ok", "green"), "worse": ("worse", "yellow"), "impossible": ("STOP", "red")}


@click.command(
    "calibrate",
    epilog="Example: perfci calibrate HEAD -k encoder --budget 5m\n\n"
    "Exit codes: 0 calibrated, 2 usage, 3 not to be relied on (a promise not kept, a false "
    "alarm, too little time), 4 git or disk.",
)
@click.argument("rev", default=".", shell_complete=refs)
@config_option
@select_option
@python_option
@allow_token_option
@click.option(
    "--budget", type=duration, default=_BUDGET_S, help="Time for everything.", show_default="165s"
)
@click.option("--seed", type=int, help="Of the order of cases and of the benchmarks' data.")
@click.option(
    "--at-once",
    type=click.IntRange(2, MOST_SHARDS),
    metavar="N",
    help="Only see whether N sessions disturb each other, for compare --engine local.",
)
@click.option("--write", "write_it", is_flag=True, hidden=True)  # an older perfci did
@click.option("--json", "json_path", type=_FILE, help="Write the calibration file here.")
@click.option("--markdown", type=_FILE, help="Write a summary, for a wiki page or an issue.")
@showing_options
def calibrate_command(
    rev: str,
    config_path: Path | None,
    selection: str,
    python: str | None,
    budget: float,
    seed: int | None,
    at_once: int | None,
    write_it: bool,
    json_path: Path | None,
    markdown: Path | None,
    log_folder: Path | None,
    verbose: bool,
    quiet: bool,
) -> int:
    """Measure REV against itself, to show how small a slow-down this machine sees.

    REV defaults to the working tree. Both sides are the same code, so every alarm is false. A
    slow-down of the promised size is then injected to test the promise.
    """
    from perfci.cli.caller import calling
    from perfci.commands.calibrate import calibrate
    from perfci.commands.compare import MeasureOptions
    from perfci.commands.project import open_project
    from perfci.outputs import STANDARD_OUTPUT, write_files

    if write_it:
        say("perfci: --write is gone: paste the lines that are shown.", err=True)
    paths = {"json": json_path, "markdown": markdown}
    outputs = {name: path for name, path in paths.items() if path is not None}
    if at_once:
        if outputs:
            raise click.UsageError(
                "--at-once writes no file: --json and --markdown don't go with it"
            )
        given = {"--config": config_path, "-k": selection, "--python": python, "--seed": seed}
        return _see_at_once(rev, at_once, budget, config_path, given, quiet=quiet)
    with calling(quiet=quiet) as caller:
        calibration = calibrate(
            open_project(caller, config_path, seed=seed),
            rev,
            MeasureOptions(selection, python, outputs=outputs, log_folder=log_folder),
            budget,
            config_path,
        )
    texts = {path: _rendered(name, calibration) for name, path in outputs.items()}
    printed = texts.pop(STANDARD_OUTPUT, None)
    try:
        write_files(texts)  # first: a closed terminal loses no file
    finally:
        _show(calibration, verbose=verbose, quiet=quiet, err=printed is not None)
    if printed is not None:
        show(printed)
    return EXIT_NO_VERDICT if calibration.untrusted else EXIT_PASS


def _see_at_once(
    rev: str,
    count: int,
    budget_s: float,
    config_path: Path | None,
    given: Mapping[str, object],
    *,
    quiet: bool,
) -> int:
    """Measure whether ``count`` sessions disturb each other, and say what that decides."""
    from perfci.cli.caller import calling, token_allowed
    from perfci.commands.concurrent import calibrate_at_once
    from perfci.commands.project import open_project
    from perfci.commands.shards import MOST_RATIO

    options = [str(word) for pair in given.items() if pair[1] not in (None, "") for word in pair]
    if token_allowed():
        options.append("--allow-token")
    with calling(quiet=quiet) as caller:
        project = open_project(caller, config_path)
        spread = calibrate_at_once(project, rev, count, options, budget_s)
    say(f"{spread}; {spread.pairs} pairs of {counted(spread.cases, 'case')}.")
    if spread.allowed:
        say(f"--engine local measures {count} shards at once here.")
    else:
        say(
            f"--engine local measures one shard at a time here: {count} at once need an interval "
            f"that ends at {MOST_RATIO:g} or below. More time (--budget) narrows it."
        )
    return EXIT_PASS


def _show(calibration: Calibration, *, verbose: bool, quiet: bool, err: bool) -> None:
    from perfci.report.calibration import headline, render_calibration
    from perfci.report.clean import clean_line

    if quiet:
        reasons = "; ".join(calibration.untrusted)
        say(clean_line(reasons or headline(calibration), 1000), err=err)
        return
    width = shutil.get_terminal_size((100, 24)).columns
    color = is_coloured(err=err)
    show(render_calibration(calibration, width, color, verbose=verbose), err=err)


def _rendered(form: str, calibration: Calibration) -> Clean:
    from perfci.report.calibration import render_calibration_json, render_calibration_markdown
    from perfci.report.clean import clean_lines

    if form == "json":
        return render_calibration_json(calibration)
    return clean_lines(render_calibration_markdown(calibration))


@click.command("doctor", epilog="Example: perfci doctor --python .venv/bin/python")
@config_option
@python_option
@launcher_option
def doctor_command(config_path: Path | None, python: str | None, launcher: str | None) -> int:
    """Look at this machine and say what makes measurements worse or impossible, and what to do.

    Exits with 3 when measuring is impossible. With -q only what isn't as it should be.
    """
    from perfci.cli.caller import root_here
    from perfci.commands.project import cache_folder, configuration, named_python
    from perfci.measure.machine.doctor import examine

    root = root_here()
    try:
        config = configuration(root, config_path, launcher=launcher)
    except UsageError:  # a configuration that can't be read is one of the findings
        config = Config()
    chosen = named_python(python, config.python, root, config.launcher)
    findings = examine(chosen, cache_folder(), dict(os.environ), root, config_path, config.launcher)
    for finding in findings:
        if finding.level == "ok" and is_quiet():
            continue
        text, color = _MARKS[finding.level]
        mark = styled(f"{text:>5}", fg=color)
        show(clean_styled(f"{mark}  {one_line(f'{finding.subject}: {finding.found}')}\n"))
        if finding.advice:
            say(f"       → {finding.advice}")
    stops = sum(finding.level == "impossible" for finding in findings)
    worse = sum(finding.level == "worse" for finding in findings)
    if is_quiet():
        return EXIT_NO_VERDICT if stops else EXIT_PASS
    say("")
    say(
        f"{stops} make measuring impossible, {worse} make it worse."
        if stops or worse
        else "This machine is ready."
    )
    return EXIT_NO_VERDICT if stops else EXIT_PASS
