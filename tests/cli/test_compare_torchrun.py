"""``perfci.torchrun`` compared: faults planted into the example are found and named."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import QUICK, Project, rows

pytestmark = [pytest.mark.processes, pytest.mark.torch, pytest.mark.slow]
EXAMPLE = Path(__file__).parents[2] / "examples/training"
CONFIGURATION = (
    QUICK.replace("max_rounds = 9", "max_rounds = 5")
    .replace("60s", "300s")
    .replace("timeout = 20", "timeout = 120")
    + "cores = 2\nthreads = 1\n"
)
BACKWARD = "        loss.backward()\n"
SLOW_AND_WITHOUT_OVERLAP = """\
        with model.no_sync():
            loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        if dist.get_rank() == 1:
            __import__("time").sleep(0.1)
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of a script whose head sums gradients after the backward, and has a slow rank."""
    project = Project(tmp_path_factory.mktemp("training") / "project")
    shutil.copytree(EXAMPLE, project.folder, dirs_exist_ok=True)
    project.write("pyproject.toml", CONFIGURATION)
    project.commit("base")
    script = (EXAMPLE / "train.py").read_text(encoding="utf-8")
    assert BACKWARD in script
    project.write("train.py", script.replace(BACKWARD, SLOW_AND_WITHOUT_OVERLAP))
    project.commit("head")
    return project.report("compare", "HEAD~1", "HEAD", "-k", "ddp")


def test_a_slow_rank_of_a_script_is_found_and_named(report: dict[str, Any]) -> None:
    seen = rows(report, "training[parallel=ddp]")
    assert seen["latency_p50"]["ratio_lo"] > 1.05
    for metric in ("latency_p50", "rank_imbalance"):
        (named,) = (each for each in seen[metric]["findings"] if each["code"] == "slow-rank")
        assert named["arguments"]["rank"] == 1
    assert seen["training_loss"]["status"] == "unchanged"
    assert report["same_code"] == []


def test_a_lost_overlap_is_found_and_named(report: dict[str, Any]) -> None:
    seen = rows(report, "training[parallel=ddp]")
    assert seen["collectives"]["status"] == "regressed"
    (lost,) = seen["exposed_communication"]["findings"]
    assert lost["code"] == "exposed-communication"
    assert lost["arguments"]["exposed"] > 0.95 * lost["arguments"]["waited"] > 0.0
    assert "don't overlap with computing" in " ".join(seen["exposed_communication"]["warnings"])
