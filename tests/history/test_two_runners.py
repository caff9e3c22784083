"""Two runners of one environment record into one PostgreSQL: each commit is measured by one."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from perfci.history.store import open_history
from tests.builders.branch import QUICKEST, Branch, measured
from tests.builders.project import Project
from tests.history.postgres import Server

_HOLDER = """\
import sys, time
from perfci.history.store import open_history

with open_history(sys.argv[1]) as history, history.claim("environment", "commit") as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


MEETS = """\
import os, time

# The first two imports are of who looks for benchmarks, the next two of who measures: each waits
# for the other, so that the two runners are at work at once, in two commits.
mine = f"{{time.monotonic_ns():020}}-{{os.getpid()}}"
open(os.path.join({arrived!r}, mine), "w").close()
until = time.monotonic() + 60
while time.monotonic() < until:
    all_of_them = sorted(os.listdir({arrived!r}))
    if len(all_of_them) >= (2 if mine in all_of_them[:2] else 4):
        break
    time.sleep(0.01)

def work():
    return sum(range({loops}))
"""


@pytest.fixture
def shared(postgres: Server) -> str:
    """The address of a new history that both record into."""
    return postgres.database(f"runners_{uuid.uuid4().hex}")


def test_two_runners_at_once_measure_each_commit_once(project: Project, shared: str) -> None:
    branch = Branch(project)
    project.write("pyproject.toml", QUICKEST.replace("timeout = 20", "timeout = 90"))
    arrived = project.folder.parent / "arrived"
    arrived.mkdir()
    commits = []
    for loops in (1000, 2000, 3000):
        project.write("lib.py", MEETS.format(arrived=str(arrived), loops=loops))
        commits.append(project.commit(f"{loops} loops"))
    with open_history(shared):
        pass
    night = ("nightly", "--commits", "main", "--no-same", "--history", shared)
    started = [
        # each with a cache of its own, as on two machines: no lock file tells one of the other
        project.start(*night, "--runner", name, PERFCI_CACHE_DIR=str(project.cache / name))
        for name in ("one", "other")
    ]
    said = ["".join(process.communicate(timeout=200)) for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    runs = branch.runs(shared)
    assert measured(runs) == {(sha, "counting"): 1 for sha in commits}
    assert {run.runner for run in runs} == {"one", "other"}


def test_a_claim_ends_with_its_holder_however_it_dies(shared: str) -> None:
    with open_history(shared) as history:
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, shared], stdout=subprocess.PIPE, text=True
        )
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline().strip() == "True"
            with history.claim("environment", "commit") as mine:
                assert not mine
            with history.claim("environment", "another") as mine:
                assert mine
            holder.send_signal(signal.SIGKILL)
        finally:
            holder.kill()
            holder.communicate()
        _wait_until_granted(history)
        with open_history(shared) as other, other.claim("environment", "commit") as again:
            assert again, "what was let go of is not free"


def test_two_runners_of_one_machine_tell_each_other_by_a_file(
    project: Project, tmp_path: Path
) -> None:
    from perfci.commands.nightly import claimed

    place = str(tmp_path / "history.sqlite")
    with open_history(place) as one, open_history(place) as other:
        with claimed(one, project.cache, "environment", "commit") as mine:
            assert mine
            with claimed(other, project.cache, "environment", "commit") as second:
                assert not second
            with claimed(other, project.cache, "environment", "another") as second:
                assert second
        with claimed(other, project.cache, "environment", "commit") as mine:
            assert mine


def _wait_until_granted(history) -> None:
    """The server needs a moment to see that a connection is gone."""
    import time

    deadline = time.monotonic() + 30
    while True:
        with history.claim("environment", "commit") as mine:
            if mine:
                return
        assert time.monotonic() < deadline, "the claim of a killed process stays"
        time.sleep(0.05)
