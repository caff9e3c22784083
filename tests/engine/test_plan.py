"""What Slurm is told and what it says, in words: no process of Slurm's."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from perfci.engine.job import CommandState, JobFolder, Plan
from perfci.engine.slurm import array_script, end_text, queued_tasks, slurm_options
from perfci.errors import UsageError


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
