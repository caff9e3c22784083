"""Decision paths: what perfci's own code decides of simulated workers, step by step.

Nothing is decided here. What a case still needs, when it gets no more, comparing, correcting and
judging are the functions that a session calls. Only the loop around them stands in for processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from benchmarks.statistics.noise import BURSTS, MODELS, Array, Model, Rng, Seen
from perfci.config.keys import MeasureSettings
from perfci.measure.progress import CaseNeeds, CaseState, case_states
from perfci.metrics import METRICS
from perfci.model.case import Case
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Comparison
from perfci.stats.t_tests import DayShift
from perfci.verdict.anchors import choose_anchors, day_shifts, may_decide
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import decide
from perfci.verdict.policy import Policy
from perfci.verdict.reduction import side_by_side
from perfci.verdict.row_status import adjust, suspects

METRIC = "latency_p50"
CASES = 20
GATING = 4
"""Gating tests of a case: latency, cold start, peak host memory, host memory over set-up."""
DAY_LUCK = 0.01
"""The whole machine is so much faster or slower on another day."""
WORKERS = 5
"""A session of `run` or `check` measures so many workers of a case."""
_SIDES = ("base", "head")
_POOL_REPORTS = 15
_QUIET = next(model for model in MODELS if model.name == "spread 0.7 %")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A report: its verdict, its simulated rows, and the time of each case in rounds of pairs."""

    verdict: str
    rows: tuple[Comparison, ...]
    rounds: tuple[float, ...]


Path = Callable[..., Outcome]
"""Maps (model, rng, each case's true log ratio, policy, ``cases``) to a report.

The report has ``cases`` cases of ``GATING`` tests each. Those that aren't simulated are of
identical sides: they count in the correction, and decide nothing.
"""
Rows = tuple[Comparison, ...]
Pair = Callable[[int, int, int], tuple[WorkerOutput, WorkerOutput]]
"""Maps (a case's index, its round, the fork server that the round comes from) to both workers."""


def policy_with(threshold: float) -> Policy:
    """Return the default policy but for latency's threshold."""
    return Policy(metrics={METRIC: replace(METRICS[METRIC], threshold=threshold)})


@dataclass(frozen=True, slots=True)
class Compare:
    """`compare`; without ``forks`` each round is of fresh processes (`quiet.fork = false`)."""

    settings: MeasureSettings = field(default_factory=MeasureSettings)
    forks: bool = True

    def __call__(
        self,
        model: Model,
        rng: Rng,
        changes: Sequence[float],
        policy: Policy,
        cases: int = CASES,
    ) -> Outcome:
        return self.measured(model, rng, changes, policy, cases)[0]

    def measured(
        self,
        model: Model,
        rng: Rng,
        changes: Sequence[float],
        policy: Policy,
        cases: int,
    ) -> tuple[Outcome, list[CaseState]]:
        """Return the report, and the state of each case, measured as if time never ran out."""
        count, most = len(changes), self.settings.max_rounds
        seen = _slowed(model.together(rng, count, most), changes)
        luck = model.of_servers(rng, count, most)

        def pair(index: int, number: int, server: int) -> tuple[WorkerOutput, WorkerOutput]:
            outputs = [
                _worker(
                    _case(index),
                    side,
                    number,
                    seen.at(side, index, number - 1),
                    seen.bursts_at(side, index, number - 1),
                    0.0 if luck is None else luck[side][index, (server or number) - 1],
                    server,
                )
                for side in (0, 1)
            ]
            base, head = side_by_side(outputs, (1,) * BURSTS)
            return base, head

        others = _others("compare", rng, GATING * cases - count)
        policy = replace(policy, looks=(self.settings.rounds, self.settings.max_rounds))
        needs = CaseNeeds(self.settings, policy)
        states = case_states(tuple(map(_case, range(count))), _SIDES)
        sessions = [
            _CaseSession(index, state, needs, pair, self.forks)
            for index, state in enumerate(states)
        ]
        least = sessions[0].least_rounds()
        for session in sessions[1:]:
            session.measure(least, server=1)
        family = needs.gating_comparisons(states) + len(others)
        for session in sessions:
            session.decide(family)
        rows = [row for state in states for row in state.compared(policy)]
        concluded = _concluded(rows, others, policy)
        return replace(concluded, rounds=tuple(state.rounds for state in states)), states


