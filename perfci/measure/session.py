"""The session: every case gets its minimum of rounds, then the undecided ones get more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from perfci.errors import OutsideError, refusal
from perfci.finding import finding
from perfci.measure.budget import Budget, by_priority
from perfci.measure.checkout.worktrees import uncommitted, written_since
from perfci.measure.executor import OpenServers
from perfci.measure.fork_servers import ForkServers
from perfci.measure.kept_bursts import BurstKeeper
from perfci.measure.plan import SessionPlan, SidePlan
from perfci.measure.process_cleanup import measuring_begins, measuring_ended
from perfci.measure.progress import (
    CaseNeeds,
    CaseState,
    Progress,
    SessionResult,
    case_states,
    crowding_notes,
    with_timeout_named,
)
from perfci.measure.round import RoundSide, collector_notes, measure_round
from perfci.measure.selection import in_groups, starting_order, visiting_order_by
from perfci.measure.used_code import UsedCode, changed_lines_reached, is_harmless
from perfci.measure.workers import BudgetEnded, TreeDeleted
from perfci.measure.workplace import Workplace
from perfci.model.case import Case, Failure
from perfci.model.measuring import WorkerFailure, WorkerOutput
from perfci.model.worker import UNLIKE_FRESH, WRONG_CODE
from perfci.units import first_of
from perfci.verdict.row_status import may_be_untouched
from perfci.verdict.shards import scaled_family


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of a session besides its configuration.

    A case that ran no changed file has one round. With ``everything`` it has as many as any other
    case. ``scale`` is the number of comparisons in the report ÷ the number in this session. It
    makes a shard's session as sure as a session that measures all cases. ``keeper`` keeps the
    bursts of all rounds. With a keeper or ``all_rounds`` each case gets its maximum of rounds,
    decided or not.
    """

    everything: bool = False
    scale: float = 1.0
    keeper: BurstKeeper | None = None
    all_rounds: bool = False


def measure_cases(
    workplace: Workplace, cases: Sequence[Case], options: SessionOptions = SessionOptions()
) -> SessionResult:
    """Measure the ``cases`` that every side has and that aren't skipped.

    If the sides' environments differ, or head is slowed down on purpose, a case that ran no changed
    file gets all of its rounds, like any other case.
    """
    sides = workplace.discoveries.values()
    known = [{case.id for case in side.discovery.cases} for side in sides]
    chosen = tuple(case for case in cases if not case.skip and all(case.id in ids for ids in known))
    unlike = len({environment.key for environment in workplace.environments.values()}) > 1
    if unlike or any(workplace.plan.config.settings.inject.values()):
        options = replace(options, everything=True)
    files = {case.file for case in chosen}
    everything = options.everything or options.all_rounds or options.keeper
    if not everything and is_harmless(workplace.plan, files):
        return _untouched(workplace.plan, chosen)
    changed = changed_lines_reached(workplace.plan, chosen)
    measuring_begins()
    try:
        result = Session(workplace, options).measure(chosen, changed)
        if options.keeper:
            _write_kept(options.keeper, workplace, result)
        return replace(result, failures=tuple(_written_trees(workplace.plan)))
    finally:
        measuring_ended()


def _untouched(plan: SessionPlan, cases: tuple[Case, ...]) -> SessionResult:
    states = tuple(case_states(cases, [side.name for side in plan.sides]))
    for state in states:
        state.untouched = True
    note = "Only prose and tests changed, so nothing was measured. --all measures all the same."
    return SessionResult(states, 0.0, 0.0, rounds=0, ended="done", notes=(note,))


