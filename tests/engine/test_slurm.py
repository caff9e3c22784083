"""An array of Slurm's, run by programs that answer as Slurm's do."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfci.engine.job import JobFolder, Plan
from perfci.engine.slurm import GatheredReports, SlurmEngine, gather, require_slurm
from perfci.errors import OutsideError
from tests import conftest

pytestmark = pytest.mark.processes
MAKEFILE = Path(__file__).parents[2] / "Makefile"
FAKE = Path(__file__).with_name("fake_slurm.py")


def shell(*scripts: str, folder: Path) -> Plan:
    """A plan of shell scripts, whose reports are ``$R`` in the folder ``job``."""
    names = tuple(f"report-{number}" for number in range(1, len(scripts) + 1))
    commands = tuple(
        ("sh", "-c", f"R={folder / 'job' / name}; {script}")
        for name, script in zip(names, scripts, strict=True)
    )
    return Plan(str(folder), commands, names, 60.0)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the fake programs keep what they know."""
    programs, folder = tmp_path / "programs", tmp_path / "slurm"
    for one in (programs, folder):
        one.mkdir()
    for name in ("sbatch", "squeue", "scancel", "sacct"):
        script = FAKE.read_text(encoding="utf-8")
        # without site-packages: they are asked again and again
        (programs / name).write_text(f"#!{sys.executable} -IS\n{script}", encoding="utf-8")
        (programs / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    return folder


def run(
    plan: Plan,
    folder: Path,
    *options: str,
    settle_s: float = 0.2,
    shown: Callable[[str], None] = lambda _: None,
) -> GatheredReports:
    engine = SlurmEngine(job_in(folder), f"perfci-{folder.name}", options, settle_s)
    return gather(plan, engine, shown=shown, pause_s=0.2)


def job_in(folder: Path) -> JobFolder:
    (folder / "job").mkdir()
    return JobFolder(folder / "job")


def test_make_slurm_check_asks_for_the_tests_of_slurm_itself() -> None:
    """They were skipped there: a variable of perfci's own never reaches a test."""
    (asked,) = re.findall(r"(\w+)=1 .*tests/engine/test_real_slurm.py", MAKEFILE.read_text())
    assert not asked.startswith(conftest._TOLD)
    assert f'"{asked}" not in os.environ' in FAKE.with_name("test_real_slurm.py").read_text()


def test_an_array_reports_with_the_options_that_were_given(state: Path, tmp_path: Path) -> None:
    plan = shell("echo 1 > $R", "echo 2 > $R", folder=tmp_path)
    found = run(plan, tmp_path, "--partition=gpu", "--exclusive")
    assert sorted(found.reports) == [1, 2]
    options = (state / "options").read_text()
    for each in ("'partition': 'gpu'", "'exclusive': ''", "'array': '1,2'", "'time': '1'"):
        assert each in options


def test_tasks_that_end_without_a_report_say_how(state: Path, tmp_path: Path) -> None:
    for task in (2, 4):
        (state / f"ends-{task}").write_text("TIMEOUT|fake3")
    scripts = ("echo > $R", "kill -9 $PPID", "echo no torch; exit 2", "exit 143")
    plan = shell(*scripts, folder=tmp_path)
    found = run(plan, tmp_path)
    assert sorted(found.reports) == [1]
    assert found.ends[2] == "it ran out of time on fake3"
    assert found.ends[3] == "exit code 2; it said last: no torch"
    assert found.ends[4] == "it ran out of time on fake3, exit code 143"


def test_a_report_may_come_a_while_after_its_task_has_ended(state: Path, tmp_path: Path) -> None:
    later = "(sleep 0.5; echo > $R) > /dev/null 2>&1 &"
    assert run(shell(later, folder=tmp_path), tmp_path, settle_s=5.0).reports


def test_a_controller_that_is_away_is_waited_for(state: Path, tmp_path: Path) -> None:
    plan = shell("sleep 0.5; echo > $R", folder=tmp_path)
    said: list[str] = []

    def shown(text: str) -> None:
        said.append(text)
        if "running" in text:
            (state / "away").touch()
        if "controller" in text:
            (state / "away").unlink()

    assert run(plan, tmp_path, shown=shown).reports
    assert "0 of 1 shards have reported, 1 waiting (Slurm's controller to answer)" in said


def test_ctrl_c_while_the_controller_is_away_says_what_may_still_run(
    state: Path, tmp_path: Path
) -> None:
    plan = shell("sleep 1; echo > $R", folder=tmp_path)

    def interrupted(text: str) -> None:
        if "running" in text:
            (state / "away").touch()
            raise KeyboardInterrupt

    with pytest.raises(OutsideError, match="may still be waiting or running") as refused:
        run(plan, tmp_path, shown=interrupted)
    assert f"scancel --name=perfci-{tmp_path.name}" in refused.value.advice
    (state / "away").unlink()


def test_an_array_is_not_taken_for_submitted_where_the_controller_is_away_at_first(
    state: Path, tmp_path: Path
) -> None:
    (state / "away").touch()
    with pytest.raises(OutsideError, match="Unable to contact slurm controller"):
        run(shell("echo > $R", folder=tmp_path), tmp_path, shown=pytest.fail)


def test_ctrl_c_cancels_the_array_and_keeps_what_has_reported(state: Path, tmp_path: Path) -> None:
    def interrupted(text: str) -> None:
        if "1 of 2 shards have reported" in text:
            raise KeyboardInterrupt

    found = run(shell("echo > $R", "sleep 60", folder=tmp_path), tmp_path, shown=interrupted)
    assert (found.cancelled, sorted(found.reports)) == (True, [1])
    queue = subprocess.run(
        ["squeue", f"--name=perfci-{tmp_path.name}"], capture_output=True, text=True, check=True
    )
    assert queue.stdout == ""


def test_what_sbatch_refuses_is_said(state: Path, tmp_path: Path) -> None:
    (state / "away").touch()
    plan = shell("true", folder=tmp_path)
    with pytest.raises(OutsideError, match="Unable to contact slurm controller"):
        SlurmEngine(job_in(tmp_path), "perfci-refused").submit(plan)


def test_without_slurm_its_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(OutsideError, match="no sbatch and no squeue and no scancel"):
        require_slurm()
