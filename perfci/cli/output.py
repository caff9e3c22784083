"""Writing reports to files and to the terminal."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from perfci.cli.options import history_place
from perfci.cli.printing import discard, flush, is_terminal, show
from perfci.config.loading import Config
from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, EXIT_REGRESSION, OutsideError, UsageError
from perfci.files import require_writable, write_file
from perfci.model.report import Report

# Outputs that would overwrite one another or the history: refused before anything is done.


def history_files(given: str | None, config: Config, root: Path) -> tuple[Path, ...]:
    """Return the files of the history that a command means; none where a server has it.

    None, too, where nothing says whose it is: a command that needs one says so.
    """
    from perfci.cli.own_history import own_history
    from perfci.history.address import files_at

    if given or config.history:
        return files_at(history_place(given, config, root))
    try:
        return files_at(str(own_history(config, root)))
    except UsageError:
        return ()


def require_apart(
    outputs: Mapping[str, Path],
    history: Iterable[Path] = (),
    folders: Mapping[str, Path] | None = None,
) -> None:
    """UsageError where two places are one. Keys are what the user calls each output.

    ``folders`` are replaced whole: nothing else may be in one. Links lead to one file, too.
    """
    folders = folders or {}
    kept = tuple(history)
    for name, path in outputs.items():
        if any(_same(path, other) for other in kept):
            raise UsageError(
                "output-is-history",
                f"{name} is the history itself, {path}: it would be overwritten",
                f"Choose another file for {name}.",
            )
    for (name, path), (other, place) in combinations(outputs.items(), 2):
        if _same(path, place):
            raise UsageError(
                "same-output",
                f"{name} and {other} are one file, {path}: only one would be left",
                "Choose a file for each.",
            )
    for name, folder in folders.items():
        inside = [f"{other} ({path})" for other, path in outputs.items() if _holds(folder, path)]
        inside += [f"the history ({path})" for path in kept[:1] if _holds(folder, path)]
        if inside:
            raise UsageError(
                "output-in-folder",
                f"{name} is replaced whole, and {inside[0]} would be in it: {folder}",
                f"Choose a folder for {name} that nothing else is in.",
            )


def _same(path: Path, other: Path) -> bool:
    """Whether both are one file, there or not yet. A device or a pipe takes any number of texts."""
    if os.path.realpath(path) == os.path.realpath(other):
        return not path.exists() or path.is_file()
    try:
        one, two = path.stat(), other.stat()
    except OSError:  # one isn't there or can't be reached, which the writing will tell
        return False
    return stat.S_ISREG(one.st_mode) and os.path.samestat(one, two)


def _holds(folder: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def check_writable(outputs: Mapping[str, Path], history: Iterable[Path] = ()) -> None:
    """Fail before anything is measured where a file could not be written afterwards.

    Or where writing it would destroy another one, or one of the ``history``'s files.
    """
    require_apart({f"--{name}": path for name, path in outputs.items()}, history)
    for path in outputs.values():
        try:
            require_writable(path)
        except OSError as error:
            raise unwritable(path, error) from error


def deliver(report: Report, outputs: Mapping[str, Path], *, verbose: bool, quiet: bool) -> None:
    """Write the files, then print: a closed terminal loses no file, a full disk no table.

    A broken exporter of another distribution loses its own file only.
    """
    texts: dict[Path, str] = {}
    broken = []
    try:
        for name, path in outputs.items():
            try:
                texts |= rendered(report, {name: path})
            except UsageError as error:
                broken.append(error)
        write_files(texts, "What was measured is shown on the terminal.")
    finally:
        show_report(report, verbose=verbose, quiet=quiet)
    if broken:
        raise broken[0]


def rendered(report: Report, outputs: Mapping[str, Path]) -> dict[Path, str]:
    """Return the text of every file that was asked for. UsageError for a broken exporter."""
    from perfci.render.exporters import named

    return {path: named(name).text(report) for name, path in outputs.items()}


def write_files(files: Mapping[Path, str], besides: str = "") -> None:
    """Write every file; one that fails doesn't keep the others back, and each of those is told."""
    problems = []
    for path, text in files.items():
        try:
            write_file(path, text)
        except OSError as error:
            problems.append(unwritable(path, error, besides))
    if problems:
        raise OutsideError(
            problems[0].slug, "; ".join(one.message for one in problems), problems[0].advice
        )


def show_report(report: Report, *, verbose: bool, quiet: bool) -> None:
    """Print the report as a terminal table, or the verdict alone."""
    from perfci.render.clean import clean_line, clean_lines
    from perfci.render.outline import headline, injected_text
    from perfci.render.terminal import render_terminal

    if quiet:
        alone = report.base is None and report.command == "run"
        reasons = () if alone else report.verdict.reasons
        said = "; ".join(filter(None, (injected_text(report), *(reasons or (headline(report),)))))
        line = f"{'run' if alone else report.verdict.status}: {said}"
        text = clean_lines(clean_line(line, 2000) + "\n")
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        text = render_terminal(report, width, is_terminal(), verbose=verbose)
    try:
        show(text)
        flush()
    except BrokenPipeError:  # nobody reads: the files are written, and the verdict is the exit code
        discard()


def exit_code(report: Report, *, strict: bool) -> int:
    """Return the exit code (README.md, Exit codes) of a verdict. Half a session is no verdict."""
    if report.interrupted and report.verdict.status != "fail":
        return EXIT_NO_VERDICT
    match report.verdict.status:
        case "fail":
            return EXIT_REGRESSION
        case "error":
            return EXIT_NO_VERDICT
        case "inconclusive":
            return EXIT_NO_VERDICT if strict else EXIT_PASS
        case "pass":
            return EXIT_PASS


def unwritable(path: Path, error: OSError, besides: str = "") -> OutsideError:
    """Return the error for a file that can't be written."""
    return OutsideError(
        "unwritable",
        f"{path} can't be written: {error.strerror or error}",
        f"Choose another path, or make room. {besides}".rstrip(),
    )
