"""Sessions beside each other on one machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from perfci.measure.machine.cores import SHARED, own_cores, plan_cores

PLAN = partial(plan_cores, cores=1, threads=1, pin=True)


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_session_alone_has_the_last_core_and_the_next_one_another() -> None:
    with own_cores((0, 1, 2), PLAN) as (first, said):
        assert (first.workers, first.parent, said) == ((2,), (0, 1), ())
        with own_cores((0, 1, 2), PLAN) as (second, notes):
            assert (second.workers, second.parent, notes) == ((1,), (0,), ())
    with own_cores((0, 1, 2), PLAN) as (again, _):
        assert again.workers == (2,)


def test_of_the_free_cores_those_near_the_card_are_taken_first() -> None:
    near = frozenset({0, 1})
    with own_cores((0, 1, 2), PLAN, near) as (first, _):
        assert (first.workers, first.near) == ((1,), near)
        with own_cores((0, 1, 2), PLAN, near) as (second, _):
            assert second.workers == (0,)
            with own_cores((0, 1, 2), PLAN, near) as (third, notes):
                assert (third.workers, notes) == ((2,), ())


def test_without_a_free_core_the_report_says_so() -> None:
    with own_cores((0, 1), PLAN), own_cores((0, 1), PLAN), own_cores((0, 1), PLAN) as (third, said):
        assert third.workers == (1,)
        assert said == (SHARED,)


def test_a_killed_sessions_cores_are_free_again(tmp_path: Path) -> None:
    holder = (
        "import time; from perfci.measure.machine.cores import own_cores\n"
        "from tests.machine.test_neighbours import PLAN\n"
        "with own_cores((0, 1), PLAN):\n    print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with own_cores((0, 1), PLAN) as (beside, _):
        assert beside.workers == (0,)
    process.kill()
    process.communicate()
    with own_cores((0, 1), PLAN) as (after, _):
        assert after.workers == (1,)
