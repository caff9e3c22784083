"""Collectives, balance and memory of the ranks of ``perfci.distributed``.

A rank's own time is the time that it spends outside of collectives. In a collective it waits for
the slowest rank. So the whole steps of all ranks take equally long, whichever rank is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from perfci.collector import Steps
from perfci.finding import Finding, finding
from perfci.metrics import NOTHING, Collector, Reading
from perfci.model.case import Metric
from perfci.units import counted

PLACE = 1.4
METRICS = {
    Metric("rank_imbalance", "ratio", "per_worker", 0.10, "warn"): (
        "time outside collectives of the slowest of [several ranks](distributed.md) ÷ the mean of "
        "all ranks"
    ),
    Metric("communication_share", "ratio", "per_worker", 0.05, "info", absolute=True): (
        "share of a step in which a collective was under way, waiting included; mean of the ranks"
    ),
    Metric("exposed_communication", "ratio", "per_worker", 0.05, "warn", absolute=True): (
        "share of a step in which a collective was under way and nothing else ran; mean of the "
        "ranks. Communication that overlaps with computing isn't exposed"
    ),
    Metric("collectives", "count", "exact", 0.0, "warn", absolute=True): (
        "collectives in a step, of the rank with the most"
    ),
    Metric("collective_bytes", "bytes", "exact", 0.0, "warn", absolute=True, share=0.01): (
        "bytes that a rank hands to collectives, of the rank with the most"
    ),
    Metric("rank_peak_memory", "bytes", "per_worker", 0.10, "warn"): (
        "peak of resident memory in three more steps, of the rank with the most"
    ),
    Metric("rank_peak_device_memory", "bytes", "exact", 0.10, "warn"): (
        "peak of device memory by torch's allocator in these steps, of the rank with the most"
    ),
}
_PEAKS = ("rank_peak_memory", "rank_peak_device_memory")
_LEAST_IMBALANCE = 1.05
"""Least imbalance for which the slowest rank is named. Below it, each run would name another."""
_INSPECTED_S = 0.2
"""Time for the profiled steps, as far as their number stays within the limits below."""
_LEAST_STEPS, _MOST_STEPS = 3, 20


class OfRanks(Collector):
    """Has the ranks make more steps, and reads their memory and their profiles."""

    def warm(self) -> None:
        """Let the ranks know that bursts are next."""
        if self.scene.work.ranks:
            self.scene.work.ranks.begin()

    def after_bursts(self) -> Reading:
        """Return the memory peaks, each of the rank with the most."""
        if not self.scene.work.ranks:
            return NOTHING
        peaks = self.scene.work.ranks.peaks()
        most = {name: max(peak[name] for peak in peaks) for name in _PEAKS if name in peaks[0]}
        unequal = {
            name: finding("rank-most", rank=[peak[name] for peak in peaks].index(value))
            for name, value in most.items()
            if value > _LEAST_IMBALANCE * fmean(peak[name] for peak in peaks)
        }
        return Reading(most, remarks=unequal)

    def more_calls(self) -> Reading:
        """Return the metrics of a few steps under torch's profiler."""
        if not self.scene.work.ranks:
            return NOTHING
        count = round(_INSPECTED_S / max(self.scene.call_s, 1e-6))
        count = min(_MOST_STEPS, max(_LEAST_STEPS, count))
        return reading_of(self.scene.work.ranks.inspected(count))


COLLECTOR = OfRanks


def reading_of(ranks: Sequence[Steps]) -> Reading:
    """Return the metrics of the ranks' steps."""
    took = [steps.ended - steps.began for steps in ranks]
    waited = [steps.waited() for steps in ranks]
    own = [whole - part for whole, part in zip(took, waited, strict=True)]
    counts, sizes = zip(*(steps.per_step() for steps in ranks), strict=True)
    values = {
        "communication_share": fmean(
            part / whole for part, whole in zip(waited, took, strict=True)
        ),
        "exposed_communication": fmean(
            steps.exposed() / whole for steps, whole in zip(ranks, took, strict=True)
        ),
        "rank_imbalance": max(own) / fmean(own),
        "collectives": max(counts),
        "collective_bytes": max(sizes),
    }
    remarks = _by_kind(ranks[counts.index(max(counts))])
    if any(waited):
        remarks["exposed_communication"] = finding(
            "exposed-communication",
            waited=fmean(part / steps.count for part, steps in zip(waited, ranks, strict=True)),
            exposed=fmean(steps.exposed() / steps.count for steps in ranks),
        )
    if values["rank_imbalance"] > _LEAST_IMBALANCE:
        slowest = own.index(max(own))
        others = fmean(time for rank, time in enumerate(own) if rank != slowest)
        slower = (max(own) - others) / ranks[slowest].count
        slow = finding("slow-rank", rank=slowest, slower=slower)
        remarks |= {"rank_imbalance": slow, "latency_p50": slow}
    return Reading(values, remarks=remarks, warnings=tuple(_sharing(ranks)))


def _sharing(ranks: Sequence[Steps]) -> Iterator[str]:
    """Yield a warning if there are fewer cores than ranks."""
    cores = {core for rank in ranks for core in rank.cores}
    if len(cores) < len(ranks):
        shared = f"{len(ranks)} ranks share {counted(len(cores), 'core')}"
        yield f"{shared}: set `cores` to as many or more"


def _by_kind(steps: Steps) -> dict[str, Finding]:
    kinds = {kind: steps.per_step(kind) for kind in sorted({kind for kind, _ in steps.collectives})}
    if not kinds:
        return {}
    counts = {kind: count for kind, (count, _) in kinds.items()}
    sizes = {kind: size for kind, (_, size) in kinds.items()}
    return {
        "collectives": Finding("collective-counts", counts),
        "collective_bytes": Finding("collective-bytes", sizes),
    }
