"""The time of a call on the card by several methods, on the same work in one process, in µs.

    python -m benchmarks.gpu.kernel_time

``perfci`` and ``perfci_cold`` are perfci's own loop, with a warm and a flushed L2 cache;
``latency`` is its latency, and ``latency_with_records`` that with two event records in it.
``idle`` is a pair of events around a call on an idle queue. ``hot`` and ``cold`` have the pair
behind a spinning kernel, so that no launch is waited for; ``cold`` writes over the L2 cache before
it. ``kernels`` sums the kernels' own durations by the profiler (CUPTI). ``do_bench`` is Triton's.
"""

from __future__ import annotations

import json
import statistics
import time
from array import array
from collections.abc import Callable
from typing import Any

import torch

from perfci.worker.calls import device_burst, synchronised_burst
from perfci.worker.devices.cuda import Cuda

ROUNDS = 60
SPIN_CYCLES = 400_000


def works() -> dict[str, Callable[[], Any]]:
    """Return the work by name, from a kernel of 2 µs to one of 2 ms."""
    small = torch.ones(16, device="cuda")
    large = torch.rand(64 << 20, device="cuda")
    half = {n: torch.rand(n, n, device="cuda", dtype=torch.bfloat16) for n in (1024, 8192)}
    layer = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True).cuda().eval()
    tokens = torch.rand(8, 64, 256, device="cuda")

    def encode() -> Any:
        with torch.no_grad():
            return layer(tokens)

    return {
        "add_16": lambda: small + 1,
        "mm_1024": lambda: half[1024] @ half[1024],
        "encoder_layer": encode,
        "copy_256_mb": large.clone,
        "mm_8192": lambda: half[8192] @ half[8192],
    }


def events() -> tuple[Any, Any]:
    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def latency(call: Callable[[], Any], *, records: bool) -> float:
    """Return the median wall time of a call, synchronised, with or without records inside it."""
    samples = []
    first, last = events()
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        started = time.perf_counter_ns()
        if records:
            first.record()
        output = call()  # noqa: F841
        if records:
            last.record()
        torch.cuda.synchronize()
        samples.append((time.perf_counter_ns() - started) / 1e3)
    return statistics.median(samples)


def between_events(
    call: Callable[[], Any], *, spin: bool, flush: Callable[[], Any] | None = None
) -> float:
    """Return the median time between two events around a call."""
    samples = []
    first, last = events()
    for _ in range(ROUNDS):
        if flush:
            flush()
        torch.cuda.synchronize()
        if spin:
            torch.cuda._sleep(SPIN_CYCLES)
        first.record()
        output = call()  # noqa: F841
        last.record()
        torch.cuda.synchronize()
        samples.append(first.elapsed_time(last) * 1e3)
    return statistics.median(samples)


def by_perfci(call: Callable[[], Any], flush: Callable[[], Any] | None) -> float:
    """Return the median of perfci's own loop."""
    device, samples, times = Cuda("cuda:0"), array("q"), array("q")

    def settle() -> None:
        if flush:
            flush()
        device.synchronize()

    synchronised_burst(call, samples, device, settle, ROUNDS)
    latency_ns = int(statistics.median(samples))
    device_burst(call, times, device, settle, ROUNDS, latency_ns=latency_ns)
    return statistics.median(times) / 1e3


def kernels(call: Callable[[], Any]) -> float:
    """Return the sum of a call's kernels by the profiler, the mean of ten calls."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for _ in range(10):
            call()
        torch.cuda.synchronize()
    return sum(event.self_device_time_total for event in recorded.key_averages()) / 10


def measured(call: Callable[[], Any], flush: Callable[[], Any]) -> dict[str, float]:
    """Return each method's figure for one work."""
    from triton.testing import do_bench

    for _ in range(20):
        call()
    return {
        "latency": latency(call, records=False),
        "latency_with_records": latency(call, records=True),
        "idle": between_events(call, spin=False),
        "hot": between_events(call, spin=True),
        "cold": between_events(call, spin=True, flush=flush),
        "perfci": by_perfci(call, None),
        "perfci_cold": by_perfci(call, flush),
        "kernels": kernels(call),
        "do_bench": do_bench(call, warmup=10, rep=60, return_mode="median") * 1e3,
    }


def main() -> None:
    """Print the figures by work and method, each work twice."""
    size = torch.cuda.get_device_properties(0).L2_cache_size
    buffer = torch.empty(size * 2, dtype=torch.uint8, device="cuda")
    table = {
        name: [measured(call, buffer.zero_) for _ in range(2)] for name, call in works().items()
    }
    print(json.dumps({"l2_bytes": size, "microseconds": table}))


if __name__ == "__main__":
    main()
