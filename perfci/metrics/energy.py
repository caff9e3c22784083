"""Energy that the card takes, as NVML counts it."""

from __future__ import annotations

from perfci.metrics import NOTHING, Collector, Reading, Warm
from perfci.model.case import Metric

PLACE = 7
METRICS = {
    Metric("energy", "J/call", "per_worker", 0.10, "info"): (
        "total energy of the GPU ÷ calls, as NVML or amdsmi counts it"
    ),
}


class Energy(Collector):
    """Says why no card's energy can be read: the parent reads it, around calls of this one."""

    def after_bursts(self) -> Reading:
        """Return the reason, if there is one."""
        why = self.scene.why_not("energy")
        return Reading(missing={"energy": why}) if why else NOTHING


COLLECTOR = Energy


def reduce(warm: Warm) -> Reading:
    """Return the energy of a call."""
    if warm.energy is None:
        return NOTHING
    if warm.energy > 0.0:  # not so where a reading was unknown: NaN
        return Reading({"energy": warm.energy})
    return Reading(missing={"energy": "the card's energy can't be read"})
