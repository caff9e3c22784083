"""One round: a worker of each side, both alive, taking bursts in turn."""

from __future__ import annotations

import itertools
import math
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from perfci.config.keys import MeasureSettings
from perfci.measure.executor import Executor, OpenServers
from perfci.measure.machine.gpu_watch import GpuWatches
from perfci.measure.round_side import RoundSide, WorkerTask
from perfci.measure.selection import BurstPlan, block_order, long_turns, turns
from perfci.measure.workers import BudgetEnded, WorkerEnded
from perfci.model.case import Failure
from perfci.model.measuring import WorkerFailure, WorkerOutput
from perfci.model.worker import REPLACED, UNLIKE_FRESH
from perfci.units import first_of
from perfci.verdict.reduction import side_by_side

_REPLAN_AFTER, _FAR_SHORTER = 2, 1.5
"""Number of blocks after which a round may be planned again, and by what factor its calls must be
shorter than planned for that."""
_STOPPED_S = 2.0
"""Time in which a worker that only waits for its turn answers the order to stop."""
_MEMORY_KINDS = frozenset({"OutOfMemoryError", "MemoryError", "out_of_memory"})
"""Kinds of failure of torch, of Python, and of a worker that the kernel killed for memory."""
_MEMORY_WORDS = ("out of memory", "alloc_failed", "can't allocate memory")
"""Words of CUDA, of its libraries and of torch on the host, in a RuntimeError."""
_UNKNOWN = "unknown"
"""Kind of failure of a worker that the budget's end finds while the other side has yet to start."""
_LATE, _FAILED, _GRACE_S = 10, 100, 10.0
"""How many times longer than the other side a worker takes that is late, and that has failed. The
least time that it has for a step."""


def ran_out_of_memory(failure: Failure) -> bool:
    """Return whether the device's or the host's memory ran out."""
    message = failure.message.lower()
    return failure.kind in _MEMORY_KINDS or any(word in message for word in _MEMORY_WORDS)


@dataclass(frozen=True, slots=True)
class RoundContext:
    """The state that all rounds of a session share.

    ``collecting`` are the cases whose calls collect garbage themselves, as rounds find out.
    """

    executor: Executor
    budget_end: float
    gpu: GpuWatches
    collecting: set[str] = field(default_factory=set)

    def notes(self) -> tuple[str, ...]:
        """Return the note on the cases whose code collects garbage or sets the collector."""
        if not self.collecting:
            return ()
        cases = first_of(sorted(self.collecting), 5)
        why = f"The code collects garbage, or sets Python's collector, in {cases}"
        return (f"{why}: both sides' collectors are left to it there.",)


def measure_round(
    context: RoundContext,
    tasks: Sequence[WorkerTask],
    number: int,
    settings: MeasureSettings,
    servers: OpenServers | None = None,
) -> tuple[RoundSide, ...]:
    """Measure one round of ``tasks``, in starting order. If one side fails, the other goes on.

    If a side fails before it is ready, or for memory, next to the other, but not alone, the round
    has one living worker at a time, and its sides have the failure as ``crowding``. If all
    ``servers`` live, they fork the workers. Otherwise the workers are fresh processes. Raises
    BudgetEnded and KeyboardInterrupt, and then nothing of the round is kept. No worker outlives
    the call.
    """
    slots = [RoundSide(task) for task in tasks]
    for slot, other in itertools.permutations(slots, 2):
        slot.other = other
    forking = servers if servers and servers.alive() else None
    workers = _RoundWorkers(slots, number, settings, context, forking)
    if settings.residency == "alternate":
        workers.run_alternately()
    else:
        workers.run()
    if servers and servers.server and not servers.alive():
        _blame_for_killed_server(slots, number)
    for slot in slots:
        if slot.failure and slot.failure.kind == _UNKNOWN:
            slot.result = None
    crowded = next((slot for slot in slots if slot.failed_beside_other), None)
    if crowded and (not servers or servers.alive()):
        return _one_at_a_time(crowded, workers) or tuple(slots)
    return tuple(slots)


def _one_at_a_time(crowded: RoundSide, workers: _RoundWorkers) -> tuple[RoundSide, ...]:
    """Return a round with one living worker at a time, or () if the ``crowded`` one fails, too."""
    again = {slot: RoundSide(slot.task) for slot in (crowded, *workers.slots)}
    plan = None
    for slot in again.values():
        slot.crowding = crowded.failure
        if slot.task.watched:
            slot.task.watched.begin()
        alone = replace(workers, slots=(slot,), fixed_plan=plan, grace_ends=[])
        if crowded.is_unfinished:  # the budget is over
            alone.grace_ends.append(alone.context.executor.now() + _GRACE_S)
        try:
            plan = alone.run() or plan
        except BudgetEnded:
            if again[crowded].result:
                raise
            return ()
        if slot.failure:
            return ()
    return tuple(again[slot] for slot in workers.slots)


