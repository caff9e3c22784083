"""Recompilations after the first call: the guard that failed, and its line.

Each call is recorded separately, so that both sides can be compared over the same number of calls.
It doesn't matter what calls torch.compile: recompilations of a compiled model inside a plain
callable are recorded as well.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from perfci.clock import perf_counter
from perfci.errors import Unusable
from perfci.finding import Difference
from perfci.instruments import Recorded, RecordingScene, Words
from perfci.metrics.graphs import frames_traced

PLACE = 11
WHEN = "early"

_MOST_CALLS, _MOST_S = 16, 5.0
"""Limits of a recording. Dynamo gives up after eight recompilations of a function."""
_NUMBER = re.compile(r"\d+")
"""Numbers in a guard, which are left out when guards are matched."""

# In the worker.


def record(scene: RecordingScene) -> Recorded:
    """Make some calls and record what each recompiles. Unusable if torch can't be listened to."""
    calls: list[list[list[object]]] = []
    if "torch" not in sys.modules:
        return {"calls": calls}
    from perfci.metrics.graphs.compile_listener import GraphWatch

    watch = GraphWatch()
    watch.install()
    known: Counter[tuple[str, str, str, int]] = Counter()
    end = perf_counter() + _MOST_S
    while len(calls) < _MOST_CALLS and (len(calls) < 2 or perf_counter() < end):
        scene.once()
        heard = watch.summary(scene.order.root)
        unheard = heard.missing.get("recompiles", "")
        if unheard and unheard == heard.missing.get("graphs") and frames_traced():
            raise Unusable("torch", unheard)
        now = Counter(
            {
                (each.kind, each.reason, each.file, each.line): each.count
                for each in heard.graph_events
                if each.kind.startswith("recompile")
            }
        )
        calls.append([[*event, count] for event, count in (now - known).items()])
        known = now
    return {"calls": calls}


# In the parent. Pure.


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterator[Difference]:
    """Yield the guards that fail more or less often in the same number of calls of each side.

    Guards of a file count as one if they differ only in numbers. Their line doesn't matter.
    """
    most = min(len(base[0]["calls"]), len(head[0]["calls"]))
    (was, _), (now, places) = (_events(side[0]["calls"][:most]) for side in (base, head))
    for key in sorted({*was, *now}):
        before, after = was[key], now[key]
        if before == after:
            continue
        kind, file, guard = key
        line, reason = places.get(key, (0, guard))
        yield Difference(
            "recompiles",
            "recompiles-limit" if kind == "recompile_limit" else "recompiles-guard",
            {"guard": reason, "before": before, "after": after, "calls": most},
            metric="latency" if kind == "recompile_limit" else "recompiles",
            file=file,
            line=line,
        )


_Keyed = Counter[tuple[str, str, str]]


def _events(
    calls: Sequence[Sequence[Sequence[object]]],
) -> tuple[_Keyed, dict[tuple[str, str, str], tuple[int, str]]]:
    """Return how often each guard failed, by kind, file and text, and its first line and text."""
    counts: _Keyed = Counter()
    places: dict[tuple[str, str, str], tuple[int, str]] = {}
    for call in calls:
        for kind, reason, file, line, count in call:
            key = str(kind), str(file), _NUMBER.sub("…", str(reason))
            counts[key] += int(str(count))
            places.setdefault(key, (int(str(line)), str(reason)))
    return counts, places


WORDS: Words = {
    "recompiles-guard": (
        "the {calls} calls after the first compile again {before} → {after} times, as this guard "
        "fails: {guard}"
    ),
    "recompiles-limit": (
        "torch.compile gives up compiling again {before} → {after} times: further calls run in "
        "eager"
    ),
}
