"""``perfci doctor``: what on this machine makes measurements worse or impossible."""

from __future__ import annotations

import os
from pathlib import Path

import click

from perfci.cli.options import config_option, launcher_option, python_option
from perfci.cli.printing import is_quiet, say, show, styled
from perfci.config.loading import Config
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, UsageError
from perfci.report.clean import clean_styled, one_line

_MARKS = {"ok": ("ok", "green"), "worse": ("worse", "yellow"), "impossible": ("STOP", "red")}


@click.command("doctor", epilog="Example: perfci doctor --python .venv/bin/python")
@config_option
@python_option
@launcher_option
def command(config_path: Path | None, python: str | None, launcher: str | None) -> int:
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
