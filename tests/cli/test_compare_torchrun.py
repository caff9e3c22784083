"""``perfci.torchrun`` compared: the example's faults are found and named."""

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
    .replace("60s", "240s")
    .replace("= 20\n", "= 120\n")
    + "cores = 2\nthreads = 1\n"
)
SLOW_RANK = """\
        loss.backward()
        if options.parallel == "fsdp2" and dist.get_rank() == 1:
            __import__("time").sleep(0.05)
"""
BUCKETS = "bucket_cap_mb=1 / 16"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of one session: fsdp2 has a slow rank, ddp one bucket for all gradients."""
    project = Project(tmp_path_factory.mktemp("training") / "project")
    shutil.copytree(EXAMPLE, project.folder, dirs_exist_ok=True)
    project.write("pyproject.toml", CONFIGURATION)
    project.commit("base")
    script = (EXAMPLE / "train.py").read_text(encoding="utf-8")
    assert BUCKETS in script
    script = script.replace(BUCKETS, "bucket_cap_mb=25")
    project.write("train.py", script.replace("        loss.backward()\n", SLOW_RANK))
    project.commit("head")
    return project.report("compare", "HEAD~1", "HEAD")


def test_a_slow_rank_of_a_script_is_found_and_named(report: dict[str, Any]) -> None:
    seen = rows(report, "training[parallel=fsdp2]")
    assert (seen["latency_p50"]["status"], seen["latency_p50"]["ratio_lo"] > 1.05) == (
        "regressed",
        True,
    )
    (named,) = (each for each in seen["rank_imbalance"]["findings"] if each["code"] == "slow-rank")
    assert named["arguments"]["rank"] == 1
    assert seen["training_loss"]["status"] == "unchanged"
    assert report["verdict"]["status"] == "fail"


def test_a_lost_overlap_is_found_and_named(report: dict[str, Any]) -> None:
    seen = rows(report, "training[parallel=ddp]")
    assert seen["collectives"]["base"]["center"] > seen["collectives"]["head"]["center"] == 1.0
    exposed = seen["exposed_communication"]
    assert exposed["difference_lo"] > 0.0, exposed
    assert "don't overlap with computing" in " ".join(exposed["warnings"])
    assert report["same_code"] == []
