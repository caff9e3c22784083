"""Shell completion of revisions, cases and metrics, without running a benchmark."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete

from perfci.cli.main import cli
from tests.builders.project import Project
from tests.builders.simulated import Simulated
from tests.cli.test_untrusted_text import leaves


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


def test_a_shell_asks_the_command(project: Project) -> None:
    words = {"_PERFCI_COMPLETE": "bash_complete", "COMP_WORDS": "perfci compare fe"}
    done = project.process(**words, COMP_CWORD="2")
    assert (done.code, done.out, done.err) == (0, "plain,feature/one\n", "")


def test_commands_and_options_are_those_of_perfci(project: Project) -> None:
    assert "compare" in offered(project, "perfci", "com")
    assert "--fail-fast" in offered(project, "perfci", "compare", "--fail")


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


def test_metrics_are_named(project: Project) -> None:
    assert "latency_p50" in offered(project, "perfci", "bisect", "a..b", "--metric", "lat")


def test_a_prompt_gets_no_errors(project: Project, tmp_path: Path) -> None:
    (project.folder / "pyproject.toml").write_text("[")
    assert offered(project, "perfci", "list", "-k", "co") == []
    outside = Project(tmp_path / "outside", Simulated())
    (outside.folder / ".git").rename(tmp_path / "moved")
    assert offered(outside, "perfci", "compare", "ma") == []


def test_every_command_takes_quiet() -> None:
    for name in leaves(cli):
        command: click.Command = cli
        for part in name.split():
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), part) or command
        assert any("--quiet" in one.opts for one in command.params), name


def test_quiet_leaves_what_was_asked_for(project: Project) -> None:
    listed = project.perfci("list", "-q")
    assert (listed.out.split(), listed.err) == (
        ["counting", "steady", "wider[n=1]", "wider[n=2]"],
        "",
    )
    init = project.perfci("init", "-q")
    assert (init.code, init.out, init.err) == (0, "", "")
    assert "kept" in project.perfci("init").out
    path = str(project.folder.parent / "report.json")
    told = ("compare", "HEAD", "--same", "--rounds", "5", "-k", "steady")
    done = project.perfci(*told, "--json", path, "-q")
    assert (len(done.out.splitlines()), done.err) == (1, "")
    assert project.perfci("report", path, "-q").out == done.out
    bad = project.perfci("list", "-q", "nowhere")
    assert (bad.code, bad.out, "no commit of" in bad.err) == (2, "", True)
    assert all("  ok" not in line for line in project.perfci("doctor", "-q").out.splitlines())
