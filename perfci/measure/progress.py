"""A session's cases: the rounds, needs and time of each, and the log."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfci.config.keys import MeasureSettings
from perfci.measure.selection import least_rounds
from perfci.metrics.start import cold_pairs
from perfci.model.case import Case, Failure
from perfci.model.measuring import (
    AGREEING_ROUNDS,
    DECIDING_ROUNDS,
    WorkerFailure,
    WorkerOutput,
    WorkerResult,
)
from perfci.model.report import Comparison
from perfci.model.worker import TEST_SKIPPED
from perfci.units import first_of
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.policy import Policy
from perfci.verdict.row_status import untouched_rows
from perfci.verdict.stopping import (
    Candidate,
    is_out_of_reach,
    next_cases,
    rounds_to_decide,
    undecided_metrics,
)

EXTRA_CALL_METRICS = frozenset({"accuracy_loss", "differing_ranks", "memory_growth"})
"""Metrics that need calls of their own, and have the same value in each round."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a session.

    ``shortage`` says that the budget isn't enough for all cases, once that shows.
    """

    case: str
    round: int
    done: int
    planned: int
    elapsed_s: float
    shortage: Shortage | None = None


@dataclass(frozen=True, slots=True)
class Shortage:
    """A budget that isn't enough: all ``cases`` need ``needed_s``.

    ``enough_for`` of them are measured, in at least ``rounds``.
    """

    cases: int
    enough_for: int
    rounds: int
    needed_s: float
    given_s: float


@dataclass(slots=True)
class CaseState:
    """The state of one case so far, which the session updates.

    ``outputs`` are by side. ``took_s`` has the time of each round. An ``untouched``
    case ran no changed file in its first round, and gets no more rounds.
    """

    case: Case
    slug: str
    outputs: dict[str, list[WorkerOutput]]
    failures: list[Failure] = field(default_factory=list)
    rounds: int = 0
    undecided: tuple[str, ...] = ()
    out_of_reach: tuple[str, ...] = ()
    wall_s: float = 0.0
    took_s: list[float] = field(default_factory=list)
    untouched: bool = False
    crowding: Failure | None = None
    _compared: tuple[int, tuple[Comparison, ...]] = (0, ())

    @property
    def skip_reason(self) -> str:
        """Return why the suite itself skipped the case on every side as it ran, or ""."""
        skipping = [failure for failure in self.failures if failure.kind == TEST_SKIPPED]
        if {failure.side for failure in skipping} != self.outputs.keys():
            return ""
        return skipping[-1].message

    @property
    def compiled(self) -> bool:
        """Return whether its axes say that it compiles, or its first worker of a side did."""
        return self.case.compiled or any(
            outputs and outputs[0].values.get("captured_calls") for outputs in self.outputs.values()
        )

    def cold_rounds(self, compile_rounds: int) -> int:
        """Return how many rounds start with an empty compile cache.

        Round 1 always does: a benchmark may compile although none of its axes says so. More do
        while head looks slower to compile.
        """
        rounds = compile_rounds if self.case.compiled else 1
        sides = tuple(self.outputs.values())
        return max(rounds, cold_pairs(*sides)) if len(sides) == 2 else rounds

    def compared(self, policy: Policy) -> tuple[Comparison, ...]:
        """Return the comparisons of both sides, made once a round. Empty for a single side.

        If the case is ``untouched``, the comparisons say so.
        """
        if len(self.outputs) == 2 and self._compared[0] != self.rounds:
            base, head = (tuple(self.outputs[name]) for name in ("base", "head"))
            rows = compare_case(self.case, base, head, policy, paired=True)
            self._compared = (self.rounds, rows)
        return untouched_rows(self._compared[1]) if self.untouched else self._compared[1]


def crowding_notes(states: Sequence[CaseState]) -> list[str]:
    """Return a note on each case whose sides were measured one at a time, because one failed."""
    return [
        f"{state.case.id}: its sides can't live at once, so they were measured one at a time. Next "
        f"to the other side, {failure.side} failed in {failure.stage} ({failure.kind}): "
        f"{next(iter(failure.message.strip().splitlines()), '')}"
        for state in states
        if (failure := state.crowding)
    ]


def with_timeout_named(failure: Failure, case: Case) -> Failure:
    """Return ``failure``. If a ``timeout`` ended it, the message says where that is set."""
    if failure.kind != "timeout":
        return failure
    owner = (
        "`timeout` of [tool.perfci]" if case.timeout is None else "the benchmark's own `timeout`"
    )
    return replace(failure, message=f"{failure.message}: {owner}")


@dataclass(frozen=True, slots=True)
class SessionResult:
    """All that was measured.

    ``ended`` says what ended the session: done or budget, by its own rules. Interrupted,
    tree-deleted or outside (a full disk, for example) mean that it is only a part of a session.
    ``installed`` are the project's packages that all sides ran from one installed copy.
    ``unexercised`` are the changed sources, if no case used any of them.
    ``failures`` are those that don't belong to a single case. ``skipped`` has the reasons of cases
    that the suite itself skipped as they ran.
    """

    states: tuple[CaseState, ...]
    wall_s: float
    measured_s: float
    rounds: int
    ended: str
    notes: tuple[str, ...]
    installed: tuple[str, ...] = ()
    unexercised: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def cut_short(self) -> bool:
        """Return whether something other than the session's own rules ended it."""
        return self.ended in {"interrupted", "tree-deleted", "outside"}


