"""``perfci calibrate``: what this machine sees."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.cli.options import (
    config_option,
    configuration,
    duration,
    interpreter,
    python_option,
    select_option,
    showing_options,
)
from perfci.cli.printing import is_terminal, say, show
from perfci.cli.surroundings import allow_token_option
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS

if TYPE_CHECKING:
    from perfci.cli.configuration_file import ConfigurationFile
    from perfci.model.calibration import Calibration

_BUDGET_S = 165.0
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    "calibrate",
    epilog="Example: perfci calibrate HEAD -k encoder --budget 5m --write\n\n"
    "Exit codes: 0 calibrated, 2 usage, 3 not to be relied on (a promise not kept, a false "
    "alarm, too little time), 4 git or disk.",
)
@click.argument("rev", default=".")
@config_option
@select_option
@python_option
@allow_token_option
@click.option(
    "--budget", type=duration, default=_BUDGET_S, help="Time for everything.", show_default="165s"
)
@click.option("--seed", type=int, help="Of the order of cases and of the benchmarks' data.")
@click.option("--write", "write_it", is_flag=True, help="Put suggestions into the configuration.")
@click.option("--json", "json_path", type=_FILE, help="Write the calibration file here.")
@click.option("--markdown", type=_FILE, help="Write a summary, for a wiki page or an issue.")
@showing_options
def command(
    rev: str,
    config_path: Path | None,
    selection: str,
    python: str | None,
    budget: float,
    seed: int | None,
    write_it: bool,
    json_path: Path | None,
    markdown: Path | None,
    log_dir: Path | None,
    verbose: bool,
    quiet: bool,
) -> int:
    """Measure REV against itself: how small a slow-down this machine sees, and how to see more.

    REV defaults to the working tree. Both sides are the same code, so every alarm is false;
    a slow-down of the size that is promised is then injected to test the promise.
    """
    from perfci.app.calibrating.calibrate import calibrate_commit
    from perfci.app.compare import Request
    from perfci.cli.configuration_file import configuration_file, configuration_path
    from perfci.cli.output import check_writable, history_files
    from perfci.cli.surroundings import open_here, surroundings
    from perfci.session.workplace import Wanted

    asked = {"json": json_path, "markdown": markdown}
    outputs = {name: path for name, path in asked.items() if path is not None}
    repository = open_here()
    file = configuration_file(repository.root, config_path) if write_it else None
    config = configuration(repository.root, config_path, seed=seed)
    check_writable(outputs, history_files(None, config, repository.root))
    measuring = interpreter(python, config.python, repository.root)
    with surroundings(repository, config, quiet=quiet) as around:
        calibration = calibrate_commit(
            around,
            Wanted("head", repository.resolve(rev), measuring),
            Request(selection, log_folder=log_dir),
            budget,
            configuration=configuration_path(repository.root, config_path).name,
        )
    try:
        _write_files(calibration, outputs)  # first: a closed terminal loses no file
    finally:
        _show(calibration, verbose=verbose, quiet=quiet, writing=file is not None)
    if file is not None:
        _configure(calibration, file)
    return EXIT_NO_VERDICT if calibration.untrusted else EXIT_PASS


def _show(calibration: Calibration, *, verbose: bool, quiet: bool, writing: bool) -> None:
    from perfci.render.calibration.terminal import render_calibration
    from perfci.render.calibration.text import headline
    from perfci.render.clean import clean_line

    if quiet:
        reasons = "; ".join(calibration.untrusted)
        say(clean_line(reasons or headline(calibration), 1000))
        return
    width = shutil.get_terminal_size((100, 24)).columns
    color = is_terminal()
    show(render_calibration(calibration, width, color, verbose=verbose, writing=writing))


def _write_files(calibration: Calibration, files: dict[str, Path]) -> None:
    from perfci.cli.output import unwritable
    from perfci.files import write_file
    from perfci.render.calibration.files import render_calibration_json
    from perfci.render.calibration.markdown import render_calibration_markdown

    for name, path in files.items():
        render: Callable[[Calibration], str] = (
            render_calibration_json if name == "json" else render_calibration_markdown
        )
        try:
            write_file(path, render(calibration))
        except OSError as error:
            raise unwritable(path, error) from error


def _configure(calibration: Calibration, file: ConfigurationFile) -> None:
    """Write what was suggested and shown; nothing where the calibration can't be relied on."""
    from perfci.render.calibration.files import writable

    keys = {one.path: one.value for one in writable(calibration.suggestions)}
    if calibration.untrusted:
        say(f"{file.path} was not changed: this calibration can't be relied on.", err=True)
    elif not keys:
        say(f"{file.path} was not changed: there is nothing to change.", err=True)
    else:
        file.write(keys)
        say(f"{file.path} was changed; look at it with git diff.", err=True)
