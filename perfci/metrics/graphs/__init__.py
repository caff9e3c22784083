"""Graphs, graph breaks and recompiles of torch.compile: counted, and compared place by place."""

from __future__ import annotations

import hashlib
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from perfci.finding import finding
from perfci.metrics import Collector, MovedCase, Reading, Ruling
from perfci.model.case import Metric
from perfci.model.worker import GraphEvent
from perfci.stats.quantile import upper_median

if TYPE_CHECKING:
    from perfci.finding import Explanation
    from perfci.metrics.graphs.compile_listener import GraphWatch
    from perfci.model.measuring import WorkerOutput

PLACE = 5
METRICS = {
    Metric(
        "graph_breaks", "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"
    ): ("places where torch.compile had to leave its graph, with file and line"),
    Metric("recompiles", "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"): (
        "recompilations by torch.compile, with their reasons"
    ),
    Metric("graphs", "count", "exact", 0.0, "info", absolute=True): (
        "graphs that torch.compile made"
    ),
}
_NAMES = tuple(metric.name for metric in METRICS)
_OF_COMPILED = ("latency_", "throughput", "compile_time", "device_time_")
"""Prefixes of the names of other metrics that a new graph break may slow down."""


# Dynamo's and Inductor's counters are private to torch, so each may be missing. Reading them
# imports nothing.


def counters() -> dict[str, Counter[str]] | None:
    """Return a copy of ``torch._dynamo.utils.counters``, or None if there are none (yet)."""
    groups: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if not isinstance(groups, dict):
        return None
    return {group: Counter(counts) for group, counts in groups.items()}


def frames_traced() -> int:
    """Return how many frames Dynamo has traced in this process."""
    return (counters() or {}).get("frames", Counter())["total"]


def kernels_generated() -> int | None:
    """Return how many kernels Inductor has generated or taken from its cache, or None."""
    count = getattr(sys.modules.get("torch._inductor.metrics"), "generated_kernel_count", None)
    return count if isinstance(count, int) else None


def generated_code(cache: Path) -> str:
    """Return a digest of all code in a compile ``cache`` that was empty before, or "" for none.

    Inductor names a file of code by the hash of its text, and a graph by the hash of the graph and
    of the settings that it is compiled with.
    """
    code = [path.name for path in cache.glob("??/*.*") if path.suffix != ".so"]
    graphs = [path.name for path in cache.glob("fxgraph/*/*")]
    if not (code and graphs):
        return ""
    return hashlib.sha256("\n".join(sorted(code + graphs)).encode()).hexdigest()[:16]


class Graphs(Collector):
    """Listens to torch.compile, whatever calls it, from set-up until after the last call."""

    _watch: GraphWatch | None = None
    _traced_before = 0

    def before_setup(self) -> None:
        """Begin to listen, if the benchmark's file has imported torch."""
        self._traced_before = frames_traced()
        self._listen()

    def set_up(self) -> None:
        """Go on listening: set-up may have imported torch, or set its logs."""
        self._listen()

    def warm(self) -> None:
        """Begin to listen if only a call imported torch: later compilations are heard at least."""
        if self._watch is None:
            self._listen()

    def _listen(self) -> None:
        if "torch" in sys.modules:
            from perfci.metrics.graphs.compile_listener import GraphWatch

            self._watch = self._watch or GraphWatch(self._traced_before)
            self._watch.install()

    def last(self) -> Reading:
        """Return the metrics of what was heard."""
        if self._watch is None or not self.scene.compiled():
            return Reading(missing=dict.fromkeys(_NAMES, "not compiled"))
        return self._watch.summary(self.scene.order.root)


COLLECTOR = Graphs

# If no graph was compiled at all, compiling failed. Such a side is not better for having zero graph
# breaks. Nor is a side whose graphs hold less because a new break leaves the rest in eager.

_CAPTURED = "captured_calls"
_COMPILED = ("graphs", _CAPTURED, "generated_kernels")
"""Counts of what was compiled."""


