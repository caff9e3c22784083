"""Where a project's history is: as given, as configured, or its own file in the data folder.

One file a repository, named by its first commit: two projects may have benchmarks of one name. An
older perfci kept one file for all; the runs of this repository's commits are taken over from it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.app.notices import Say
from perfci.config.loading import Config
from perfci.errors import UsageError
from perfci.files import expanded
from perfci.units import counted

if TYPE_CHECKING:
    from perfci.history.history import OpenHistory
    from perfci.history.interchange import Record


def history_place(given: str | None, config: Config, root: Path, say: Say) -> str:
    """Return what ``open_history`` is to open: as given, as configured, or the repository's own.

    A path in the configuration is relative to the repository's ``root``, a given one to here. What
    an older perfci kept elsewhere is taken over into the repository's own.
    """
    if given or "://" in config.history:
        return given or config.history
    if config.history:
        return str(root / expanded(config.history))
    own = own_history(config, root)
    take_over(own, root, say)
    return str(own)


def history_files(given: str | None, config: Config, root: Path) -> tuple[Path, ...]:
    """Return the files of the history that a command means; none where a server has it.

    None, too, where nothing says whose it is: a command that needs one says so.
    """
    from perfci.history.address import files_at

    if given or "://" in config.history:
        return files_at(given or config.history)
    if config.history:
        return files_at(str(root / expanded(config.history)))
    try:
        return files_at(str(own_history(config, root)))
    except UsageError:
        return ()


def project_of(config: Config, root: Path) -> str | None:
    """Return this project's name; None where it is not known: in a shallow clone."""
    from perfci.checkout.commits import first_commit

    return config.project or first_commit(root)


def require_own(history: OpenHistory, config: Config, root: Path) -> None:
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
            f"{root} belongs to no project that is known: it is not a repository, or has no "
            "commits, or is a shallow clone, which lacks the first one",
            "Name the history, --history PLACE; or the project, `project` in [tool.perfci].",
        )
    return own_file(project)


def take_over(own: Path, root: Path, say: Say) -> None:
    """Fill ``own``, where it is missing, with what the file of all repositories has of this one.

    The other file is left as it is: it may hold runs of other repositories, and of commits that
    are gone, and does not say whose those are.
    """
    from perfci.app.history.importing import add_records
    from perfci.checkout.commits import known_commits
    from perfci.history.address import shared_file
    from perfci.history.database import copy_file
    from perfci.history.history import open_history

    shared = shared_file()
    if own.exists() or not shared.is_file():
        return
    commits = known_commits(root)
    with tempfile.TemporaryDirectory(prefix="perfci-history-") as folder:
        copy = Path(folder) / shared.name  # reading may upgrade it
        copy_file(shared, copy)
        with open_history(str(copy), create=False) as before:
            runs = before.runs()
            mine = sum(run.sha in commits for run in runs)
            if mine:
                with open_history(str(own)) as history:
                    add_records(history, _of(before, commits))
    if mine:
        said = f"took {mine} of {counted(len(runs), 'run')} over from {shared}, which was for all"
        rest = "--history with that file shows the others."
    else:
        said = f"{shared}, which was for all repositories, has no run of this one's commits"
        rest = "--history with that file shows what it has."
    say(f"perfci: {said}; it is left as it is. {rest}", err=True)


def _of(history: OpenHistory, commits: Collection[str]) -> Iterator[Record]:
    """Yield what ``history`` has of these commits: runs, outcomes and changes."""
    yield from (run for run in history.read() if run.sha in commits)
    yield from (one for one in history.outcomes() if one.head_sha in commits)
    yield from (one for one in history.known_changes() if one.sha_after in commits)
