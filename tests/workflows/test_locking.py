"""What the job that comments installs, as the lock pins it (tests/wheel_check.py installs it)."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.workflows.examples import ROOT
from tests.workflows.locking import LOCK, MACHINES, PYTHONS, Locked, needed, parse, render

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


def test_a_lock_says_what_was_put_into_it_and_no_more_wheels_than_were_asked_for() -> None:
    locked = Locked("a-b", "1.2", frozenset({"0" * 64, "f" * 64}))
    assert parse(render({"a-b": locked})) == (locked,)
    most = len(PYTHONS) * len(MACHINES)
    assert all(1 <= len(one.hashes) <= most for one in LOCKED.values())
    assert len(LOCKED) > len(needed())
    assert not re.search(r"https?://", LOCK.read_text(encoding="utf-8"))