class Session:
    """Measures cases of one side (run, check) or of two in pairs (compare)."""

    def __init__(self, workplace: Workplace, options: SessionOptions = SessionOptions()) -> None:
        self._options = options
        self._workplace = workplace
        self._plan = plan = workplace.plan
        self._settings = plan.config.settings
        self._policy = policy = plan.config.policy
        self._needs = CaseNeeds(self._settings, policy)
        self._budget = Budget(self._needs, ())
        self._executor = workplace.executor
        self._servers = ForkServers(workplace)
        self._states: list[CaseState] = []
        self._code = UsedCode(plan)
        self._planned = 0
        self._rng = Random(self._settings.seed)  # noqa: S311 (an order, not a secret)
        self._family = 0
        self._measured_s = 0.0
        self._collecting: set[str] = set()
        self._rounds = 0
        self._round_time_s = 0.0
        self._started = self._executor.now()

    def measure(self, cases: tuple[Case, ...], changed: Mapping[str, int]) -> SessionResult:
        """Measure ``cases`` until all are decided, the budget ends, or the user interrupts.

        ``changed`` has by case how many changed lines its benchmark reaches: such cases come first.
        """
        sides = [side.name for side in self._plan.sides]
        self._states = states = case_states(cases, sides)
        tree = self._plan.sides[-1].tree  # part of the seed: each commit has its own order
        rng = Random(f"{self._settings.seed} {tree}")  # noqa: S311 (an order, not a secret)
        order = by_priority(states, changed, rng)
        self._budget = Budget(self._needs, order)
        notes: list[str] = []
        ended = "done"
        try:
            ended = self._all(states)
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
            self._servers.close()
        if ended == "budget":
            notes += self._budget.notes(states, self._family, **self._times())
        notes += self._needs.out_of_reach_notes(states)
        notes += crowding_notes(states)
        return SessionResult(
            states=tuple(state for state in states if not state.skip_reason),
            skipped={state.case.id: state.skip_reason for state in states if state.skip_reason},
            wall_s=self._elapsed_s(),
            measured_s=self._measured_s,
            rounds=self._rounds,
            ended=ended,
            notes=(
                *notes,
                *self._code.notes(),
                *self._servers.notes(),
                *self._workplace.gpu.notes(),
                *collector_notes(self._collecting),
                *self._workplace.journal.notes(),
            ),
            installed=self._code.installed(),
            unexercised=self._code.unexercised(states),
        )

    def _all(self, states: list[CaseState]) -> str:
        """Measure until each case that the budget is enough for is decided. Return what ended it.

        Cases that the budget wasn't enough for at first get the time that the others leave.
        """
        while True:
            before = self._rounds
            if ended := self._minimum(states) or self._more(states):
                return ended
            if not any(self._is_due(state) for state in states):
                return "done"
            if self._rounds == before:
                return "budget"

    def _minimum(self, states: list[CaseState]) -> str:
        """Sweep over all cases until each has its minimum of rounds. Return what ended it early.

        In sweeps a drift of the machine meets all cases alike.
        """
        self._planned = sum(map(self._needs.minimum_rounds, states))
        before = -1
        while due := [state for state in states if self._is_due(state)]:
            if self._rounds == before:  # the budget isn't enough for any of them
                break
            before = self._rounds
            if ended := self._sweep(due):
                return ended
        return ""

    def _is_due(self, state: CaseState) -> bool:
        """Return whether ``_minimum`` has to measure another round of the case."""
        ended = state.untouched or bool(state.failures)
        return not ended and state.rounds < self._needs.minimum_rounds(state)

    def _more(self, states: list[CaseState]) -> str:
        """Measure undecided cases further, until all are decided. Return what ended it early."""
        if len(self._plan.sides) < 2:
            return ""
        self._family = scaled_family(self._needs.gating_comparisons(states), self._options.scale)
        if self._options.keeper or self._options.all_rounds:
            return self._all_rounds(states)
        begun = [s for s in states if s.rounds >= self._needs.minimum_rounds(s)]
        while undecided := [state for state in begun if self._wants_more(state, self._family)]:
            start_s, left_s = self._start_s(), self._left_s()
            chosen = self._needs.next_of(undecided, self._family, start_s=start_s, left_s=left_s)
            self._planned = self._rounds + len(chosen)
            if ended := self._sweep(chosen):
                return ended
        return ""

    def _all_rounds(self, states: list[CaseState]) -> str:
        """Measure the maximum of rounds of each case, decided or not."""
        needs = self._needs
        while due := [
            state
            for state in states
            if not (state.failures or state.untouched)
            and needs.minimum_rounds(state) <= state.rounds < needs.maximum_rounds(state)
        ]:
            self._planned = self._rounds + len(due)
            if ended := self._sweep(due):
                return ended
        return ""

    def _sweep(self, states: list[CaseState]) -> str:
        """Measure each case, group by group. Return what ended the session early, or "".

        A case without its least rounds gets them, unless it changes its group, and any other case
        gets one round.
        """
        self._servers.learn(states)
        for group in self._visits(states):
            key, waiting = self._servers.group_of(group[0].case), list(group)
            while waiting:
                before = self._rounds
                if ended := self._pass(waiting):
                    return ended
                if self._rounds == before:  # the budget isn't enough for any of them
                    break
                waiting = [
                    state
                    for state in waiting
                    if self._is_due(state) and self._servers.group_of(state.case) == key
                ]
                self._rng.shuffle(waiting)
        return ""

    def _pass(self, states: Sequence[CaseState]) -> str:
        """Measure one round of each case. Return what ended the session early, or ""."""
        for state in states:
            if not self._is_affordable(state):
                continue
            later = state.rounds >= self._needs.minimum_rounds(state)
            measured = False
            while not measured:  # again, if a forked worker is unlike a fresh one
                if not self._has_time_for(state):
                    return "budget"
                measured = self._round(state, self._servers.of(state.case, later=later))
            self._servers.learn([state])
        return ""

    def _visits(self, states: list[CaseState]) -> tuple[tuple[CaseState, ...], ...]:
        """Return the cases of one sweep, group by group, in random order.

        While any of ``states`` has no round yet, the order is that of ``by_priority``.
        """

        def group(state: CaseState) -> tuple[str, ...]:
            return self._servers.group_of(state.case)

        if all(state.rounds for state in states):
            return visiting_order_by(states, group, self._rng)
        chosen = {state.case.id for state in states}
        return in_groups([state for state in self._budget.order if state.case.id in chosen], group)

    def _is_affordable(self, state: CaseState) -> bool:
        """Return whether the budget is enough for the case's least rounds, as far as known."""
        return bool(self._budget.enough_for([state], self._family, **self._times()))

    def _round(self, state: CaseState, servers: OpenServers | None) -> bool:
        """Measure one round. Return False if a worker differed from a fresh process.

        Then the round doesn't count, and ``servers`` must not serve another.
        """
        number = state.rounds + 1
        self._show(state.case.id, number)
        started = self._executor.now()
        exact = self._needs.exact_parts(state)
        sides = starting_order(self._plan.sides, number)
        try:
            measured = self._measured(state, sides, number, exact, servers)
        except BudgetEnded:
            state.wall_s += self._executor.now() - started
            raise
        for side in measured:
            if side.failure and side.failure.kind == UNLIKE_FRESH:
                message = f"on {side.failure.side}, {side.failure.message}"
                self._servers.refuse(state.case, finding("server-state", message=message))
                return False
        took = self._executor.now() - started
        if self._options.keeper:
            results = [side.result for side in measured]
            self._options.keeper.add(state.case, results, started - self._started, took)
        state.first_round_s = state.first_round_s or took
        state.longest_round_s = max(state.longest_round_s, took)
        state.wall_s += took
        state.took_s.append(took)
        state.rounds = number
        self._rounds += 1
        self._round_time_s += took
        self._measured_s += sum(side.measured_s for side in measured)
        self._accuse(state)
        state.crowding = state.crowding or measured[0].crowding
        used = {side.side: side.used for side in measured if side.used}
        self._code.add(used)
        for side in measured:
            match side.result:
                case WorkerOutput() as output:
                    state.outputs[output.side].append(output)
                case WorkerFailure(failure=failure):
                    state.failures.append(with_timeout_named(failure, state.case))
        self._note(state, measured)
        state.untouched = (
            number == 1
            and not self._options.everything
            and not state.failures
            and self._code.touches_nothing(used)
            and may_be_untouched(state.compared(self._policy))
        )
        return True

    def _show(self, case: str, number: int) -> None:
        shortage = self._budget.shortage
        planned = shortage.rounds if shortage else self._planned
        self._workplace.shown.progress(
            Progress(case, number, self._rounds, planned, self._elapsed_s(), shortage)
        )

    def _note(self, state: CaseState, measured: Sequence[RoundSide]) -> None:
        """Note the results of a round in the log.

        A failure may blame the other side's worker. Then what that worker printed is kept.
        """
        logs = {side.side: side.log for side in measured}
        for side in measured:
            if side.result:
                named = side.failure.side if side.failure else side.side
                self._workplace.journal.result(state.slug, side.result, logs.get(named, ""))

    def _measured(
        self,
        state: CaseState,
        sides: Sequence[SidePlan],
        number: int,
        exact: frozenset[str],
        servers: OpenServers | None,
    ) -> tuple[RoundSide, ...]:
        """Run one worker for each of ``sides``, in their order. Then remove their cold caches."""
        measured = measure_round(
            [self._plan.task(side, state, number, exact) for side in sides],
            number,
            replace(self._settings, residency="alternate") if state.crowding else self._settings,
            executor=self._executor,
            budget_end=self._workplace.budget_end,
            servers=servers,
            gpu=self._workplace.gpu,
            collecting=self._collecting,
        )
        self._plan.forget_cold_caches(state.slug)
        return measured

    def _accuse(self, state: CaseState) -> None:
        """Fail the case if a side's tree is gone after its round. The session ends there."""
        for side in self._plan.sides:
            if not side.root.is_dir():
                message = "its workers left no tree: the benchmark deleted the folder it ran in"
                state.failures.append(
                    Failure(state.case.id, side.name, "done", "deleted_tree", message)
                )

    def _elapsed_s(self) -> float:
        return self._executor.now() - self._started

    def _start_s(self) -> float:
        """Return the time besides rounds for each fork server: mostly its start."""
        return max(0.0, self._elapsed_s() - self._round_time_s) / max(1, self._servers.opened)

    def _times(self) -> dict[str, float]:
        return {"start_s": self._start_s(), "left_s": self._left_s()}

    def _left_s(self) -> float:
        return self._workplace.budget_end - self._executor.now()

    def _has_time_for(self, state: CaseState) -> bool:
        left = self._left_s()
        return left > 0 and (state.rounds < 2 or left > state.longest_round_s)

    def _wants_more(self, state: CaseState, family: int) -> bool:
        return self._needs.wants_more(state, family, self._left_s())


