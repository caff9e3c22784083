"""An array of commands on this machine: real processes, and no perfci in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from perfci.engine.engines import LocalEngine
from perfci.engine.job import GatheredReports, JobFolder, MachineSlot, Plan, gather
from perfci.errors import DamagedFile, UsageError

CORES = tuple(sorted(os.sched_getaffinity(0)))
pytestmark = pytest.mark.processes


def shell(*scripts: str, folder: Path) -> Plan:
    names = tuple(f"report-{number}" for number in range(1, len(scripts) + 1))
    commands = tuple(
        ("sh", "-c", f"R={folder / 'job' / name}; {script}")
        for name, script in zip(names, scripts, strict=True)
    )
    return Plan(str(folder), commands, names, 60.0)


def run(
    plan: Plan, folder: Path, *, at_once: int = 2, shown: Callable[[str], None] = lambda _: None
) -> GatheredReports:
    job = JobFolder(folder / "job")
    job.open(plan)
    engine = LocalEngine(job, [MachineSlot(CORES)] * at_once)
    return gather(plan, engine, job, finished=lambda _: True, shown=shown, pause_s=0.05)


def test_each_command_leaves_its_report_and_progress_is_said(tmp_path: Path) -> None:
    plan = shell(*(f"sleep 0.3; echo {one} > $R" for one in (1, 2, 3)), folder=tmp_path)
    said: list[str] = []
    found = run(plan, tmp_path, shown=said.append)
    assert {one: path.read_text() for one, path in found.reports.items()} == {
        1: "1\n", 2: "2\n", 3: "3\n",
    }  # fmt: skip
    assert said[0] == "0 of 3 shards have reported, 2 running, 1 waiting (a free slot)"
    assert said[-1] == "3 of 3 shards have reported"


def test_no_more_run_at_once_than_there_are_slots(tmp_path: Path) -> None:
    script = "mkdir lock && sleep 0.1 && rmdir lock && echo > $R"
    found = run(shell(*[script] * 4, folder=tmp_path), tmp_path, at_once=1)
    assert sorted(found.reports) == [1, 2, 3, 4]


def test_each_slot_has_its_cores_and_its_gpu(tmp_path: Path) -> None:
    plan = shell("taskset -cp $$ > $R; echo $CUDA_VISIBLE_DEVICES >> $R", folder=tmp_path)
    job = JobFolder(tmp_path / "job")
    job.open(plan)
    engine = LocalEngine(job, [MachineSlot(CORES[-1:], "GPU-x")])
    found = gather(plan, engine, job, finished=lambda _: True, shown=print, pause_s=0.05)
    affinity, device = found.reports[1].read_text().splitlines()
    assert (affinity.split()[-1], device) == (str(CORES[-1]), "GPU-x")
    assert tuple(sorted(os.sched_getaffinity(0))) == CORES


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no such disk; exit 4", "exit code 4; it said last: no such disk"),
        ("kill -9 $$", "killed by SIGKILL"),
        ("kill -40 $$", "killed by SIGRTMIN+6"),
    ],
)
def test_a_command_without_a_report_says_how_it_ended(
    tmp_path: Path, script: str, why: str
) -> None:
    found = run(shell("echo > $R", script, folder=tmp_path), tmp_path)
    assert (sorted(found.reports), found.ends[2]) == ([1], why)


def test_what_has_reported_is_not_run_again(tmp_path: Path) -> None:
    plan = shell("echo >> ran; echo > $R", "test -e go && echo > $R", folder=tmp_path)
    assert sorted(run(plan, tmp_path).reports) == [1]
    (tmp_path / "go").touch()
    assert sorted(run(plan, tmp_path).reports) == [1, 2]
    assert (tmp_path / "ran").read_text() == "\n"


SUBMITTER = """\
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from dataclasses import replace
from pathlib import Path
from tests.engine.test_local import run, shell
folder = Path(sys.argv[1])
plan = shell("echo >> ran; sleep 1; echo > $R", "echo >> ran; sleep 600", folder=folder)
print(run(plan, folder, shown=lambda text: print(text, flush=True)), flush=True)
"""


def submitter(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SUBMITTER, str(folder)], stdout=subprocess.PIPE, text=True
    )


def test_a_killed_submitters_commands_end_and_its_reports_are_kept(tmp_path: Path) -> None:
    with submitter(tmp_path) as first:
        assert first.stdout is not None
        assert "2 running" in first.stdout.readline()
        assert "1 of 2 shards have reported, 1 running" in first.stdout.readline()
        first.kill()
    until(lambda: living(tmp_path, "sh"), [])
    with submitter(tmp_path) as second:
        assert second.stdout is not None
        assert "1 of 2 shards have reported, 1 running" in second.stdout.readline()
        until((tmp_path / "ran").read_text, "\n" * 3)
        second.send_signal(signal.SIGINT)
        assert "cancelled=True" in second.stdout.read()


def until(look: Callable[[], object], wanted: object) -> None:
    end = time.monotonic() + 60.0
    while (seen := look()) != wanted:
        assert time.monotonic() < end, seen
        time.sleep(0.05)


def test_a_command_that_ended_and_was_not_waited_for_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = shell("exit 4", folder=tmp_path)
    job = JobFolder(tmp_path / "job")
    job.open(plan)
    engine = LocalEngine(job, [MachineSlot(CORES)])
    engine.submit(plan, [1])
    (child,) = engine._children.values()
    until(lambda: [process for process in living(tmp_path) if process.pid == child.pid], [])
    monkeypatch.setattr(child, "poll", lambda: None)  # as before the kernel let it be waited for
    assert engine.poll(plan)[1].why == "exit code 4"


def living(folder: Path, name: str = "") -> list[psutil.Process]:
    time.sleep(0.2)
    processes = []
    for process in psutil.process_iter():
        try:
            here = process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE
            if here and name in {"", process.name()}:
                processes.append(process)
        except (psutil.Error, OSError):  # gone, or in a folder whose path is too long to read
            continue
    return processes


def test_a_damaged_job_is_no_new_one(tmp_path: Path) -> None:
    plan = shell("echo > $R", folder=tmp_path)
    run(plan, tmp_path)
    (tmp_path / "job/submitted.json").write_text("[")
    with pytest.raises(DamagedFile, match=r"submitted\.json"):
        run(plan, tmp_path)


def test_a_folder_whose_comparison_is_not_done_is_given_to_no_other(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job")
    plan = shell("sleep 1; echo OLD > $R", folder=tmp_path)
    job.open(plan)
    for other in (shell("echo NEW > $R", folder=tmp_path), replace(plan, engine="slurm")):
        with pytest.raises(UsageError, match="another comparison"):
            job.open(other)
    job.clear(plan)
    assert not job.open(other)