def case_states(cases: tuple[Case, ...], sides: Sequence[str]) -> list[CaseState]:
    """Return a state for each case, with nothing measured. ``sides`` are the sides' names."""
    slugs = _slugs(cases)
    return [CaseState(case, slugs[case.id], {name: [] for name in sides}) for case in cases]


def _slugs(cases: tuple[Case, ...]) -> dict[str, str]:
    """Return a file name for each case. A number is added to a name that is taken."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for case in cases:
        name, number = slug(case.id), 2
        while name in taken:
            name, number = f"{slug(case.id)}-{number}", number + 1
        taken.add(name)
        names[case.id] = name
    return names


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The time that a session has left, and that each fork server takes to start."""

    left_s: float
    start_s: float


@dataclass(frozen=True, slots=True)
class CaseNeeds:
    """The needs of cases under these settings and this policy. Times in s."""

    settings: MeasureSettings
    policy: Policy

    def minimum_rounds(self, state: CaseState) -> int:
        """Return how many rounds the case has at least."""
        settings = self.settings
        cold = state.cold_rounds(settings.compile_rounds)
        return least_rounds(settings.rounds, cold, compiled=state.compiled)

    def extra_call_metrics(self, state: CaseState) -> frozenset[str]:
        """Return which of ``EXTRA_CALL_METRICS`` the next round measures.

        If the workers of the first rounds agree, later rounds leave the metric out. A single side
        is compared later, with workers that aren't known yet. So it measures all of them in as many
        rounds as any decision needs.
        """
        if state.rounds >= DECIDING_ROUNDS:
            return frozenset()
        if state.rounds < AGREEING_ROUNDS or len(state.outputs) < 2:
            return EXTRA_CALL_METRICS
        # a row is `exact` if the workers agree
        open_rows = (row for row in state.compared(self.policy) if row.method != "exact")
        return EXTRA_CALL_METRICS & {row.metric for row in open_rows}

    def wants_more(self, state: CaseState, family: int, left_s: float) -> bool:
        """Note in the state which metrics more rounds may decide. Return whether there are any."""
        if state.untouched or state.failures or state.rounds >= self.maximum_rounds(state):
            return False
        compared = state.compared(self.policy)
        undecided = undecided_metrics(compared, self.policy, family)
        state.out_of_reach = self._out_of_reach(state, undecided, family, left_s)
        state.undecided = tuple(metric for metric in undecided if metric not in state.out_of_reach)
        return bool(state.undecided)

    def maximum_rounds(self, state: CaseState) -> int:
        """Return how many rounds the case has at most."""
        return max(self.settings.max_rounds, self.minimum_rounds(state))

    def _out_of_reach(
        self, state: CaseState, undecided: Collection[str], family: int, left_s: float
    ) -> tuple[str, ...]:
        """Return the undecided metrics that the rounds in the time left can't decide."""
        rounds_left = self.maximum_rounds(state) - state.rounds
        if state.rounds:
            rounds_left = int(min(rounds_left, left_s * state.rounds / max(state.wall_s, 1e-9)))
        return tuple(
            row.metric
            for row in state.compared(self.policy)
            if row.metric in undecided and is_out_of_reach(row, self.policy, family, rounds_left)
        )

    def gating_comparisons(self, states: list[CaseState]) -> int:
        """Return the number of comparisons so far that Holm's correction will count."""
        return sum(
            comparison.gate == "fail" and comparison.method == "paired_t"
            for state in states
            for comparison in state.compared(self.policy)
        )

    def next_of(
        self, undecided: list[CaseState], family: int, time_left: TimeLeft
    ) -> list[CaseState]:
        """Return the cases that the next rounds help most."""
        candidates = [self._candidate(state, family) for state in undecided]
        names = next_cases(candidates, start_s=time_left.start_s, left_s=time_left.left_s)
        return [state for state in undecided if state.case.id in names]

    def _candidate(self, state: CaseState, family: int) -> Candidate:
        most = self.maximum_rounds(state) - state.rounds
        needs = tuple(
            rounds_to_decide(row, self.policy, family, most) or most
            for row in state.compared(self.policy)
            if row.metric in state.undecided
        )
        return Candidate(state.case.id, state.case.file, state.wall_s / state.rounds, needs)

    def out_of_reach_notes(self, states: list[CaseState]) -> list[str]:
        """Return a note on metrics that got no more rounds, as more could hardly decide them."""
        stopped = [
            f"{state.case.id} ({', '.join(state.out_of_reach)})"
            for state in states
            if state.out_of_reach and state.rounds < self.maximum_rounds(state)
        ]
        if not stopped:
            return []
        names = first_of(stopped, 5)
        why = "neither --budget nor `max_rounds` leaves the rounds that could decide it"
        return [f"Not measured further, as {why}: {names}."]