def _write_kept(keeper: BurstKeeper, workplace: Workplace, result: SessionResult) -> None:
    plan = workplace.plan
    keeper.write(
        {side.name: side.side.sha for side in plan.sides},
        workplace.environments["head"],
        plan.config.settings,
        result.wall_s,
    )


def _written_trees(plan: SessionPlan) -> Iterator[Failure]:
    """Yield a failure for each tree whose sources changed during the session."""
    names = {plan.own_base: "base"} | {plan_side.root: plan_side.name for plan_side in plan.sides}
    for root, before in plan.uncommitted.items():
        if root.is_dir():  # a tree that is gone failed its case
            side = names.get(root, "head")
            try:
                written = written_since(before, uncommitted(root))
            except OutsideError as error:
                yield Failure("all cases", side, "finish", WRONG_CODE, error.message)
            else:
                if written:
                    yield _written_tree(side, written)


def _written_tree(side: str, written: Sequence[str]) -> Failure:
    """Return the failure of a session whose workers wrote to the sources of ``side``'s tree."""
    shown = first_of([f"`{name}`" for name in written], 3)
    message = (
        f"{shown} of {side}'s tree changed while it was measured: what ran isn't only that "
        "commit's code\n"
        "Let benchmarks, and what they call, write below TMPDIR; what a build leaves in the tree "
        "belongs in .gitignore."
    )
    return Failure(written[0], side, "finish", WRONG_CODE, message)
