"""A metric that the parent helps to measure is one module: it reaches every format of a report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from perfci import metrics
from perfci.collector import WatchedSide
from perfci.metrics import Metric, Reading, Warm, Watch
from perfci.model.worker import WorkOrder
from tests.builders.project import Project
from tests.builders.simulated import Simulated

NAME = "time_of_blocks"


class BlockWatch(Watch):
    """Adds up what the parent believes a call to take, block by block."""

    def __init__(self, side: WatchedSide) -> None:
        super().__init__(side)
        self.begun = self.done = 0

    def before_block(self) -> None:
        self.begun += 1

    def after_block(self) -> None:
        self.done += 1

    def after_bursts(self) -> Mapping[str, float]:
        assert self.begun == self.done > 0
        assert self.side.call_for(0.01) > 0
        return {NAME: self.side.call_s}


def reduce(warm: Warm) -> Reading:
    return Reading({NAME: warm.parent_readings[NAME]})


@pytest.fixture
def one_metric_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("perfci.metrics.blocks")
    module.METRICS = {Metric(NAME, "s", "per_worker", 0.10, "fail"): "a call's time"}
    module.WATCH, module.reduce = BlockWatch, reduce
    groups = metrics.metric_groups()
    metrics._REGISTRY.take([*groups, metrics._group(module)])
    yield
    metrics._REGISTRY.take(groups)


def test_a_metric_of_the_parent_is_one_module(tmp_path: Path, one_metric_more: None) -> None:
    def latency(order: WorkOrder, number: int) -> float:
        return 0.01 * (1.5 if order.side == "head" else 1.0) * (1.0 + 0.001 * (number % 3))

    project = Project(tmp_path / "project", Simulated(latency=latency))
    project.counting(1000)
    project.commit("base")
    files = {name: tmp_path / f"report.{name}" for name in ("markdown", "html")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    done = project.perfci(
        "compare", "HEAD", "HEAD", "--allow-same-commit", "-k", "steady", *options
    )
    assert done.code == 1, done.text
    comment, page = (path.read_text() for path in files.values())
    assert re.search(r"\| time of blocks 10(\.0)?.→.15(\.0)?.ms", comment), comment
    assert NAME in page
    assert re.search(rf"regressed +{NAME} ", done.out), done.out
