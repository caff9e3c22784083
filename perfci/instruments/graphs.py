"""Result of torch.compile in the first call: breaks, nodes by line, and kernels.

Dynamo traces in each process, whatever is cached, and passes each graph to its backend. The graph's
nodes are counted there. torch's private parts may be missing: what one side doesn't report isn't
compared.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from perfci.finding import Difference, Plain
from perfci.instruments import Recorded, RecordingScene, Words
from perfci.metrics.graphs import frames_traced, kernels_generated, new_events
from perfci.model.worker import GraphEvent
from perfci.units import counted

PLACE = 10
WHEN = "first_call"
_MOST_NODES, _LONGEST = 3_000, 160
_FRAME = re.compile(
    r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>\S+)\n *(?P<text>.*)'
)

# In the worker.


@contextmanager
def record(scene: RecordingScene) -> Iterator[dict[str, Any]]:
    """Listen to all of torch.compile's calls, if set-up has imported torch."""
    recorded: dict[str, Any] = {"events": [], "nodes": None, "kernels": None}
    if "torch" not in sys.modules:
        yield recorded
        return
    from perfci.metrics.graphs.compile_listener import GraphWatch

    traced, watch = frames_traced(), GraphWatch()
    watch.install()
    nodes: Counter[tuple[str, str, int, str]] = Counter()
    with _nodes_counted(scene, nodes) as heard:
        yield recorded
    if frames_traced() == traced:
        return
    recorded["events"] = [asdict(event) for event in watch.summary(scene.order.root).graph_events]
    if heard and len(nodes) <= _MOST_NODES:
        recorded["nodes"] = [[*key, count] for key, count in nodes.items()]
    recorded["kernels"] = kernels_generated()


@contextmanager
def _nodes_counted(
    scene: RecordingScene, nodes: Counter[tuple[str, str, int, str]]
) -> Iterator[bool]:
    """Count the nodes of each graph that Dynamo passes to a backend.

    The value tells whether this torch allows that.
    """
    try:
        from torch._dynamo.output_graph import OutputGraph

        compile_graph = OutputGraph.call_user_compiler
    except (ImportError, AttributeError):
        yield False
        return

    def counting(graph: Any, module: Any, *others: Any, **named: Any) -> Any:
        for node in module.graph.nodes:
            if node.op.startswith("call_"):
                name = getattr(node.target, "__name__", str(node.target))
                nodes[name[:_LONGEST], *_place(scene, node.stack_trace or "")] += 1
        return compile_graph(graph, module, *others, **named)

    OutputGraph.call_user_compiler = counting
    try:
        yield True
    finally:
        OutputGraph.call_user_compiler = compile_graph


def _place(scene: RecordingScene, trace: str) -> tuple[str, int, str]:
    """Return the innermost user's line of a node's stack: file, line, and function with text."""
    for match in reversed(list(_FRAME.finditer(trace))):
        if file := scene.place(match["file"]):
            text = f"{match['name']}: {match['text'].strip()}"
            return file, int(match["line"]), text[:_LONGEST]
    return "", 0, ""


# In the parent. Pure.


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterable[Difference]:
    """Yield breaks and recompiles that only one side has, lines whose nodes differ, and kernels.

    A difference in kernels is shown at the line whose nodes differ, if there is only one such line.
    """
    before, after = base[0], head[0]
    yield from _events(before, after)
    lines = list(_lines(before["nodes"], after["nodes"]))
    yield from lines
    counts = before["kernels"], after["kernels"]
    if None not in counts and counts[0] != counts[1]:
        (file, line), *others = [(each.file, each.line) for each in lines] or [("", 0)]
        yield Difference(
            "graphs",
            "graph-kernels",
            {"before": counts[0], "after": counts[1]},
            metric="latency",
            file="" if others else file,
            line=0 if others else line,
        )


def _events(before: Recorded, after: Recorded) -> Iterator[Difference]:
    old, new = ([GraphEvent(**each) for each in side["events"]] for side in (before, after))
    for events, code in ((new_events(old, new), "graph-new"), (new_events(new, old), "graph-gone")):
        for event in events:
            yield Difference(
                "graphs",
                code,
                {"kind": event.kind, "reason": event.reason},
                metric="latency",
                file=event.file,
                line=event.line,
            )


def _lines(
    base: Sequence[Sequence[Any]] | None, head: Sequence[Sequence[Any]] | None
) -> Iterator[Difference]:
    """Yield the lines whose nodes changed. Nodes that only moved to another line don't count."""
    if base is None or head is None:
        return
    before, after = _by_node(base), _by_node(head)
    totals: Counter[str] = Counter()
    for key in {*before, *after}:
        totals[key[0]] += after[key] - before[key]
    changed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, file, text in sorted({*before, *after}):
        if (after[name, file, text] - before[name, file, text]) * totals[name] > 0:
            changed[file, text].append(name)
    numbers = {(file, text): line for _, file, line, text, _ in (*base, *head)}
    for (file, text), names in changed.items():
        lead = max(names, key=lambda name: (after[name, file, text], name))
        arguments: Mapping[str, Plain] = {
            "node": lead,
            "before": before[lead, file, text],
            "after": after[lead, file, text],
            "others": len(names) - 1,
        }
        line = numbers[file, text]
        yield Difference("graphs", "graph-nodes", arguments, metric="latency", file=file, line=line)


def _by_node(rows: Sequence[Sequence[Any]]) -> Counter[tuple[str, str, str]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for name, file, _, text, count in rows:
        counts[name, file, text] += count
    return counts


def _nodes(*, node: str, before: int, after: int, others: int) -> str:
    more = f", with {counted(others, 'other operator')}" if others else ""
    return f"the graphs call `{node}` {before} → {after} times{more}"


WORDS: Words = {
    "graph-new": lambda *, kind, reason: f"new {kind.replace('_', ' ')}: {reason}",
    "graph-gone": lambda *, kind, reason: f"no {kind.replace('_', ' ')} any more: {reason}",
    "graph-nodes": _nodes,
    "graph-kernels": "Inductor generates {before} → {after} kernels: its fusions changed",
}
