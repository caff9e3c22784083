"""Five processes record 125 runs; some are killed in mid-write and started again."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from perfci.history.store import open_history
from tests.builders.recorded import in_order, recorded

pytestmark = pytest.mark.slow

WRITERS = 5
RUNS = 125
ALSO = 10
"""Each writer records the first runs of the next one's, too."""


def start(place: str, number: int, killed_in: int = 0) -> subprocess.Popen[bytes]:
    first = number * RUNS // WRITERS
    end = min(RUNS, (number + 1) * RUNS // WRITERS + ALSO)
    return subprocess.Popen(
        [
            *(sys.executable, "-W", "error", "-m", "tests.history.writer"),
            *(place, str(first), str(end), str(killed_in)),
        ]
    )


def test_of_many_writers_runs_nothing_is_lost_and_nothing_double(place: str) -> None:
    kills = {1: 10, 3: 1, 4: 15}  # of at least 15 that neither neighbour can have written
    started = [start(place, number, kills.get(number, 0)) for number in range(WRITERS)]
    codes = [process.wait() for process in started]
    assert codes == [-signal.SIGKILL if number in kills else 0 for number in range(WRITERS)]
    with open_history(place) as history:
        present = {run.id for run in history.runs()}
        assert 0 < len(present) < RUNS  # what the killed ones had still to do is missing
    again = [start(place, number) for number in kills]
    assert [process.wait() for process in again] == [0] * len(kills)
    with open_history(place) as history:
        found = [in_order(run) for run in history.recorded_runs()]
        assert sorted(found, key=lambda run: run.id) == [
            in_order(recorded(number, cases=3)) for number in range(RUNS)
        ]
