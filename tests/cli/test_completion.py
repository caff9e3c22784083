"""Shell completion of revisions, cases and metrics, without running a benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from perfci.cli.main import cli
from tests.builders.project import Project
from tests.builders.simulated import Simulated


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", Simulated())
    project.counting(1000)
    project.write(
        "benchmarks/bench_sizes.py",
        "import perfci\n\n@perfci.benchmark(n=[1, 2], tags=['wide'])\ndef wider(n):\n"
        "    return int\n",
    )
    project.commit("base")
    project.git("branch", "feature/one")
    return project


def offered(project: Project, *words: str) -> list[str]:
    """Return what a shell gets for the last of these words."""
    asked = BashComplete(cli, {}, "perfci", "_PERFCI_COMPLETE")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder)
        patch.setenv("PERFCI_CACHE_DIR", str(project.cache))
        found = asked.get_completions(list(words[1:-1]), words[-1])
    return [one.value for one in found]


def test_revisions_are_git_s(project: Project) -> None:
    assert offered(project, "perfci", "compare", "fe") == ["feature/one"]
    assert offered(project, "perfci", "compare", "main", "H") == ["HEAD"]
    assert offered(project, "perfci", "bisect", "main..f") == ["main..feature/one"]
    assert "main" in offered(project, "perfci", "run", "ma")


def test_cases_are_those_that_are_written_and_their_points_those_listed(project: Project) -> None:
    assert offered(project, "perfci", "compare", "-k", "co") == ["counting"]
    assert offered(project, "perfci", "list", "-k", "not (steady or w") == ["not (steady or wider"]
    assert offered(project, "perfci", "list", "-k", "wider[") == []
    project.perfci("list")
    assert offered(project, "perfci", "list", "-k", "wider[") == ["wider[n=1]", "wider[n=2]"]
    assert offered(project, "perfci", "list", "-k", "wide") == ["wider", "wide"]
