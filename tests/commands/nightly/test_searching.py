"""A night that searches for the commits of new changes: real repositories and histories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perfci.history.store import open_history
from perfci.model.run import Point
from tests.builders.project import Project
from tests.builders.recorded import recorded
from tests.builders.simulated import Simulated

BENCHMARK = """\
import perfci
from lib import work

@perfci.benchmark
def counting():
    return work
"""
WORK = "def work():\n    return sum(range({}))\n"
COMMITS, CHANGED = 34, 16
MISSED = range(12, 21)


class Nights:
    """A branch, slower from ``CHANGED`` on; a history has runs of all but those ``MISSED``."""

    def __init__(self, project: Project, slower: int = 1500) -> None:
        self.project = project
        self.place = str(project.folder.parent / "history.sqlite")
        project.write("benchmarks/bench_counting.py", BENCHMARK)
        levels = [1000] * CHANGED + [slower] * (COMMITS - CHANGED)
        self.commits = [
            project.commit(
                f"number {number}", **{"lib.py": WORK.format(loops), "count": str(number)}
            )
            for number, loops in enumerate(levels)
        ]
        assert self.night("--no-bisect").code == 0
        with open_history(self.place) as history:
            (run,) = history.recorded_runs()
            nights = [one for one in range(COMMITS - 1) if one not in MISSED]
            history.record([self._recorded(number, run.environment) for number in nights])

    def _recorded(self, number: int, environment: Any) -> Any:
        level = (21e-6 if number < CHANGED else 31e-6) * (1.0 + 0.001 * (number % 3))
        at = (datetime.now(UTC) - timedelta(hours=COMMITS - number)).isoformat(timespec="seconds")
        return recorded(
            number,
            environment,
            sha=self.commits[number],
            committed_at=at,
            measured_at=at,
            points=(Point("counting", "latency_p50", "s", level),),
        )

    def night(self, *more: str) -> Any:
        asked = ("nightly", "--no-self-check", "--history", self.place, *more)
        return self.project.perfci(*asked).without_traceback()


@pytest.fixture
def nights(project: Project) -> Nights:
    return Nights(project)


def test_a_night_names_the_commit_of_a_new_change_with_its_probability(nights: Nights) -> None:
    done = nights.night("--bisect")
    assert done.code == 0, done.text
    assert f": {nights.commits[CHANGED][:10]} number {CHANGED}" in done.out
    assert "slower +4" in done.out
    assert "probability over 99" in done.out
    assert "bisected " in done.out


def test_what_the_budget_leaves_is_searched_on_the_next_night(nights: Nights) -> None:
    whole = nights.project.executor = Simulated()
    began = whole.now()
    nights.night("--bisect")
    (state,) = nights.project.cache.glob("*/bisect/*.json")
    state.unlink()
    nights.project.executor = Simulated()
    cut = nights.night("--bisect", "--budget", f"{0.4 * (whole.now() - began)}s")
    assert "the same command goes on" in cut.out, cut.text
    second = nights.project.executor = Simulated()
    done = nights.night("--bisect")
    assert f": {nights.commits[CHANGED][:10]} number {CHANGED}" in done.out
    third = nights.project.executor = Simulated()
    again = nights.night("--bisect")
    assert f": {nights.commits[CHANGED][:10]} number {CHANGED}" in again.out
    assert second.started
    assert not third.started


def test_no_search_begins_where_nobody_asked_for_one(nights: Nights) -> None:
    assert "bisected" not in nights.night().out
    config = (nights.project.folder / "pyproject.toml").read_text()
    nights.project.write("pyproject.toml", config + "bisect = true\n")
    assert "bisected" in nights.night().out
