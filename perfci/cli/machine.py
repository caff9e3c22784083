"""``perfci calibrate`` and ``perfci doctor``: what this machine sees, and what disturbs it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfci.cli.options import (
    FILE,
    allow_token_option,
    calling,
    config_option,
    duration,
    launcher_option,
    python_option,
    refs,
    root_here,
    seed_option,
    select_option,
    showing_options,
    split_options,
)
from perfci.cli.printing import is_coloured, is_quiet, say, show, styled
from perfci.config.loading import Config
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, UsageError
from perfci.outputs import STANDARD_OUTPUT, write_files
from perfci.report.clean import Clean, clean_line, clean_lines, clean_styled, one_line

if TYPE_CHECKING:
    from perfci.calibrate import Calibration

_MARKS = {"ok": ("ok", "green"), "worse": ("worse", "yellow"), "impossible": ("STOP", "red")}
"""The mark and the colour of a finding, by its level."""


@click.command(
    "calibrate",
    epilog="Example: perfci calibrate HEAD -k encoder --budget 5m\n\n"
    "Exit codes: 0 calibrated, 2 usage, 3 not to be relied on (a false alarm, too little "
    "time), 4 git or disk.",
)
@click.argument("rev", default=".", shell_complete=refs)
@config_option
@select_option
@python_option
@allow_token_option
@click.option(
    "--budget", type=duration, default="165s", show_default=True, help="Time for everything."
)
@seed_option
@click.option("--json", "json_path", type=FILE, help="Write the calibration file here.")
@click.option("--markdown", type=FILE, help="Write a summary, for a wiki page or an issue.")
@showing_options
def calibrate_command(
    rev: str,
    budget: float,
    json_path: Path | None,
    markdown: Path | None,
    verbose: bool,
    **given: Any,
) -> int:
    """Measure REV against itself, to show how small a slow-down this machine sees.

    REV defaults to the working tree. Both sides are the same code, so every alarm is false.
    """
    from perfci.commands.calibrate import calibrated
    from perfci.commands.project import open_project

    paths = {"json": json_path, "markdown": markdown}
    outputs = {name: path for name, path in paths.items() if path is not None}
    project_options, options = split_options(given)
    with calling() as caller:
        project = open_project(caller, **project_options)
        calibration = calibrated(project, rev, replace(options, outputs=outputs), budget)
    texts = {path: _rendered(name, calibration) for name, path in outputs.items()}
    printed = texts.pop(STANDARD_OUTPUT, None)
    try:
        write_files(texts)  # first: a closed terminal loses no file
    finally:
        _show(calibration, verbose=verbose, err=printed is not None)
    if printed is not None:
        show(printed)
    return EXIT_NO_VERDICT if calibration.untrusted else EXIT_PASS


def _show(calibration: Calibration, *, verbose: bool, err: bool) -> None:
    from perfci.report.calibration import headline, render_calibration

    if is_quiet():
        reasons = "; ".join(calibration.untrusted)
        say(clean_line(reasons or headline(calibration), 1000), err=err)
        return
    width = shutil.get_terminal_size((100, 24)).columns
    color = is_coloured(err=err)
    show(render_calibration(calibration, width, color, verbose=verbose), err=err)


def _rendered(form: str, calibration: Calibration) -> Clean:
    from perfci.report.calibration import render_calibration_json, render_calibration_markdown

    if form == "json":
        return render_calibration_json(calibration)
    return clean_lines(render_calibration_markdown(calibration))


@click.command("doctor", epilog="Example: perfci doctor --python .venv/bin/python")
@config_option
@python_option
@launcher_option
def doctor_command(config_path: Path | None, python: str | None, launcher: str | None) -> int:
    """Show what on this machine makes measurements worse or impossible, and what to do.

    Exits with 3 when measuring is impossible. With -q only problems are shown.
    """
    from perfci.commands.project import cache_folder, configuration, interpreter
    from perfci.measure.machine.doctor import examine

    root = root_here()
    try:
        config = configuration(root, config_path, launcher=launcher)
    except UsageError:  # a configuration that can't be read is one of the findings
        config = Config()
    chosen = interpreter(python, config, root, try_launcher=False)
    findings = examine(chosen, cache_folder(), dict(os.environ), root, config_path, config.launcher)
    for finding in findings:
        if finding.level == "ok" and is_quiet():
            continue
        text, color = _MARKS[finding.level]
        mark = styled(f"{text:>5}", fg=color)
        show(clean_styled(f"{mark}  {one_line(f'{finding.subject}: {finding.observation}')}\n"))
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
