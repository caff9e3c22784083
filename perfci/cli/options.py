"""The options that several commands share, and the project that commands open."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from perfci.cli.printing import ProgressLine, say
from perfci.files import from_here, parse_toml
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.units import parse_duration, parse_share
from perfci.verdict.shards import Shard, parse_shard

if TYPE_CHECKING:
    from perfci.commands.project import Project
    from perfci.config.loading import Config

F = TypeVar("F", bound=Callable[..., Any])
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


# Values are converted by functions: a subclass of click.ParamType with its type argument, which
# strict typing asks for, would need click 8.4 at run time.
def duration(value: str | float) -> float:
    """Return ``90``, ``90s``, ``2m30s`` or ``1h`` as seconds."""
    with _refusing(value, "write 90s, 2m30s or 1h"):
        return parse_duration(str(value))


def share(value: str) -> float:
    """Return ``2%`` or ``0.02`` as a share above 0."""
    with _refusing(value, 'write a share above 0, such as "2%"'):
        if (parsed := parse_share(value)) > 0.0:
            return parsed
        raise ValueError


def shard(value: str) -> Shard:
    """Return ``2/4`` as the second of four shards."""
    with _refusing(value, "write the second of four as 2/4"):
        return parse_shard(value)


@contextmanager
def _refusing(value: object, advice: str) -> Iterator[None]:
    try:
        yield
    except ValueError:
        raise click.BadParameter(f"{value!r} can't be read: {advice}") from None


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds the options, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# The callbacks of options with expose_value=False, which fill `Caller`. Commands don't get them.
def _given(context: click.Context) -> dict[str, Any]:
    """Return the fields of ``Caller`` that options set."""
    given: dict[str, Any] = context.meta.setdefault(__name__, {"changes": {}})
    return given


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    _given(context)[str(parameter.name)] = value


def _set_key(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None:
        _given(context)["changes"][parameter.name] = value


def _set_path(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Set a key to a path that is relative to the current folder, not to the repository's root."""
    bare = parameter.name == "python" and value and os.sep not in value  # looked up on PATH
    _set_key(context, parameter, value if value is None or bare else from_here(value))


def _set_keys(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> None:
    """Add each ``KEY=VALUE`` to the changes. The key of --inject is one in the table `inject`."""
    from perfci.config.loading import merged

    given = _given(context)
    for text in texts:
        assignment = text if parameter.name == "set" else f"{parameter.name}.{text}"
        given["changes"] = merged(given["changes"], _table_of(assignment))


def _table_of(assignment: str) -> dict[str, Any]:
    """Return TOML such as ``quiet.pin=false``. A text needs no quotes: ``budget=5m``."""
    key, equals, value = assignment.partition("=")
    if equals:
        for line in (assignment, f"{key} = {json.dumps(value)}"):  # as written, then as a text
            with suppress(ValueError):
                return parse_toml(line)
    raise click.BadParameter(f"{assignment!r} can't be read: write KEY=VALUE, as in a TOML file")


allow_token_option = click.option(
    "--allow-token",
    "token_allowed",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Measure although a token is set or kept by git; benchmarks can read it.",
)
config_option = stack(
    click.option(
        "--config",
        "config_path",
        type=FILE,
        expose_value=False,
        callback=_remember,
        help="Read this file instead of pyproject.toml.",
    ),
    click.option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        expose_value=False,
        callback=_set_keys,
        help="Set a key of the configuration for this run, such as quiet.pin=false.",
    ),
)
select_option = click.option(
    "-k", "selection", default="", metavar="WORDS", help="Only the cases these words select."
)
python_option = click.option(
    "--python",
    metavar="PATH",
    expose_value=False,
    callback=_set_path,
    help="The Python that measures (default: `python` in the configuration, else perfci's own).",
)
# The time of `bisect` and `nightly`, which compare often. The key `budget` is for one comparison.
command_budget_option = click.option(
    "--budget",
    "budget_s",
    type=duration,
    default="1h",
    show_default=True,
    help="Time for everything.",
)
measuring_options = stack(
    config_option,
    select_option,
    click.option(
        "--rounds",
        type=int,
        expose_value=False,
        callback=_set_key,
        help=f"Minimum rounds of a case; fewer than {DECIDING_ROUNDS} give no verdict.",
    ),
    click.option(
        "--budget",
        metavar="DURATION",
        expose_value=False,
        callback=_set_key,
        help="Time for everything: 90s, 2m30s, 1h.",
    ),
    allow_token_option,
)
shard_option = click.option(
    "--shard",
    type=shard,
    metavar="I/N",
    help="Measure the I-th of N parts; `perfci merge` joins their reports.",
)
strict_option = click.option(
    "--strict/--no-strict",
    default=None,
    expose_value=False,
    callback=_set_key,
    help="Exit with 3, or fail the check of `comment`, when the verdict is inconclusive (default: "
    "`strict` in the configuration).",
)
inject_option = click.option(
    "--inject",
    multiple=True,
    metavar="METRIC=SHARE",
    expose_value=False,
    callback=_set_keys,
    help="Make HEAD worse on purpose, to see that the gate finds it: latency=2%.",
)
history_option = click.option(
    "--history",
    envvar="PERFCI_HISTORY",
    metavar="PLACE",
    expose_value=False,
    callback=_set_path,
    help="The history: a file, or postgresql://… (default: `history` in the configuration, "
    "else the repository's own file in your data folder).",
)
record_options = stack(
    click.option("--record", is_flag=True, help="Add the measurements to the history."),
    history_option,
)
showing_options = stack(
    click.option("--log-dir", "log_folder", type=FOLDER, help="Keep the session's log files here."),
    click.option("-v", "--verbose", is_flag=True, help="Show every comparison."),
)

OUTPUT = "output_"
"""Prefix of the parameters of options that write a report in some format."""


def configuration_here() -> tuple[Path, Config]:
    """Return the repository around the current folder, or that folder, and its configuration."""
    from perfci.config.loading import load_config

    root, given = root_here(), _given(click.get_current_context())
    return root, load_config(root, given.get("config_path"), given["changes"])


@contextmanager
def opened_project(*, quiet: bool = False) -> Iterator[Project]:
    """Yield the project here. Its progress is shown on a line, which is cleared at the end.

    Workers are started by the executor that was passed to the command line, or as processes.
    """
    from perfci.commands.project import Caller, open_project
    from perfci.measure.executor import Executor

    line, context = ProgressLine(quiet=quiet), click.get_current_context()

    def say_below(text: str, *, err: bool = False) -> None:
        line.close()
        say(text, err=err)

    caller = Caller(
        folder=Path.cwd(),
        **_given(context),
        say=say_below,
        announce=line.announce,
        step=line.say,
        progress=line,
        executor=context.find_root().obj or Executor(),
    )
    try:
        yield open_project(caller)
    finally:
        line.close()


def root_here() -> Path:
    """Return the repository around the current folder, or that folder, without calling git."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
