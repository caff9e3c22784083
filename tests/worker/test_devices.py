"""Devices that run ahead of the host: what is timed is their work's end, never its launch."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import Project
from tests.lacking import lacking
from tests.plugins import Environment
from tests.worker.driver import Bench, samples

pytestmark = pytest.mark.processes

LANE = '''\
"""A device that torch doesn't know: its one lane is a thread, and a launch returns at once."""

import os
import threading
import time
from queue import Queue

_work = Queue()
_lane = None


def launch(seconds):
    global _lane
    if _lane is None:
        _lane = threading.Thread(target=_serve, daemon=True)
        _lane.start()
    _work.put(lambda: time.sleep(seconds))


def _serve():
    while True:
        _work.get()()
        _work.task_done()


class Event:
    def record(self, stream):
        _work.put(self._reach)

    def _reach(self):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3


class Lane:
    name = "lane:0"

    def missing(self):
        names = ["peak_device_memory", "peak_device_memory_reserved", "memory_growth"]
        names += ["device_time_p50"] * ("LANE_UNTIMED" in os.environ)
        return dict.fromkeys(names, "a lane has none")

    def synchronize(self):
        _work.join()

    def event(self):
        return Event()

    def stream(self):
        return None


def serves(type_):
    return type_ == "lane"


def in_use():
    return ("lane:0",) if _lane else ()


def present():
    return True


def facts():
    return {"device_name": "someone's lane", "device_count": 1}


def opened(name):
    return Lane()
