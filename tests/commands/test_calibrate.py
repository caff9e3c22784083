"""``perfci calibrate`` as users run it: a real repository, real processes, small rounds."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path

import pytest

from perfci.cli.configuration_file import configuration_file
from perfci.errors import OutsideError
from perfci.model.calibration import Calibration
from perfci.model.codec import decode
from tests.project import Project


@pytest.fixture
def counting(project: Project) -> Project:
    project.counting(1000)
    project.commit("base")
    return project


def test_a_calibration_says_what_it_sees_and_tests_its_promise(counting: Project) -> None:
    path = counting.folder.parent / "calibration.json"
    before = counting.git("status", "--porcelain")
    done = counting.perfci("calibrate", "--budget", "120s", "--json", str(path)).without_traceback()
    calibration = decode(path.read_text(), Calibration)
    assert done.code == (3 if calibration.untrusted else 0), done.text
    assert "this machine sees" in done.out
    latency = {row.case: row for row in calibration.seen if row.metric == "latency_p50"}
    assert set(latency) == {"counting", "steady"}
    assert all(row.pairs >= 5 and row.spread for row in latency.values())
    assert calibration.session.max_rounds == 6  # the configuration's, not the calibration's
    assert {one.setting for one in calibration.settings} == {
        "malloc", "pin", "threads", "gc", "hash_seed",
    }  # fmt: skip
    assert any(one.ratio for one in calibration.settings)
    assert calibration.promise.cases or any(row.modes for row in latency.values())
    for one in calibration.promise.cases:
        assert one.ratio == pytest.approx(1.0 + calibration.promise.injected, rel=0.25)
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


def test_a_configuration_that_cannot_be_written_is_told_before_anything_is_measured(
    counting: Project,
) -> None:
    missing = counting.folder / "nowhere" / "perfci.toml"
    done = counting.perfci("calibrate", "--write", "--config", str(missing)).without_traceback()
    assert done.code == 4
    assert "configuration-unwritable" in done.err


def test_csv_and_junit_are_refused(counting: Project) -> None:
    done = counting.perfci("calibrate", "--csv", "x.csv").without_traceback()
    assert done.code == 2


def test_writing_keeps_the_mode_and_the_link(tmp_path: Path) -> None:
    target = tmp_path / "real.toml"
    target.write_text("rounds = 5\n")
    target.chmod(0o640)
    (tmp_path / "perfci.toml").symlink_to(target)
    configuration_file(tmp_path, None).write({("max_rounds",): 30})
    assert (tmp_path / "perfci.toml").is_symlink()
    assert tomllib.loads(target.read_text()) == {"rounds": 5, "max_rounds": 30}
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["perfci.toml", "real.toml"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "perfci.toml"
    path.write_text("rounds = 5\n")
    file = configuration_file(tmp_path, None)
    path.write_text("rounds = 6\n")
    with pytest.raises(OutsideError, match="changed"):
        file.write({("max_rounds",): 30})
    assert path.read_text() == "rounds = 6\n"
    path.unlink()
    with pytest.raises(OutsideError, match="changed"):
        file.write({("max_rounds",): 30})
    assert not path.exists()


def test_a_file_that_cannot_be_read_meanwhile_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "perfci.toml"
    path.write_text("rounds = 5\n")
    file = configuration_file(tmp_path, None)
    path.write_bytes(b"\xe9")
    with pytest.raises(OutsideError, match="changed"):
        file.write({("max_rounds",): 30})


def test_a_link_to_itself_and_what_is_no_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.perfci]\n")
    (tmp_path / "perfci.toml").symlink_to("perfci.toml")
    with pytest.raises(OutsideError, match="symbolic links"):
        configuration_file(tmp_path, None)
    (tmp_path / "perfci.toml").unlink()
    (tmp_path / "perfci.toml").write_bytes(b"# \xe9\n")
    with pytest.raises(OutsideError, match="not UTF-8"):
        configuration_file(tmp_path, None)


def test_what_a_link_is_called_says_how_it_is_read(tmp_path: Path) -> None:
    target = tmp_path / "shared.toml"
    target.write_text("[project]\nname = 'x'\n")
    (tmp_path / "pyproject.toml").symlink_to(target)
    configuration_file(tmp_path, None).write({("max_rounds",): 30})
    assert tomllib.loads(target.read_text())["tool"] == {"perfci": {"max_rounds": 30}}


def test_a_project_without_configuration_gets_one(tmp_path: Path) -> None:
    configuration_file(tmp_path, None).write({("thresholds", "a", "latency_p50"): 0.08})
    written = tomllib.loads((tmp_path / "perfci.toml").read_text())
    assert written == {"thresholds": {"a": {"latency_p50": 0.08}}}


def test_the_calibration_file_can_be_read_by_scripts(counting: Project) -> None:
    path = counting.folder.parent / "calibration.json"
    page = counting.folder.parent / "calibration.md"
    done = counting.perfci(
        "calibrate", "-k", "steady", "--budget", "20s", "-q", "--json", str(path),
        "--markdown", str(page),
    ).without_traceback()  # fmt: skip
    assert done.out.count("\n") == 1
    plain = json.loads(path.read_text())
    assert plain["schema"] == "perfci.calibration/1"
    assert "perfci calibrate" in page.read_text()
