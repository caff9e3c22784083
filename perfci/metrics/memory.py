"""Memory: the device's as torch counts it, the host's as the kernel does, and its growth.

The host's memory is read from /proc, never from ru_maxrss, which a child inherits from its parent.
"""

from __future__ import annotations

import gc
import mmap
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from perfci.clock import monotonic
from perfci.metrics import NOTHING, Collector, Reading, Scene
from perfci.metrics.observed.allocator import collections_so_far, give_back, host_allocated
from perfci.metrics.observed.processes import Spent, held_by_descendants, resident, tree_sampled
from perfci.model.case import Metric
from perfci.stats.quantile import median, upper_median

PLACE = 4
_PAGE = float(mmap.PAGESIZE)
METRICS = {
    Metric("peak_device_memory", "bytes", "exact", 0.10, "fail", undecided="inconclusive"): (
        "peak of memory that torch's allocator handed out during warm calls"
    ),
    Metric("peak_device_memory_reserved", "bytes", "exact", 0.10, "info"): (
        "peak of memory that torch's allocator took from the device"
    ),
    Metric(
        "peak_host_memory",
        "bytes",
        "per_worker",
        0.10,
        "fail",
        step=_PAGE,
        undecided="inconclusive",
        always=True,
    ): (
        "peak of memory of the worker and of [the processes below it](benchmarks.md#processes) in "
        "up to five more warm calls; the allocator gives back its free pages before each; torch "
        "itself is included"
    ),
    Metric(
        "host_memory_over_setup",
        "bytes",
        "per_worker",
        float(4 << 20),
        "fail",
        absolute=True,
        share=0.10,
        whole="peak_host_memory",
        share_of_whole=0.02,
        step=_PAGE,
        undecided="inconclusive",
        always=True,
    ): (
        "`peak_host_memory` − the same processes' memory at the end of set-up, without mapped "
        "files: the [working memory](statistics.md#memory)"
    ),
    Metric("setup_peak_memory", "bytes", "per_worker", 0.10, "warn", step=_PAGE): (
        "peak of memory of the worker's process from its start, or fork, to its first call's end"
    ),
    Metric(
        "cyclic_garbage",
        "objects/call",
        "exact",
        1.0,
        "warn",
        absolute=True,
        share=0.10,
        zero_if_absent=True,
    ): (
        "objects that a warm call leaves in reference cycles: their memory is held until Python "
        "collects garbage, and the peaks of memory include it"
    ),
    Metric("memory_growth", "bytes/call", "exact", 16.0, "warn", absolute=True): (
        "growth of allocated memory per warm call: a leak"
    ),
}

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_SLACK = 1 << 20
"""If a peak that was just reset is this far above the present memory, the reset failed."""
_ON_DEVICE = ("peak_device_memory", "peak_device_memory_reserved")
_ON_HOST = ("peak_host_memory", "host_memory_over_setup")
_PEAK_CALLS, _PEAK_TIME_S = 5, 0.1
"""Most calls, and longest time, that are spent to find the peak."""


_LONGEST_GARBAGE_S = 1.0
"""Longest time for calls that pile up garbage."""


class _Peak(NamedTuple):
    """A call's peak of memory, and the mapped files' part of it when the call began."""

    bytes: int
    files: int


# Memory growth per call: the slope of allocated memory over warm calls.

_POINTS = 30
"""Readings of the allocated memory from which the slope is computed; fewer for slow calls."""
_LEAST_POINTS = 10
_GROWTH_TIME_S = 0.06
"""Time for all calls. If it is too short for ``_POINTS`` calls, each reading follows one call."""
_LONGEST_GROWTH_S = 0.5
"""Longest time for calls that are too slow for ``_GROWTH_TIME_S``."""


def memory_growth(
    call: Callable[[], Any], call_s: float, allocated: Callable[[], float]
) -> float | None:
    """Return the growth in bytes per call, or None if calls are too slow.

    That is the median of the slopes between all pairs of points: Sen (1968), Estimates of the
    regression coefficient based on Kendall's tau.
    """
    points = _POINTS
    calls = min(100, int(_GROWTH_TIME_S / _POINTS / max(call_s, 1e-7)))
    if calls < 1:
        calls, points = 1, min(_POINTS, int(_LONGEST_GROWTH_S / call_s))
        if points < _LEAST_POINTS:
            return None
    levels = array("d", bytes(8 * points))  # allocated before, as its own growth would count
    for point in range(points):
        for _ in range(calls):
            call()
        levels[point] = allocated()
    pairs = combinations(enumerate(levels), 2)
    return median([(after - before) / (j - i) for (i, before), (j, after) in pairs]) / calls