@dataclass(slots=True)
class _CaseSession:
    """The rounds of one case. With ``forks``, one fork server gives the least of them."""

    index: int
    state: CaseState
    needs: CaseNeeds
    pair: Pair
    forks: bool

    def least_rounds(self) -> int:
        """Measure the least rounds, and return their number."""
        least = self.needs.minimum_rounds(self.state)
        self.measure(least, server=1)
        return least

    def measure(self, rounds: int, *, server: int) -> None:
        """Measure rounds of a fork server."""
        for _ in range(rounds):
            self.state.rounds += 1
            outputs = self.pair(self.index, self.state.rounds, server if self.forks else 0)
            for name, output in zip(_SIDES, outputs, strict=True):
                self.state.outputs[name].append(output)

    def decide(self, family: int) -> None:
        """Measure on while that may decide more."""
        while self.needs.wants_more(self.state, family, math.inf):
            self.measure(1, server=2)


@dataclass(frozen=True, slots=True)
class Check:
    """`check` against a baseline of so many ``sessions``.

    All cases are slower by ``DAY_LUCK`` or so on each session's day, and by ``slower`` today.
    Without ``pairs`` head is measured alone, as with `--no-confirm`.
    """

    sessions: int
    pairs: bool = True
    slower: float = 0.0

    def __call__(
        self,
        model: Model,
        rng: Rng,
        changes: Sequence[float],
        policy: Policy,
        cases: int = CASES,
    ) -> Outcome:
        day = float(rng.normal(0.0, DAY_LUCK)) + self.slower
        stored = [_on_a_day(model, rng, len(changes)) for _ in range(self.sessions)]
        head = _on_a_day(model, rng, len(changes), day=day, side="head")
        head += np.reshape(changes, (-1, 1))
        sides = [
            (
                _workers(_case(index), 0, np.concatenate([each[index] for each in stored])),
                _workers(_case(index), 1, head[index]),
            )
            for index in range(len(changes))
        ]

        def screened(index: int, days: Mapping[str, DayShift], *, expected: bool = False) -> Rows:
            base, now = sides[index]
            return compare_case(
                _case(index),
                base,
                base[-WORKERS:] if expected else now,
                policy,
                paired=False,
                base_sessions=(WORKERS,) * self.sessions,
                days=days,
            )

        def paired(indices: Sequence[int]) -> tuple[Outcome, list[CaseState]]:
            slower = [changes[index] for index in indices]
            return Compare().measured(model, rng, slower, policy, cases)

        everything = range(len(changes))
        if not self.pairs:
            rows = [row for index in everything for row in screened(index, {})]
            others = _others("check", rng, GATING * cases - len(rows))
            rounds = (WORKERS / 2.0,) * len(changes)
            return replace(_concluded(rows, others, policy), rounds=rounds)
        names = choose_anchors([str(index) for index in everything], str(rng.random()))
        anchors = tuple(map(int, names))
        anchored, states = paired(anchors)
        outcomes = _by_case(anchors, anchored)
        factors = np.exp(day + rng.normal(0.0, model.session_luck, len(anchors)))
        days = day_shifts(
            {
                str(index): [sides[index][0][at : at + WORKERS] for at in self._starts]
                for index in anchors
            },
            {
                str(index): [_times(output, factor) for output in state.outputs["base"]]
                for index, state, factor in zip(anchors, states, factors, strict=True)
            },
        )
        left = [index for index in everything if index not in anchors]
        alone = [
            index
            for index in left
            if may_decide(adjust(screened(index, days, expected=True), policy), policy)
        ]
        screen = adjust([row for index in alone for row in screened(index, days)], policy)
        named = set(suspects(screen, policy))
        again = [index for index in left if index not in alone or f"case{index}" in named]
        if again:
            outcomes |= _by_case(again, paired(again)[0])
        decided = {row.case: row for row in screen}
        results = tuple(
            outcomes[index].rows[0] if index in outcomes else decided[f"case{index}"]
            for index in everything
        )
        rounds = tuple(
            (WORKERS / 2.0 if index in alone else 0.0)
            + (outcomes[index].rounds[0] if index in outcomes else 0.0)
            for index in everything
        )
        return Outcome(decide(results, (), policy).status, results, rounds)

    @property
    def _starts(self) -> range:
        return range(0, self.sessions * WORKERS, WORKERS)


