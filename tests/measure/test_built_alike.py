"""Builds of both sides hold the same packages, also where one was kept from another session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.project import QUICK, Project
from tests.builders.simulated import Simulated


def settings(requirement: Path, count: Path) -> str:
    """Return a configuration whose build installs what ``requirement`` names by then."""
    commands = f"echo x >> {count} && mkdir -p .deps/thing-$(cat {requirement}).dist-info"
    return f'{QUICK}python_path = [".", ".deps"]\nbuild = ["{commands}"]\n'


@pytest.mark.parametrize("newest", ["1", "2"])
def test_a_kept_build_is_made_again_where_a_requirement_moved_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest: str
) -> None:
    monkeypatch.setattr("perfci.measure.workplace._NEXT_BUILD_S", 0.0)  # as if of other days
    requirement, count = tmp_path / "version", tmp_path / "count"
    requirement.write_text("1")
    project = Project(tmp_path / "project", Simulated())
    project.write("pyproject.toml", settings(requirement, count))
    project.write(".gitignore", ".deps/\n")
    project.counting(1000)
    project.commit("base")
    project.git("branch", "base")
    for number in (1, 2):
        project.counting(1000 + number)
        project.commit("head")
        project.report("compare", "base", "HEAD", "--rounds", "2", "--all")
        requirement.write_text(newest)
    assert len(count.read_text().split()) == (3 if newest == "1" else 4)
