"""Nothing is decided by a sentence: with all messages reworded at random all else is as it was."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import perfci.model.words as catalogue
from perfci.cli.report import exit_code
from perfci.model.case import Failure
from perfci.model.finding import finding
from perfci.model.report import Comparison, Report
from perfci.report.exporters.json import render as render_json
from perfci.report.outline import other_reasons, outline, shown_failures
from perfci.report.reading import read_report
from perfci.verdict.acceptance import enforced
from perfci.verdict.decision import decide, failure_rows, placeholder, require_gate
from perfci.verdict.merge import merge
from perfci.verdict.policy import MetricPolicy
from perfci.verdict.row_status import adjust, suspects
from tests.report.examples import alone_report, hostile_report, passing_report, rich_report
from tests.verdict.shards import POLICY, paired, shard, stored

PIECES = (
    "looks regressed: ", "looks unchanged: ", "significant, but ", "warning: ", "slow: ",
    "broken: ", "latency_p50 ", "could have detected a change of ", "too few", "", "{}", ": ",
)  # fmt: skip
"""What decided something once, and may not now: sentences begin with one of these at random."""


@contextmanager
def reworded(seed: int) -> Iterator[None]:
    """Give every code another sentence, its arguments or not."""
    rng = random.Random(seed)

    def another() -> Any:
        said = "".join(rng.choices(PIECES, k=3))
        return lambda *_, **arguments: said + " ".join(map(str, arguments.values()))

    with pytest.MonkeyPatch.context() as patch:
        for table in ("WORDS", "REASONS"):
            names = getattr(catalogue, table)
            patch.setattr(catalogue, table, {code: another() for code in names})
        yield


def seen(report: Report) -> tuple[Any, ...]:
    """Return all of a report but its sentences, and what its readers are shown first."""
    lists = outline(report)
    return (
        report.verdict,
        exit_code(report, strict=True),
        report.results,
        [
            [row.case for row in rows]
            for rows in (lists.moved, lists.undecided, lists.groups["removed"])
        ],
        len(shown_failures(report)),
        len(other_reasons(outline(report))),
        len(report.verdict.reasons),
    )


def decided(rows: Sequence[Comparison], failures: Sequence[Failure] = ()) -> Report:
    policy = replace(POLICY, metrics={"cold_start": MetricPolicy(0.1, "warn", "pass")})
    judged = (*adjust(adjust(rows, policy), policy), *failure_rows(failures, ("old",), policy))
    verdict = require_gate(decide(judged, failures, policy), judged)
    return replace(passing_report(), results=judged, failures=tuple(failures), verdict=verdict)


def everything() -> list[tuple[Any, ...]]:
    broken = Failure("broken", "head", "setup", "ValueError", "looks regressed: no")
    both = [replace(broken, case="both", side=side) for side in ("base", "head")]
    rows = (
        paired("slow", 1.2),
        paired("unclear", 1.04, p=0.5),
        paired("small", 1.02, p=1e-9),
        paired("cold", 1.5, metric="cold_start"),
        stored("baseline", 1.2),
        *(paired(f"case-{number}") for number in range(6)),
        placeholder("late", "inconclusive", POLICY, finding("budget-ended")),
        placeholder("other", "not_comparable", POLICY, finding("source-changed")),
    )
    halves = shard(1, 2, *rows[:4]), shard(2, 2, *rows[4:])
    (merged,) = merge([("1", halves[0]), ("2", halves[1])], POLICY)
    (half,) = merge([("1", halves[0])], POLICY)
    reports = [
        decided(rows, (broken, *both)),
        decided(rows[2:], both),
        decided(rows[3:]),
        merged.report,
        half.report,
        enforced(replace(passing_report(), results=rows), POLICY),
        *(rich_report(), passing_report(), alone_report(), hostile_report("x")),
    ]
    read = [read_report(render_json(report)) for report in (*reports[2:3], *reports[-4:])]
    return [*map(seen, reports), *map(seen, read), suspects(merged.report.results, POLICY)]


@pytest.mark.parametrize("seed", range(10))
def test_reworded_messages_leave_verdicts_orders_and_counts_as_they_were(seed: int) -> None:
    before = everything()
    with reworded(seed):
        assert everything() == before
