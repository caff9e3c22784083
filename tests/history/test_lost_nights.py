"""A night whose PostgreSQL goes away: what was measured meanwhile is kept."""

from __future__ import annotations

import pytest

from tests.builders.branch import Branch, measured, wait_for
from tests.builders.project import Project
from tests.commands.nightly.test_filling import WAITS
from tests.history.postgres import Server

pytestmark = pytest.mark.processes


def test_a_commit_that_was_measured_while_the_server_was_away_is_imported_later(
    project: Project, own_server: Server
) -> None:
    branch = Branch(project)
    begun, go = (project.folder.parent / name for name in ("begun", "go"))
    project.write("lib.py", WAITS.format(begun=str(begun), go=str(go)))
    old = project.commit("Waits")
    tip = branch.commit(1000)
    place = own_server.database("night")
    night = project.start("nightly", "--commits", "main", "--no-same", "--history", place)
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
