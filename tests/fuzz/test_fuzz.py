"""A short part of `make fuzz`: what reads strangers' bytes believes or refuses each input."""

from __future__ import annotations

import time

import pytest

from tests.fuzz import campaign
from tests.fuzz.campaign import run
from tests.fuzz.targets import TARGETS, Target

INPUTS = {"report": 40, "configuration": 150}
"""Of the slower ones; 400 of each other."""


@pytest.mark.parametrize("name", TARGETS)
def test_each_damaged_input_is_believed_or_refused(name: str) -> None:
    outcome = run(name, INPUTS.get(name, 400), seed=1)
    assert [f"{one.number}: {one.what}" for one in outcome.faults] == []
    assert outcome.refused > 0
    assert outcome.believed > 0


def _break(_: bytes) -> None:
    raise RuntimeError("broken")


def _hang(_: bytes) -> None:
    time.sleep(60)


@pytest.mark.parametrize(
    ("take", "what"),
    [(_break, "RuntimeError: broken"), (_hang, "Hang: took more than 0 s"), (len, "")],
)
def test_a_traceback_and_a_hang_are_found(
    take: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "HANG_S", 0.05)
    monkeypatch.setitem(TARGETS, "planted", Target(lambda: [b"[1, 2]"], take))  # type: ignore[arg-type]
    faults = run("planted", 30, seed=0).faults
    assert bool(faults) == bool(what)
    assert all(one.what.startswith(what) for one in faults)


def test_several_runs_are_those_of_one() -> None:
    whole = run("event", 60, seed=1)
    parts = [run("event", 20, seed=1, first=first) for first in (0, 20, 40)]
    assert [whole.inputs, whole.refused] == [
        sum(one.inputs for one in parts), sum(one.refused for one in parts)
    ]  # fmt: skip
    assert run("event", 60, seed=1, within_s=0.0).inputs == 0