def ruling(base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]) -> Mapping[str, Ruling]:
    """Return rulings if a side has no graph at all, or less in its graphs.

    There are none if a side isn't compiled, or if its torch doesn't count graphs and breaks.
    """
    before, after = _places_in_eager(base), _places_in_eager(head)
    if before is None or after is None:
        return {}
    status: Literal["regressed", "improved"] = "regressed" if after > before else "improved"
    worse, (less, other) = ("base", (base, head)) if after < before else ("head", (head, base))
    fewer = [name for name in _COMPILED if _has_fewer(less, other, name)]
    if before == after:
        captured = [name for name in fewer if name == _CAPTURED]
        return dict.fromkeys(captured, Ruling(status, finding("less-in-graphs")))
    if math.inf in (before, after):
        no_graph = Ruling(status, finding("no-graph", side=worse))
        return dict.fromkeys(("graph_breaks", "graphs", *fewer), no_graph)
    return dict.fromkeys(fewer, Ruling(status, finding("more-in-eager", side=worse)))


def _has_fewer(less: Sequence[WorkerOutput], other: Sequence[WorkerOutput], name: str) -> bool:
    count, more = typical(less, name), typical(other, name)
    return count is not None and more is not None and count < more


def _places_in_eager(outputs: Sequence[WorkerOutput]) -> float | None:
    """Return how many places a side runs in eager: all, if it has no graph. None if unknown."""
    return math.inf if typical(outputs, "graphs") == 0 else typical(outputs, "graph_breaks")


def typical(outputs: Sequence[WorkerOutput], count: str) -> float | None:
    """Return the upper median of a count over the workers that have it, or None without any."""
    counts = [output.values[count] for output in outputs if count in output.values]
    return upper_median(counts) if counts else None


def explain(moved: MovedCase) -> Iterator[Explanation]:
    """Yield head's new breaks and recompiles, if they may be the reason of a regression."""
    affected = [name for name in moved.regressed if name.startswith((*_NAMES, *_OF_COMPILED))]
    if not affected:
        return
    for event in new_events(_events(moved.base), _events(moved.head)):
        own = "recompiles" if "recompile" in event.kind else "graph_breaks"
        metric = own if own in affected else affected[0]
        yield moved.because(metric, event.kind, event.reason, event.file, event.line)


def new_events(base: Sequence[GraphEvent], head: Sequence[GraphEvent]) -> tuple[GraphEvent, ...]:
    """Return head's graph events that base doesn't have.

    Events of both sides match if they have the same kind and place. The events left are matched
    again within each file, first those with equal reasons: a break that merely moved, because code
    above it was edited, isn't new.
    """
    places = {(event.kind, event.file, event.line) for event in base}
    left = [event for event in head if (event.kind, event.file, event.line) not in places]
    still = {(event.kind, event.file, event.line) for event in head}
    moved = [event for event in base if (event.kind, event.file, event.line) not in still]
    reasons = Counter((event.kind, event.file, event.reason) for event in moved)
    unmatched = []
    for event in left:
        key = (event.kind, event.file, event.reason)
        if reasons[key]:
            reasons[key] -= 1
        else:
            unmatched.append(event)
    spare: Counter[tuple[str, str]] = Counter()
    for (kind, file, _), count in reasons.items():
        spare[kind, file] += count
    fresh = []
    for event in unmatched:
        if spare[event.kind, event.file]:
            spare[event.kind, event.file] -= 1
        else:
            fresh.append(event)
    return tuple(fresh)


def _events(outputs: Sequence[WorkerOutput]) -> tuple[GraphEvent, ...]:
    """Return one event for each kind and place: the first worker's, with its reason."""
    seen: dict[tuple[str, str, int], GraphEvent] = {}
    for output in outputs:
        for event in output.graph_events:
            seen.setdefault((event.kind, event.file, event.line), event)
    return tuple(seen.values())
