"""On a CUDA device: what is synchronised, and what is measured there besides."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from tests.worker.driver import Bench, samples

pytestmark = [pytest.mark.gpu, pytest.mark.torch]
MIB = 1 << 20
HEAD = "import torch\nimport perfci\n\n@perfci.benchmark\ndef case():\n"
SETUP = "    x = torch.ones(1, device='cuda')\n"
SPINNING = f"""{HEAD}{SETUP}
    def call():
        torch.cuda._sleep(20_000_000)
        {{returned}}

    return call
"""
HOLDING = f"""{HEAD}{SETUP}
    return lambda: torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
"""


@pytest.mark.parametrize("returned", ["return x", "return None"])
def test_a_call_is_timed_to_its_end_and_not_to_its_launch(bench: Bench, returned: str) -> None:
    measured = bench.measure(SPINNING.format(returned=returned), growth=False)
    wall, device = (samples(measured[name]) for name in ("samples_ns", "device_samples_ns"))
    assert len(wall) == len(device) > 0
    # 20 million cycles: 5 ms even at 4 GHz, where a launch alone takes microseconds
    assert min(wall) > 3_000_000
    assert min(device) > 3_000_000
    assert all(inner <= outer * 1.05 for inner, outer in zip(device, wall, strict=True))


def test_the_peaks_are_of_the_calls_and_reserved_is_beside(bench: Bench) -> None:
    values: dict[str, Any] = bench.measure(HOLDING)["values"]
    assert 64 * MIB <= values["peak_device_memory"] < 200 * MIB
    assert values["peak_device_memory_reserved"] >= values["peak_device_memory"]


def test_setups_own_peak_is_left_out(bench: Bench) -> None:
    hungry = "    torch.empty(512 << 20, dtype=torch.uint8, device='cuda')\n"
    values = bench.measure(HOLDING.replace(SETUP, SETUP + hungry))["values"]
    assert values["peak_device_memory"] < 256 * MIB


def test_growth_is_that_of_the_device(bench: Bench) -> None:
    source = (
        HEAD + "    kept = []\n    return lambda: kept.append(torch.empty(1024, device='cuda'))\n"
    )
    assert bench.measure(source)["values"]["memory_growth"] == pytest.approx(4096, rel=0.1)


def test_an_output_on_the_host_where_the_work_is_on_the_device_fails(bench: Bench) -> None:
    source = HEAD + "    return perfci.inference(lambda x: x.cpu(), torch.ones(1), device='cuda')\n"
    assert bench.failure(source)["kind"] == "wrong_device"


def test_the_facts_name_the_device_and_its_driver(bench: Bench) -> None:
    import torch

    bench.write(HEAD + "    return lambda: None\n")
    facts = bench.discover()["facts"]
    assert facts["device_name"] == torch.cuda.get_device_name(0)
    assert facts["driver"]


def test_the_worker_names_the_card_that_it_is_on(bench: Bench) -> None:
    import torch

    path = bench.write(HOLDING)
    with bench.start(bench.order(path, "case")) as worker:
        ready = worker.wait_for("ready")
    properties = torch.cuda.get_device_properties(0)
    assert ready["on_device"] is True
    assert ready["uuids"] == [str(getattr(properties, "uuid", ""))]


def test_a_worker_that_uses_no_card_names_none(bench: Bench) -> None:
    path = bench.write(HEAD + "    return lambda: None\n")
    with bench.start(bench.order(path, "case")) as worker:
        ready = worker.wait_for("ready")
    assert (ready["on_device"], ready["uuids"]) == (False, [])


def test_a_short_kernels_own_time_has_no_waiting_for_its_launch(bench: Bench) -> None:
    measured = bench.measure(f"{HEAD}{SETUP}    return lambda: x + 1\n", growth=False)
    wall, device = (samples(measured[name]) for name in ("samples_ns", "device_samples_ns"))
    assert 0 < len(device) < len(wall)
    assert statistics.median(device) < statistics.median(wall) / 2


GRAPHED = f"""{HEAD}
    x = torch.ones(16 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = (x * 2 + 1).sum()
    return lambda: (x, graph.replay())
"""


def test_a_graphs_private_pool_counts(bench: Bench) -> None:
    values = bench.measure(GRAPHED)["values"]
    assert values["peak_device_memory"] >= 3 * 64 * MIB  # x, x * 2 and the sum's operand
