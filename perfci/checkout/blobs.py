"""The contents that a repository knows: a tree's files, and whether any revision has a file."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from perfci.checkout.command import attempt, git, readable
from perfci.checkout.repository import Repository
from perfci.checkout.submodules import MODE, submodules_of

_SHA1_DIGITS = 40


def blobs_of(repository: Repository, tree: str) -> Mapping[str, str]:
    """Return the path of each file in git's ``tree``, with the id of its content.

    Files of submodules are among them, as their commit in ``tree`` has them, where the user's clone
    has that commit. OutsideError where git fails.
    """
    files = dict(_blobs(repository.git_dir, tree))
    for submodule in submodules_of(repository, tree):
        if submodule.git_dir and submodule.available:
            below = _blobs(submodule.git_dir, submodule.commit)
            files |= {f"{readable(submodule.path)}/{name}": blob for name, blob in below}
    return MappingProxyType(files)


def _blobs(git_dir: Path, tree: str) -> Iterator[tuple[str, str]]:
    listed = git(git_dir, f"--git-dir={git_dir}", "ls-tree", "-r", "-z", "--full-tree", tree)
    for entry in listed.split("\0"):
        if entry:
            description, _, path = entry.partition("\t")
            mode, _, blob = description.split()
            if mode != MODE:
                yield readable(path), blob


def blob_id(file: Path, digits: int = _SHA1_DIGITS) -> str:
    """Return the id that git would give the content of ``file``. OSError where it can't be read.

    ``digits`` is the length of the repository's ids: 40 for SHA-1, 64 for SHA-256.
    """
    content = file.read_bytes()
    header = b"blob %d\0" % len(content)
    algorithm = "sha1" if digits == _SHA1_DIGITS else "sha256"
    return hashlib.new(algorithm, header + content, usedforsecurity=False).hexdigest()


def known_blobs(repository: Path, ids: Iterable[str]) -> frozenset[str]:
    """Return those of ``ids`` that any revision of the repository has. Asks no server."""
    wanted = sorted(set(ids))
    if not wanted:
        return frozenset()
    with tempfile.TemporaryFile("w+") as questions:
        questions.write("\n".join(wanted) + "\n")
        questions.seek(0)
        answer = attempt(
            repository,
            *("cat-file", "--batch-check"),
            environment={"GIT_NO_LAZY_FETCH": "1"},
            given=questions,
        )
    return frozenset(line.split()[0] for line in answer.output.splitlines() if " blob " in line)
