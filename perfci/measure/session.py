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
from perfci.measure.plan import SessionPlan
from perfci.measure.process_cleanup import measuring_begins, measuring_ended
from perfci.measure.progress import (
    CaseNeeds,
    CaseState,
    Progress,
    SessionResult,
    TimeLeft,
    case_states,
    crowding_notes,
    with_timeout_named,
)
from perfci.measure.round import RoundContext, measure_round
from perfci.measure.round_side import RoundSide
from perfci.measure.selection import in_groups, starting_order, visiting_order
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

    A case that ran no changed file gets all of its rounds, like any other case, if the sides'
    environments differ, if head is slowed down on purpose, or if the options ask for all rounds.
    """
    known = [{case.id for case in side.discovery.cases} for side in workplace.plan.sides]
    chosen = tuple(case for case in cases if not case.skip and all(case.id in ids for ids in known))
    unlike = len({environment.key for environment in workplace.environments.values()}) > 1
    slowed = any(workplace.plan.config.settings.inject.values())
    if unlike or slowed or options.keeper or options.all_rounds:
        options = replace(options, everything=True)
    files = {case.file for case in chosen}
    if not options.everything and is_harmless(workplace.plan, files):
        return _untouched(workplace.plan, chosen)
    changed = changed_lines_reached(workplace.plan, chosen)
    measuring_begins()
    try:
        result = Session(workplace, options).measure(chosen, changed)
        if options.keeper:
            commits = {side.name: side.side.sha for side in workplace.plan.sides}
            settings, environment = workplace.plan.config.settings, workplace.environments["head"]
            options.keeper.write(commits, environment, settings, result.wall_s)
        return replace(result, failures=tuple(_written_trees(workplace.plan)))
    finally:
        measuring_ended()


def _untouched(plan: SessionPlan, cases: tuple[Case, ...]) -> SessionResult:
    states = tuple(case_states(cases, [side.name for side in plan.sides]))
    for state in states:
        state.untouched = True
    note = "Only prose and tests changed, so nothing was measured. --all measures anyway."
    return SessionResult(states, 0.0, 0.0, rounds=0, ended="done", notes=(note,))


class Session:
    """Measures cases of one side (run, check) or of two in pairs (compare)."""

    def __init__(self, workplace: Workplace, options: SessionOptions = SessionOptions()) -> None:
        self._options = options
        self._workplace = workplace
        self._plan = plan = workplace.plan
        self._settings = plan.config.settings
        self._needs = CaseNeeds(self._settings, plan.config.policy)
        self._budget = Budget(self._needs, ())
        self._executor = workplace.executor
        self._round_context = RoundContext(workplace.executor, workplace.budget_end, workplace.gpu)
        self._servers = ForkServers(workplace)
        self._code = UsedCode(plan)
        self._planned = 0
        self._rng = Random(self._settings.seed)  # noqa: S311 (order of later rounds, no secret)
        self._family = 0
        self._measured_s = 0.0
        self._rounds = 0
        self._round_time_s = 0.0
        self._started = self._executor.now()

    def measure(self, cases: tuple[Case, ...], changed: Mapping[str, int]) -> SessionResult:
        """Measure ``cases`` until all are decided, the budget ends, or the user interrupts.

        ``changed`` has by case how many changed lines its benchmark reaches: such cases come first.
        """
        states = case_states(cases, [side.name for side in self._plan.sides])
        tree = self._plan.head.tree  # part of the seed: each commit has its own first order
        rng = Random(f"{self._settings.seed} {tree}")  # noqa: S311 (an order, not a secret)
        self._budget = Budget(self._needs, by_priority(states, changed, rng))
        ended, notes = self._until_the_end(states)
        if ended == "budget":
            notes += self._budget.notes(states, self._family, self._time_left())
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
                *self._round_context.notes(),
            ),
            installed=self._code.installed(),
            unexercised=self._code.unexercised(states),
        )

    def _until_the_end(self, states: list[CaseState]) -> tuple[str, list[str]]:
        """Measure all cases. Return what ended the session, and notes on an early end."""
        try:
            self._measure_all(states)
        except BudgetEnded:
            return "budget", []
        except KeyboardInterrupt:
            return "interrupted", ["Interrupted: the report has the results until then."]
        except TreeDeleted:
            note = "The session ended early: a benchmark deleted the tree it is measured in."
            return "tree-deleted", [note]
        except (OSError, OutsideError) as error:
            refused = error if isinstance(error, OutsideError) else refusal(error)
            return "outside", [f"The session ended early: {refused.message}. {refused.advice}"]
        finally:
            self._servers.close()
        return "done", []

    def _measure_all(self, states: list[CaseState]) -> None:
        """Measure until each case that the budget is enough for is decided. Raises BudgetEnded.

        Cases that the budget wasn't enough for at first get the time that the others leave.
        """
        while True:
            before = self._rounds
            self._measure_minimum(states)
            if len(self._plan.sides) > 1:
                self._measure_undecided(states)
            if not any(map(self._is_due, states)):
                return
            if self._rounds == before:
                raise BudgetEnded

    def _measure_minimum(self, states: list[CaseState]) -> None:
        """Sweep over the cases until each has its minimum of rounds, or no time is left for one."""
        self._planned = sum(map(self._needs.minimum_rounds, states))
        while (due := [state for state in states if self._is_due(state)]) and self._sweep(due):
            pass

    def _is_due(self, state: CaseState) -> bool:
        """Return whether ``_measure_minimum`` has to measure another round of the case."""
        ended = state.untouched or bool(state.failures)
        return not ended and state.rounds < self._needs.minimum_rounds(state)

    def _measure_undecided(self, states: list[CaseState]) -> None:
        """Measure cases further, until all are decided."""
        self._family = scaled_family(self._needs.gating_comparisons(states), self._options.scale)
        begun = [s for s in states if s.rounds >= self._needs.minimum_rounds(s)]
        while chosen := self._next_of(begun):
            self._planned = self._rounds + len(chosen)
            self._sweep(chosen)

    def _next_of(self, begun: list[CaseState]) -> list[CaseState]:
        """Return the cases that get one more round: the undecided ones that it helps most."""
        needs, time = self._needs, self._time_left()
        if self._options.keeper or self._options.all_rounds:
            return [s for s in begun if not s.failures and s.rounds < needs.maximum_rounds(s)]
        undecided = [s for s in begun if needs.wants_more(s, self._family, time.left_s)]
        return needs.next_of(undecided, self._family, time) if undecided else []

    def _sweep(self, states: list[CaseState]) -> bool:
        """Measure each case, group by group. Return whether there was time for any of them.

        A case that is due gets rounds until it isn't, or until it belongs to another group because
        its compiler became known. Any other case gets one round. A group's cases take turns round
        by round, so that a drift of the machine meets them alike.
        """
        self._servers.learn(states)
        before = self._rounds
        for group in self._visits(states):
            key, waiting = self._servers.group_of(group[0].case), list(group)
            while waiting and self._measure_one_round_each(waiting):
                waiting = [
                    state
                    for state in waiting
                    if self._is_due(state) and self._servers.group_of(state.case) == key
                ]
                self._rng.shuffle(waiting)
        return self._rounds > before

    def _measure_one_round_each(self, states: Sequence[CaseState]) -> bool:
        """Measure one round of each case the budget is enough for. Return whether any was."""
        before = self._rounds
        for state in states:
            if not self._budget.enough_for([state], self._family, self._time_left()):
                continue
            later = state.rounds >= self._needs.minimum_rounds(state)  # see ForkServers.of
            measured = False
            while not measured:  # again, if a forked worker is unlike a fresh one
                left_s = self._time_left().left_s
                # not after round 1: it is cold, so round 2 may be far shorter
                if left_s <= 0 or (state.rounds > 1 and left_s <= max(state.took_s)):
                    raise BudgetEnded
                measured = self._round(state, self._servers.of(state.case, later=later))
            self._servers.learn([state])
        return self._rounds > before

    def _visits(self, states: list[CaseState]) -> tuple[tuple[CaseState, ...], ...]:
        """Return the cases of one sweep, group by group, in random order.

        While any of ``states`` has no round yet, the order is that of ``by_priority``.
        """

        def group(state: CaseState) -> tuple[str, ...]:
            return self._servers.group_of(state.case)

        if all(state.rounds for state in states):
            return visiting_order(in_groups(visiting_order(states, self._rng), group), self._rng)
        chosen = {state.case.id for state in states}
        return in_groups([state for state in self._budget.order if state.case.id in chosen], group)

    def _round(self, state: CaseState, servers: OpenServers | None) -> bool:
        """Measure one round. Return False if a worker differed from a fresh process.

        Then the round doesn't count, and ``servers`` must not serve another.
        """
        self._show_progress(state.case.id, state.rounds + 1)
        started = self._executor.now()
        try:
            measured = self._run_workers(state, servers)
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
        self._rounds += 1
        self._round_time_s += took
        self._measured_s += sum(side.measured_s for side in measured)
        self._log_results(state, measured)
        self._take_results(state, measured, took)
        return True

    def _take_results(self, state: CaseState, measured: Sequence[RoundSide], took_s: float) -> None:
        """Take the results of a round into the case's state."""
        state.wall_s += took_s
        state.took_s.append(took_s)
        state.rounds += 1
        for plan in self._plan.sides:
            if not plan.root.is_dir():  # the session ends with the next worker
                message = "its workers left no tree: the benchmark deleted the folder it ran in"
                state.failures.append(
                    Failure(state.case.id, plan.name, "done", "deleted_tree", message)
                )
        state.crowding = state.crowding or measured[0].crowding
        used = {side.side: side.used for side in measured if side.used}
        self._code.add(used)
        for side in measured:
            match side.result:
                case WorkerOutput() as output:
                    state.outputs[output.side].append(output)
                case WorkerFailure(failure=failure):
                    state.failures.append(with_timeout_named(failure, state.case))
        state.untouched = (
            state.rounds == 1
            and not self._options.everything
            and not state.failures
            and self._code.touches_nothing(used)
            and may_be_untouched(state.compared(self._needs.policy))
        )

    def _show_progress(self, case: str, number: int) -> None:
        shortage = self._budget.shortage
        planned = shortage.rounds if shortage else self._planned
        self._workplace.shown.progress(
            Progress(case, number, self._rounds, planned, self._elapsed_s(), shortage)
        )

    def _log_results(self, state: CaseState, measured: Sequence[RoundSide]) -> None:
        """Write the results of a round to the log.

        A failure may blame the other side's worker. Then what that worker printed is kept.
        """
        logs = {side.side: side.log for side in measured}
        for side in measured:
            if side.result:
                named = side.failure.side if side.failure else side.side
                self._workplace.journal.result(state.slug, side.result, logs.get(named, ""))

    def _run_workers(self, state: CaseState, servers: OpenServers | None) -> tuple[RoundSide, ...]:
        """Run a worker of each side for the next round. Then remove their cold caches."""
        number, extra = state.rounds + 1, self._needs.extra_call_metrics(state)
        sides = starting_order(self._plan.sides, number)
        settings = self._settings
        measured = measure_round(
            self._round_context,
            [self._plan.task(side, state, number, extra) for side in sides],
            number,
            replace(settings, residency="alternate") if state.crowding else settings,
            servers,
        )
        self._plan.forget_cold_caches(state.slug)
        return measured

    def _elapsed_s(self) -> float:
        return self._executor.now() - self._started

    def _time_left(self) -> TimeLeft:
        besides_s = max(0.0, self._elapsed_s() - self._round_time_s)  # mostly starts of servers
        return TimeLeft(
            left_s=self._workplace.budget_end - self._executor.now(),
            start_s=besides_s / max(1, self._servers.opened),
        )


def _written_trees(plan: SessionPlan) -> Iterator[Failure]:
    """Yield a failure for each tree whose sources changed during the session."""
    names = {plan.own_base: "base"} | {plan_side.root: plan_side.name for plan_side in plan.sides}
    for root, before in plan.uncommitted.items():
        if not root.is_dir():  # a tree that is gone failed its case
            continue
        side = names[root]
        try:
            written = written_since(before, uncommitted(root))
        except OutsideError as error:
            yield Failure("all cases", side, "finish", WRONG_CODE, error.message)
            continue
        if written:
            message = (
                f"{first_of([f'`{name}`' for name in written], 3)} of {side}'s tree changed while "
                "it was measured, so other code than that commit's may have run\n"
                "Let benchmarks write below TMPDIR, and list files that a build leaves in the tree "
                "in .gitignore."
            )
            yield Failure(written[0], side, "finish", WRONG_CODE, message)
