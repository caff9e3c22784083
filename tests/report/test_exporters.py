"""Exporters of other distributions: found by entry point, and named when they are broken."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import click
import pytest

from perfci.cli.main import cli
from perfci.cli.report import FormatsCommand
from perfci.report import exporters
from perfci.report.exporters.json import render as render_json
from tests.builders.in_process import Done, in_process
from tests.builders.project import NOISE_PASSES, Project
from tests.plugins import install
from tests.report.examples import rich_report

GROUP = "perfci.exporters"
STOPWATCH = """
HELP = "Write what a stopwatch would show here."

def render(report):
    return "".join(f"\\x1b[1m{row.case}\\t{row.metric}\\n" for row in report.results)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("stopwatch"), GROUP, "stopwatch", STOPWATCH)


@pytest.fixture
def site(installed: Path, tmp_path: Path) -> Path:
    """A copy of what is installed, to be broken."""
    return shutil.copytree(installed, tmp_path / "site")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.write("report.json", render_json(rich_report()))
    return project


def perfci(project: Project, site: Path, *arguments: str, **environment: str) -> Done:
    """Run the command in this process, which has not looked for exporters before, nor will have."""
    _forget()
    environment = project.environment(PYTHONPATH=str(site), **environment)
    try:
        return in_process(arguments, project.folder, environment)
    finally:
        _forget()


def _forget() -> None:
    exporters._points.cache_clear()
    for name in ("compare", "check", "run", "merge", "report"):
        command = cli.get_command(click.Context(cli), name)
        assert isinstance(command, FormatsCommand)
        for remembered in ("_formats", "options"):
            command.__dict__.pop(remembered, None)
    sys.modules.pop("someones_stopwatch", None)


def test_an_exporter_of_another_distribution_has_an_option_and_is_a_format(
    project: Project, site: Path
) -> None:
    project.counting(300)
    project.write("pyproject.toml", (project.folder / "pyproject.toml").read_text() + NOISE_PASSES)
    project.commit("base")
    project.commit("head")
    asked = ("compare", "HEAD~1", "HEAD", "-k", "steady", "--rounds", "2", "--quiet")
    without = project.perfci(*asked, "--stopwatch", "times").without_traceback()
    assert (without.code, "No such option" in without.err) == (2, True), without.text

    files = ("--json", "measured.json", "--stopwatch", "times")
    done = project.perfci(*asked, *files, PYTHONPATH=str(site)).without_traceback()
    assert done.code == 0, done.text
    rows = json.loads((project.folder / "measured.json").read_text())["results"]
    written = (project.folder / "times").read_text()
    assert written == "".join(f"\x1b[1m{row['case']}\t{row['metric']}\n" for row in rows)

    asked = ("report", "measured.json", "--format", "stopwatch")
    shown = project.perfci(*asked, PYTHONPATH=str(site))
    assert shown.out == written.replace("\x1b[1m", "").replace("\t", "    ")  # printed: cleaned
    assert project.perfci(*asked, "-o", "again", PYTHONPATH=str(site)).code == 0
    assert (project.folder / "again").read_text() == written

    text = project.perfci("compare", "--help", PYTHONPATH=str(site)).out
    assert "--stopwatch FILE" in text
    assert "Write what a stopwatch would show here." in text


BROKEN = {
    "incomplete": ("HELP = 'Broken.'", "it has no `render`"),
    "raises": ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
    "lacks-a-module": ("import a_module_that_is_not_there", "ModuleNotFoundError"),
    "render-raises": ("HELP = ''\ndef render(report):\n    return 1 / 0", "ZeroDivisionError"),
}


@pytest.mark.parametrize(("source", "why"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_exporter_is_named_and_is_no_traceback(
    project: Project, site: Path, source: str, why: str
) -> None:
    (site / "someones_stopwatch.py").write_text(source)
    asked = ("report", "report.json", "--format", "stopwatch")
    done = perfci(project, site, *asked).without_traceback()
    assert (done.code, done.out) == (2, "")
    assert "[broken-plugin]" in done.err
    assert "`stopwatch` of someones-stopwatch" in done.err
    assert why in done.err
    assert len(done.err) < 600


def test_what_was_measured_is_not_lost_with_a_broken_exporters_file(
    project: Project, site: Path
) -> None:
    project.counting(300)
    project.commit("base")
    (site / "someones_stopwatch.py").write_text(BROKEN["render-raises"][0])
    asked = ("run", "-k", "steady", "--rounds", "2", "--stopwatch", "s", "--json", "z.json")
    done = perfci(project, site, *asked).without_traceback()
    assert done.code == 2
    assert "someones-stopwatch" in done.err
    assert "steady" in done.out
    assert json.loads((project.folder / "z.json").read_text())["results"]
    assert not (project.folder / "s").exists()
