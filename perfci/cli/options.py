"""The options that several commands share, their shell completion, and the caller they make.

Completion runs at each Tab, so it reads git's refs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from perfci.cli.printing import ProgressLine, say
from perfci.errors import PerfciError
from perfci.model.measuring import DECIDING_ROUNDS, INJECTABLE, MOST_INJECTED
from perfci.units import parse_duration, parse_share
from perfci.verdict.shards import Shard, parse_shard

if TYPE_CHECKING:
    from perfci.commands.compare import MeasureOptions
    from perfci.commands.project import Caller
    from perfci.measure.executor import Executor

_MOST_COMPLETIONS = 500
"""Most completions. No screen shows more."""
F = TypeVar("F", bound=Callable[..., Any])
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


def refs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a branch, a tag, HEAD or the working tree, or the newer end of a range."""
    from perfci.measure.checkout.git import open_repository

    before, dots, begun = incomplete.rpartition("..")
    with suppress(PerfciError):  # a prompt is no place for errors
        names = ["HEAD", *([] if dots else ["."]), *open_repository(Path.cwd()).names()]
        return _items(before + dots, begun, names)
    return []


def _items(before: str, begun: str, names: Iterable[str]) -> list[CompletionItem]:
    fitting = [name for name in names if name.startswith(begun)]
    return [CompletionItem(before + name) for name in dict.fromkeys(fitting[:_MOST_COMPLETIONS])]


# Values are converted by functions: a subclass of click.ParamType with its type argument, which
# strict typing asks for, would need click 8.4 at run time.
def duration(value: str | float) -> float:
    """Return ``90``, ``90s``, ``2m30s`` or ``1h`` as seconds."""
    try:
        return parse_duration(str(value))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} can't be read as a time: write 90s, 2m30s or 1h"
        ) from None


def injection(value: str) -> tuple[str, float]:
    """Return ``latency=2%`` or ``latency=0.02`` as a name and a share."""
    name, _, text = value.partition("=")
    if name not in INJECTABLE:
        raise click.BadParameter(f"{name!r} can't be injected; choose from {', '.join(INJECTABLE)}")
    try:
        share = parse_share(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} can't be read: write {error}") from None
    if not 0.0 < share <= MOST_INJECTED:
        raise click.BadParameter(
            f"{text!r} is out of range: give more than 0% and at most 1000%, such as {name}=2%"
        )
    return name, share


def share(value: str) -> float:
    """Return ``2%`` or ``0.02`` as a share above 0."""
    try:
        parsed = parse_share(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} can't be read: write {error}") from None
    if parsed <= 0.0:
        raise click.BadParameter(f"{value!r} is no change")
    return parsed


def shard(value: str) -> Shard:
    """Return ``2/4`` as the second of four shards."""
    try:
        return parse_shard(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} can't be read as a part: {error}") from None


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds the options, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_ALLOWED = f"{__name__}.allowed"
"""The key of ``--allow-token`` in click's context."""


def _remember(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.meta[_ALLOWED] = value


# not passed to the commands: only the caller reads it
allow_token_option = click.option(
    "--allow-token",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Measure although a token is set or kept by git; benchmarks can read it.",
)
config_option = click.option(
    "--config", "config_path", type=FILE, help="Read this file instead of pyproject.toml."
)
select_option = click.option(
    "-k",
    "selection",
    default="",
    metavar="WORDS",
    help="Only the cases these words select.",
)
python_option = click.option(
    "--python",
    "python",
    metavar="PATH",
    help="The Python that measures (default: `python` in the configuration, else perfci's own).",
)
seed_option = click.option(
    "--seed", type=int, help="Seed of the order of cases and of the benchmarks' data."
)
hour_option = click.option(
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
        type=click.IntRange(2),
        help=f"Least rounds a case; fewer than {DECIDING_ROUNDS} are a quick look: no verdict.",
    ),
    click.option("--budget", type=duration, help="Time for everything: 90s, 2m30s, 1h."),
    seed_option,
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
record_options = stack(
    click.option("--record", is_flag=True, help="Add what was measured to the history."),
    history_option,
)
showing_options = stack(
    click.option("--log-dir", "log_folder", type=FOLDER, help="Keep the session's log files here."),
    click.option("-v", "--verbose", is_flag=True, help="Show every comparison."),
)

OUTPUT = "output_"
"""The beginning of the parameters' names of options that write a report's formats."""
PROJECT_OPTIONS = ("config_path", "rounds", "budget", "seed", "strict", "inject")
"""Options of commands that change the configuration, by their parameters' names."""


def split_options(given: dict[str, Any]) -> tuple[dict[str, Any], MeasureOptions]:
    """Return a command's options for ``open_project``, and those of its measurement."""
    from perfci.commands.compare import MeasureOptions

    project = {name: given.pop(name) for name in PROJECT_OPTIONS if name in given}
    return project, MeasureOptions(**given)


def token_allowed() -> bool:
    """Return whether the running command may measure although a token is set."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_ALLOWED, False))


def executor() -> Executor:
    """Return the executor that starts workers: the one passed to the command line, or processes."""
    from perfci.measure.executor import Executor

    context = click.get_current_context(silent=True)
    given = context.find_root().obj if context else None
    return given or Executor()


@contextmanager
def calling(*, quiet: bool = False) -> Iterator[Caller]:
    """Yield the caller. Its progress is shown on a line, which is cleared at the end."""
    from perfci.commands.project import Caller

    line = ProgressLine(quiet=quiet)

    def say_below(text: str, *, err: bool = False) -> None:
        line.close()
        say(text, err=err)

    try:
        yield Caller(
            folder=Path.cwd(),
            say=say_below,
            announce=line.announce,
            step=line.say,
            progress=line,
            token_allowed=token_allowed(),
            executor=executor(),
        )
    finally:
        line.close()


def root_here() -> Path:
    """Return the repository around the current folder, or that folder, without calling git."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