def _blame_for_killed_server(slots: Sequence[RoundSide], round_number: int) -> None:
    """If the second worker couldn't be forked, blame the first one: it killed the fork server.

    Only the first side's code had run by then.
    """
    for before, slot in itertools.pairwise(slots):
        if before.worker and slot.worker is None and slot.failure:
            failure = replace(
                slot.failure,
                side=before.side,
                stage=before.worker.stage,
                kind="killed_parent",
                message="the benchmark killed its parent process, which was to fork the other "
                "side's worker",
            )
            slot.result = WorkerFailure(round_number, failure)


@dataclass(frozen=True, slots=True)
class _RoundWorkers:
    """Starts the workers of ``slots``, has them run blocks of bursts in turn, and ends them."""

    slots: Sequence[RoundSide]
    round_number: int
    settings: MeasureSettings
    context: RoundContext
    forking: OpenServers | None
    fixed_plan: BurstPlan | None = None
    grace_ends: list[float] = field(default_factory=list)

    def run(self) -> BurstPlan | None:
        """Measure the round, so that every slot has its result. No worker outlives the call.

        Return the plan by which the blocks ended, or None if no worker got so far.
        """
        slots = self.slots
        plan = None
        if len(slots) > 1:
            for slot, end in zip(slots, socket.socketpair(), strict=True):
                slot.turns = end
        try:
            for slot in slots:  # one after the other: cold starts never overlap
                self._attempt(slot, self._start)
            plan = self._blocks()
            for slot in slots:
                self._attempt(slot, RoundSide.try_power_limit)
            self._replace_short_turns()
            self._finish()
            _set_side_by_side(slots)
        except BudgetEnded:
            if not any(slot and slot.is_unfinished for slot in (*slots, slots[0].other)):
                raise
        finally:
            for slot in slots:
                if slot.turns:
                    slot.turns.close()
                slot.end(self.round_number)
        return plan

    def run_alternately(self) -> None:
        """Measure the round with one living worker at a time. Both sides make as many calls.

        The next round begins with the other side, so that two rounds are turns ABBA.
        """
        plan = None
        for slot in self.slots:
            plan = replace(self, slots=(slot,), fixed_plan=plan).run() or plan

    def _finish(self) -> None:
        """Have one worker after the other make its last calls.

        While the second worker makes them, the parent reduces what the first one measured and
        judges the code that it ran. The parent is on its own cores, and nothing is timed any more.
        """
        result = partial(RoundSide.make_result, round_number=self.round_number)
        slot, *others = self.slots
        self._attempt(slot, RoundSide.request_output)
        self._attempt(slot, RoundSide.take_output)
        for other in others:
            self._attempt(other, RoundSide.request_output)
            self._attempt(slot, result)
            slot.end(self.round_number)
            self._attempt(other, RoundSide.take_output)
            slot = other
        self._attempt(slot, result)

    def _attempt(self, slot: RoundSide, step: Callable[[RoundSide], None]) -> None:
        """Take a step of a slot without a result. If the worker ends, its failure is the result."""
        if slot.result is None:
            try:
                step(slot)
            except WorkerEnded as ended:  # if a fork server died, the failure doesn't name the case
                failure = replace(ended.failure, case=slot.task.order.case)
                other = slot.other
                lives = other and other.worker and not (other.failure or other.has_ended)
                early = not slot.ready and failure.kind != UNLIKE_FRESH
                slot.failed_beside_other = bool(lives) and (early or ran_out_of_memory(failure))
                slot.result = WorkerFailure(self.round_number, failure)
                self._stop()  # the other worker may be waiting for this one's turn to end

    def _stop(self) -> float:
        """Order living workers to stop the block. Return how long one that only waits may take."""
        for slot in self.slots:
            if slot.worker and slot.result is None:
                slot.worker.send({"do": "stop"})
        return _STOPPED_S

    def _start(self, slot: RoundSide) -> None:
        """Start one worker: forked by its side's server, or as a fresh process."""
        task, turns = slot.task, slot.turns.fileno() if slot.turns else -1
        budget_end = self.context.budget_end
        if self.forking:
            slot.server = self.forking.server
            slot.worker = self.forking.by_side[task.order.side].fork(
                task.order, task.environment, budget_end=budget_end, turns=turns
            )
        else:
            slot.worker = self.context.executor.start(
                task.order, task.launch, budget_end=budget_end, turns=turns
            )
        if slot.turns:
            slot.turns.close()  # the worker has its own copy, which closes when the worker ends
        slot.worker.grace = partial(self._grace, slot)
        slot.await_ready(self.context.gpu)
        if (other := slot.other) and other.failure and other.failure.kind == _UNKNOWN:
            if other.is_late(_FAILED):  # than this side, which is ready
                other.result = WorkerFailure(self.round_number, other.unfinished().failure)
            raise BudgetEnded

    def _grace(self, slot: RoundSide) -> float:
        """Return until when a worker may go on though the budget has ended.

        If one side takes far longer than the other took, both get a little time to end the round.
        After that, the side has failed: WorkerEnded. Other rounds end with the budget: BudgetEnded.
        """
        other, now, ends = slot.other, slot.living.now(), self.grace_ends
        if not ends and other:
            late = next((each for each in (slot, other) if each.is_late(_LATE)), None)
            if late is None:
                raise BudgetEnded
            step = late.step_times()
            left_s = step.fixed_s + max(_GRACE_S, _FAILED * (step.scaled_s or 0.0)) - step.spent_s
            if left_s > _GRACE_S:
                raise BudgetEnded
            ends.append(now + max(0.0, left_s))
        if ends and now < ends[-1] and not (other and other.is_unfinished):
            return ends[-1]
        if other is None or other.is_unfinished:
            raise BudgetEnded
        if slot.in_block and other.in_block and len(ends) == 1:
            ends.append(now + self._stop())  # one of both only waits for its turn
            return ends[-1]
        if other.worker is None:
            ends.append(now + _GRACE_S)
            raise slot.living.ended(_UNKNOWN, "the other side may be no faster")
        if not slot.is_late(_FAILED) or (other.in_block and not other.living.has_answered()):
            raise BudgetEnded
        raise slot.unfinished()

    def _blocks(self) -> BurstPlan:
        """Fill the round with blocks. Plan again if the first blocks show far shorter calls.

        The plan comes from the warm-up, which other work of the machine may have prolonged.
        """
        call_s, plan = self._plan()
        number = 0
        while number < plan.blocks:
            self._block(plan, number)
            number = 0 if self._replace_frozen() else number + 1
            if number == _REPLAN_AFTER and not self._most_calls():
                for slot in self.slots:
                    slot.learn_call()
                if max(slot.call_s for slot in self.slots) < call_s / _FAR_SHORTER:
                    call_s, plan = self._plan()
        return plan

    def _replace_frozen(self) -> bool:
        """Return whether to measure again, with Python's own collector on both sides.

        That is so if the calls of a side collect garbage themselves, or its code has set Python's
        collector, for the first time here. In the blocks so far, that was cheaper than it is for a
        user.
        """
        case = self.slots[0].task.order.case
        last = [block for slot in self.slots for block in slot.blocks[-1:]]
        if case in self.context.collecting or not any(block.collections for block in last):
            return False
        self.context.collecting.add(case)
        if self._most_calls():
            return False
        self._set_aside_blocks()
        return True

    def _set_aside_blocks(self) -> None:
        for slot in self.slots:
            slot.blocks = [replace(block, set_aside=REPLACED) for block in slot.blocks]

    def _replace_short_turns(self) -> None:
        """Measure again in long turns if a case reached its card's power limit for the first time.

        The limit lowers the card's clock. In short turns the other side runs at that clock, too.
        """
        case = self.slots[0].task.order.case
        limited = any(slot.at_power_limit for slot in self.slots)
        if limited and case not in self.context.gpu.at_power_limit:
            self.context.gpu.at_power_limit.add(case)
            self._set_aside_blocks()
            self._blocks()

    def _plan(self) -> tuple[float, BurstPlan]:
        """Return the slower side's time of a call in s, and the plan of a round of such calls."""
        slowest = max(slot.call_s for slot in self.slots)
        if self.slots[0].task.order.case in self.context.gpu.at_power_limit:
            return slowest, long_turns(slowest)
        plan = self.fixed_plan or turns(slowest, self.settings.burst, self.settings.round_time)
        return slowest, plan.within(self._most_calls())

    def _most_calls(self) -> int:
        """Return the most calls that each side's bursts may make, 0 for any number."""
        limits = [slot.most_calls for slot in self.slots if slot.most_calls]
        return min(limits, default=0)

    def _block(self, plan: BurstPlan, number: int) -> None:
        """Order a block from each living worker, and take what each one measured."""
        living = [slot for slot in self.slots if slot.result is None]
        own = living and living[0].task.order.case in self.context.collecting
        rng = Random(f"{self.settings.seed} {self.round_number} {number}")  # noqa: S311 (no secret)
        order = {
            "lead_ins": plan.lead_ins(rng),
            "calls": plan.calls,
            "collector": "python" if own else "perfci",
        }
        for place, slot in enumerate(block_order(living, number)):
            turn = {"block": number, "first": place == 0} if len(living) > 1 else None
            slot.block_s = plan.block_s(slot.call_s)
            slot.order_block({**order, "turn": turn})
        expected_s = math.ceil(sum(plan.block_s(slot.call_s) for slot in living))
        since = living[0].living.now() if living else 0.0
        workers = [side.worker.pid for side in self.slots if side.worker]

        def answer(slot: RoundSide) -> None:
            within_s = slot.task.timeout_s + expected_s
            message = slot.living.expect("block", within_s, since=since, overdue=self._stop)
            slot.take_block(message, workers)

        for slot in living:
            self._attempt(slot, answer)


def _set_side_by_side(slots: Sequence[RoundSide]) -> None:
    """Give both sides' outputs the log ratios of bursts side by side, if the blocks are alike."""
    measured = [slot for slot in slots if isinstance(slot.result, WorkerOutput)]
    outputs = [slot.result for slot in measured if isinstance(slot.result, WorkerOutput)]
    blocks = {tuple(block.bursts for block in slot.blocks) for slot in measured}
    alike = blocks.pop() if len(blocks) == 1 else ()
    for slot, output in zip(measured, side_by_side(outputs, alike), strict=True):
        slot.result = output
