"""An operation that needs a commit names the changes of the working tree."""

from __future__ import annotations

import pytest

from tests.builders.project import Project


@pytest.mark.parametrize("command", [("run", "--record"), ("baseline", "update", ".")])
def test_the_first_changes_are_named(project: Project, command: tuple[str, ...]) -> None:
    project.write("kept.txt", "before")
    project.commit("nothing to measure: anything that is would fail")
    project.write("kept.txt", "after")
    for name in ("a.json", "b ü.md", "site/index.html", "z.csv"):
        project.write(name, "")
    done = project.perfci(*command).without_traceback()
    assert done.code == 2
    assert "a.json, b ü.md, kept.txt and 2 more" in done.err
    assert ".gitignore" in done.err
