"""The working tree as a commit that no ref names, made without touching the user's index."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from perfci.checkout.command import git
from perfci.checkout.disk import explaining
from perfci.errors import UsageError


def snapshot(root: Path, git_dir: Path, head: str) -> tuple[str, str]:
    """Return the tree and the commit of all that ``git add --all`` would take, on top of ``head``.

    Untracked files are in it, ignored ones are not. The commit carries head's date, so that the
    same changes give the same commit. UsageError in the middle of a merge with conflicts.
    """
    if git(root, "ls-files", "--unmerged"):
        raise UsageError(
            "merge-conflicts",
            f"{root} has unresolved merge conflicts",
            "Resolve them, or name a commit instead of the working tree.",
        )
    with explaining("copying the index"), tempfile.TemporaryDirectory(prefix="perfci-") as folder:
        index = Path(folder, "index")
        if (git_dir / "index").exists():
            # With its time: git trusts an entry's stat data only where the entry is older than
            # the index, and a newer copy would hide a change made in the same tick.
            shutil.copy2(git_dir / "index", index)
        environment = {"GIT_INDEX_FILE": str(index)}
        git(root, "add", "--all", environment=environment)
        tree = git(root, "write-tree", environment=environment)
    date = git(root, "show", "--no-patch", "--format=%ct +0000", head)
    person = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "perfci"), ("EMAIL", "perfci@localhost"), ("DATE", date))
    }
    message = "Working tree, as perfci measured it"
    commit = git(root, "commit-tree", tree, "-p", head, "-m", message, environment=person)
    return tree, commit
