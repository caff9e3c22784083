"""What torch's allocator counts of a card's memory, and what NVML counts of the process.

python -m benchmarks.gpu.memory
"""

from __future__ import annotations

import json
import os
from typing import Any

import pynvml
import torch

MIB = 1 << 20


def reading(handle: Any) -> dict[str, float]:
    """Return the peaks since the last reset and NVML's figures, in MiB."""
    listed = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    mine = [process.usedGpuMemory for process in listed if process.pid == os.getpid()]
    return {
        "peak_allocated": torch.cuda.max_memory_allocated() / MIB,
        "peak_reserved": torch.cuda.max_memory_reserved() / MIB,
        "nvml_process": (mine[0] or 0) / MIB if mine else -1.0,
        "nvml_card": pynvml.nvmlDeviceGetMemoryInfo(handle).used / MIB,
        "processes": len(listed),
    }


def main() -> None:
    """Print the readings after each step."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    steps = {}
    x = torch.ones(4096, 4096, device="cuda")
    steps["context"] = reading(handle)
    y = x @ x
    steps["product"] = reading(handle)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = ((x @ x) + (x * 2) * 3).sum()
    steps["captured"] = reading(handle)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    graph.replay()
    torch.cuda.synchronize()
    steps["replayed"] = reading(handle)
    torch.cuda.reset_peak_memory_stats()
    eager = ((x @ x) + (x * 2) * 3).sum()
    torch.cuda.synchronize()
    steps["eager"] = reading(handle)
    print(json.dumps({"mib": steps, "kept": float((y[0, 0] + z + eager).isfinite())}))


if __name__ == "__main__":
    main()
