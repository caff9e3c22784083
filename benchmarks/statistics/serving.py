"""Serving's metrics: whether their intervals hold, and how often equal servers regress or fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.statistics.noise import Rng
from benchmarks.statistics.paths import Pair, measured
from benchmarks.statistics.scoring import markdown, percent, percent_with_interval, rng_of
from benchmarks.statistics.served_requests import LOADS, SERVERS, Load, Luck, Server, both_sides
from perfci.model.case import Case
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.verdict.policy import Policy
from perfci.verdict.sampled_comparisons import pair_values

METRICS = (
    "time_to_first_token",
    "inter_token_latency_p50",
    "inter_token_latency_p95",
    "inter_token_latency_p99",
    "end_to_end",
    "tokens_per_second",
    "goodput",
    "tokens_per_request",
    "latency_p50",
)
SLOWER = (float(np.log(1.04)), float(np.log(1.03)))
"""Of prefill and decode, where head is slower: below the thresholds."""
TRUTH_ROUNDS = 600
KINDS = ("equal", "slower")
TASKS = tuple(f"{kind}: {server.name}" for kind in KINDS for server in SERVERS)
_CASES = {
    load.name: Case(load.name, load.name, {}, "bench_simulated.py", 1, "", metrics=METRICS)
    for load in LOADS
}
_POLICY = Policy()


def rows(task: str, reports: int) -> list[dict[str, Any]]:
    """Return the counts of a server's reports, by load and metric, and of the reports as such."""
    kind, _, name = task.partition(": ")
    (server,) = (server for server in SERVERS if server.name == name)
    slower = SLOWER if kind == "slower" else (0.0, 0.0)
    rng = rng_of("serving", task)
    truths = {
        load.name: _truth(server, load, slower, rng_of("serving", task, load.name))
        for load in LOADS
    }
    found: list[Comparison] = []
    failed = rounds = 0
    for _ in range(reports):
        outcome = measured(tuple(_CASES.values()), _pairs(server, slower, rng), _POLICY)
        failed += outcome.verdict == "fail"
        rounds += sum(outcome.rounds)
        found += outcome.rows
    about: dict[str, Any] = {"part": "serving", "kind": kind, "server": name}
    counted = [
        {**about, "load": load.name, "metric": metric, **_counts(mine, truths[load.name][metric])}
        for load in LOADS
        for metric in METRICS
        if (mine := [row for row in found if (row.case, row.metric) == (load.name, metric)])
    ]
    whole = {**about, "reports": reports, "failed": failed, "rounds": rounds}
    return [whole, *counted]


def _pairs(server: Server, slower: tuple[float, float], rng: Rng) -> Pair:
    """Return what gives a case's round: rounds of one ancestor share its luck."""
    drawn: dict[int, Luck] = {}
    names = tuple(_CASES)

    def pair(index: int, number: int, ancestor: int) -> tuple[WorkerOutput, WorkerOutput]:
        if ancestor not in drawn:
            drawn[ancestor] = Luck.drawn(server, rng)
        load = LOADS[index]
        luck = drawn[ancestor]
        return both_sides(server, load, rng, names[index], number, ancestor, luck, slower)

    return pair


def _truth(server: Server, load: Load, slower: tuple[float, float], rng: Rng) -> dict[str, float]:
    """Return each metric's true ratio, or difference: the mean of so many rounds."""
    if not any(slower):
        return {metric: float(metric != "goodput") for metric in METRICS}
    pairs = [
        both_sides(server, load, rng, load.name, number, number, Luck.drawn(server, rng), slower)
        for number in range(1, TRUTH_ROUNDS + 1)
    ]
    return {metric: _mean_change(pairs, metric) for metric in METRICS}


def _mean_change(pairs: Sequence[tuple[WorkerOutput, WorkerOutput]], metric: str) -> float:
    values = [
        pair_values(base, head, metric)
        for base, head in pairs
        if metric in base.values and metric in head.values
    ]
    if metric == "goodput":
        return fmean(head - base for base, head in values)
    return float(np.exp(fmean(np.log(head / base) for base, head in values))) if values else 1.0


def _counts(found: Sequence[Comparison], truth: float) -> dict[str, Any]:
    """``exact`` are rows without a test: all workers of a side agreed."""
    tested = [row for row in found if row.method != "exact"]
    intervals = [one for row in tested if (one := _interval(row))]
    return {
        "truth": truth,
        "rows": len(found),
        "exact": len(found) - len(tested),
        "intervals": len(intervals),
        "held": sum(lo <= truth <= hi for lo, hi in intervals),
        "width": float(np.median([hi - lo for lo, hi in intervals])) if intervals else 0.0,
        "regressed": sum(row.status == "regressed" for row in found),
        "improved": sum(row.status == "improved" for row in found),
        "excluded": sum(row.rounds_set_aside for row in found),
    }


def _interval(row: Comparison) -> tuple[float, float] | None:
    lo, hi = (
        (row.difference_lo, row.difference_hi)
        if row.metric == "goodput"
        else (row.ratio_lo, row.ratio_hi)
    )
    return None if lo is None or hi is None else (lo, hi)


def coverage_table(results: Sequence[dict[str, Any]]) -> str:
    """Coverage by server and metric, of equal sides and of a slower head."""
    return _grid(results, "server", SERVERS)


def load_table(results: Sequence[dict[str, Any]]) -> str:
    """Coverage by load and metric."""
    return _grid(results, "load", LOADS)


def _grid(results: Sequence[dict[str, Any]], by: str, members: Iterable[Server | Load]) -> str:
    mine = [row for row in results if row["part"] == "serving" and "metric" in row]
    shown = [one for one in METRICS if one != "tokens_per_request"]
    lines = []
    for kind in KINDS:
        for member in members:
            cells = [row for row in mine if (row["kind"], row[by]) == (kind, member.name)]
            if cells:
                lines.append((kind, member.name, *(_held(cells, metric) for metric in shown)))
    return markdown(("head", by, *(f"`{one}`" for one in shown)), lines) if lines else ""


def _held(cells: Sequence[dict[str, Any]], metric: str) -> str:
    mine = [row for row in cells if row["metric"] == metric]
    return percent(_sum(mine, "held"), _sum(mine, "intervals"))


def _sum(rows: Sequence[dict[str, Any]], name: str) -> int:
    return sum(int(str(row[name])) for row in rows)


def false_table(results: Sequence[dict[str, Any]]) -> str:
    """Equal sides: reports that fail, and rows called regressed, by metric."""
    mine = [row for row in results if row["part"] == "serving" and row["kind"] == "equal"]
    lines = []
    for whole in (row for row in mine if "reports" in row):
        cells = [row for row in mine if "metric" in row and row["server"] == whole["server"]]
        regressed = [
            f"{metric} {count} of {_sum(those, 'rows')}"
            for metric in METRICS
            if (those := [row for row in cells if row["metric"] == metric])
            and (count := _sum(those, "regressed"))
        ]
        lines.append(
            (
                whole["server"],
                percent_with_interval(whole["failed"], whole["reports"]),
                "; ".join(regressed) or "none",
                f"{whole['rounds'] / whole['reports'] / len(LOADS):.1f}",
            )
        )
    head = ("server", "false `fail`, % of reports", "rows called `regressed`", "rounds a case")
    return markdown(head, lines) if lines else ""
