"""Why a comparison regressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfci.finding import Explanation
from perfci.metrics import explain
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.model.worker import GraphEvent
from perfci.verdict.decision import placeholder
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import regressed_metrics
from tests.verdict.workers import case, worker

ROW = placeholder(case().id, "regressed", Policy())


def explained(
    base: Sequence[WorkerOutput], head: Sequence[WorkerOutput], rows: Sequence[Comparison]
) -> tuple[Explanation, ...]:
    name = case().id
    return explain(name, base, head, regressed_metrics(rows).get(name, ()))


def with_event(side: str, *events: GraphEvent, **more: object) -> tuple[WorkerOutput, ...]:
    return tuple(worker(side, number, {}, graph_events=events, **more) for number in (1, 2))


def test_a_new_graph_break_is_named_once_with_its_place() -> None:
    event = GraphEvent("graph_break", "print is called", "zoo/gate.py", 12)
    (said,) = explained(with_event("base"), with_event("head", event), [ROW])
    assert (said.kind, said.text, said.file, said.line) == (
        "graph_break",
        "print is called",
        "zoo/gate.py",
        12,
    )
    breaks = replace(ROW, metric="graph_breaks")
    both_rows = explained(with_event("base"), with_event("head", event), [ROW, breaks])
    assert [one.metric for one in both_rows] == ["graph_breaks"]


def test_nothing_is_explained_where_nothing_regressed() -> None:
    event = GraphEvent("graph_break", "print is called", "zoo/gate.py", 12)
    steady = replace(ROW, status="unchanged")
    assert explained(with_event("base"), with_event("head", event), [steady]) == ()


def test_the_phase_that_grew_most_explains_a_cold_start() -> None:
    base = with_event("base", phases={"imports": 1.0, "setup": 0.02})
    head = with_event("head", phases={"imports": 1.05, "setup": 0.32})
    (said,) = explained(base, head, [replace(ROW, metric="cold_start")])
    assert (said.kind, said.text) == ("phase", "setup: 20.0 ms → 320 ms")
