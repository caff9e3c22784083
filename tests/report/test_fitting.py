"""What perfci writes it reads: a report is cut at writing, and says so."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perfci.finding import Explanation, stated
from perfci.metrics import METRICS
from perfci.model.report import Verdict
from perfci.report.exporters.json import MOST_BYTES
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from tests.report.examples import bare, hostile_report, passing_report, rich_report, row

NAMES = st.builds(
    lambda text, times: text * times,
    st.text(st.characters(exclude_categories=()), max_size=20),
    st.sampled_from([1, 1, 40, 1_000]),
)


@given(NAMES)
@settings(max_examples=40)
def test_whatever_the_strings_what_is_written_can_be_read(name: str) -> None:
    assume(name not in METRICS)
    text = render_json(hostile_report(name))
    assert render_json(read_report(text)) == text


@given(st.lists(NAMES, max_size=30), st.integers(-(10**30), 10**30))
@settings(max_examples=15)
def test_whatever_the_amounts_what_is_written_can_be_read(names: list[str], line: int) -> None:
    explanation = Explanation("case", "metric", "kind", "text", "file", abs(line))
    report = rich_report(
        notes=tuple(names * 60),
        skipped={f"{name}{number}": name for number, name in enumerate(names)},
        explanations=(explanation,) * (len(names) * 50),
        environment=replace(rich_report().environment, facts={name: name for name in names}),
    )
    text = render_json(report)
    assert render_json(read_report(text)) == text


def test_of_too_many_results_those_that_moved_are_kept() -> None:
    names = [f"case_{number}" for number in range(21_000)]
    results = (
        *(bare(name, "new", "") for name in names),
        row("slow", "latency_p50", 1.0, 1.2, "regressed"),
    )
    report = rich_report(
        results=results,
        failures=(),
        explanations=(),
    )
    text = render_json(report)
    read = read_report(text)
    assert len(text) < MOST_BYTES
    assert len(read.results) == 20_000
    assert (read.results[0].case, read.results[-1].case) == ("case_0", "slow")
    assert "left out are 1,001 of results" in read.notes[-1]


def test_a_file_that_would_be_too_large_is_cut_until_it_is_not() -> None:
    failure = replace(rich_report().failures[0], log_tail="log\n" * 5_000)
    failures = tuple(replace(failure, case=f"case_{number}") for number in range(1_000))
    text = render_json(rich_report(failures=failures))
    report = read_report(text)
    assert len(text.encode()) < MOST_BYTES
    assert 0 < len(report.failures) < 1_000
    assert "of failures" in report.notes[-1]


def test_two_long_names_that_begin_alike_stay_two() -> None:
    long = "encoder[" + "x" * 1_000
    results = tuple(
        row(f"{long},batch={batch}]", "latency_p50", 1.0, 1.0, "unchanged") for batch in (1, 2)
    )
    report = read_report(render_json(replace(passing_report(), results=results)))
    first, second = (one.case for one in report.results)
    assert first != second
    assert first[:200] == second[:200] == long[:200]


def test_two_names_that_cannot_be_encoded_stay_two() -> None:
    results = tuple(bare(f"bench_{one}.py", "new", "") for one in ("\udc80", "\udc81"))
    unsure = Verdict("inconclusive", (stated("nothing to compare with: 2 new"),))
    report = read_report(render_json(rich_report(results=results, verdict=unsure)))
    assert [one.case for one in report.results] == ["bench_\\udc80.py", "bench_\\udc81.py"]


def test_of_a_log_the_end_stays_and_of_a_message_the_beginning() -> None:
    failure = replace(
        rich_report().failures[0],
        message="first words" + "x" * 5_000,
        log_tail="x" * 30_000 + "last words",
    )
    report = read_report(render_json(rich_report(failures=(failure,))))
    assert report.failures[0].message.startswith("first words")
    assert report.failures[0].log_tail.endswith("last words")
    assert report.failures[0].message.endswith("…")