def cards_in_use() -> Sequence[int]:
    """Return the numbers of the CUDA cards on which torch holds memory, or else its current card's.

    There are none if the process hasn't initialised CUDA. Asking torch about a card that it doesn't
    use takes no memory on it. Synchronising with it would, so unused cards are left out.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ()
    every = range(torch.cuda.device_count())
    return [card for card in every if torch.cuda.memory_reserved(card)] or [
        torch.cuda.current_device()
    ]


class Memory(Collector):
    """The memory of one worker and the processes below it: after set-up, and a call's peak.

    On the host, the heap's free pages are given back before either is read. Otherwise the peaks of
    identical workers differed by tens of MiB over bursts, because glibc by chance either reuses a
    freed block for the next call or leaves the block as a hole.

    Growth over set-up leaves out the pages of files that were mapped before the call, mostly
    libraries' code. A fork has none of its parent's file pages at first. As calls touch such pages,
    the kernel maps them together with as many neighbours as the page cache happens to hold.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._after_setup: int | None = None
        self._before_bursts: Spent | None = None
        self._why_missing = ""

    def set_up(self) -> None:
        """Note the memory after set-up: set-up is done, and nothing was called yet."""
        give_back()
        own, files = resident("VmRSS"), resident("RssFile")
        if own is not None and files is not None:
            self._after_setup = own - files + held_by_descendants()

    def warm(self) -> None:
        """Reset the device's peaks, and note which child processes there are.

        The memory of the whole process tree is sampled only if calls have child processes.
        """
        self._before_bursts = Spent.now()
        if self.scene.device and not self.scene.missing_reason("peak_device_memory"):
            self.scene.device.reset_peaks()

    def after_bursts(self) -> Reading:
        """Return the peaks. Without a device, the device's peaks are missing, not torch's 0."""
        host = self._on_host()
        missing = {name: why for name in _ON_DEVICE if (why := self.scene.missing_reason(name))}
        counted = self.scene.device and "peak_device_memory" not in missing
        peaks = self.scene.device.peaks() if self.scene.device and counted else {}
        if self.scene.peak_at_start is not None:
            peaks = {**peaks, "setup_peak_memory": float(self.scene.peak_at_start)}
        return host.joined(Reading(peaks, missing))

    def _on_host(self) -> Reading:
        """Return the peak of a few more warm calls and its growth over set-up, or why not.

        If calls leave garbage, or Python's collector is on, calls are also made until Python has
        collected once, and the peak is that of all these calls, as in a user's process.

        The memory of perfci's own samples is subtracted, because a quicker side has more samples.
        The growth includes memory that calls keep for good (a cache, a compiler's modules). It may
        be negative if memory of the set-up was freed.
        """
        samples_bytes = self.scene.samples_bytes()
        alone = not (self._before_bursts and self._before_bursts.any_until(Spent.now()))
        peak_of = self._peak_of if alone else self._peak_of_tree
        deadline = monotonic() + _PEAK_TIME_S
        left: list[int] = []

        def call() -> None:
            self.scene.collect()
            self.scene.once()
            left.append(self.scene.collect())

        peaks = [peak_of(call)]
        while len(peaks) < _PEAK_CALLS and monotonic() < deadline:
            peaks.append(peak_of(call))
        count = upper_median(left) if alone else 0  # children's garbage isn't seen
        garbage = {"cyclic_garbage": float(count)} if count else {}
        if (count or gc.isenabled()) and not self.scene.work.most_calls:
            peaks.append(peak_of(self._call_until_collected))
        known = [peak for peak in peaks if peak is not None]
        if self._after_setup is None or len(known) < len(peaks):
            why = self._why_missing or f"no memory in {_STATUS}"
            return Reading(garbage, dict.fromkeys(_ON_HOST, why))
        return Reading(
            garbage
            | {
                "peak_host_memory": float(max(peak.bytes for peak in known) - samples_bytes),
                "host_memory_over_setup": float(
                    max(peak.bytes - peak.files for peak in known)
                    - self._after_setup
                    - samples_bytes
                ),
            }
        )

    def _call_until_collected(self) -> None:
        """Make calls until Python has collected garbage by itself; at most for some time."""
        was_on, before = gc.isenabled(), collections_so_far()
        deadline = monotonic() + _LONGEST_GARBAGE_S
        gc.enable()
        while collections_so_far() == before and monotonic() < deadline:
            self.scene.once()
        if not was_on:
            gc.disable()

    def _peak_of(self, call: Callable[[], Any]) -> _Peak | None:
        self.scene.collect()
        give_back()
        self._reset_peak()
        files = resident("RssFile")
        call()
        peak = resident("VmHWM")
        if self._why_missing or peak is None or files is None:
            return None
        return _Peak(peak, files)

    def _peak_of_tree(self, call: Callable[[], Any]) -> _Peak | None:
        """Return the tree's highest sample, or this process's own peak if that is higher."""
        samples: list[int] = []

        def sampled() -> None:
            with tree_sampled(samples):
                call()

        own = self._peak_of(sampled)
        return own and own._replace(bytes=max(own.bytes, *samples))

    def _reset_peak(self) -> None:
        """Reset the high-water mark, and read it back: some kernels don't reset it."""
        try:
            _CLEAR.write_text("5", encoding="ascii")
        except OSError as error:
            self._why_missing = f"the high-water mark can't be reset: {error.strerror}"
            return
        now, peak = resident("VmRSS"), resident("VmHWM")
        if now is None or peak is None:
            self._why_missing = f"this kernel reports no peak memory in {_STATUS}"
        elif peak > now + _SLACK:
            self._why_missing = "the kernel didn't reset the high-water mark"

    def more_calls(self) -> Reading:
        """Return the growth."""
        if not self.scene.order.growth:
            return NOTHING
        if self.scene.work.most_calls:
            return _no_growth("its calls are too few")
        device = self.scene.device
        if device and (why := self.scene.missing_reason("memory_growth")):
            return _no_growth(why)
        allocated = device.allocated if device else host_allocated()
        if allocated is None:
            return _no_growth("this C library doesn't report allocated memory")

        def settled() -> float:
            self.scene.collect()  # garbage isn't a leak
            return allocated()

        growth = memory_growth(self.scene.work.prepared_call, self.scene.call_s, settled)
        if growth is None:
            return _no_growth(f"a call of {self.scene.call_s:.2g} s is too slow for ten points")
        return Reading({"memory_growth": growth})


def _no_growth(why: str) -> Reading:
    return Reading(missing={"memory_growth": why})


COLLECTOR = Memory
