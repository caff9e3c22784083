"""A head that torch.compile makes no graph of: from real workers to the verdict."""

from __future__ import annotations

import pytest

from perfci.metrics import explain
from perfci.model.codec import from_plain
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison, Verdict
from perfci.model.words import words
from perfci.model.worker import Measurement
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.reduction import reduce
from perfci.verdict.row_status import adjust, regressed_metrics
from tests.verdict.workers import case, worker
from tests.worker.driver import Bench

POLICY = Policy()
LOOPING = """\
import torch
import perfci

def model(x):
    for _ in range(2):
        x = x * 2
        {line}
    return x

@perfci.benchmark
def case():
    return perfci.inference(model, torch.ones(4), mode="backend:eager")
"""


def measured(bench: Bench, side: str, line: str) -> WorkerOutput:
    told = bench.measure(LOOPING.format(line=line), accuracy=False, growth=False)
    blocks = [{name: one[name] for name in one if name != "say"} for one in told.pop("said")]
    raw = from_plain({**told, "blocks": blocks}, Measurement)
    return reduce(raw, case="case", side=side, round_number=1, cold_cache=False)


def judged(
    base: list[WorkerOutput], head: list[WorkerOutput]
) -> tuple[dict[str, Comparison], Verdict]:
    rows = adjust(compare_case(case("case"), base, head, POLICY, paired=True), POLICY)
    return {row.metric: row for row in rows}, decide(rows, (), POLICY)


@pytest.mark.torch
def test_a_head_that_compiles_no_more_fails_and_says_where(torch_bench: Bench) -> None:
    base, head = (
        measured(torch_bench, "base", "pass"),
        measured(torch_bench, "head", 'print(end="")'),
    )
    rows, verdict = judged([base], [head])
    assert rows["graph_breaks"].status == "regressed"
    assert rows["graphs"].status == "regressed"
    assert verdict.status == "fail"
    (reason, *_) = verdict.reasons
    assert reason.startswith("case: graph_breaks ")
    assert "produced no graph on head" in reason
    (told, *_) = explain("case", [base], [head], regressed_metrics(rows.values())["case"])
    assert (told.metric, told.kind, told.file) == (
        "graph_breaks",
        "skipped_frame",
        "benchmarks/bench_one.py",
    )
    assert told.line == 1 + LOOPING[: LOOPING.index("{line}")].count("\n")


COMPILED = {"graphs": 2.0, "graph_breaks": 1.0}
NOT_COMPILED: dict[str, float] = {}
NO_GRAPH = {"graphs": 0.0}


def workers(side: str, *values: dict[str, float]) -> list[WorkerOutput]:
    return [
        worker(side, number, one | {"latency_p50": 1.0}) for number, one in enumerate(values, 1)
    ]


def test_a_head_that_compiles_at_last_is_improved() -> None:
    rows, verdict = judged(workers("base", NO_GRAPH), workers("head", COMPILED))
    assert rows["graph_breaks"].status == rows["graphs"].status == "improved"
    assert verdict.status != "fail"


def test_most_workers_speak_for_their_side() -> None:
    base = workers("base", COMPILED, COMPILED, COMPILED)
    most, few = ([NO_GRAPH] * count + [COMPILED] * (3 - count) for count in (2, 1))
    assert judged(base, workers("head", *most))[0]["graph_breaks"].status == "regressed"
    assert judged(base, workers("head", *few))[0]["graph_breaks"].status == "unchanged"


@pytest.mark.parametrize("values", [NO_GRAPH, NOT_COMPILED])
def test_what_never_compiled_is_not_worse_for_it(values: dict[str, float]) -> None:
    rows, _ = judged(workers("base", values), workers("head", values))
    assert "graph_breaks" not in rows
    assert all(row.status != "regressed" for row in rows.values())


def test_head_in_eager_by_choice_has_no_graphs_to_lose() -> None:
    rows, verdict = judged(workers("base", COMPILED), workers("head", NOT_COMPILED))
    assert rows["graph_breaks"].status == "inconclusive"
    assert verdict.status != "fail"


WHOLE = {"graphs": 2.0, "graph_breaks": 0.0, "captured_calls": 94.0, "generated_kernels": 9.0}


@pytest.mark.parametrize("graphs", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("count", ["captured_calls", "generated_kernels"])
def test_what_a_break_leaves_in_eager_is_no_improvement(count: str, graphs: float) -> None:
    broken = WHOLE | {count: 4.0, "graphs": graphs, "graph_breaks": 1.0}
    rows, _ = judged(workers("base", WHOLE), workers("head", broken))
    assert rows[count].status == "regressed"
    assert words(rows[count].findings[0]).startswith("more of head runs in eager mode")
    assert rows["graphs"].status == ("unchanged" if graphs == 2.0 else "regressed")
    mended, _ = judged(workers("base", broken), workers("head", WHOLE))
    assert mended[count].status == "improved"
    lost, _ = judged(workers("base", WHOLE), workers("head", {**NO_GRAPH, count: 0.0}))
    assert lost[count].status == "regressed"


def test_fewer_calls_in_graphs_may_be_less_compiled() -> None:
    """A part that isn't given to torch.compile any more leaves no break."""
    rows, _ = judged(workers("base", WHOLE), workers("head", WHOLE | {"captured_calls": 47.0}))
    (remark,) = rows["captured_calls"].findings
    assert words(remark) == "head calls less, or compiles less of its calls"
    more, _ = judged(workers("base", WHOLE), workers("head", WHOLE | {"captured_calls": 95.0}))
    assert not more["captured_calls"].findings
