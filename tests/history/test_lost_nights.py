"""A night whose PostgreSQL goes away: what was measured meanwhile is kept."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.builders.branch import Branch, measured, wait_for
from tests.builders.project import Project
from tests.commands.nightly.test_filling import WAITS
from tests.history.postgres import Server

pytestmark = pytest.mark.processes

IMPATIENT = """
from perfci.cli.main import main
from perfci.history import database
database.PAUSES_S = (0.01,) * len(database.PAUSES_S)
main()
"""


def test_a_commit_that_was_measured_while_the_server_was_away_is_imported_later(
    project: Project, own_server: Server
) -> None:
    branch = Branch(project)
    begun, go = (project.folder.parent / name for name in ("begun", "go"))
    project.write("lib.py", WAITS.format(begun=str(begun), go=str(go)))
    old = project.commit("Waits")
    tip = branch.commit(1000)
    place = own_server.database("night")
    asked = ("nightly", "--commits", "main", "--no-self-check", "--history", place)
    night = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *asked],
        cwd=project.folder,
        env=project.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(begun, night)
    own_server.stop("immediate")
    go.touch()
    _, said = night.communicate(timeout=120)
    assert night.returncode == 4, said
    assert "Traceback" not in said
    assert "pa:ss" not in said
    (kept,) = (project.cache / "unrecorded").iterdir()
    assert f"perfci history import {kept}" in said
    own_server.start()
    assert measured(branch.runs(place)) == {(tip, "counting"): 1}
    done = project.perfci("history", "import", str(kept), "--history", place)
    assert "1 new run" in done.out, done.text
    assert measured(branch.runs(place)) == {(sha, "counting"): 1 for sha in (old, tip)}
    assert "nothing to record" in branch.nightly("--commits", "main", "--history", place)
