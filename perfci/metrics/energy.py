"""What the card takes in energy, as NVML counts it."""

from __future__ import annotations

from perfci.metrics import NOTHING, Collector, Reading
from perfci.model.metric import Metric

PLACE = 7
METRICS = {
    Metric("energy", "J/call", "per_worker", 0.10, "info"): (
        "NVML's total energy of the GPU ÷ calls"
    ),
}


class Energy(Collector):
    """Says why no card's energy can be read: the parent reads it, around each burst."""

    def after_bursts(self) -> Reading:
        """Return the reason, if there is one."""
        why = self.scene.why_not("energy")
        return Reading(missing={"energy": why}) if why else NOTHING


COLLECTOR = Energy