'''
BENCHMARK = """\
import perfci
import someones_lane

@perfci.benchmark
def case():
    return lambda: someones_lane.launch(0.005)
"""
KERNEL_NS = 5_000_000
GROUP = "perfci.devices"


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


def test_a_device_of_another_distribution_is_timed_to_the_end_of_its_work(
    bench: Bench, environment: Environment
) -> None:
    environment.install(GROUP, "lane", LANE)
    bench.write(BENCHMARK)
    found = bench.discover(python=environment.python)
    assert found["devices"] == ["someones_lane"]
    assert found["facts"]["device_name"] == "someone's lane"
    assert found["facts"]["device_count"] == "1"
    given = {"python": environment.python, "devices": ("someones_lane",)}

    timed = bench.measure(BENCHMARK, **given)
    wall, device = (samples(timed[name]) for name in ("samples_ns", "device_samples_ns"))
    assert len(wall) == len(device) > 0
    assert min(wall) >= KERNEL_NS
    assert min(device) >= KERNEL_NS
    assert timed["first_call_s"] >= KERNEL_NS / 1e9
    assert timed["missing"]["peak_device_memory"] == "a lane has none"
    assert timed["missing"]["memory_growth"] == "a lane has none"

    untimed = bench.measure(BENCHMARK, **given, env={"LANE_UNTIMED": "1"})
    assert min(samples(untimed["samples_ns"])) >= KERNEL_NS
    assert untimed["device_samples_ns"] == []
    assert untimed["missing"]["device_time_p50"] == "a lane has none"


def test_a_session_measures_on_the_device_that_its_python_has(
    project: Project, environment: Environment
) -> None:
    environment.install(GROUP, "lane", LANE)
    project.write("benchmarks/bench_one.py", BENCHMARK)
    project.commit("a kernel")
    report = project.report("run", "--rounds", "2", "--python", environment.python, code=0)
    centers = {row["metric"]: row["head"]["center"] for row in report["results"]}
    assert centers["latency_p50"] >= KERNEL_NS / 1e9
    assert centers["device_time_p50"] >= KERNEL_NS / 1e9
    assert report["environment"]["facts"]["device_name"] == "someone's lane"
    assert report["not_measured"]["peak_device_memory"] == "a lane has none"
    assert not any("NVML" in note for note in report["notes"])


# torch's own accelerators, by a backend that is simulated.

SIMULATED = """\
import ctypes
import os
import torch
import perfci
from perfci.collector import Work
from torch.utils import backend_registration as registration

device = ctypes.CDLL(os.environ["SIMULATED"])
device.launch.argtypes = [ctypes.c_double]
device.take.argtypes = device.give_back.argtypes = [ctypes.c_int64]
torch.utils.rename_privateuse1_backend("simulated")

class Backend(registration._DummyBackendModule):
    def is_initialized(self):
        return "SIMULATED_UNUSED" not in os.environ

torch._register_device_module("simulated", Backend())
torch._C._acc.register_python_privateuseone_hook(registration._DummyPrivateUse1Hook())


def kernel(output):
    def call():
        device.launch(0.005)
        device.take(1000)
        device.give_back(900)
        return output

    return call

@perfci.benchmark
def nothing():
    return kernel(None)

@perfci.benchmark
def tensor():
    return kernel([torch._C._acc.create_empty_tensor((2,), torch.float32)])

@perfci.benchmark
def named():
    return Work(kernel(None), device="simulated")

@perfci.benchmark
def host():
    return lambda: None

@perfci.benchmark
def on_host():
    return Work(lambda: torch.ones(2), device="simulated")
"""
DEAF = """\
import torch
import perfci
from torch.utils import backend_registration as registration

registration._setup_privateuseone_for_python_backend("deaf")

@perfci.benchmark
def case():
    return {returned}
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library of the simulated backend, compiled against torch's headers in about 3 s."""
    import torch

    compiler = shutil.which("g++")
    if compiler is None:
        lacking("no g++ to compile a simulated device with")
    if not hasattr(torch._C, "_acc"):
        pytest.skip(f"torch {torch.__version__} takes no backend from Python")
    library = tmp_path_factory.mktemp("device") / "simulated.so"
    headers = Path(torch.__file__).parent
    source = Path(__file__).with_name("simulated_device.cpp")
    options = ["-O0", "-std=c++20", "-shared", "-fPIC", f"-I{headers / 'include'}"]
    linked = [f"-L{headers / 'lib'}", "-lc10"]
    subprocess.run([compiler, *options, "-o", library, source, *linked], check=True)
    return str(library)


@pytest.mark.torch
@pytest.mark.parametrize("case", ["nothing", "tensor", "named"])
def test_an_accelerator_of_torchs_is_timed_to_the_end_of_its_work(
    torch_bench: Bench, simulated: str, case: str
) -> None:
    environment = {"SIMULATED": simulated}
    if case != "nothing":  # what is in use isn't asked where the work itself shows its device
        environment["SIMULATED_UNUSED"] = "1"
    measured: dict[str, Any] = torch_bench.measure(SIMULATED, case, env=environment)
    wall, device = (samples(measured[name]) for name in ("samples_ns", "device_samples_ns"))
    assert len(wall) == len(device) > 0
    assert min(wall) >= KERNEL_NS
    assert min(device) >= KERNEL_NS
    assert measured["values"]["memory_growth"] == pytest.approx(100)
    calls = measured["values"]["peak_device_memory"] / 100
    assert calls > len(wall)
    assert measured["values"]["peak_device_memory_reserved"] > 1000 * calls


@pytest.mark.torch
@pytest.mark.parametrize(
    "returned", ["lambda: None", "lambda: torch._C._acc.create_empty_tensor((2,), torch.float32)"]
)
def test_an_accelerator_that_cannot_be_waited_for_is_refused(
    torch_bench: Bench, returned: str
) -> None:
    import torch

    if not hasattr(torch._C, "_acc"):
        pytest.skip(f"torch {torch.__version__} takes no backend from Python")
    failed = torch_bench.failure(DEAF.format(returned=returned))
    assert failed["kind"] == "device_not_synchronised", failed
    assert "can't wait for the device deaf:0" in failed["message"]
    assert "doesn't support synchronizing" in failed["message"]
    assert GROUP in failed["message"]
