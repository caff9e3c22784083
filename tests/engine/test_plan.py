"""What is decided before a command runs: parts of a machine, times, and Slurm's words."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from perfci.engine.engines import array_script, end_text, queued_tasks, slurm_options
from perfci.engine.job import CommandState, JobFolder, MachineSlot, Plan, gather
from perfci.errors import UsageError
from perfci.measure.machine.cores import slots
from perfci.verdict.shards import time_limit_s

EIGHT = tuple((core,) for core in range(8))
PAIRS = tuple((core, core + 4) for core in range(4))


def test_as_many_sessions_fit_as_have_their_cores_and_one_for_perfci() -> None:
    assert slots(EIGHT, (), workers=3, concurrent=0) == (
        MachineSlot((0, 1, 2, 3)),
        MachineSlot((4, 5, 6, 7)),
    )
    assert slots(EIGHT, (), workers=4, concurrent=0) == (MachineSlot((0, 1, 2, 3, 4)),)
    assert slots(EIGHT[:2], (), workers=1, concurrent=0) == (MachineSlot((0, 1)),)
    assert slots(EIGHT[:1], (), workers=1, concurrent=0) == (MachineSlot((0,)),)


def test_two_that_share_a_physical_core_are_in_one_part() -> None:
    assert slots(PAIRS, (), workers=2, concurrent=0) == (
        MachineSlot((0, 4, 1, 5)),
        MachineSlot((2, 6, 3, 7)),
    )


def test_so_many_at_once_share_the_whole_machine_equally() -> None:
    assert [one.cores for one in slots(EIGHT, (), workers=4, concurrent=3)] == [
        (0, 1),
        (2, 3),
        (4, 5),
    ]
    assert len(slots(EIGHT[:2], (), workers=1, concurrent=5)) == 2


def test_each_of_several_gpus_serves_one_and_of_one_nothing_is_parted() -> None:
    parts = slots(EIGHT, ("GPU-a", "GPU-b"), workers=1, concurrent=0)
    assert [one.device for one in parts] == ["GPU-a", "GPU-b"]
    assert slots(EIGHT, ("GPU-a",), workers=1, concurrent=0) == (MachineSlot((0, 1)),)


def test_a_gpus_part_has_cores_near_it_as_far_as_there_are_any_left() -> None:
    devices = ("GPU-a", "GPU-b", "GPU-c")
    near = dict.fromkeys(devices, frozenset({4, 5, 6, 7}))
    near["GPU-b"] = frozenset({0, 1, 2, 3})
    parts = slots(EIGHT, devices, workers=2, concurrent=0, near=near)
    assert [part.cores for part in parts] == [(4, 5, 6), (0, 1, 2)]
    parts = slots(EIGHT, devices, workers=1, concurrent=3, near=near)
    assert [part.cores for part in parts] == [(4, 5), (0, 1), (6, 7)]


def test_a_shard_gets_twice_its_last_time_and_never_more_than_its_budget() -> None:
    assert time_limit_s({}, 4, 3600.0) == 4200.0
    assert time_limit_s({"a": 300.0, "b": 300.0}, 2, 3600.0) == 1400.0
    assert time_limit_s({"a": 900.0, "b": 1.0}, 4, 3600.0) == 2400.0
    assert time_limit_s({"a": 9000.0}, 4, 3600.0) == 4200.0


def test_options_of_sbatch_are_passed_on_but_for_perfcis_own() -> None:
    words = ("partition=gpu --gres=gpu:1", "exclusive", "comment='two words'")
    assert slurm_options(words) == (
        "--partition=gpu", "--gres=gpu:1", "--exclusive", "--comment=two words",
    )  # fmt: skip
    for word in ("array=1", "--output=x", "--"):
        with pytest.raises(UsageError, match="--sbatch"):
            slurm_options((word,))


def test_a_task_runs_its_own_command_whatever_its_words_hold(tmp_path: Path) -> None:
    word = "it's $HOME; `false`\nno more"
    plan = Plan(str(tmp_path), (("false",), ("printf", "%s", word)), ("a", "b"), 1.0)
    script = array_script(plan, JobFolder(tmp_path))
    subprocess.run(["sh", "-c", script], env={"SLURM_ARRAY_TASK_ID": "2"}, check=True)
    assert (tmp_path / "shard-2.log").read_text() == word
    assert (tmp_path / "shard-2.exit").read_text() == "0\n"
    assert shlex.join(plan.commands[1]) in script


def test_what_squeue_lists_waits_or_runs() -> None:
    printed = "1|RUNNING|None\n3|PENDING|Resources\n4|COMPLETING|None\n12|PENDING|None\n"
    assert queued_tasks(printed) == {
        1: CommandState("running"),
        3: CommandState("waiting", "Resources"),
        4: CommandState("running"),
        12: CommandState("waiting"),
    }


class Away:
    """An engine whose one command waits, whatever is asked of it."""

    settle_s = 0.0

    def submit(self, plan: Plan, numbers: Sequence[int]) -> None: ...

    def cancel(self, plan: Plan) -> None: ...

    def poll(self, plan: Plan) -> dict[int, CommandState]:
        return {
            number: CommandState("waiting", "Slurm's controller to answer")
            for number in plan.numbers
        }


def test_a_shard_that_waited_to_the_end_is_said_to_have_waited(tmp_path: Path) -> None:
    def interrupted(text: str) -> None:
        if "waiting (" in text:
            raise KeyboardInterrupt

    plan = Plan(str(tmp_path), (("true",),), ("report",), 1.0)
    found = gather(plan, Away(), JobFolder(tmp_path), finished=bool, shown=interrupted, pause_s=0.1)
    assert found.ends == {1: "it was waiting for Slurm's controller to answer"}


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("TIMEOUT|gpu3\n", "it ran out of time on gpu3"),
        ("CANCELLED by 0|None assigned\n", "it was cancelled"),
        (
            "JobId=3 ArrayTaskId=2 JobState=NODE_FAIL Reason=None NodeList=n2",
            "its node failed on n2",
        ),
        ("BOOT_FAIL|gpu3", "Slurm says BOOT_FAIL on gpu3"),
    ],
)
def test_how_a_task_ended_is_said_in_words(printed: str, text: str) -> None:
    assert end_text(printed) == text
