"""What the card takes in energy, as NVML counts it."""

from __future__ import annotations

from perfci.model.metric import Metric

PLACE = 7
METRICS = {
    Metric("energy", "J/call", "per_worker", 0.10, "info"): (
        "NVML's total energy of the GPU ÷ calls"
    ),
}