def _by_case(indices: Sequence[int], outcome: Outcome) -> dict[int, Outcome]:
    """Return the rows of pairs, adjusted together, by the index of their case."""
    return {
        index: Outcome("", (replace(row, case=f"case{index}", confirmed=True),), (rounds,))
        for index, row, rounds in zip(indices, outcome.rows, outcome.rounds, strict=True)
    }


def _times(output: WorkerOutput, factor: float) -> WorkerOutput:
    return replace(output, values={METRIC: output.values[METRIC] * factor})


def _on_a_day(
    model: Model, rng: Rng, cases: int, *, day: float | None = None, side: str = "base"
) -> Array:
    """Return one session's log values, on a random day or the one given."""
    shift = float(rng.normal(0.0, DAY_LUCK)) if day is None else day
    return model.alone(rng, cases, WORKERS, side=side) + shift


PATHS: dict[str, Path] = {
    "compare": Compare(),
    "compare, fresh processes": Compare(forks=False),
    "check, 1 session": Check(1),
    "check, 3 sessions": Check(3),
    "check, 5 sessions": Check(5),
    "check, 3 sessions, no pairs": Check(3, pairs=False),
    "check, slow day": Check(1, slower=0.04),
}


def _concluded(rows: Sequence[Comparison], others: Sequence[Comparison], policy: Policy) -> Outcome:
    adjusted = adjust((*rows, *others), policy)
    return Outcome(decide(adjusted, (), policy).status, adjusted[: len(rows)], ())


def _others(path: str, rng: Rng, count: int) -> list[Comparison]:
    """Return ``count`` rows of identical sides, whose doubt doesn't cost the verdict."""
    if count <= 0:
        return []
    pool = _pool(path)
    return [pool[index] for index in rng.integers(0, len(pool), count)]


@cache
def _pool(path: str) -> tuple[Comparison, ...]:
    rng, policy, alike = np.random.default_rng(2), policy_with(0.05), [0.0] * CASES
    rows: list[Comparison] = []
    for _ in range(_POOL_REPORTS):
        if path == "compare":
            rows += Compare()(_QUIET, rng, alike, policy, cases=0).rows
        else:
            rows += Check(3, pairs=False)(_QUIET, rng, alike, policy, cases=0).rows
    return tuple(replace(row, case=f"other{n}", metric="cold_start") for n, row in enumerate(rows))


def _slowed(seen: Seen, changes: Sequence[float]) -> Seen:
    change = np.reshape(changes, (-1, 1))
    if seen.head_bursts is None:
        return replace(seen, head=seen.head + change)
    return replace(seen, head=seen.head + change, head_bursts=seen.head_bursts + change[..., None])


@cache
def _case(index: int) -> Case:
    name = f"case{index}"
    return Case(name, name, {}, "bench_simulated.py", 1, "simulated", metrics=(METRIC,))


def _workers(case: Case, side: int, logs: Array) -> tuple[WorkerOutput, ...]:
    return tuple(
        _worker(case, side, number, log) for number, log in enumerate(logs.tolist(), start=1)
    )


def _worker(
    case: Case,
    side: int,
    number: int,
    log: float,
    bursts: Array | None = None,
    luck: float = 0.0,
    server: int = 0,
) -> WorkerOutput:
    values = {METRIC: math.exp(log + luck)}
    medians = {} if bursts is None else {METRIC: tuple(np.exp(bursts + luck).tolist())}
    return WorkerOutput(
        case=case.id,
        side=_SIDES[side],
        round=number,
        values=values,
        samples=100,
        bursts=medians,
        server=server,
    )
