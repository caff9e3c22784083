"""The session: every case gets its minimum of rounds, then the undecided ones get more."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from perfci.errors import OutsideError, refusal
from perfci.measure.code_ran import CodeRan
from perfci.measure.conversation import BudgetEnded
from perfci.measure.discovery import SideDiscovery
from perfci.measure.executor import OpenStarters
from perfci.measure.journal import measuring_ended
from perfci.measure.launch import TreeDeleted
from perfci.measure.machine.quiet import unpassed_of_job
from perfci.measure.plan import SessionPlan, SidePlan
from perfci.measure.progress import (
    CaseNeeds,
    CaseState,
    Progress,
    RemainingTime,
    SessionResult,
    by_own_timeout,
    case_states,
)
from perfci.measure.round import RoundResult, measure_round
from perfci.measure.selection import starting_order, visiting_order, visiting_order_by
from perfci.measure.starters import Starters
from perfci.measure.workplace import Workplace, written_trees
from perfci.model.case import Case, Failure
from perfci.model.finding import finding
from perfci.model.report import Comparison
from perfci.model.worker import UNLIKE_FRESH, WorkerFailure, WorkerOutput
from perfci.units import first_of
from perfci.verdict.decision import failed_on_base
from perfci.verdict.judgement import adjust
from perfci.verdict.shards import scaled_family
from perfci.verdict.stopping import awaits_rounds, looking_worse, rounds_of_ancestor

STARTS = frozenset({"cold_start", "import_time"})
"""What only a round that starts the sides one after the other measures."""
_FIRST = 2
"""Rounds of each case after which a session says what looks worse."""
_AHEAD = 2
"""Number of ancestors prepared ahead. During a measurement an import takes longer than a round."""


def measure_cases(
    workplace: Workplace,
    cases: Sequence[Case],
    *,
    fail_fast: bool = False,
    scale: float = 1.0,
    everything: bool = False,
    looks: bool = False,
) -> SessionResult:
    """Measure those of ``cases`` that every side has and that aren't skipped.

    The options are those of ``Session``. Where the sides' environments differ, ``everything`` is
    measured.
    """
    sides = workplace.discoveries.values()
    known = [{case.id for case in side.discovery.cases} for side in sides]
    chosen = tuple(case for case in cases if not case.skip and all(case.id in ids for ids in known))
    differ = len({environment.key for environment in workplace.environments.values()}) > 1
    session = Session(
        workplace,
        fail_fast=fail_fast,
        scale=scale,
        everything=everything or differ,
        looks=looks,
    )
    try:
        result = session.measure(chosen, workplace.discoveries)
        return replace(result, failures=tuple(written_trees(workplace.plan)))
    finally:
        measuring_ended()


class Session:
    """Measures cases of one side (run, check) or of two in pairs (compare).

    ``scale`` is how many times this session's comparisons its report will have: a shard's session
    is as sure as one that measures everything. A case that ran the same code on both sides, without
    doubt, has one round, and all of them where ``everything`` is measured. ``looks``: cases that
    moved will be looked into, which takes time, too.
    """

    def __init__(
        self,
        workplace: Workplace,
        *,
        fail_fast: bool = False,
        scale: float = 1.0,
        everything: bool = False,
        looks: bool = False,
    ) -> None:
        self._plan = plan = workplace.plan
        self._policy = policy = workplace.config.policy
        self._needs = CaseNeeds(plan.settings, policy)
        self._remaining = RemainingTime(self._needs, looks=looks)
        self._journal = workplace.journal
        self._executor = workplace.executor
        self._budget_end = workplace.budget_end
        self._gpu = workplace.gpu
        self._fail_fast = fail_fast
        self._scale = scale
        self._progress = workplace.shown.progress
        self._starters = Starters(plan, self._executor, self._journal, self._budget_end)
        cold = plan.settings.cold_start_rounds
        self._states: list[CaseState] = []
        self._code = CodeRan(plan, policy, everything=everything)
        self._cold_starts = plan.settings.rounds if cold is None else cold
        self._sweeps = 0
        self._rng = Random(plan.settings.seed)  # noqa: S311 (an order, not a secret)
        self._family = 0
        self._looks: tuple[Comparison, ...] | None = None
        self._measured_s = 0.0
        self._rounds = 0
        self._round_time_s = 0.0
        self._started = self._executor.now()

    def measure(
        self, cases: tuple[Case, ...], discoveries: Mapping[str, SideDiscovery]
    ) -> SessionResult:
        """Measure ``cases`` until all are decided, the budget ends, or the user interrupts."""
        sides = [side.name for side in self._plan.sides]
        states = case_states(cases, sides)
        self._states = states
        notes: list[str] = []
        ended = "done"
        try:
            ended = self._minimum(states) or self._more(states) or "done"
            if ended == "done":
                self._try_base_alone(states)
        except KeyboardInterrupt:
            ended = "interrupted"
            notes.append("Interrupted: this is what was measured until then.")
        except BudgetEnded:
            ended = "budget"
        except TreeDeleted:
            ended = "tree-deleted"
            notes.append("The session ended early: a benchmark deleted the tree it is measured in.")
        except (OSError, OutsideError) as error:
            ended = "outside"
            refused = error if isinstance(error, OutsideError) else refusal(error)
            notes.append(f"The session ended early: {refused.message}. {refused.advice}")
        finally:
            self._starters.close()
            self._code.close()
        if ended == "budget":
            notes += self._needs.budget_notes(states)
        notes += self._needs.out_of_reach_notes(states)
        if ended == "fail-fast":
            notes.append("Stopped at the first regression or failure (--fail-fast).")
        return SessionResult(
            states=tuple(states),
            discoveries=discoveries,
            wall_s=self._executor.now() - self._started,
            measured_s=self._measured_s,
            rounds=self._rounds,
            ended=ended,
            notes=(
                *notes,
                *_unpassed_notes(self._plan, states),
                *self._code.notes(),
                *self._starters.notes(),
                *self._gpu.notes(),
                *self._journal.notes(),
            ),
            scale=_times_seen(states) if ended == "fail-fast" else 1.0,
            ran=self._code.of_sides(),
            same_code=self._code.same(states),
            unexercised=self._code.unexercised(states),
        )

    def _minimum(self, states: list[CaseState]) -> str:
        """Sweep over all cases again and again, so that drift meets all alike.

        With --fail-fast each case gets it before the next, and what it takes to believe a change
        that shows: there the first answer counts.
        """
        planned = sum(self._needs.least(state) for state in states)
        batches = (
            [[state] for state in visiting_order(states, self._rng)]
            if self._fail_fast
            else [states]
        )
        for batch in batches:
            while due := [state for state in batch if self._is_due(state)]:
                if ended := self._sweep(due, planned):
                    return ended
        return ""

    def _is_due(self, state: CaseState) -> bool:
        if state.same_code:
            return False
        if state.failures or state.rounds < self._needs.least(state):
            return not state.failures
        if not self._fail_fast or state.rounds >= self._plan.settings.max_rounds:
            return False
        family, _ = self._expected()
        return any(
            comparison.gate == "fail" and awaits_rounds(comparison, self._policy, family)
            for comparison in state.compared(self._policy)
        )

    def _more(self, states: list[CaseState]) -> str:
        if len(self._plan.sides) < 2:
            return ""
        self._family = scaled_family(self._needs.gating_comparisons(states), self._scale)
        while undecided := [state for state in states if self._wants_more(state, self._family)]:
            now = self._executor.now()
            start_s = max(0.0, now - self._started - self._round_time_s) / self._sweeps
            left_s = self._budget_end - now
            chosen = self._needs.next_of(undecided, self._family, start_s=start_s, left_s=left_s)
            if ended := self._sweep(chosen, self._rounds + len(chosen)):
                return ended
        return ""

    def _sweep(self, states: list[CaseState], planned: int) -> str:
        """Measure each state, those together whose workers have one ancestor; or one round each."""
        self._sweeps += 1
        self._starters.learn(states)
        groups = visiting_order_by(
            states, lambda state: self._starters.group_of(state.case), self._rng
        )
        for index, group in enumerate(groups):
            waiting = list(group)
            while waiting:
                if not self._has_time_for(waiting[0]):
                    return "budget"
                with self._starters.of(
                    [state.case for state in waiting],
                    self._sweeps,
                    concurrent=self._may_start_concurrently(waiting),
                    following=self._following(groups, index),
                ) as starters:
                    imported = self._code.opened()
                    if ended := self._measure_group(waiting, planned, starters, imported):
                        return ended
        return ""

    def _following(
        self, groups: Sequence[Sequence[CaseState]], index: int
    ) -> tuple[list[Case], ...]:
        """Return the cases of the ancestors after this group's, which may still be wanted."""
        most = self._plan.settings.max_rounds
        ahead = itertools.islice(itertools.cycle(groups), index + 1, index + 1 + _AHEAD)
        return tuple(
            [state.case for state in group]
            for group in ahead
            if any(most > state.rounds + self._rounds_of_ancestor(state) for state in group)
        )

    def _measure_group(
        self,
        waiting: list[CaseState],
        planned: int,
        starters: OpenStarters | None,
        imported: frozenset[str],
    ) -> str:
        """Measure those that are ``waiting``, and remove them; stop early where these starters end.

        They end where a benchmark kills them, or where a worker isn't what a fresh process is.
        """
        while waiting:
            state = waiting[0]
            for _ in range(
                self._rounds_of_ancestor(state) if starters and starters.ancestor else 1
            ):
                if not self._has_time_for(state):
                    return "budget"
                if starters and not starters.alive():
                    return ""
                if not self._round(state, planned, starters, imported):
                    return ""
                if self._fail_fast and self._is_bad():
                    return "fail-fast"
                if state.failures or state.same_code or self._is_decided(state):
                    break
            waiting.remove(state)
        return ""

    def _rounds_of_ancestor(self, state: CaseState) -> int:
        if self._fail_fast:
            return 1
        return rounds_of_ancestor(
            state.compared(self._policy),
            state.undecided,
            rounds=state.rounds,
            least=self._needs.least(state),
        )

    def _round(
        self,
        state: CaseState,
        planned: int,
        starters: OpenStarters | None,
        imported: frozenset[str],
    ) -> bool:
        """Measure one round; return whether it counts, and more of ``starters`` can follow."""
        number = state.rounds + 1
        elapsed = self._executor.now() - self._started
        budget_s = self._budget_end - self._executor.now()
        left = self._remaining.seconds(self._states, self._family, elapsed, budget_s)
        looks = self._provisional()
        self._progress(Progress(state.case.id, number, self._rounds, planned, elapsed, left, looks))
        started = self._executor.now()
        exact = self._needs.exact_parts(state)
        sides = starting_order(self._plan.sides, number)
        result = self._measured(state, sides, number, exact, starters)
        for of_worker in result.results:
            if isinstance(of_worker, WorkerFailure) and of_worker.failure.kind == UNLIKE_FRESH:
                message = f"on {of_worker.failure.side}, {of_worker.failure.message}"
                self._starters.refuse(state.case, finding("ancestor-state", message=message))
                return False
        took = self._executor.now() - started
        state.first_round_s = state.first_round_s or took
        state.longest_round_s = max(state.longest_round_s, took)
        state.wall_s += took
        state.took_s.append(took)
        state.rounds = number
        self._rounds += 1
        self._round_time_s += took
        self._measured_s += result.measured_s
        self._accuse(state)
        self._code.add(state, result.ran, imported)
        for worker_result in result.results:
            match worker_result:
                case WorkerOutput() as output:
                    state.outputs[output.side].append(output)
                    self._journal.result(state.slug, output, result.logs.get(output.side, ""))
                case WorkerFailure(failure=failure):
                    state.failures.append(by_own_timeout(failure, state.case))
                    log = result.logs.get(failure.side, "")
                    self._journal.result(state.slug, worker_result, log)
        state.same_code = self._code.settles(state)
        return True

    def _try_base_alone(self, states: Sequence[CaseState]) -> None:
        """Run base once more without head, where it failed next to it: that shows the culprit.

        The numbers are of no pair, and are not kept.
        """
        if len(self._plan.sides) < 2:
            return
        base = [side for side in self._plan.sides if side.name == "base"]
        for state in states:
            if not failed_on_base(state.failures) or not self._has_time_for(state):
                continue
            # by a starter, as before: a benchmark may kill its parent, which must not be perfci
            with self._starters.of(
                [state.case], self._sweeps, concurrent=False, following=()
            ) as starters:
                result = self._measured(state, base, state.rounds + 1, frozenset(), starters)
            for of_worker in result.results:
                self._journal.result(state.slug, of_worker, result.logs.get("base", ""))
            ran = all(isinstance(of_worker, WorkerOutput) for of_worker in result.results)
            outcome = "ran" if ran else "failed"
            state.failures[:] = [replace(failure, alone=outcome) for failure in state.failures]

    def _measured(
        self,
        state: CaseState,
        sides: Sequence[SidePlan],
        number: int,
        exact: frozenset[str],
        starters: OpenStarters | None,
    ) -> RoundResult:
        """Run one worker for each of ``sides``, in their order; cold caches are used up."""
        result = measure_round(
            [self._plan.task(side, state.case, number, state.slug, exact) for side in sides],
            number,
            self._plan.settings,
            executor=self._executor,
            budget_end=self._budget_end,
            starters=starters,
            gpu=self._gpu,
        )
        self._plan.forget_cold_caches(state.slug)
        return result

    def _provisional(self) -> tuple[Comparison, ...]:
        """Return what looked worse when each case had its first rounds: for whoever waits."""
        if self._looks is None and all(
            state.failures or state.same_code or state.rounds >= _FIRST for state in self._states
        ):
            rows = [row for state in self._states for row in state.compared(self._policy)]
            self._looks = looking_worse(rows, self._policy)
        return self._looks or ()

    def _accuse(self, state: CaseState) -> None:
        """Fail the case whose round ended with a side's tree gone; the session ends there."""
        for side in self._plan.sides:
            if not side.root.is_dir():
                message = "its workers left no tree: the benchmark deleted the folder it ran in"
                state.failures.append(
                    Failure(state.case.id, side.name, "done", "deleted_tree", message)
                )

    def _may_start_concurrently(self, group: Sequence[CaseState]) -> bool:
        """Say whether no case of ``group`` needs more cold starts, and nothing else would differ.

        Without a fixed number of threads each side would take its own from the cores it starts on.
        """
        return (
            len(self._plan.sides) > 1
            and self._plan.quiet.threads
            and all(state.rounds >= self._cold_starts for state in group)
            and not any(STARTS.intersection(state.undecided) for state in group)
        )

    def _has_time_for(self, state: CaseState) -> bool:
        left = self._budget_end - self._executor.now()
        return left > 0 and (state.rounds < 2 or left > state.longest_round_s)

    def _wants_more(self, state: CaseState, family: int) -> bool:
        return self._needs.wants_more(state, family, self._budget_end - self._executor.now())

    def _is_decided(self, state: CaseState) -> bool:
        """Say whether the rest of an ancestor's rounds is not needed, after the minimum."""
        return bool(self._family) and not self._wants_more(state, self._family)

    def _is_bad(self) -> bool:
        """Say whether a case failed on head, or one that is decided regressed.

        By the rule that ends a case in any session, and as one of all cases: looking after every
        round, or for the cases so far alone, would find a regression in noise.
        """
        if any(failure.side == "head" for state in self._states for failure in state.failures):
            return True
        ready = self._ready()
        family, scale = self._expected()
        decided = {state.case.id for state in ready if not self._wants_more(state, family)}
        compared = [comparison for state in ready for comparison in state.compared(self._policy)]
        return any(
            comparison.status == "regressed"
            and comparison.gate == "fail"
            and comparison.case in decided
            for comparison in adjust(compared, self._policy, scale)
        )

    def _ready(self) -> list[CaseState]:
        return [
            state
            for state in self._states
            if state.same_code or state.rounds >= self._needs.least(state)
        ]

    def _expected(self) -> tuple[int, float]:
        """Return how many gating comparisons all cases will have, and per one that is ready."""
        ready = self._ready()
        scale = self._scale * len(self._states) / max(1, len(ready))
        return scaled_family(self._needs.gating_comparisons(ready), scale), scale


def _unpassed_notes(plan: SessionPlan, states: Sequence[CaseState]) -> list[str]:
    """Say which variables of its job the ranks did not get; nothing where there are no ranks."""
    outputs = (output for state in states for side in state.outputs.values() for output in side)
    if not any("collectives" in output.values for output in outputs):
        return []
    names = unpassed_of_job(plan.inherited, plan.passed)
    if not names:
        return []
    note = f"Ranks were not given {first_of(names, 3)}, which are of perfci's own place in its job"
    return [f"{note}; `pass_env` passes what you name."]


def _times_seen(states: Sequence[CaseState]) -> float:
    """Return how many times the cases that were measured there are."""
    seen = sum(bool(state.rounds) for state in states)
    return len(states) / seen if seen else 1.0
