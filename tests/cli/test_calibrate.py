"""``perfci calibrate`` as users run it: a real repository, small rounds, once real processes."""

from __future__ import annotations

import json

import pytest

from perfci.calibrate import Calibration
from perfci.model.codec import decode
from tests.builders.project import Project

pytestmark = pytest.mark.slow


@pytest.fixture
def counting(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


@pytest.mark.processes
def test_a_calibration_says_what_it_sees(counting: Project) -> None:
    path = counting.folder.parent / "calibration.json"
    before = counting.git("status", "--porcelain")
    asked = ("calibrate", "-k", "steady", "--budget", "30s", "--json", str(path))
    done = counting.perfci(*asked).without_traceback()
    calibration = decode(path.read_text(), Calibration)
    assert done.code == (3 if calibration.untrusted else 0), done.text
    assert "this machine sees" in done.out
    latency = {row.case: row for row in calibration.seen if row.metric == "latency_p50"}
    assert set(latency) == {"steady"}
    assert all(row.pairs >= 5 and row.spread for row in latency.values())
    assert calibration.session.most == 9
    assert counting.git("status", "--porcelain") == before
    assert list(counting.cache.glob("session-*")) == []


def test_too_little_time_is_no_calibration(counting: Project) -> None:
    counting.write(
        "benchmarks/bench_slow.py",
        "import time\nimport perfci\n\n@perfci.benchmark\ndef slow():\n"
        "    time.sleep(2.0)\n    return lambda: None\n",
    )
    counting.commit("slow")
    calibrate = ("calibrate", "-k", "slow", "--budget", "6s")  # two rounds at the most
    done = counting.perfci(*calibrate).without_traceback()
    assert done.code == 3
    assert "raise --budget" in " ".join(done.out.split())


def test_the_calibration_file_can_be_read_by_scripts(counting: Project) -> None:
    path = counting.folder.parent / "calibration.json"
    done = counting.perfci(
        "calibrate", "--budget", "40s", "-q", "--json", str(path),
    ).without_traceback()  # fmt: skip
    assert done.out.count("\n") == 1
    plain = json.loads(path.read_text())
    assert plain["schema"] == "perfci.calibration/1"
    latency = [row for row in plain["seen"] if row["metric"] == "latency_p50"]
    assert {row["case"]: row["pairs"] for row in latency} == {"counting": 9, "steady": 9}
