"""``examples/serving`` compared: its tokens are counted, and time planted in a phase is found."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from benchmarks.example_faults import EXAMPLES, FAULTS, Fault
from tests.builders.project import QUICK, Project, rows

pytestmark = [pytest.mark.processes, pytest.mark.torch]
OF_SERVER = "prompt[0] != 1"
"""True in the server, whose prompts are words. The other case's prompt is a list of ones."""
PLANTED = {"prefill": (0.2, OF_SERVER), "decode": (0.02, f"not ({OF_SERVER})")}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One session: the server's prefill is slower on head, and the other case's decode."""
    project = Project(tmp_path_factory.mktemp("serving") / "project")
    shutil.copytree(EXAMPLES / "serving", project.folder, dirs_exist_ok=True)
    once = QUICK.replace("rounds = 5", "rounds = 2").replace("max_rounds = 9", "max_rounds = 2")
    project.write(
        "pyproject.toml", once.replace("timeout = 20", "timeout = 60").replace("60s", "300s")
    )
    project.commit("example")
    for phase, (seconds, where) in PLANTED.items():
        FAULTS["serving"][phase].plant(project.folder, f"{seconds} if {where} else 0.0")
    project.commit("slower")
    return project.report("compare", "HEAD~1", "HEAD", "-k", "concurrency=4 and prompt=16 or model")


@pytest.mark.parametrize(
    ("case", "phase"), [("served[prompt=16,concurrency=4]", "prefill"), ("model", "decode")]
)
def test_time_planted_in_a_phase_is_found_in_that_phases_row(
    report: dict[str, Any], case: str, phase: str
) -> None:
    assert not report["failures"]
    found, fault = rows(report, case), FAULTS["serving"][phase]
    for side in ("base", "head"):
        assert found["tokens_per_request"][side]["center"] == 16
    assert slower(found, fault) > PLANTED[phase][0] / 2


def slower(found: dict[str, Any], fault: Fault) -> float:
    """Return by how many seconds head's center of the fault's metric is larger than base's."""
    row = found[fault.moved]
    return float(row["head"]["center"] - row["base"]["center"])
