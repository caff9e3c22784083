"""The options that several commands share, each written once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from perfci.cli.surroundings import allow_token_option
from perfci.config.loading import Config, load_config
from perfci.errors import UsageError
from perfci.model.settings import DECIDING_ROUNDS, INJECTABLE
from perfci.units import parse_duration, parse_share
from perfci.verdict.shards import Shard, parse_shard

_MOST_INJECTED = 10.0

F = TypeVar("F", bound=Callable[..., Any])


# Values are converted by functions: a subclass of click.ParamType with its type argument, which
# strict typing asks for, would need click 8.4 at run time.
def duration(value: str | float) -> float:
    """``90``, ``90s``, ``5m`` or ``1h``, as seconds."""
    try:
        return parse_duration(str(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no duration; write 90, 90s, 5m or 1h") from None


def injection(value: str) -> tuple[str, float]:
    """``latency=2%`` or ``latency=0.02``, as a name and a share."""
    name, _, text = value.partition("=")
    if name not in INJECTABLE:
        raise click.BadParameter(f"{name!r} can't be injected; choose from {', '.join(INJECTABLE)}")
    try:
        share = parse_share(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no share; write {error}") from None
    if not 0.0 < share <= _MOST_INJECTED:
        raise click.BadParameter(f"{text!r} is no share above zero, up to 1000%; write {name}=2%")
    return name, share


def shard(value: str) -> Shard:
    """``2/4``, as the second of four shards."""
    try:
        return parse_shard(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no shard: {error}") from None


def _stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)

config_option = click.option(
    "--config", "config_path", type=_FILE, help="Read this file instead of pyproject.toml."
)
select_option = click.option(
    "-k", "selection", default="", metavar="WORDS", help="Only the cases these words select."
)
python_option = click.option(
    "--python",
    "python",
    metavar="PATH",
    help="The Python that measures (default: `python` in the configuration, else perfci's own).",
)
measuring_options = _stack(
    config_option,
    select_option,
    click.option(
        "--rounds",
        type=click.IntRange(2),
        help=f"Least rounds a case; fewer than {DECIDING_ROUNDS} are a quick look: no verdict.",
    ),
    click.option("--budget", type=duration, help="Time for everything: 90s, 10m, 1h."),
    click.option("--seed", type=int, help="Of the order of cases and of the benchmarks' data."),
    allow_token_option,
)
durations_option = click.option(
    "--durations",
    "durations_path",
    type=_FILE,
    metavar="REPORT",
    help="Split by what each case took in this report file (default: all alike).",
)
shard_options = _stack(
    click.option(
        "--shard",
        type=shard,
        metavar="I/N",
        help="Measure the I-th of N parts; `perfci merge` joins their reports.",
    ),
    durations_option,
)
strict_option = click.option(
    "--strict/--no-strict",
    default=None,
    help="Exit with 3 when the verdict is inconclusive (default: `strict` in the configuration).",
)
inject_option = click.option(
    "--inject",
    type=injection,
    multiple=True,
    metavar="METRIC=SHARE",
    help="Make HEAD worse on purpose, to see that the gate finds it: latency=2%.",
)
history_option = click.option(
    "--history",
    envvar="PERFCI_HISTORY",
    metavar="PLACE",
    help="The history: a file, or postgresql://… (default: `history` in the configuration, "
    "else the repository's own file in your data folder).",
)
record_options = _stack(
    click.option("--record", is_flag=True, help="Add what was measured to the history."),
    history_option,
)
showing_options = _stack(
    click.option("--log-dir", type=_FOLDER, help="Keep the session's log files here."),
    click.option("-v", "--verbose", is_flag=True, help="Show every comparison."),
    click.option("-q", "--quiet", is_flag=True, help="Show the verdict only; no progress."),
)


def history_place(given: str | None, config: Config, root: Path) -> str:
    """Return what ``open_history`` is to open: as given, as configured, or the repository's own.

    A path in the configuration is relative to the repository's ``root``, a given one to here. What
    an older perfci kept elsewhere is taken over into the repository's own.
    """
    if given or "://" in config.history:
        return given or config.history
    if config.history:
        return str(root / Path(config.history).expanduser())
    from perfci.cli.own_history import own_history, take_over

    own = own_history(config, root)
    take_over(own, root)
    return str(own)


def configuration(
    root: Path,
    config_path: Path | None,
    *,
    rounds: int | None = None,
    budget: float | None = None,
    seed: int | None = None,
    strict: bool | None = None,
    inject: Sequence[tuple[str, float]] = (),
) -> Config:
    """Return the configuration with the command line's options laid over it."""
    config = load_config(root, config_path)
    settings = config.settings
    if rounds is not None:
        most = rounds if rounds < DECIDING_ROUNDS else max(rounds, settings.max_rounds)
        settings = replace(settings, rounds=rounds, max_rounds=most)
    if budget is not None:
        settings = replace(settings, budget=budget)
    if seed is not None:
        settings = replace(settings, seed=seed)
    if inject:
        if len(dict(inject)) < len(inject):
            raise UsageError(
                "injected-twice", "--inject names a metric twice", "Give each metric one share."
            )
        settings = replace(settings, inject=dict(inject))
    policy = config.policy if strict is None else replace(config.policy, strict=strict)
    return replace(config, settings=settings, policy=policy)


def interpreter(given: str | None, configured: str, root: Path, option: str = "--python") -> str:
    """Return the absolute path of the Python that measures; UsageError where it isn't one.

    ``given`` as ``option`` goes before the ``configured`` one, whose relative path is the
    repository's; without either it is perfci's own.
    """
    import shutil
    import sys

    if given is None and not configured:
        return sys.executable
    named = _of_repository(configured, root) if given is None else given
    shown = configured if given is None else given
    found = shutil.which(str(Path(named).expanduser()))
    if found is None:
        raise UsageError(
            "no-python",
            f"{shown} is not an executable Python",
            f"Give the interpreter itself: {option} /path/to/venv/bin/python"
            if given is not None
            else "It is `python` in the configuration: name the interpreter of the environment "
            "that has torch, or override it with --python.",
        )
    python = str(Path(found).absolute())
    trouble = _trouble_with(python)
    if trouble:
        raise UsageError("no-python", f"{shown} {trouble}", "Workers need Python 3.11 or newer.")
    return python


def _of_repository(python: str, root: Path) -> str:
    """Return a path of the configuration as one from here; a bare name is looked up on PATH."""
    return str(root / Path(python).expanduser()) if os.sep in python else python


def _trouble_with(python: str) -> str:
    """Return why ``python`` can't run workers; measured with, it would look like a broken side."""
    import subprocess

    probe = [python, "-c", "import sys; print('Python', *sys.version_info[:2])"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return "gives no answer"
    except OSError as error:
        return f"can't be started: {error.strerror}"
    name, *numbers = done.stdout.split() or [""]
    if name != "Python" or len(numbers) != 2:
        return "is no Python"
    version = tuple(map(int, numbers))
    return "" if version >= (3, 11) else f"is Python {'.'.join(numbers)}"
