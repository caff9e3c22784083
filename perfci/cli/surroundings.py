"""What commands find around them: the repository, the cache folder, the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.cli.tokens import token_allowed

if TYPE_CHECKING:
    from perfci.checkout.repository import Repository
    from perfci.config import Config
    from perfci.measure.workplace import Surroundings


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
    from perfci.measure.workplace import Shown, Surroundings

    line = ProgressLine(quiet=quiet)
    try:
        yield Surroundings(
            repository=repository,
            config=config,
            cache=cache_folder(),
            inherited=dict(os.environ),
            shown=Shown(step=line.say, progress=line),
            token_allowed=token_allowed(),
        )
    finally:
        line.close()
