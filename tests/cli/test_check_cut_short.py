"""``check`` that is cut short, or can't measure the baseline's commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.project import rows
from tests.cli.interference import EXPIRING, LIBRARY, SteppedInto

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> SteppedInto:
    """A project with two suspects, of two commits; ``ok`` is in the second one only."""
    project = SteppedInto(tmp_path_factory.mktemp("check") / "stored")
    first = project.commit("first")
    assert project.perfci("baseline", "update", "--rounds", "3").code == 0
    second = project.commit("second", **{"ok": "", "lib.py": EXPIRING})
    project.make_suspect("one", first)
    project.make_suspect("two", second)
    project.commit("third", **{"lib.py": LIBRARY})
    return project


@pytest.fixture
def project(stored: SteppedInto, tmp_path: Path) -> SteppedInto:
    return stored.copy(tmp_path / "project")


def test_an_interrupted_check_reports_what_it_has_and_a_second_signal_loses_nothing(
    project: SteppedInto,
) -> None:
    project.step("interrupt-one-6")
    report = project.report("check", "--rounds", "6", code=3)
    assert report["interrupted"] is True
    assert report["verdict"]["status"] == "inconclusive"
    assert any("interrupted before everything" in one for one in report["verdict"]["reasons"])
    assert rows(report, "one")["latency_p50"]["status"] == "inconclusive"
    assert project.count("one") == 6


def test_head_alone_is_compared_where_the_baselines_commit_can_not_be_measured(
    project: SteppedInto, tmp_path: Path
) -> None:
    project.step("expired")
    configuration = project.folder / "pyproject.toml"
    section = "[tool.perfci]\n"
    building = f'{section}build = ["test -f ok"]\n'
    configuration.write_text(configuration.read_text().replace(section, building))
    logs = tmp_path / "logs"
    report = project.report("check", "--log-dir", str(logs), code=1)
    alone = rows(report, "one")["latency_p50"]
    assert (alone["status"], alone["method"]) == ("regressed", "welch_t")
    assert alone["confirmed"] is False
    (why,) = (note for note in report["notes"] if note.startswith("Unconfirmed: "))
    assert "can't be measured: build command `test -f ok` ended with exit status 1" in why
    assert rows(report, "two")["latency_p50"]["status"] == "failed"
    assert "two: fails on base only" in " ".join(report["verdict"]["reasons"])
    (unused,) = (note for note in report["notes"] if "fails here in 1 case" in note)
    assert "--no-confirm" in unused
    assert report["base"]["rev"] == "baselines of 2 commits, the newest"
    sha = json.loads(project.baseline("two").read_text())["sha"]
    assert list((logs / f"against-{sha[:12]}" / "workers").glob("two-1-*.log"))
