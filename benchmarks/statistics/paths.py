"""Decision paths: what perfci's own pure code decides of simulated workers, step by step.

Nothing is decided here: comparing, correcting, judging and stopping are the functions that
sessions call; only the loop around them stands in for processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.statistics.noise import Array, Model, Rng, Seen
from perfci.model.case import Case
from perfci.model.report import Comparison
from perfci.model.worker import WorkerOutput
from perfci.verdict.allocation import is_out_of_reach
from perfci.verdict.comparison.cases import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.judgement import adjust, suspects
from perfci.verdict.policy import MetricPolicy, Policy
from perfci.verdict.stopping import rounds_of_ancestor, undecided_metrics

METRIC = "latency_p50"
COLD = "cold_start"
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
    ancestors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ColdStart:
    """How long starting takes: ``changes`` are each case's true log ratios."""

    model: Model
    changes: tuple[float, ...]

    def only(self, cases: Sequence[int]) -> ColdStart:
        return ColdStart(self.model, tuple(self.changes[index] for index in cases))


Path = Callable[..., Outcome]
"""(model, rng, each case's true log ratio, policy, rows of other cases of the report, and
what starting takes, if that is measured too)."""
Pair = Callable[[int, int, int], tuple[WorkerOutput, WorkerOutput]]
"""(a case's place, its round, the ancestor that the round comes from) to both sides' workers."""


def policy_with(threshold: float) -> Policy:
    """Cold start keeps its defaults: 10 %, and doubt doesn't cost the verdict."""
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
        cold: ColdStart | None = None,
    ) -> Outcome:
        policy = replace(policy, looks=(least, most))
        cases = [_case(index, cold) for index in range(len(changes))]
        seen = _slowed(model.together(rng, len(changes), most), changes)
        starts = cold and _slowed(cold.model.together(rng, len(changes), most), cold.changes)
        rounds = [least] * len(cases)
        outputs = [_sides(case, index, seen, starts, least) for index, case in enumerate(cases)]

        def compared(index: int) -> tuple[Comparison, ...]:
            end = rounds[index]
            base, head = outputs[index]
            return compare_case(cases[index], base[:end], head[:end], policy, paired=True)

        rows = [compared(index) for index in range(len(cases))]
        gating = [row for case in rows for row in case if row.method == "paired_t"]
        family = len(gating) + len(others)
        for index, case in enumerate(cases):
            if undecided_metrics(rows[index], case, policy, family):
                outputs[index] = _sides(case, index, seen, starts, most)
            while rounds[index] < most and undecided_metrics(rows[index], case, policy, family):
                rounds[index] += 1
                rows[index] = compared(index)
        mine = [row for case in rows for row in case]
        return _concluded(mine, others, policy, rounds)

    return path


@dataclass(frozen=True, slots=True)
class Served:
    """How rounds come from ancestors: the paths of `compare` where both sides have a common one."""

    least: int = LEAST_ROUNDS
    most: int = MOST_ROUNDS
    gives_up: bool = True

    def __call__(
        self,
        model: Model,
        rng: Rng,
        changes: Sequence[float],
        policy: Policy,
        others: Sequence[Comparison] = (),
        cold: ColdStart | None = None,
    ) -> Outcome:
        cases = [_case(index, cold) for index in range(len(changes))]
        seen = _slowed(replace(model, layout=0.0).together(rng, len(changes), self.most), changes)
        starts = cold and _slowed(cold.model.together(rng, len(changes), self.most), cold.changes)
        luck = model.of_ancestors(rng, len(changes), self.most)
        outputs = [_sides(case, index, seen, starts, self.most) for index, case in enumerate(cases)]

        def pair(index: int, number: int, ancestor: int) -> tuple[WorkerOutput, WorkerOutput]:
            base, head = (
                _of(outputs[index][side][number - 1], ancestor, luck[side][index, ancestor - 1])
                for side in (0, 1)
            )
            return base, head

        return of_ancestors(
            cases, pair, policy, others, least=self.least, most=self.most, gives_up=self.gives_up
        )


def of_ancestors(
    cases: Sequence[Case],
    pair: Pair,
    policy: Policy,
    others: Sequence[Comparison] = (),
    *,
    least: int = LEAST_ROUNDS,
    most: int = MOST_ROUNDS,
    gives_up: bool = True,
) -> Outcome:
    """Measure the cases until they are decided, as `compare` does."""
    policy = replace(policy, looks=(least, most))
    ancestors: list[list[int]] = [[] for _ in cases]
    sides: list[tuple[list[WorkerOutput], list[WorkerOutput]]] = [([], []) for _ in cases]

    def measure(index: int, ancestor: int) -> None:
        ancestors[index].append(ancestor)
        pairs = pair(index, len(ancestors[index]), ancestor)
        for side, output in zip(sides[index], pairs, strict=True):
            side.append(output)

    def compared(index: int) -> tuple[Comparison, ...]:
        return compare_case(cases[index], *sides[index], policy, paired=True)

    for index, of in enumerate(ancestors):
        while len(of) < least:
            count = rounds_of_ancestor(compared(index), (), rounds=len(of), least=least)
            ancestor = of[-1] + 1 if of else 1
            for _ in range(count):
                measure(index, ancestor)
    rows = [compared(index) for index in range(len(cases))]
    gating = [row for case in rows for row in case if _gates(row)]
    family = len(gating) + len(others)
    for index, case in enumerate(cases):
        of, left = ancestors[index], 0
        while len(of) < most and (
            undecided := undecided_metrics(rows[index], case, policy, family)
        ):
            if gives_up and all(
                is_out_of_reach(row, policy, family, most - len(of))
                for row in rows[index]
                if row.metric in undecided
            ):
                break
            if left == 0:
                left = rounds_of_ancestor(rows[index], undecided, rounds=len(of), least=least)
                measure(index, of[-1] + 1)
            else:
                measure(index, of[-1])
            left -= 1
            rows[index] = compared(index)
    mine = [row for case in rows for row in case]
    return replace(
        _concluded(mine, others, policy, [len(of) for of in ancestors]),
        ancestors=tuple(of[-1] for of in ancestors),
    )


