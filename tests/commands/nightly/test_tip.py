"""A night without a range: the tip once a day."""

from __future__ import annotations

import sqlite3

import pytest

from perfci.cli.history import nightly_command
from perfci.measure.workplace import SessionContext
from tests.builders.branch import Branch, away_from_midnight, measured
from tests.builders.project import Project


@pytest.fixture
def branch(project: Project) -> Branch:
    return Branch(project)


def test_the_tip_is_measured_once_a_day(branch: Branch) -> None:
    branch.commit(1000)
    tip = branch.commit(2000)
    away_from_midnight(60)
    branch.nightly()
    assert measured(branch.runs()) == {(tip, "counting"): 1}
    assert "nothing to record" in branch.nightly()
    assert len(branch.runs()) == 1
    _move_to_yesterday(branch)
    branch.nightly()
    assert measured(branch.runs()) == {(tip, "counting"): 2}


def test_the_tip_may_take_all_of_the_budget(
    branch: Branch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No time is kept from it for a comparison that a tip this slow could never be given."""
    given: list[float] = []

    def measured_with(around: SessionContext, *_: object, **__: object) -> None:
        given.append(around.config.settings.budget)
        raise KeyboardInterrupt

    branch.commit(1000)
    monkeypatch.chdir(branch.project.folder)
    monkeypatch.setenv("PERFCI_CACHE_DIR", str(branch.project.cache))
    monkeypatch.setattr("perfci.commands.nightly.run", measured_with)
    arguments = ["--history", str(branch.history), "--budget", "10h", "--quiet"]
    assert nightly_command.main(arguments, standalone_mode=False) == 3
    (budget_s,) = given
    assert budget_s > 9 * 3600


def _move_to_yesterday(branch: Branch) -> None:
    """Let everything in the history have happened on an earlier day."""
    connection = sqlite3.connect(branch.history)
    with connection:
        connection.execute("UPDATE perfci_runs SET measured_at = '2026-01-02T03:04:05+00:00'")
    connection.close()
