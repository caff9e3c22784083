"""What commands find around them: the repository, the cache folder, the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from perfci.checkout.repository import Repository
    from perfci.config.loading import Config
    from perfci.session.executor import Executor
    from perfci.session.workplace import Surroundings


# ``--allow-token``: measuring beside a token is refused unless somebody says they mean it.

_ALLOWED = f"{__name__}.allowed"


def _remember(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.meta[_ALLOWED] = value


# no parameter of the commands: a session's surroundings are all that asks for it
allow_token_option = click.option(
    "--allow-token",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Measure although a token is set or kept by git; benchmarks can read it.",
)


def token_allowed() -> bool:
    """Return whether the command that is running was told to measure beside a token."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_ALLOWED, False))


def executor() -> Executor:
    """Return what starts workers: what the command line was called with, or processes."""
    from perfci.session.executor import Processes

    context = click.get_current_context(silent=True)
    given = context.find_root().obj if context else None
    return given or Processes()


def open_here() -> Repository:
    """Return the repository around the current folder."""
    from perfci.checkout.repository import open_repository

    return open_repository(Path.cwd())


def root_here() -> Path:
    """Return the repository around the current folder, or that folder; asks no git."""
    here = Path.cwd()
    return next((one for one in (here, *here.parents) if (one / ".git").exists()), here)


def cache_folder() -> Path:
    """Return where perfci keeps worktrees and builds: PERFCI_CACHE_DIR or the user's cache."""
    from platformdirs import user_cache_path

    chosen = os.environ.get("PERFCI_CACHE_DIR")
    return Path(chosen).absolute() if chosen else user_cache_path("perfci")


@contextmanager
def surroundings(
    repository: Repository, config: Config, *, quiet: bool = False
) -> Iterator[Surroundings]:
    """Yield what a session is handed; its way is shown on a line, cleared whatever happens."""
    from perfci.cli.progress import ProgressLine
    from perfci.session.workplace import Shown, Surroundings

    line = ProgressLine(quiet=quiet)
    try:
        yield Surroundings(
            repository=repository,
            config=config,
            cache=cache_folder(),
            inherited=dict(os.environ),
            shown=Shown(step=line.say, progress=line),
            token_allowed=token_allowed(),
            executor=executor(),
        )
    finally:
        line.close()
