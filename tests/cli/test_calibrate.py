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
def test_a_calibration_says_what_it_sees_and_tests_its_promise(counting: Project) -> None:
    path = counting.folder.parent / "calibration.json"
    before = counting.git("status", "--porcelain")
    asked = ("calibrate", "-k", "steady", "--budget", "20s", "--json", str(path))
    done = counting.perfci(*asked).without_traceback()
    calibration = decode(path.read_text(), Calibration)
    assert done.code == (3 if calibration.untrusted else 0), done.text
    assert "this machine sees" in done.out
    latency = {row.case: row for row in calibration.seen if row.metric == "latency_p50"}
    assert set(latency) == {"steady"}
    assert all(row.pairs >= 5 and row.spread for row in latency.values())
    assert calibration.session.max_rounds == 9  # the configuration's, not the calibration's
    assert {one.setting for one in calibration.settings} == {
        "malloc", "pin", "threads", "gc", "hash_seed",
    }  # fmt: skip
    # a slow machine has no time for trials and the promise, and says so
    assert all(one.ratio or one.reason for one in calibration.settings)
    promise = calibration.promise
    assert promise.cases or promise.reason or any(row.modes for row in latency.values())
    for one in promise.cases:
        assert one.ratio == pytest.approx(1.0 + promise.injected, rel=0.25)
    assert counting.git("status", "--porcelain") == before
    assert list(counting.cache.glob("session-*")) == []


def test_too_little_time_is_no_calibration_and_writes_nothing(counting: Project) -> None:
    counting.write(
        "benchmarks/bench_slow.py",
        "import time\nimport perfci\n\n@perfci.benchmark\ndef slow():\n"
        "    time.sleep(2.0)\n    return lambda: None\n",
    )
    counting.commit("slow")
    before = (counting.folder / "pyproject.toml").read_text()
    calibrate = ("calibrate", "-k", "slow", "--budget", "12s", "--write")  # two rounds at the most
    done = counting.perfci(*calibrate).without_traceback()
    assert done.code == 3
    assert "raise --budget" in " ".join(done.out.split())
    assert (counting.folder / "pyproject.toml").read_text() == before
    assert "--write is gone" in done.err


def test_csv_and_junit_are_refused(counting: Project) -> None:
    done = counting.perfci("calibrate", "--csv", "x.csv").without_traceback()
    assert done.code == 2


def test_the_calibration_file_can_be_read_by_scripts(counting: Project) -> None:
    path = counting.folder.parent / "calibration.json"
    page = counting.folder.parent / "calibration.md"
    done = counting.perfci(
        "calibrate", "--budget", "40s", "-q", "--json", str(path),
        "--markdown", str(page),
    ).without_traceback()  # fmt: skip
    assert done.out.count("\n") == 1
    plain = json.loads(path.read_text())
    assert plain["schema"] == "perfci.calibration/1"
    assert {row["case"] for row in plain["seen"]} == {"counting", "steady"}
    assert plain["promise"]["cases"], "time is simulated: there was enough of it"
    assert "perfci calibrate" in page.read_text()
