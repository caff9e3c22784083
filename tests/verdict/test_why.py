"""What explains most goes first, and which lines were changed."""

from __future__ import annotations

from dataclasses import replace

from perfci.model.why import Difference
from perfci.verdict.why import changed_lines, leading, ranked, with_hunks
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


def test_lines_that_head_has_otherwise_are_changed() -> None:
    assert changed_lines("a\nb\nc\n", "a\nx\nc\nd\n") == {2, 4}
    assert changed_lines("a\nb\nc\n", "a\nc\n") == {1, 2}
    assert changed_lines("a\n", "a\n") == set()
    assert changed_lines("", "a\nb\n") == {1, 2}


MEMORY = Difference(
    "memory", "memory-peak", bytes=4 << 20, metric="peak_host_memory", file="a.py", line=9
)


def test_working_memory_that_grew_is_explained_by_memory_not_by_time() -> None:
    grew = replace(bare("a", "regressed", ""), metric="host_memory_over_setup")
    assert ranked((SLOW, MEMORY), (grew,)) == (MEMORY, SLOW)


def test_a_slower_case_is_not_explained_by_memory_that_shrank() -> None:
    slower = replace(bare("a", "regressed", ""), metric="latency_p50")
    shrank = replace(MEMORY, bytes=-MEMORY.bytes)
    assert leading(ranked((shrank,), (slower,)), (slower,)) == ()
    assert leading(ranked((MEMORY,), (slower,)), (slower,)) == (MEMORY,)
    assert leading((shrank,), ()) == (shrank,)


def test_a_faster_call_is_no_reason_for_a_slower_one_whose_start_improved() -> None:
    faster = Difference("python", "python-time", seconds=-2e-5, metric="latency")
    slower = replace(bare("a", "regressed", ""), metric="latency_p50")
    sooner = replace(bare("a", "improved", ""), metric="cold_start")
    assert leading((faster,), (slower, sooner)) == ()
    assert leading((faster,), (sooner,)) == (faster,)


def test_a_slow_start_is_explained_by_imports_and_a_break_by_its_line() -> None:
    late = Difference("imports", "import-new", seconds=1e-4, metric="import_time")
    cut = Difference("graphs", "graph-new", metric="latency", file="a.py", line=2)
    of = {
        metric: replace(bare("a", "regressed", ""), metric=metric)
        for metric in ("cold_start", "graph_breaks")
    }
    assert ranked((SLOW, cut, late), (of["cold_start"],))[0] == late
    assert ranked((SLOW, cut, late), (of["graph_breaks"],))[0] == cut


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


def test_a_light_change_on_an_edited_line_goes_behind_what_takes_the_time() -> None:
    edited = replace(SMALL, hunk=True)
    heavy = replace(SLOW, seconds=4e-2)
    assert ranked((edited, SLOW), ()) == (edited, SLOW)
    assert ranked((edited, heavy), ()) == (heavy, edited)
    unsure = replace(heavy, code="operator-time", exact=False)
    slower = replace(bare("a", "regressed", ""), metric="latency_p50")
    assert ranked((edited, unsure), (slower,)) == (edited, unsure)
    cut = Difference("graphs", "graph-new", metric="latency", hunk=True)  # its cost isn't known
    assert ranked((heavy, cut), ()) == (cut, heavy)


def test_imports_that_replace_each_other_explain_nothing() -> None:
    """``import`` of another package that loads the same libraries was named as the reason."""
    slow = replace(bare("a", "regressed", ""), metric="import_time")
    new, gone = (
        Difference("imports", code, {"module": code}, seconds=seconds, metric="import_time")
        for code, seconds in (("import-new", 0.457), ("import-gone", -0.45))
    )
    late = Difference("imports", "import-new", {"module": "c"}, seconds=0.02, metric="import_time")
    assert leading(ranked((new, gone, late), (slow,)), (slow,)) == (late,)
    assert ranked((new, gone, late), (slow,))[0] == late
    assert leading(ranked((new, gone), (slow,)), (slow,)) == ()
    shorter = replace(gone, seconds=-0.2)
    assert leading(ranked((new, shorter), (slow,)), (slow,)) == (new,)
