"""The contents that a repository knows: a tree's files, and whether any revision has a file."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from perfci.checkout.command import attempt, git, readable

_SHA1_DIGITS = 40
_SUBMODULE = "160000"


def blobs_of(repository: Path, tree: str) -> Mapping[str, str]:
    """Return the path of each file in git's ``tree``, with the id of its content.

    Files of submodules are among them, as their commit in ``tree`` has them, where the checkout has
    that commit. OutsideError where git fails.
    """
    listed = git(repository, "ls-tree", "-r", "-z", "--full-tree", tree)
    files = {}
    for entry in listed.split("\0"):
        if entry:
            told, _, path = entry.partition("\t")
            mode, _, blob = told.split()
            if mode != _SUBMODULE:
                files[readable(path)] = blob
            elif _has_commit(inner := repository / path, blob):
                files |= {f"{path}/{name}": one for name, one in blobs_of(inner, blob).items()}
    return MappingProxyType(files)


def _has_commit(submodule: Path, commit: str) -> bool:
    """Whether a submodule is checked out here, and its repository has the commit."""
    if not (submodule / ".git").exists():
        return False
    offline = {"GIT_NO_LAZY_FETCH": "1"}
    found = attempt(submodule, "cat-file", "-e", f"{commit}^{{tree}}", environment=offline)
    return found.status == 0


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
