"""What explains most goes first, and which lines were changed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from perfci.finding import Difference
from perfci.instruments import words
from perfci.model.report import Comparison
from perfci.verdict.why import leading, ranked, with_hunks
from tests.report.examples import bare, row

WAYS = ("regressed", "improved")
SLOW = Difference("operators", "operator-calls", seconds=3e-4, metric="latency")
SMALL = Difference(
    "operators", "operator-calls", seconds=1e-5, metric="latency", file="a.py", line=3
)


def test_a_changed_line_goes_before_what_weighs_more() -> None:
    of_head = with_hunks((SLOW, SMALL), {"a.py": frozenset({3})})
    assert [one.hunk for one in ranked(of_head, ())] == [True, False]
    assert ranked((SMALL, SLOW), ()) == (SLOW, SMALL)


def test_what_goes_the_other_way_explains_nothing() -> None:
    faster = Difference("operators", "operator-calls", seconds=-9e-4, metric="latency")
    worse, better = (replace(bare("a", way, ""), metric="latency_p50") for way in WAYS)
    assert ranked((faster, SLOW), (worse,)) == (SLOW, faster)
    assert ranked((faster, SLOW), (replace(worse, status="inconclusive"),)) == (SLOW, faster)
    assert ranked((SLOW, faster), (better,)) == (faster, SLOW)


def test_a_time_counts_only_where_a_measured_row_goes_its_way() -> None:
    worse, better = (replace(bare("a", way, ""), metric="latency_p50") for way in WAYS)
    time = replace(SLOW, code="operator-time", exact=False)
    assert ranked((time,), ()) == ()
    assert ranked((time,), (better,)) == ()
    assert ranked((time,), (worse,)) == (time,)


MEMORY = Difference(
    "memory", "memory-peak", bytes=4 << 20, metric="peak_host_memory", file="a.py", line=9
)


def test_a_faster_call_is_no_reason_for_a_slower_one_whose_start_improved() -> None:
    faster = Difference("python", "python-time", seconds=-2e-5, metric="latency")
    slower = replace(bare("a", "regressed", ""), metric="latency_p50")
    sooner = replace(bare("a", "improved", ""), metric="cold_start")
    assert leading((faster,), (slower, sooner)) == ()
    assert leading((faster,), (sooner,)) == (faster,)


def test_each_metric_that_moved_has_the_first_reason_of_its_own() -> None:
    slower, larger = (
        replace(bare("a", "regressed", ""), metric=metric)
        for metric in ("latency_p50", "host_memory_over_setup")
    )
    found = ranked((SMALL, MEMORY, SLOW), (slower, larger))
    assert found == (SLOW, SMALL, MEMORY)
    assert leading(found, (slower, larger)) == (SLOW, MEMORY)
    assert leading(found, (slower,)) == (SLOW,)
    assert leading((), (slower,)) == ()


def slower_by(seconds: float, metric: str = "latency_p50") -> Comparison:
    status = "regressed" if seconds > 0.0 else "improved"
    return row("a", metric, 1e-2, 1e-2 + seconds, status, ratio=1.0 + seconds / 1e-2)


COUNTS = {"operator": "aten::mm", "before": 1.0, "after": 9.0, "others": 0}
TIMED = {
    "operator-calls": lambda s: {**COUNTS, "seconds": s, "total": s},
    "operator-tensors": lambda s: {
        **COUNTS, "before": "a", "after": "b", "calls": 1.0, "seconds": s, "total": s
    },
    "operator-kernel": lambda s: {**COUNTS, "seconds": s, "total": s},
    "operator-time": lambda s: {
        "operator": "mm", "calls": 1.0, "before": max(0.0, -s), "after": max(0.0, s)
    },
    "python-time": lambda s: {"function": "f", "before": max(0.0, -s), "after": max(0.0, s)},
    "start-time": lambda s: {"function": "f", "before": max(0.0, -s), "after": max(0.0, s)},
    "compiling-phase": lambda s: {
        "phase": "Dynamo", "before": max(0.0, -s), "after": max(0.0, s),
        "made_before": 1, "made_after": 2,
    },
    "import-new": lambda s: {"module": "m", "others": 0, "gain": s},
    "import-gone": lambda s: {"module": "m", "others": 0, "gain": s},
    "import-time": lambda s: {"module": "m", "before": max(0.0, -s), "after": max(0.0, s)},
}  # fmt: skip
OF = {"start": ("starting", "cold_start"), "operator": ("operators", "latency"),
      "python": ("python", "latency"), "compiling": ("compiling", "compile_time"),
      "import": ("imports", "import_time")}  # fmt: skip


def timed(code: str, seconds: float) -> Difference:
    instrument, metric = OF[code.partition("-")[0]]
    return Difference(instrument, code, TIMED[code](seconds), seconds, metric=metric)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("code", TIMED)
def test_no_reason_is_larger_than_the_change_that_it_explains(code: str, sign: float) -> None:
    _, metric = OF[code.partition("-")[0]]
    moved = slower_by(sign * 4e-3, "latency_p50" if metric == "latency" else metric)
    (one,) = ranked((timed(code, sign * 6e-3),), (moved,))
    assert words(one).endswith(", all of the change")
    assert re.search(r"\b4 ms", words(one)), words(one)
    assert "6 ms" not in words(one)
    (part,) = ranked((timed(code, sign * 1e-3),), (moved,))
    assert words(part).endswith(", 25 % of the change")
    both = ranked((timed(code, sign * 6e-3), timed(code, sign * 2e-3)), (moved,))
    assert [round(each.share, 6) for each in both] == [0.75, 0.25]
    assert ranked((timed(code, sign * 6e-3),), ())[0].share == 0.0


def test_memory_is_a_share_of_the_smallest_change_that_it_explains() -> None:
    more, less = (
        row("a", metric, 9 << 20, (9 << 20) + grown, "regressed")
        for metric, grown in (("peak_host_memory", 8 << 20), ("host_memory_over_setup", 5 << 20))
    )
    assert ranked((MEMORY,), (more,))[0].share == 0.5
    assert ranked((MEMORY,), (more, less))[0].share == 0.8
    assert ranked((replace(MEMORY, bytes=9 << 20),), (more,))[0].share == 1.0


@pytest.mark.parametrize("seconds", [0.0, 1e-6, 2e-4])
def test_operators_go_before_pythons_time_on_their_line(seconds: float) -> None:
    calls = replace(timed("operator-calls", seconds), file="a.py", line=7, hunk=True)
    python = replace(timed("python-time", 4e-4), file="a.py", line=7, hunk=True)
    elsewhere = replace(timed("python-time", 3e-4), file="b.py", line=7, hunk=True)
    assert [one.code for one in ranked((calls, python, elsewhere), (slower_by(9e-4),))] == [
        "operator-calls", "python-time", "python-time"
    ]  # fmt: skip
