"""What explains most goes first, and which lines were changed."""

from __future__ import annotations

from dataclasses import replace

from perfci.model.finding import Difference
from perfci.verdict.why import leading, ranked, with_hunks
from tests.report.examples import bare

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
