"""Importers of other distributions: found by entry point, and named when they are broken."""

from pathlib import Path

import pytest

from tests.builders.project import Project
from tests.plugins import install

STOPWATCH = """
from perfci.history.importers import environment_of

TOOL = "stopwatch"
COMPANIONS = ()

def recognised(plain):
    return isinstance(plain, dict) and "stopwatch" in plain

def read(plain, builder):
    for case, seconds in plain["stopwatch"].items():
        builder.add_point(case, "latency_p50", "s", seconds)
    return builder.results(
        environment_of(TOOL, ("bench",), {}, {}), measured_at="2026-01-02T03:04:05+00:00"
    )
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.write("times.json", '{"stopwatch": {"boil": 180.5, "toast": 90.25}}')
    project.commit("base")
    return project


def test_an_importer_of_another_distribution_is_used_by_what_it_recognises(
    project: Project, tmp_path: Path
) -> None:
    without = project.perfci("history", "import", "times.json").without_traceback()
    assert without.code == 2
    assert "foreign-unknown" in without.err

    site = install(tmp_path, "perfci.importers", "stopwatch", STOPWATCH)
    own = {"XDG_DATA_HOME": str(tmp_path / "data")}
    done = project.perfci("history", "import", "times.json", PYTHONPATH=str(site), **own)
    assert done.code == 0, done.text
    assert "stopwatch, 1 new run" in done.text
    exported = project.perfci("history", "export", **own)
    assert '"boil"' in exported.out
    assert "180.5" in exported.out


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("TOOL = 'broken'", "it lacks `COMPANIONS`, `recognised`, `read`"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import a_module_that_is_not_there", "ModuleNotFoundError"),
    ],
    ids=["incomplete", "raises", "lacks-a-module"],
)
def test_a_broken_importer_is_named_and_is_no_traceback(
    project: Project, tmp_path: Path, source: str, why: str
) -> None:
    site = install(tmp_path, "perfci.importers", "broken", source)
    done = project.perfci("history", "import", "times.json", PYTHONPATH=str(site))
    assert done.code == 2, done.text
    assert "[broken-plugin]" in done.without_traceback().err
    assert "someones-broken" in done.err
    assert why in done.err
