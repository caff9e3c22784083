"""``check`` that is cut short: the result of head alone is a suspicion, with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def told(report: dict[str, Any]) -> str:
    """Return why suspects are unconfirmed, where head's own measurement is all that is told."""
    for case in ("one", "two"):
        row = rows(report, case)["latency_p50"]
        assert (row["status"], row["method"]) == ("regressed", "welch_t")
        assert row["confirmed"] is False
        assert row["head"]["workers"] >= 5
    assert report["verdict"]["status"] == "fail"
    (why,) = (note for note in report["notes"] if note.startswith("Unconfirmed: "))
    return why


def test_an_interrupted_check_confirms_nothing_and_a_second_signal_loses_nothing(
    project: SteppedInto,
) -> None:
    project.step("interrupt-one-6")
    report = project.report("check", "--rounds", "6", code=1)
    assert "the session ended before" in told(report)
    assert report["interrupted"] is True
    assert any("interrupted before everything" in one for one in report["verdict"]["reasons"])
    assert project.count("one") == 6
    assert project.count("trees") == 1


def test_suspects_whose_base_can_not_be_measured_stay_unconfirmed_and_the_reason_is_told(
    project: SteppedInto, tmp_path: Path
) -> None:
    project.step("expired")
    configuration = project.folder / "pyproject.toml"
    section = "[tool.perfci]\n"
    building = f'{section}build = ["test -f ok"]\n'
    configuration.write_text(configuration.read_text().replace(section, building))
    logs = tmp_path / "logs"
    report = project.report("check", "--log-dir", str(logs), code=1)
    why = told(report)
    assert "could not be measured: build command `test -f ok` ended with exit status 1" in why
    assert "no longer runs two (base failed in setup (RuntimeError)" in why
    assert "expired" in why
    assert "--budget" not in why
    assert report["interrupted"] is False
    sha = json.loads(project.baseline("two").read_text())["sha"]
    own = (logs / "workers" / "two-1-head.log", logs / f"confirming-{sha[:12]}" / "workers")
    assert own[0].read_text() == "worker 1\n"
    assert list(own[1].glob("two-1-*.log"))
