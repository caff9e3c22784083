"""Cases that get no more rounds: how many would all rounds have decided?

    PYTHONPATH=. python benchmarks/statistics/giving_up.py [runs]

One case of a report of twenty, rounds that share ancestors as a session's do, 5 to 20 rounds, a
threshold of 5 %. "As it is" gives up by the row alone; the rule also leaves out its most extreme
pair.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from perfci.model.case import Case
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.policy import default_policy
from perfci.verdict.row_status import adjust
from perfci.verdict.stopping import chance, is_out_of_reach, rounds_of_ancestor, wants_rounds

METRIC, FAMILY, LEAST, MOST = "latency_p50", 20, 5, 20
POLICY = default_policy()
CASE = Case(id="case", benchmark="case", axes={}, file="bench.py", line=1, source_hash="")
Draw = Callable[[np.random.Generator], np.ndarray]


def disturbed(by: float) -> Draw:
    """Return noise of 1 %, and one round in ten that is disturbed on one side."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        sign = rng.choice([-1, 0, 1], MOST, p=[0.05, 0.9, 0.05])
        return rng.normal(0.0, 0.01, MOST) + sign * math.log1p(by)

    return draw


def modes(apart: float, share: float) -> Draw:
    """Return processes of two speeds, ``share`` of which are slow."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        slow = (rng.random((2, MOST)) < share).astype(float)
        logs: np.ndarray = rng.normal(0.0, 0.01, MOST) + (slow[1] - slow[0]) * math.log1p(apart)
        return logs

    return draw


MODELS: Mapping[str, Draw] = {
    "normal, 5 %": lambda rng: rng.normal(0.0, 0.05, MOST),
    "normal, 8 %": lambda rng: rng.normal(0.0, 0.08, MOST),
    "one round in ten, 15 %": disturbed(0.15),
    "one round in ten, 30 %": disturbed(0.3),
    "two speeds 10 % apart": modes(0.1, 0.5),
    "two speeds 60 % apart": modes(0.6, 0.3),
    "heavy tails, t2": lambda rng: 0.02 * rng.standard_t(2, MOST),
    "heavy tails, t3": lambda rng: 0.03 * rng.standard_t(3, MOST),
}
RULES: Mapping[str, Callable[[Comparison, int], bool]] = {
    "as it is": lambda row, most: chance(row, POLICY, FAMILY, most) < 0.05,
    "the rule": lambda row, most: is_out_of_reach(row, POLICY, FAMILY, most),
}


def path(logs: np.ndarray) -> tuple[list[Comparison], bool]:
    """Return the row at each look of a session that gives nothing up, and whether it decided."""
    sides: dict[str, list[WorkerOutput]] = {"base": [], "head": []}
    rows: list[Comparison] = []
    ancestor = 0
    while True:
        count = len(sides["base"])
        ancestor += 1
        for _ in range(rounds_of_ancestor(rows[-1:], [METRIC], rounds=count, least=LEAST)):
            change = float(logs[count])
            count += 1
            for side, value in (("base", 1.0), ("head", math.exp(change))):
                output = WorkerOutput(CASE.id, side, count, {METRIC: value}, 100, ancestor=ancestor)
                sides[side].append(output)
            if count >= LEAST:
                rows += compare_case(CASE, sides["base"], sides["head"], POLICY, paired=True)
                if not wants_rounds(rows[-1], POLICY, FAMILY):
                    return rows, True
            if count == MOST:
                judged = adjust(rows[-1:], POLICY, float(FAMILY))
                return rows, decide(judged, (), POLICY).status != "inconclusive"


def main(runs: int) -> None:
    """Print a line for each model and change."""
    for name, draw in MODELS.items():
        for change in (0.0, math.log(1.1)):
            rng = np.random.default_rng([25, len(name), round(1e4 * change)])
            paths = [path(draw(rng) + change) for _ in range(runs)]
            decided = sum(one for _, one in paths)
            cells = [f"{100 * decided / runs:.0f}; {_rounds(rows[-1] for rows, _ in paths):.1f}"]
            for gives_up in RULES.values():
                ends = [
                    (next((r for r in rows[:-1] if gives_up(r, MOST - _count(r))), rows[-1]), one)
                    for rows, one in paths
                ]
                given = [
                    one
                    for (end, one), (rows, _) in zip(ends, paths, strict=True)
                    if end is not rows[-1]
                ]
                cells.append(
                    f"{100 * (decided - sum(given)) / runs:.0f}; {_rounds(e for e, _ in ends):.1f}"
                    f"; {sum(given)} of {len(given)}"
                )
            label = f"{name}, {'identical' if not change else 'slower by 10 %'}"
            print("| " + " | ".join((label, *cells)) + " |", flush=True)


def _count(row: Comparison) -> int:
    return row.base.workers if row.base else 0


def _rounds(rows: Iterable[Comparison]) -> float:
    return float(np.mean([_count(row) for row in rows]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
