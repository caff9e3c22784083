"""``perfci.distributed`` compared: a rank that is slow is found and named, and what ranks send."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.project import QUICK, Project, rows

pytestmark = [
    pytest.mark.processes,
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.timeout(590),
]
CONFIGURATION = (
    QUICK.replace("max_rounds = 9", "max_rounds = 5").replace("60s", "500s")
    + "cores = 2\nthreads = 1\n"
)
RANKS = """\
import importlib

import perfci
import torch
import torch.distributed as dist

def train(library):
    weights = torch.ones(512, 512)

    def step():
        lib = importlib.import_module(library)  # no other process does
        lib.forward(weights, dist.get_rank())
        summed = weights.clone()
        dist.all_reduce(summed)
        return lib.used(summed, dist.get_rank())
    return step

@perfci.benchmark
def slowed():
    return perfci.distributed(train, args=["slowed"], ranks=2, start_method="fork")

@perfci.benchmark
def still():
    return perfci.distributed(train, args=["still"], ranks=2, start_method="fork")
"""
LIB = """\
import time
import torch.distributed as dist

def used(summed, rank):
    return summed

def forward(weights, rank):
    weights @ weights
"""
SLOW_RANK_AND_ONE_MORE = """\
    if rank == 1:
        time.sleep(0.1)
    dist.all_gather([weights.clone(), weights.clone()], weights)
"""
DIFFERENT_OUTPUTS = ("return summed", "return summed + rank")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of one session: each case's ranks run what their own library says."""
    project = Project(tmp_path_factory.mktemp("ranks") / "project")
    project.write("pyproject.toml", CONFIGURATION)
    project.write("benchmarks/bench_one.py", RANKS)
    for library in ("slowed", "still"):
        project.write(f"{library}.py", LIB)
    project.commit("base")
    project.write("slowed.py", LIB.replace(*DIFFERENT_OUTPUTS) + SLOW_RANK_AND_ONE_MORE)
    project.commit("head")
    return project.report("compare", "HEAD~1", "HEAD")


def test_a_slow_rank_and_a_collective_more_are_found_and_named(report: dict[str, Any]) -> None:
    found = rows(report, "slowed")
    assert found["latency_p50"]["ratio_lo"] > 1.05  # ranks share two cores with other tests
    assert found["rank_imbalance"]["ratio"] > 1.1
    for metric in ("latency_p50", "rank_imbalance"):
        (named,) = (one for one in found[metric]["findings"] if one["code"] == "slow-rank")
        assert named["arguments"]["rank"] == 1
        assert named["arguments"]["slower"] > 0.005
    assert "rank 1 is slower by " in " ".join(found["latency_p50"]["warnings"])
    counts = found["collectives"]
    assert (counts["base"]["center"], counts["head"]["center"], counts["status"]) == (
        1.0, 2.0, "regressed",
    )  # fmt: skip
    assert "1 all_gather, 1 all_reduce" in " ".join(counts["warnings"])
    sent = found["collective_bytes"]
    assert (sent["base"]["center"], sent["head"]["center"]) == (1048576.0, 2097152.0)


def test_ranks_that_return_different_outputs_on_head_alone_fail(report: dict[str, Any]) -> None:
    differing = rows(report, "slowed")["differing_ranks"]
    assert (differing["status"], differing["gate"]) == ("regressed", "fail")
    assert report["verdict"]["status"] == "fail"
    assert "rank 1 returns something else than rank 0, " in " ".join(differing["warnings"])
