"""Why a comparison regressed, as far as the workers themselves can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from perfci.model.case import Case
from perfci.model.report import Comparison, Explanation
from perfci.model.worker import GraphEvent, WorkerOutput
from perfci.stats.quantile import median
from perfci.units import format_value

_GRAPH_METRICS = ("graph_breaks", "recompiles", "graphs")
_COMPILED_METRICS = ("latency_", "throughput", "compile_time", "device_time_")
_LEAST_GROWTH_S = 0.001
"""Less than a millisecond of a start explains nothing that anyone would look for."""


def explain(
    case: Case,
    base: Sequence[WorkerOutput],
    head: Sequence[WorkerOutput],
    comparisons: Sequence[Comparison],
) -> tuple[Explanation, ...]:
    """Return what got worse inside, for those of ``comparisons`` of this case that regressed."""
    regressed = [
        row.metric for row in comparisons if row.case == case.id and row.status == "regressed"
    ]
    if not regressed or not base or not head:
        return ()
    return (
        *_graph_explanations(case.id, regressed, base, head),
        *_phase_explanations(case.id, regressed, base, head),
    )


def new_events(base: Sequence[GraphEvent], head: Sequence[GraphEvent]) -> tuple[GraphEvent, ...]:
    """Return head's graph events that base hasn't got.

    The same kind at the same place is the same event. What is left of both sides in one file is
    matched again, equal reasons first: lines move when code above them is edited, and a break
    that moved is not a new one.
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


def _graph_explanations(
    case: str, regressed: Sequence[str], base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]
) -> Iterator[Explanation]:
    affected = [
        metric for metric in regressed if metric.startswith((*_GRAPH_METRICS, *_COMPILED_METRICS))
    ]
    if not affected:
        return
    for event in new_events(_events(base), _events(head)):
        own = "recompiles" if "recompile" in event.kind else "graph_breaks"
        yield Explanation(
            case=case,
            metric=own if own in affected else affected[0],
            kind=event.kind,
            text=event.reason,
            file=event.file,
            line=event.line,
        )


def _events(outputs: Sequence[WorkerOutput]) -> tuple[GraphEvent, ...]:
    """Each place once, whatever the number of workers that met it: the first one's words."""
    seen: dict[tuple[str, str, int], GraphEvent] = {}
    for output in outputs:
        for event in output.graph_events:
            seen.setdefault((event.kind, event.file, event.line), event)
    return tuple(seen.values())


def _phase_explanations(
    case: str, regressed: Sequence[str], base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]
) -> Iterator[Explanation]:
    if "cold_start" not in regressed:
        return
    before, after = _phases(base), _phases(head)
    grown = [(after[name] - before[name], name) for name in after if name in before]
    growth, name = max(grown, default=(0.0, ""))
    if growth > _LEAST_GROWTH_S:
        yield Explanation(
            case=case,
            metric="cold_start",
            kind="phase",
            text=f"{name}: {_from_to(before[name], after[name])}",
        )


def _phases(outputs: Sequence[WorkerOutput]) -> dict[str, float]:
    names = dict.fromkeys(name for output in outputs for name in output.phases)
    return {name: median([o.phases[name] for o in outputs if name in o.phases]) for name in names}


def _from_to(before: float | None, after: float) -> str:
    if before is None:
        return f"new, {format_value(after, 's')}"
    return f"{format_value(before, 's')} → {format_value(after, 's')}"
