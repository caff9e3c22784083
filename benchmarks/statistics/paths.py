"""Decision paths: what perfci's own pure code decides of simulated workers, step by step.

Nothing is decided here: comparing, correcting, judging and stopping are the functions that
sessions call; only the loop around them stands in for processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.statistics.noise import Array, Model, Rng
from perfci.measure.stopping import undecided_metrics
from perfci.record.case import Case
from perfci.record.report import Comparison
from perfci.record.worker import WorkerOutput
from perfci.verdict.comparing import adjust, compare_case
from perfci.verdict.deciding import decide
from perfci.verdict.policy import MetricPolicy, Policy
from perfci.verdict.suspecting import suspects

METRIC = "latency_p50"
FAMILY = 20
LEAST_ROUNDS, MOST_ROUNDS = 5, 20
WORKERS = 5
"""A session of `run` or `check` measures so many workers of a case."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One report: its verdict, its rows, and how many rounds each case took."""

    verdict: str
    rows: tuple[Comparison, ...]
    rounds: tuple[int, ...]


Path = Callable[[Model, Rng, Sequence[float], Policy, Sequence[Comparison]], Outcome]
"""(model, rng, each case's true log ratio, policy, rows of other cases of the report)."""


def policy_with(threshold: float) -> Policy:
    return Policy(metrics={METRIC: MetricPolicy(threshold, "fail", "inconclusive")})


def compare_fixed(rounds: int) -> Path:
    """`compare` with so many rounds for every case."""
    return compare_adaptive(rounds, rounds)


def compare_adaptive(least: int = LEAST_ROUNDS, most: int = MOST_ROUNDS) -> Path:
    """`compare` as it is by default: rounds are added while the rule asks for them."""

    def path(
        model: Model,
        rng: Rng,
        changes: Sequence[float],
        policy: Policy,
        others: Sequence[Comparison] = (),
    ) -> Outcome:
        logs = model.together(rng, len(changes), most)
        cases = [_case(index) for index in range(len(changes))]
        base = _outputs(cases, "base", logs[0])
        head = _outputs(cases, "head", logs[1] + np.reshape(changes, (-1, 1)))
        rounds = [least] * len(cases)

        def compared(index: int) -> tuple[Comparison, ...]:
            end = rounds[index]
            return compare_case(
                cases[index], base[index][:end], head[index][:end], policy, paired=True
            )

        rows = [compared(index) for index in range(len(cases))]
        gating = [row for case in rows for row in case if row.method == "paired_t"]
        family = len(gating) + len(others)
        for index, case in enumerate(cases):
            while rounds[index] < most and undecided_metrics(rows[index], case, policy, family):
                rounds[index] += 1
                rows[index] = compared(index)
        mine = [row for case in rows for row in case]
        return _concluded(mine, others, policy, rounds)

    return path


def check(sessions: int) -> Path:
    """`check --no-confirm` against a baseline of so many sessions."""

    def path(
        model: Model,
        rng: Rng,
        changes: Sequence[float],
        policy: Policy,
        others: Sequence[Comparison] = (),
    ) -> Outcome:
        count = len(changes)
        cases = [_case(index) for index in range(count)]
        stored = [model.alone(rng, count, WORKERS) for _ in range(sessions)]
        base = _outputs(cases, "base", np.concatenate(stored, axis=1))
        now = model.alone(rng, count, WORKERS) + np.reshape(changes, (-1, 1))
        head = _outputs(cases, "head", now)
        rows = [
            row
            for index, case in enumerate(cases)
            for row in compare_case(
                case,
                base[index],
                head[index],
                policy,
                paired=False,
                base_sessions=(WORKERS,) * sessions,
            )
        ]
        return _concluded(rows, others, policy, [WORKERS] * count)

    return path


def check_confirmed(sessions: int) -> Path:
    """`check` as it is by default: what regressed is measured again, both sides together."""

    def path(
        model: Model,
        rng: Rng,
        changes: Sequence[float],
        policy: Policy,
        others: Sequence[Comparison] = (),
    ) -> Outcome:
        suspicion = check(sessions)(model, rng, changes, policy, others)
        names = suspects(suspicion.rows, policy)
        found = [i for i, row in enumerate(suspicion.rows) if row.case in names]
        if not found:
            return suspicion
        again = compare_adaptive()(model, rng, [changes[i] for i in found], policy, ())
        rows, rounds = list(suspicion.rows), list(suspicion.rounds)
        for position, index in enumerate(found):
            rows[index] = replace(again.rows[position], confirmed=True)
            rounds[index] += again.rounds[position]
        verdict = decide((*rows, *others), (), policy)
        return Outcome(verdict.status, tuple(rows), tuple(rounds))

    return path


PATHS: dict[str, Path] = {
    "compare, 5 rounds": compare_fixed(5),
    "compare, 10 rounds": compare_fixed(10),
    "compare, 40 rounds": compare_fixed(40),
    "compare, adaptive": compare_adaptive(),
    "check, 1 session": check(1),
    "check, 2 sessions": check(2),
    "check, 3 sessions": check(3),
    "check, 5 sessions": check(5),
    "check, 1 session, confirmed": check_confirmed(1),
    "check, 3 sessions, confirmed": check_confirmed(3),
}


def _concluded(
    mine: Sequence[Comparison],
    others: Sequence[Comparison],
    policy: Policy,
    rounds: Sequence[int],
) -> Outcome:
    adjusted = adjust((*mine, *others), policy)
    verdict = decide(adjusted, (), policy)
    return Outcome(verdict.status, adjusted[: len(mine)], tuple(rounds))


def _case(index: int) -> Case:
    name = f"case{index}"
    return Case(name, name, {}, "bench_simulated.py", 1, "simulated", metrics=(METRIC,))


def _outputs(cases: Sequence[Case], side: str, logs: Array) -> list[tuple[WorkerOutput, ...]]:
    return [
        tuple(
            WorkerOutput(case.id, side, number, {METRIC: value}, 100)
            for number, value in enumerate(values, start=1)
        )
        for case, values in zip(cases, np.exp(logs).tolist(), strict=True)
    ]
