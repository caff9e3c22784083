"""With a token nothing is measured: benchmarks are other people's code and could read it."""

from __future__ import annotations

import pytest

from perfci.errors import EXIT_NO_VERDICT, EXIT_PASS, EXIT_USAGE
from perfci.measure.machine.isolation import TOKEN_NAMES
from tests.builders.project import Project

COMMANDS = {
    "run": ("run", "HEAD"),
    "compare": ("compare", "HEAD", "HEAD", "--same"),
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


@pytest.mark.parametrize(
    "token",
    [
        "GITHUB_PAT",
        "GH_ENTERPRISE_TOKEN",
        "GITHUB_ENTERPRISE_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    ],
)
def test_other_names_of_a_token_are_known(counting: Project, token: str) -> None:
    done = counting.perfci("list", **{token: "secret"})
    assert done.code == EXIT_USAGE
    assert token in done.err
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


@pytest.mark.parametrize(("value", "code"), [("1", EXIT_PASS), ("0", EXIT_USAGE), ("", EXIT_USAGE)])
def test_the_variable_allows_it_too_and_only_where_it_is_1(
    counting: Project, value: str, code: int
) -> None:
    done = counting.perfci("list", GH_TOKEN="secret", PERFCI_ALLOW_TOKEN=value)
    assert done.code == code


def test_an_empty_token_is_none(counting: Project) -> None:
    assert counting.perfci("list", GITHUB_TOKEN="", GH_TOKEN="").code == EXIT_PASS


def test_doctor_stops_at_every_token_that_measuring_refuses(project: Project) -> None:
    assert len(TOKEN_NAMES) == 10
    done = project.perfci("doctor", **dict.fromkeys(TOKEN_NAMES, "secret")).without_traceback()
    (line,) = (line for line in done.out.splitlines() if " secrets: " in line)
    assert line.startswith(" STOP"), done.out
    assert all(name in line for name in TOKEN_NAMES)
    assert "secret" not in line.replace("secrets: ", "")
    assert done.code == EXIT_NO_VERDICT


def test_doctor_says_of_a_token_that_was_allowed_what_it_costs(project: Project) -> None:
    done = project.perfci("doctor", GITHUB_PAT="x", PERFCI_ALLOW_TOKEN="1")
    (line,) = (line for line in done.out.splitlines() if " secrets: " in line)
    assert line.startswith("worse"), done.out
    assert "GITHUB_PAT" in line
