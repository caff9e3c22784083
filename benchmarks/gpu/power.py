"""What the power limit does to two sides on one card: short turns and blocks of seconds.

    python -m benchmarks.gpu.power

Both sides multiply bf16 matrices of one shape; ``light`` has zeros, which draw less power, and so
runs at higher clocks. Each side alone, then both in short turns, then both in blocks (ABBA). If the
turns share one control loop, the hungry side slows the light one down.
"""

from __future__ import annotations

import itertools
import json
import statistics
import time
from typing import Any

import pynvml
import torch

SIDE = 8192
ALONE_S = 3.0
TURN_S = 0.0025
BLOCK_S = 1.5
SETTLING_S = 0.4


def run(matrix: Any, seconds: float, skip_s: float = 0.0) -> list[float]:
    """Multiply for ``seconds`` and return the calls' times in µs. Skip the first ``skip_s``."""
    samples = []
    began = time.perf_counter()
    while (now := time.perf_counter()) - began < seconds:
        output = matrix @ matrix  # noqa: F841
        torch.cuda.synchronize()
        if now - began >= skip_s:
            samples.append((time.perf_counter() - now) * 1e6)
    return samples


def state(handle: Any) -> dict[str, float]:
    """Return the card's clock in MHz, power in W, temperature and clock event reasons now."""
    return {
        "sm_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "watts": pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "celsius": pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
        "reasons": pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
    }


def summary(light: list[float], hungry: list[float], handle: Any) -> dict[str, Any]:
    """Return both medians in µs, their ratio, and the card's state."""
    medians = statistics.median(light), statistics.median(hungry)
    return {"light": medians[0], "hungry": medians[1], "ratio": medians[1] / medians[0]} | {
        "state": state(handle)
    }


def energy_steps(handle: Any) -> dict[str, float]:
    """Return how often NVML's energy counter moves while the card works, in ms, and its cost."""
    moved, readings, last = [], 0, -1
    began = time.perf_counter()
    while (now := time.perf_counter()) - began < 1.0:
        value = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        readings += 1
        if value != last:
            moved.append(now)
            last = value
    gaps = [(after - before) * 1e3 for before, after in itertools.pairwise(moved)]
    return {"reading_us": 1e6 / readings, "step_ms": statistics.median(gaps) if gaps else -1.0}


def main() -> None:
    """Print the medians alone, in short turns and in blocks."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    hungry = torch.rand(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    light = torch.zeros_like(hungry)
    result: dict[str, Any] = {"idle": state(handle), "energy": energy_steps(handle)}
    run(hungry, 1.0)
    result["alone"] = summary(
        run(light, ALONE_S, SETTLING_S), run(hungry, ALONE_S, SETTLING_S), handle
    )
    samples: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(int(2 * ALONE_S / TURN_S)):
        samples[bool(turn % 2)] += run(hungry if turn % 2 else light, TURN_S)
    result["turns"] = summary(samples[False], samples[True], handle)
    samples = {False: [], True: []}
    for is_hungry in (False, True, True, False):
        samples[is_hungry] += run(hungry if is_hungry else light, BLOCK_S, SETTLING_S)
    result["blocks"] = summary(samples[False], samples[True], handle)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
