"""The tables that the raw counts make, as Markdown, each under its heading."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.statistics import (
    ancestors,
    cold_starts,
    false_alarms,
    few_rounds,
    modes_errors,
    one_sided,
    percentiles,
    power,
    schedules,
    serving,
    sessions,
    start_order,
    stopping_levels,
    summary,
    tails,
    thresholds,
    two_speeds,
    usual,
)
from benchmarks.statistics.thresholds import BOUNDARY_PATHS, COMPARE

_CONFIRMED = BOUNDARY_PATHS[-1]
_BLOCK = re.compile(r"(<!-- simulated: (\w+) -->\n).*?(\n<!-- /simulated -->)", re.DOTALL)


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return every table that the results allow, by its name."""
    made: dict[str, Callable[[Sequence[dict[str, Any]]], str]] = {
        "summary": summary.table,
        "alarms": false_alarms.table,
        "significant": false_alarms.significant_table,
        "undecided": false_alarms.undecided_table,
        "unchanged": false_alarms.unchanged_table,
        "coverage": false_alarms.coverage_table,
        "new_modes": false_alarms.new_modes_table,
        "few": few_rounds.table,
        "stopping": stopping_levels.table,
        "boundary": lambda found: thresholds.boundary_table(found, COMPARE),
        "boundary_check": lambda found: thresholds.boundary_table(found, _CONFIRMED),
        "spreads": thresholds.spreads_table,
        "power": lambda found: power.table(found, COMPARE),
        "power_check": lambda found: power.table(found, _CONFIRMED),
        "cold": cold_starts.table,
        "usual": usual.table,
        "modes": lambda found: modes_errors.table(found, 2),
        "modes_of_one": lambda found: modes_errors.table(found, 1),
        "percentiles": percentiles.table,
        "sessions": sessions.table,
        "designs": ancestors.design_table,
        "schedules": schedules.table,
        "order": start_order.table,
        "serving": serving.coverage_table,
        "serving_loads": serving.load_table,
        "serving_false": serving.false_table,
        "one_sided": one_sided.table,
        "speeds": two_speeds.table,
        "speeds_seen": two_speeds.seen_table,
        "tails": tails.table,
    }
    found = {name: table(results) for name, table in made.items()}
    return {name: text for name, text in found.items() if text}


HEADINGS = {
    "summary": "The default paths: the median over the usual noise models (lowest–highest)",
    "alarms": "False `fail`, % of reports of 20 identical cases (95 % interval)",
    "significant": "A comparison that is significant, % of those reports",
    "undecided": "Undecided reports (%) and rounds a case",
    "unchanged": "Comparisons called `unchanged`, %",
    "coverage": "Coverage of the 95 % interval of the ratio, %",
    "new_modes": "Some of head's processes are slower: `compare`",
    "few": "Few rounds: intervals that hold; twice the threshold called `unchanged`",
    "stopping": "Stopping: % of intervals that hold; rounds",
    "boundary": "`compare`: interval holds, %; regressed, %; unchanged, %; rounds",
    "boundary_check": f"`{_CONFIRMED}`: the same",
    "spreads": "Thresholds of half a spread, one and two; true changes in thresholds",
    "power": f"{COMPARE}: one slower case among twenty",
    "power_check": f"{_CONFIRMED}: one slower case among twenty",
    "cold": "Cold start beside latency: one of twenty cases starts slower",
    "usual": "The usual recipe: % of reports with an alarm",
    "modes": "Two modes, of two values at least",
    "modes_of_one": "Two modes, of one value at least",
    "percentiles": "Percentiles",
    "sessions": "Sessions",
    "designs": "Rounds of each ancestor: % of intervals that hold, by variance between ÷ within",
    "schedules": "Rounds of an ancestor after the first five; true changes in thresholds",
    "order": "Balancing who starts first: % of intervals that hold; half of their median width, %",
    "serving": "Serving: coverage of the 95 % interval, %",
    "serving_loads": "Serving: the same by load",
    "serving_false": "Serving: equal servers that fail",
    "one_sided": "One-sided rounds: % passing; % `regressed`; % `improved`; rounds",
    "speeds": "Two speeds: % passing; % regressed; % of intervals that hold; rounds",
    "speeds_seen": "Two speeds seen where there is one",
    "tails": "Tails that warn: % of identical reports (95 % interval), % of slower rows",
}


def with_headings(made: dict[str, str]) -> str:
    return "\n\n".join(f"### {HEADINGS[name]}\n\n{text}" for name, text in made.items())


def rewritten(document: str, made: dict[str, str]) -> str:
    """Return ``document`` with the tables that it marks put in anew."""
    return _BLOCK.sub(
        lambda block: f"{block[1]}{made[block[2]]}{block[3]}" if block[2] in made else block[0],
        document,
    )


def marked(document: str) -> tuple[str, ...]:
    """Return the names of the tables that ``document`` marks."""
    return tuple(block[2] for block in _BLOCK.finditer(document))
