"""``perfci calibrate`` and ``perfci doctor``: what this machine sees, and what disturbs it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import click

from perfci.cli.options import (
    FILE,
    allow_token_option,
    config_option,
    configuration_here,
    duration,
    opened_project,
    python_option,
    root_here,
    select_option,
    showing_options,
)
from perfci.cli.printing import is_coloured, is_quiet, say, show, styled
from perfci.config.loading import Config
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, UsageError
from perfci.outputs import STANDARD_OUTPUT, write_files
from perfci.report.clean import clean_line, clean_styled, one_line

_MARKS = {"ok": ("ok", "green"), "worse": ("worse", "yellow"), "impossible": ("STOP", "red")}
"""The mark and the colour of a finding, by its level."""


@click.command(
    "calibrate",
    epilog="Example: perfci calibrate HEAD -k encoder --budget 5m\n\n"
    "Exit codes: 0 calibrated, 2 usage, 3 not to be relied on (a false alarm, too little "
    "time), 4 git or disk.",
)
@click.argument("rev", default=".")
@config_option
@select_option
@python_option
@allow_token_option
@click.option(
    "--budget", type=duration, default="165s", show_default=True, help="Time for everything."
)
@click.option("--json", "json_path", type=FILE, help="Write the calibration file here.")
@showing_options
def calibrate_command(
    rev: str, budget: float, json_path: Path | None, verbose: bool, **given: Any
) -> int:
    """Measure REV against itself, to show the smallest slow-down that this machine can detect.

    REV defaults to the working tree. Both sides are the same code, so every alarm is false.
    """
    from perfci.commands.calibrate import calibrated
    from perfci.commands.compare import MeasureOptions
    from perfci.report.calibration import headline, render_calibration, render_calibration_json

    outputs = {"json": json_path} if json_path else {}
    with opened_project() as project:
        calibration = calibrated(project, rev, MeasureOptions(outputs=outputs, **given), budget)
    printed = json_path == STANDARD_OUTPUT
    if json_path and not printed:
        write_files({json_path: render_calibration_json(calibration)})
    if is_quiet():
        reasons = "; ".join(calibration.untrusted)
        say(clean_line(reasons or headline(calibration), 1000), err=printed)
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        color = is_coloured(err=printed)
        show(render_calibration(calibration, width, color, verbose=verbose), err=printed)
    if printed:
        show(render_calibration_json(calibration))
    return EXIT_NO_VERDICT if calibration.untrusted else EXIT_PASS


@click.command("doctor", epilog="Example: perfci doctor --python .venv/bin/python")
@config_option
@python_option
def doctor_command() -> int:
    """Show problems of this machine that make measurements worse or impossible, and what to do.

    Exits with 3 when measuring is impossible. With -q, show only problems.
    """
    from perfci.commands.project import cache_folder, interpreter
    from perfci.measure.machine.doctor import examine

    root, config, trouble = root_here(), Config(), None
    try:
        root, config = configuration_here()
    except UsageError as error:  # it is one of the findings
        trouble = error
    chosen = interpreter(config, root, try_launcher=False)
    findings = examine(chosen, cache_folder(), dict(os.environ), root, trouble or config)
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
