"""An array of Slurm's, run by programs that answer as Slurm's do."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perfci.engine.engines import SlurmEngine, require_slurm
from perfci.engine.job import GatheredReports, JobFolder, Plan, gather
from perfci.errors import OutsideError
from tests import conftest
from tests.engine.test_local import shell

pytestmark = pytest.mark.processes
MAKEFILE = Path(__file__).parents[2] / "Makefile"
FAKE = Path(__file__).with_name("fake_slurm.py")


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
    job = JobFolder(folder / "job")
    job.open(plan)
    engine = SlurmEngine(job, f"perfci-{folder.name}", options, settle_s)
    return gather(plan, engine, job, finished=lambda _: True, shown=shown, pause_s=0.2)


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
    plan = shell("echo >> ran; sleep 1; echo > $R", folder=tmp_path)

    def interrupted(text: str) -> None:
        if "running" in text:
            (state / "away").touch()
            raise KeyboardInterrupt

    with pytest.raises(OutsideError, match="may still be waiting or running") as refused:
        run(plan, tmp_path, shown=interrupted)
    assert f"scancel --name=perfci-{tmp_path.name}" in refused.value.advice
    assert "same command again" in refused.value.advice
    (state / "away").unlink()
    assert run(plan, tmp_path).reports
    assert (tmp_path / "ran").read_text() == "\n"


def test_an_array_is_not_taken_for_submitted_where_the_controller_is_away_at_first(
    state: Path, tmp_path: Path
) -> None:
    (state / "away").touch()
    with pytest.raises(OutsideError, match="Unable to contact slurm controller"):
        run(shell("echo > $R", folder=tmp_path), tmp_path, shown=pytest.fail)


def test_an_array_whose_number_was_lost_does_not_run_twice(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = shell("echo >> ran; sleep 1; echo > $R", folder=tmp_path)
    job = JobFolder(tmp_path / "job")
    job.open(plan)
    keep = JobFolder.keep_submitted

    def killed(folder: JobFolder, kept: dict[str, str]) -> None:
        if any(kept.values()):
            raise SystemExit
        keep(folder, kept)

    engine = SlurmEngine(job, f"perfci-{tmp_path.name}")
    with monkeypatch.context() as patch:
        patch.setattr(JobFolder, "keep_submitted", killed)
        with pytest.raises(SystemExit):
            engine.submit(plan, [1])
    (state / "away").touch()
    said: list[str] = []

    def shown(text: str) -> None:
        said.append(text)
        (state / "away").unlink(missing_ok=True)

    assert run(plan, tmp_path, shown=shown).reports
    assert said[0] == "0 of 1 shards have reported, 1 unknown (Slurm's controller to answer)"
    assert (tmp_path / "ran").read_text() == "\n"


SUBMITTER = """\
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from pathlib import Path
from tests.engine.test_slurm import run, shell
folder = Path(sys.argv[1])
plan = shell("echo >> ran; sleep 1; echo > $R", "echo >> ran; sleep 60", folder=folder)
print(run(plan, folder, shown=lambda text: print(text, flush=True)), flush=True)
"""


def submitter(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SUBMITTER, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_killed_submitters_array_is_found_again_and_ctrl_c_cancels_it(
    state: Path, tmp_path: Path
) -> None:
    with submitter(tmp_path) as first:
        assert first.stdout is not None
        assert "2 running" in first.stdout.readline()
        first.kill()
    with submitter(tmp_path) as second:
        assert second.stdout is not None
        assert any("1 of 2 shards have reported, 1 running" in line for line in second.stdout)
        second.send_signal(signal.SIGINT)
        assert "cancelled=True" in second.stdout.read()
    assert (tmp_path / "ran").read_text() == "\n\n"
    queue = subprocess.run(
        ["squeue", f"--name=perfci-{tmp_path.name}"], capture_output=True, text=True, check=True
    )
    assert queue.stdout == ""


def test_an_array_whose_number_was_lost_is_cancelled_by_its_name(
    state: Path, tmp_path: Path
) -> None:
    plan = shell("sleep 60", folder=tmp_path)
    job = JobFolder(tmp_path / "job")
    job.open(plan)
    engine = SlurmEngine(job, "perfci-lost")
    engine.submit(plan, [1])
    (job.path / "submitted.json").unlink()
    assert engine.poll(plan)[1].phase == "running"
    began = time.monotonic()
    engine.cancel(plan)
    assert engine.poll(plan)[1].phase == "absent"
    assert time.monotonic() - began < 30.0


def test_what_sbatch_refuses_is_said(state: Path, tmp_path: Path) -> None:
    (state / "away").touch()
    plan = shell("true", folder=tmp_path)
    job = JobFolder(tmp_path / "job")
    job.open(plan)
    with pytest.raises(OutsideError, match="Unable to contact slurm controller"):
        SlurmEngine(job, "perfci-refused").submit(plan, [1])


def test_without_slurm_its_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(OutsideError, match="no sbatch and no squeue and no scancel"):
        require_slurm()
