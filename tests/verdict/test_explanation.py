"""Why a comparison regressed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfci.metrics import use
from perfci.metrics.graphs import new_events
from perfci.model.measuring import WorkerOutput
from perfci.model.worker import GraphEvent
from perfci.verdict.decision import placeholder
from perfci.verdict.metric_explanations import explain
from perfci.verdict.policy import default_policy
from tests.verdict.workers import case, worker

ROW = placeholder(case().id, "regressed", default_policy())


def with_event(side: str, *events: GraphEvent, **more: object) -> tuple[WorkerOutput, ...]:
    return tuple(worker(side, number, {}, graph_events=events, **more) for number in (1, 2))


def test_a_new_graph_break_is_named_once_with_its_place() -> None:
    event = GraphEvent("graph_break", "print is called", "zoo/gate.py", 12)
    (said,) = explain(case(), with_event("base"), with_event("head", event), [ROW])
    assert (said.kind, said.text, said.file, said.line) == (
        "graph_break",
        "print is called",
        "zoo/gate.py",
        12,
    )
    breaks = replace(ROW, metric="graph_breaks")
    both_rows = explain(case(), with_event("base"), with_event("head", event), [ROW, breaks])
    assert [one.metric for one in both_rows] == ["graph_breaks"]


def test_nothing_is_explained_where_nothing_regressed() -> None:
    event = GraphEvent("graph_break", "print is called", "zoo/gate.py", 12)
    steady = replace(ROW, status="unchanged")
    assert explain(case(), with_event("base"), with_event("head", event), [steady]) == ()


def test_a_break_whose_line_moved_is_not_new_but_one_more_in_that_file_is() -> None:
    old = GraphEvent("graph_break", "print is called", "a.py", 10)
    moved = replace(old, line=14)
    added = GraphEvent("graph_break", "data-dependent branch", "a.py", 20)
    elsewhere = replace(added, file="b.py")
    assert new_events([old], [moved]) == ()
    assert new_events([old], [replace(moved, reason="print() is called")]) == ()
    assert new_events([old], [added, moved]) == (added,)
    assert new_events([old], [moved, elsewhere]) == (elsewhere,)
    assert new_events([old], [old, replace(old, kind="recompile")])[0].kind == "recompile"


def test_the_phase_that_grew_most_explains_a_cold_start() -> None:
    base = with_event("base", phases={"imports": 1.0, "setup": 0.02})
    head = with_event("head", phases={"imports": 1.05, "setup": 0.32})
    (said,) = explain(case(), base, head, [replace(ROW, metric="cold_start")])
    assert (said.kind, said.text) == ("phase", "setup: 20.0 ms → 320 ms")


def test_a_metric_of_others_that_cannot_explain_says_so_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "METRICS = {}\nexplain = lambda moved: 1 / 0\n"
    (tmp_path / "someones_broken.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    sides = [
        with_event(side, phases={"imports": time}) for side, time in (("base", 1), ("head", 2))
    ]
    try:
        use({"someones_broken": "someones-broken"})
        broken, phase = explain(case(), *sides, [replace(ROW, metric="cold_start")])
    finally:
        use({})
    assert phase.kind == "phase"
    assert broken.metric == "cold_start"
    assert "someones-broken can't be used: its explain ended in ZeroDivision" in broken.text


def test_more_that_is_compiled_explains_a_slower_compile() -> None:
    base = (worker("base", 1, {"captured_calls": 8.0, "generated_kernels": 2.0}),)
    head = (worker("head", 1, {"captured_calls": 8.0, "generated_kernels": 5.0}),)
    (said,) = explain(case(), base, head, [replace(ROW, metric="compile_time")])
    assert (said.kind, said.text) == ("compiled", "generated kernels: 2 → 5")
    assert explain(case(), base, head, [replace(ROW, metric="latency_p50")]) == ()
