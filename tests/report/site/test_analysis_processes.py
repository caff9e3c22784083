"""The analysis on all cores: mapped in order, and a process that is killed is told."""

from __future__ import annotations

import os
import signal

import pytest

from perfci.commands.trend import run_all_on_cores
from perfci.errors import OutsideError

MANY = 10_000


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine of two: one has no pool, and sixty-four would start as many processes."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def process_of(_: object) -> int:
    return os.getpid()


def killed(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("two_cores")
def test_many_series_are_mapped_in_order_and_elsewhere() -> None:
    with run_all_on_cores(MANY) as run_all:
        assert list(run_all(abs, range(-50, 0))) == list(range(50, 0, -1))
        assert os.getpid() not in set(run_all(process_of, range(50)))


@pytest.mark.usefixtures("two_cores")
def test_a_killed_process_says_what_to_do() -> None:
    with (
        pytest.raises(OutsideError, match="ended a process of the analysis") as told,
        run_all_on_cores(MANY) as run_all,
    ):
        list(run_all(killed, [1]))
    assert "memory" in told.value.advice