def _gates(row: Comparison) -> bool:
    return row.method == "paired_t" and row.gate == "fail"


def _of(output: WorkerOutput, ancestor: int, luck: float) -> WorkerOutput:
    """Return the output as that ancestor's: what it adds, it adds to all."""
    factor = math.exp(luck)
    bursts = {
        name: tuple(None if one is None else one * factor for one in each)
        for name, each in output.bursts.items()
    }
    values = {**output.values, METRIC: output.values[METRIC] * factor}
    return replace(output, values=values, bursts=bursts, ancestor=ancestor)


def check(sessions: int) -> Path:
    """`check --no-confirm` against a baseline of so many sessions."""

    def path(
        model: Model,
        rng: Rng,
        changes: Sequence[float],
        policy: Policy,
        others: Sequence[Comparison] = (),
        cold: ColdStart | None = None,
    ) -> Outcome:
        count = len(changes)
        cases = [_case(index, cold) for index in range(count)]
        stored, now = _apart(model, rng, changes, sessions)
        starts = None if cold is None else _apart(cold.model, rng, cold.changes, sessions)
        rows: list[Comparison] = []
        for index, case in enumerate(cases):
            before, after = (None, None) if starts is None else (starts[0][index], starts[1][index])
            rows += compare_case(
                case,
                _workers(case, "base", stored[index], starts=before),
                _workers(case, "head", now[index], starts=after),
                policy,
                paired=False,
                base_sessions=(WORKERS,) * sessions,
            )
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
        cold: ColdStart | None = None,
    ) -> Outcome:
        suspicion = check(sessions)(model, rng, changes, policy, others, cold)
        names = set(suspects(suspicion.rows, policy))
        found = [index for index in range(len(changes)) if f"case{index}" in names]
        if not found:
            return suspicion
        starts = cold and cold.only(found)
        again = compare_adaptive()(model, rng, [changes[i] for i in found], policy, (), starts)
        measured = {
            (f"case{found[int(row.case.removeprefix('case'))]}", row.metric): row
            for row in again.rows
        }
        rows = [
            replace(measured[row.case, row.metric], case=row.case, confirmed=True)
            if row.case in names
            else row
            for row in suspicion.rows
        ]
        rounds = list(suspicion.rounds)
        for position, index in enumerate(found):
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


def _apart(model: Model, rng: Rng, changes: Sequence[float], sessions: int) -> tuple[Array, Array]:
    """Return a baseline's log values, session after session, and head's."""
    stored = [model.alone(rng, len(changes), WORKERS) for _ in range(sessions)]
    now = model.alone(rng, len(changes), WORKERS, side="head") + np.reshape(changes, (-1, 1))
    return np.concatenate(stored, axis=1), now


def _slowed(seen: Seen, changes: Sequence[float]) -> Seen:
    change = np.reshape(changes, (-1, 1))
    if seen.head_bursts is None:
        return replace(seen, head=seen.head + change)
    return replace(seen, head=seen.head + change, head_bursts=seen.head_bursts + change[..., None])


def _case(index: int, cold: ColdStart | None) -> Case:
    name = f"case{index}"
    metrics = (METRIC,) if cold is None else (METRIC, COLD)
    return Case(name, name, {}, "bench_simulated.py", 1, "simulated", metrics=metrics)


def _sides(
    case: Case, index: int, seen: Seen, starts: Seen | None, rounds: int
) -> tuple[tuple[WorkerOutput, ...], tuple[WorkerOutput, ...]]:
    """Return both sides' workers of one case, of so many rounds."""

    def first(values: Array | None) -> Array | None:
        return None if values is None else values[index, :rounds]

    cold = (None, None) if starts is None else (starts.base, starts.head)
    return (
        _workers(case, "base", first(seen.base), first(seen.base_bursts), first(cold[0])),
        _workers(case, "head", first(seen.head), first(seen.head_bursts), first(cold[1])),
    )


def _workers(
    case: Case,
    side: str,
    logs: Array,
    bursts: Array | None = None,
    starts: Array | None = None,
) -> tuple[WorkerOutput, ...]:
    values = [{METRIC: value} for value in np.exp(logs).tolist()]
    if starts is not None:
        for given, start in zip(values, np.exp(starts).tolist(), strict=True):
            given[COLD] = start
    medians: list[dict[str, tuple[float, ...]]] = [{} for _ in values]
    if bursts is not None:
        medians = [{METRIC: tuple(each)} for each in np.exp(bursts).tolist()]
    return tuple(
        WorkerOutput(case.id, side, number, given, 100, bursts=each)
        for number, (given, each) in enumerate(zip(values, medians, strict=True), start=1)
    )
