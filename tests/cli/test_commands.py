"""The smaller commands: each does what its help says."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import click
import pytest

from perfci.cli.main import cli
from perfci.config.loading import load_config
from tests.builders.project import Project

COMMANDS = tuple(cli.list_commands(None))


@pytest.fixture
def small(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(project: Project, command: str) -> None:
    done = project.perfci(command, "--help")
    assert done.code == 0
    assert f"Example: perfci {command}" in done.out or "Example: eval" in done.out


def test_a_mistyped_command_names_the_nearest(project: Project) -> None:
    done = project.perfci("comapre")
    assert done.code == 2
    assert "compare" in done.err


def test_help_is_a_word_too(project: Project) -> None:
    assert project.perfci("help").out == project.perfci("--help").out
    command = cli.get_command(click.Context(cli), "compare")
    assert command
    command.get_params(click.Context(command))  # click's own help option has its context's names
    assert project.perfci("help", "compare") == project.perfci("compare", "-h")
    assert "Did you mean `compare`?" in project.perfci("help", "comapre").err


def test_many_options_are_shown_in_groups_and_old_names_nowhere(project: Project) -> None:
    shown = project.perfci("compare", "--help").out
    headings = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Common:", "Report:", "Time:", "Machines:", "Expert:"]
    report = shown.partition("\nReport:")[2].partition("\nTime:")[0]
    assert "--markdown FILE" in report
    for new, old in {
        "--allow-same-commit": "--same",
        "--measure-same-code": "--all",
    }.items():
        assert new in shown
        assert old not in shown.split()
    assert "Options:" in project.perfci("list", "--help").out


def test_an_old_name_of_an_option_still_works(small: Project) -> None:
    same = small.perfci("compare", "HEAD", "HEAD", "--same", "--all", "-k", "nonsense")
    assert "selects no case" in same.err


@pytest.mark.parametrize(
    ("python", "why", "example"),
    [
        ("venv", "it is a folder", "--python venv/bin/python"),
        ("pyhton3", "PATH has no such command", "--python .venv/bin/python"),
        ("x/python", "there is no such file", "--python .venv/bin/python"),
    ],
)
def test_what_is_no_python_is_said_with_the_reason(
    small: Project, python: str, why: str, example: str
) -> None:
    (small.folder / "venv" / "bin").mkdir(parents=True)
    (small.folder / "venv" / "bin" / "python").symlink_to(sys.executable)
    done = small.perfci("list", "--python", python)
    assert f"{python} is not an executable Python: {why}" in done.err
    assert example in done.err


def test_a_bisection_from_a_commit_is_advised_to_end_at_head(small: Project) -> None:
    assert "as `HEAD..HEAD`, or" in small.perfci("bisect", "HEAD").err
    assert "as v1.2..main, or" in small.perfci("bisect", "v1").err


@pytest.mark.parametrize(
    "theirs",
    [
        b"[tool]\nruff.line-length = 9\n",
        b"tool = {ruff = {line-length = 9}}\n",
        b"[project]\r\nname = 'x'\r\n",
    ],
)
def test_init_configures_whatever_the_layout_of_the_file(project: Project, theirs: bytes) -> None:
    path = project.folder / "pyproject.toml"
    path.write_bytes(theirs)
    done = project.perfci("init").without_traceback()
    assert done.code == 0
    assert path.read_bytes().startswith(theirs)
    assert (b"\r\n" in theirs) == (b"\n" not in path.read_bytes().replace(b"\r\n", b""))
    config = load_config(project.folder)
    assert (config.benchmarks, config.settings.budget) == ("benchmarks", 600.0)
    assert "kept     the configuration" in project.perfci("init").out


def test_init_says_what_it_cannot_read(project: Project) -> None:
    (project.folder / "pyproject.toml").write_bytes(b"# caf\xe9\n")
    done = project.perfci("init").without_traceback()
    assert done.code == 2
    assert "not UTF-8 text" in done.err


def test_init_writes_what_list_then_finds(project: Project) -> None:
    (project.folder / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    project.commit("mine")
    done = project.perfci("init")
    assert done.code == 0
    assert "Next:" in done.out
    assert "[project]" in (project.folder / "pyproject.toml").read_text()
    again = project.perfci("init")
    assert again.code == 0
    assert (project.folder / "pyproject.toml").read_text().count("[tool.perfci]") == 1


@pytest.mark.parametrize(
    ("options", "step"),
    [((), "store HEAD's numbers"), (("--github",), "stage 2")],
)
def test_init_says_what_comes_next(project: Project, options: tuple[str, ...], step: str) -> None:
    (project.folder / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    needs = {
        (): (),
        ("--github",): ("--action", f"o/perfci@{40 * 'a'}"),
    }
    done = project.perfci("init", *options, *needs[options]).without_traceback()
    assert (done.code, step in done.out) == (0, True), done.text


@pytest.mark.parametrize("option", ["-o", "--out", "--format"])
def test_a_report_has_an_option_for_each_format(project: Project, option: str) -> None:
    refused = project.perfci("compare", "HEAD", ".", option, "html").without_traceback()
    assert refused.code == 2
    assert "Write a report with --json, --html or --markdown FILE." in refused.err


@pytest.mark.torch
def test_the_benchmark_that_init_writes_can_be_listed(project: Project) -> None:
    project.commit("empty")
    project.perfci("init")
    assert "feed_forward[batch=1,mode=eager]" in project.perfci("list").out


def test_list_shows_ids_places_tags_and_skips(small: Project) -> None:
    small.write(
        "benchmarks/bench_more.py",
        "import perfci\n\n@perfci.benchmark(n=[1, 2], tags=['quick'], skip='not today')\n"
        "def more(n):\n    return int\n",
    )
    out = small.perfci("list", "-k", "quick").out
    assert re.search(
        r"more\[n=1\]\s+benchmarks/bench_more.py:\d+  #quick  \(skipped: not today\)", out
    )
    assert "counting" not in out


def test_run_shows_one_sides_numbers(small: Project) -> None:
    report = small.report("run", "HEAD", "-k", "steady", code=0)
    assert report["base"] is None
    metrics = {row["metric"]: row for row in report["results"]}
    assert metrics["latency_p50"]["head"]["center"] > 0
    assert metrics["cold_start"]["head"]["workers"] == 5


def test_a_skipped_case_is_said_and_not_measured(small: Project) -> None:
    small.write(
        "benchmarks/bench_more.py",
        "import perfci\n\n@perfci.benchmark(skip='needs a dragon')\ndef more():\n    return int\n",
    )
    report = small.report("run", "-k", "more or steady")
    assert report["skipped"] == {"more": "needs a dragon"}
    assert "more" not in {row["case"] for row in report["results"]}


def test_what_this_machine_cannot_measure_is_said_and_never_zero(small: Project) -> None:
    report = small.report("run", "-k", "steady")
    assert "device_time_p50" in report["not_measured"]
    assert "peak_device_memory" not in {row["metric"] for row in report["results"]}


def test_every_format_can_be_rendered_again_from_the_json(small: Project, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    small.perfci("compare", "HEAD", "HEAD", "--same", "-k", "steady", "--json", str(path))
    markdown = small.perfci("report", str(path), "--format", "markdown")
    assert markdown.code == 0
    assert markdown.out.startswith("<!-- perfci")
    ET.fromstring(small.perfci("report", str(path), "--format", "junit").out)
    assert small.perfci("report", str(path), "--format", "json").out == path.read_text()
    page, text = tmp_path / "r.html", tmp_path / "r.txt"
    assert small.perfci("report", str(path), "-o", str(page)).code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")  # by the file's suffix
    small.perfci("report", str(path), "-o", str(text))
    assert "perfci: pass" in text.read_text()
    assert small.perfci("report", str(path), "--format", "csv").out.count("latency_p50") == 1
    assert "steady" in small.perfci("report", str(path)).out


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"schema": "perfci.report/9"}'])
def test_a_damaged_report_is_an_error_that_names_it(project: Project, text: str) -> None:
    path = project.write("report.json", text)
    done = project.perfci("report", str(path)).without_traceback()
    assert done.code == 4
    assert "report.json" in done.err


def test_doctor_says_what_to_do(project: Project) -> None:
    done = project.perfci("doctor", CXX="no-such-compiler").without_traceback()
    assert "no-such-compiler" in done.out
    assert "g++" in done.out
    stopped = project.perfci("doctor", PERFCI_CACHE_DIR="/proc/nowhere")
    assert stopped.code == 3
    assert "PERFCI_CACHE_DIR" in stopped.out