def slug(text: str) -> str:
    """Return ``text`` as part of a file name; different texts may give the same."""
    return re.sub(r"[^A-Za-z0-9_.=-]+", "_", text).strip("_")[:100] or "case"


class Journal:
    """Writes ``session.log`` and ``workers/*.log`` under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "workers").mkdir(parents=True, exist_ok=True)
        self._path = folder / "session.log"
        self._started = time.monotonic()

    def note(self, text: str) -> None:
        """Append one line with the time since the start, in s."""
        with self._path.open("a", encoding="utf-8") as log:
            log.write(f"{time.monotonic() - self._started:9.2f} {text}\n")

    def result(self, case_slug: str, result: WorkerResult, printed: str) -> None:
        """Note one worker's result and keep what it printed."""
        match result:
            case WorkerOutput() as output:
                p50 = output.values.get("latency_p50")
                measured = "None" if p50 is None else f"{p50:.6g} s"
                self.note(
                    f"{output.case} round {output.round} {output.side}"
                    f"{f' of fork server {output.server}' if output.server else ''}: "
                    f"{output.samples} samples, p50 {measured}, "
                    f"{output.bursts_set_aside} bursts excluded"
                )
                side, number = output.side, output.round
            case WorkerFailure(round=number, failure=failure):
                side = failure.side
                self.note(
                    f"{failure.case} round {number} {side}: FAILED {failure.kind}: "
                    f"{failure.message}"
                )
        if printed.strip():
            path = self.folder / "workers" / f"{case_slug}-{number}-{side}.log"
            path.write_text(printed, encoding="utf-8")
