"""Which workers of a round are watched on a card: real workers; torch and NVML without one."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from perfci.config.keys import MeasureSettings, QuietTable
from perfci.measure import selection
from perfci.measure.executor import Executor
from perfci.measure.machine.gpu_watch import GpuWatches
from perfci.measure.machine.isolation import child_environment
from perfci.measure.round import RoundContext, measure_round
from perfci.measure.round_side import WorkerTask
from perfci.measure.workers import Launch
from perfci.model.measuring import WorkerOutput
from perfci.model.worker import REPLACED, WorkOrder
from tests.machine.fake_nvml import FIRST, SECOND, FakeNvml, card, processes
from tests.machine.fake_torch import write_torch

pytestmark = pytest.mark.processes

BENCHMARK = """\
import torch
import perfci

@perfci.benchmark
def case():
    return lambda: sum(range(1000))
"""
ON_CARD = """\
import torch
import perfci

@perfci.benchmark
def case():
    x = torch.ones(4096, 4096, device="cuda")
    return lambda: x @ x
"""
SERVING = """\
import os
import subprocess
import perfci

@perfci.benchmark
def case():
    server = subprocess.Popen(["cat"], stdin=subprocess.PIPE)  # ends with its worker
    with open(os.environ["PIDS"], "w") as file:
        file.write(f"{server.pid} ")
    return lambda: server.pid
"""
SETTINGS = MeasureSettings(round_time=0.04, burst=0.004)


class Tree:
    """A side's tree: a torch of its own, and its benchmark."""

    def __init__(self, root: Path, source: str = BENCHMARK) -> None:
        self.root = root
        (root / "benchmarks").mkdir(parents=True)
        self.file = root / "benchmarks" / "bench_one.py"
        self.file.write_text(source, encoding="utf-8")

    def task(self, side: str, **environment: str) -> WorkerTask:
        order = WorkOrder(
            root=str(self.root),
            python_path=(str(self.root),),
            benchmark_file=str(self.file),
            case="case",
            side=side,
            warmup_s=0.02,
            growth=False,
        )
        whole = child_environment(os.environ, QuietTable(), 1, (), environment)
        return WorkerTask(order, Launch(sys.executable, whole), {}, 60.0)


def children() -> list[int]:
    """Return the processes below this one, of any depth."""
    return [process.pid for process in psutil.Process().children(recursive=True)]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    write_torch(tmp_path / "tree")
    return Tree(tmp_path / "tree")


def measured(tree: Tree, gpu: GpuWatches, uuid: str) -> list[WorkerOutput]:
    """Return the outputs of one round of both sides on the card ``uuid``; "" is the host."""
    return outputs_of([tree.task(side, TORCH_FAKE_UUID=uuid) for side in ("base", "head")], gpu)


def outputs_of(
    tasks: list[WorkerTask], gpu: GpuWatches, settings: MeasureSettings = SETTINGS
) -> list[WorkerOutput]:
    ends = time.monotonic() + 240
    measured = measure_round(RoundContext(Executor(), ends, gpu), tasks, 1, settings)
    outputs = [side.result for side in measured]
    assert len(outputs) == len(tasks)
    assert all(isinstance(output, WorkerOutput) for output in outputs), outputs
    return [output for output in outputs if isinstance(output, WorkerOutput)]


def test_a_worker_on_a_card_is_watched_on_that_card(tree: Tree) -> None:
    hot = card(nvmlDeviceGetCurrentClocksEventReasons=0x40)
    nvml = FakeNvml({f"GPU-{FIRST}": hot, f"GPU-{SECOND}": card()})
    for output in measured(tree, GpuWatches(nvml), SECOND):
        assert output.disturbance in {"", "core taken"}
    assert {handle for _, handle in nvml.asked if handle} == {f"GPU-{SECOND}"}


def test_the_cards_of_a_servers_process_are_watched_and_it_is_not_foreign(
    tree: Tree, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    pids.touch()
    tree.file.write_text(SERVING)
    used = card(
        nvmlDeviceGetComputeRunningProcesses=lambda: processes(*map(int, pids.read_text().split()))
    )
    nvml = FakeNvml({f"GPU-{FIRST}": card(), f"GPU-{SECOND}": used})
    gpu = GpuWatches(nvml, driver=pids)
    for output in outputs_of([tree.task("base", PIDS=str(pids))], gpu):
        assert output.missing["device_time_p50"]
        assert "foreign" not in output.disturbance
    assert gpu.notes() == ()


def test_a_worker_on_the_host_is_not_watched(tree: Tree) -> None:
    nvml = FakeNvml({f"GPU-{FIRST}": card(nvmlDeviceGetCurrentClocksEventReasons=0x4)})
    gpu = GpuWatches(nvml)
    for output in measured(tree, gpu, ""):
        assert output.missing["device_time_p50"] == "it ran on the host, not on an accelerator"
        assert output.disturbance in {"", "core taken"}
    assert nvml.asked == []
    assert gpu.notes() == ()


def test_a_slowed_card_is_reported_though_the_bursts_are_kept_and_unknown_ids_are_not(
    tree: Tree,
) -> None:
    nvml = FakeNvml({f"GPU-{FIRST}": card(nvmlDeviceGetCurrentClocksEventReasons=0x80)})
    for output in measured(tree, GpuWatches(nvml), FIRST):
        assert (output.bursts_set_aside, output.disturbance) == (0, "power brake")
        assert output.bursts_disturbed > 0
    shared = card(nvmlDeviceGetComputeRunningProcesses=processes(41))
    for output in measured(tree, GpuWatches(FakeNvml({f"GPU-{FIRST}": shared})), FIRST):
        assert output.disturbance in {"", "core taken"}  # ours aren't seen: a container's ids


def test_at_the_power_limit_the_sides_take_long_turns_in_this_round_and_in_later_ones(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "_LONG_TURN_S", 0.05)
    monkeypatch.setattr(selection, "_LONG_LEAD_IN_S", 0.02)
    limited = card(nvmlDeviceGetCurrentClocksEventReasons=0x4)
    gpu = GpuWatches(FakeNvml({f"GPU-{FIRST}": limited}))
    for output in measured(tree, gpu, FIRST):
        assert output.disturbance == REPLACED
        assert output.bursts_measured - output.bursts_set_aside <= 2  # a long turn may be disturbed
    assert gpu.at_power_limit == {"case"}
    assert "reached its power limit in case" in gpu.notes()[0]
    for output in measured(tree, gpu, FIRST):
        assert output.bursts_measured == 2


@pytest.mark.gpu
@pytest.mark.torch
def test_a_real_card_is_watched(tmp_path: Path) -> None:
    import torch

    on_card = Tree(tmp_path / "card", ON_CARD)
    gpu = GpuWatches()
    outputs = outputs_of([on_card.task("base"), on_card.task("head")], gpu)
    assert all(output.values["device_time_p50"] > 0.0 for output in outputs)
    watch = gpu.of(str(torch.cuda.get_device_properties(0).uuid))
    assert watch is not None or "MIG" in gpu.notes()[0], gpu.notes()
