"""With a token nothing is measured: benchmarks are other people's code and could read it."""

from __future__ import annotations

import pytest

from perfci.errors import EXIT_PASS, EXIT_USAGE
from tests.builders.project import Project

COMMANDS = {
    "run": ("run", "HEAD"),
    "compare": ("compare", "HEAD", "HEAD", "--allow-same-commit"),
    "check": ("check", "HEAD"),
    "calibrate": ("calibrate", "HEAD"),
    "baseline update": ("baseline", "update", "HEAD"),
    "list": ("list",),
}


@pytest.fixture
def counting(project: Project) -> Project:
    project.counting(1_000)
    project.write(
        "benchmarks/bench_trace.py",
        "import pathlib\nimport perfci\n"
        f"pathlib.Path({str(project.folder.parent / 'trace')!r}).touch()\n"
        "@perfci.benchmark\ndef traced():\n    return int\n",
    )
    project.commit()
    return project


@pytest.mark.parametrize("token", ["GITHUB_TOKEN", "GH_TOKEN"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_benchmark_is_touched_beside_a_token(
    counting: Project, command: str, token: str
) -> None:
    done = counting.perfci(*COMMANDS[command], **{token: "secret"}).without_traceback()
    assert done.code == EXIT_USAGE
    assert "[token-in-environment]" in done.err
    assert token in done.err
    assert "--allow-token" in done.err
    assert "secret" not in done.text
    assert not (counting.folder.parent / "trace").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_runs_benchmarks_can_be_told_to_go_on(
    counting: Project, command: str
) -> None:
    done = counting.perfci(*COMMANDS[command], "--allow-token", "--help")
    assert done.code == EXIT_PASS
    assert "--allow-token" in done.out


def test_whoever_allows_the_token_gets_their_benchmarks(counting: Project) -> None:
    done = counting.perfci("list", "--allow-token", GITHUB_TOKEN="secret")
    assert done.code == EXIT_PASS
    assert "counting" in done.out
    assert (counting.folder.parent / "trace").exists()
