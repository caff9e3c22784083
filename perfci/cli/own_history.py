"""Where a repository's own history is, when nobody named another place.

One file a repository, named by its first commit: two projects may have benchmarks of one name. An
older perfci kept one file for all; the runs of this repository's commits are taken over from it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.cli.printing import say
from perfci.config.loading import Config
from perfci.errors import UsageError
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.history.history import History
    from perfci.history.interchange import Record


def project_of(config: Config, root: Path) -> str | None:
    """Return what tells this project from others; None where nothing does: in a shallow clone."""
    from perfci.checkout.commits import first_commit

    return config.project or first_commit(root)


def require_own(history: History, config: Config, root: Path) -> None:
    """UsageError where ``history`` is another project's, as far as this one is known."""
    project = project_of(config, root)
    if project is not None:
        history.require_project(project)


def own_history(config: Config, root: Path) -> Path:
    """Return the file of the project that ``config`` names, else of the repository at ``root``.

    UsageError where neither says whose it is: outside a repository, in a shallow clone.
    """
    from perfci.history.address import own_file

    project = project_of(config, root)
    if project is None:
        raise UsageError(
            "whose-history",
            f"{root} doesn't tell whose history is meant: it is no repository, or has no commits, "
            "or is a shallow clone, which lacks the first one",
            "Name the history, --history PLACE; or the project, `project` in [tool.perfci].",
        )
    return own_file(project)


def take_over(own: Path, root: Path) -> None:
    """Fill ``own``, where it is missing, with what the file of all repositories has of this one.

    The other file is left as it is: it may hold runs of other repositories, and of commits that
    are gone, and nothing there tells whose those are.
    """
    from perfci.checkout.commits import known_commits
    from perfci.cli.history_files import add_records
    from perfci.history.address import shared_file
    from perfci.history.copying import copy_file
    from perfci.history.history import open_history

    shared = shared_file()
    if own.exists() or not shared.is_file():
        return
    commits = known_commits(root)
    with tempfile.TemporaryDirectory(prefix="perfci-history-") as folder:
        copy = Path(folder) / shared.name  # reading may upgrade it
        copy_file(shared, copy)
        with open_history(str(copy), create=False) as before:
            nights = before.runs()
            mine = sum(night.sha in commits for night in nights)
            if mine:
                with open_history(str(own)) as history:
                    add_records(history, _of(before, commits))
    if mine:
        said = f"took {mine} of {counted(len(nights), 'run')} over from {shared}, which was for all"
        rest = "--history with that file shows the others."
    else:
        said = f"{shared}, which was for all repositories, has no run of this one's commits"
        rest = "--history with that file shows what it has."
    say(f"perfci: {said}; it is left as it is. {rest}", err=True)


def _of(history: History, commits: Collection[str]) -> Iterator[Record]:
    """Yield what ``history`` has of these commits: runs, outcomes and changes."""
    yield from (run for run in history.read() if run.sha in commits)
    yield from (one for one in history.outcomes() if one.head_sha in commits)
    yield from (one for one in history.known_changes() if one.sha_after in commits)
