"""What the job that comments installs, as the lock pins it (tests/wheel_check.py installs it)."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.workflows.examples import ROOT
from tests.workflows.locking import HEAD, LOCK, Locked, needed, parse

LOCKED = {canonicalize_name(one.name): one for one in parse(LOCK.read_text(encoding="utf-8"))}


def test_the_lock_satisfies_all_that_perfci_asks_for_to_comment_and_to_be_built() -> None:
    missing = [
        text
        for text in needed()
        for requirement in [Requirement(text)]
        for locked in [LOCKED.get(canonicalize_name(requirement.name))]
        if locked is None or not requirement.specifier.contains(locked.version)
    ]
    assert missing == [], "run `make lock`"


def test_the_lock_has_the_versions_that_the_tests_run_with() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {
        canonicalize_name(name): version
        for name, _, version in (line.partition("==") for line in lines if "==" in line)
    }
    other = {name for name, one in LOCKED.items() if pinned.get(name) != one.version}
    assert other == set(), "pin them in constraints.txt, and run `make lock`"


def test_the_lock_has_each_package_once_and_names_no_place() -> None:
    text = LOCK.read_text(encoding="utf-8")
    assert len(LOCKED) == len(parse(text)) > len(needed())
    assert all(one.hashes for one in LOCKED.values())
    assert not re.search(r"https?://|--index|--find-links", text)


@pytest.mark.parametrize(
    "more", ["a==1\n", "--index-url https://example.invalid\n", "a @ file:x\n"]
)
def test_what_has_no_hash_is_no_line_of_a_lock(more: str) -> None:
    line = "a==1 ; python_version < '3.12' \\\n    --hash=sha256:" + "0" * 64 + "\n"
    assert parse(HEAD + line) == (Locked("a", "1", frozenset({"0" * 64})),)
    with pytest.raises(AssertionError):
        parse(HEAD + line + more)
