"""One round: a worker of each side, both alive, taking bursts in turn."""

from __future__ import annotations

import itertools
import math
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from perfci.config.keys import MeasureSettings
from perfci.errors import PerfciError, UsageError
from perfci.measure.code_guard import CodeUsed, WorkerWatch, wrong_code
from perfci.measure.command_results import with_results
from perfci.measure.executor import Executor, OpenServers
from perfci.measure.machine.cores import throttled_s
from perfci.measure.machine.gpu_watch import (
    GpuState,
    GpuWatch,
    GpuWatches,
    reach_power_limit,
    read_as_one,
    set_aside_reason,
)
from perfci.measure.selection import SAMPLE_S, BurstPlan, block_order, long_turns, turns
from perfci.measure.workers import BudgetEnded, Launch, Worker, WorkerEnded
from perfci.metrics import METRICS
from perfci.model.case import Failure, unfit_reason
from perfci.model.codec import to_plain
from perfci.model.measuring import WorkerFailure, WorkerOutput, WorkerResult
from perfci.model.words import OF_WORKERS, sayable
from perfci.model.worker import REPLACED, UNLIKE_FRESH, Measurement, WorkerBlock, WorkOrder
from perfci.units import counted, first_of, format_value
from perfci.verdict.reduction import reduce, side_by_side

_REPLAN_AFTER, _FAR_SHORTER = 2, 1.5
"""Number of blocks after which a round may be planned again, and by what factor its calls must be
shorter than planned for that."""
_STOPPED_S = 2.0
"""Time in which a worker that only waits for its turn answers the order to stop."""
_MEMORY_KINDS = frozenset({"OutOfMemoryError", "MemoryError", "out_of_memory"})
"""Kinds of failure of torch, of Python, and of a worker that the kernel killed for memory."""
_MEMORY_WORDS = ("out of memory", "alloc_failed", "can't allocate memory")
"""Words of CUDA, of its libraries and of torch on the host, in a RuntimeError."""
_UNFINISHED, _UNKNOWN = "unfinished", "unknown"
"""Kinds of failure of a worker that the budget's end finds at a step, for far longer than the other
side took, and while the other side has yet to start."""
_LATE, _FAILED, _GRACE_S, _LATE_ALONE_S = 10, 100, 10.0, 2.0
"""How many times longer than the other side a worker takes that is late, and that has failed. The
least time that it has for a step. A step's time that is late if the other side has yet to start."""
_ALONE_S, _READ_AFTER = 0.5, 0.9
"""Time for which a side runs alone to see whether it reaches its card's power limit (a card shows
that within 0.4 s), and the share of it after which the card is read."""
_CLOCK_ROUNDING_S = 1e-6
"""Tolerance for a clock's readings, which are rounded as floating-point numbers."""


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
    crowded = next((slot for slot in slots if slot.crowded), None)
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
        result = partial(RoundSide.reduce, round_number=self.round_number)
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
                slot.crowded = bool(lives) and (early or ran_out_of_memory(failure))
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
            spent_s, besides_s, calls_s = late.step_s()
            left_s = besides_s + max(_GRACE_S, _FAILED * (calls_s or 0.0)) - spent_s
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


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """One worker of a round: its order, its launch, and the watch on the code that it runs.

    ``environment`` are the variables of the launch that a fork server's processes don't have.
    """

    order: WorkOrder
    launch: Launch
    environment: Mapping[str, str]
    timeout_s: float
    watched: WorkerWatch | None = None


class RoundSide:
    """One side of a round: its worker, and what the worker measured. Times in s.

    ``call_s`` is the time of a call, ``block_s`` that of the calls in its block. ``crowded`` says
    that it failed next to the other side, which may be why. ``crowding`` is such a failure of a
    side that has worked alone since.
    """

    def __init__(self, task: WorkerTask) -> None:
        self.task = task
        self.server = 0
        self.worker: Worker | None = None
        self.turns: socket.socket | None = None
        self.call_s = 0.0
        self.most_calls = 0
        self.blocks: list[WorkerBlock] = []
        self.measured_s = 0.0
        self.cards: tuple[GpuWatch, ...] = ()
        self.ready = self.crowded = False
        self.crowding: Failure | None = None
        self.result: WorkerResult | None = None
        self.other: RoundSide | None = None
        self.block_s = 0.0
        self.log = ""
        self.used: CodeUsed | None = None
        self.at_power_limit = False
        self._calls_between = 0
        self._before: GpuState | None = None
        self._throttled_s = 0.0
        self._ordered = 0.0
        self._output: Mapping[str, object] = {}
        self.has_ended = False

    @property
    def side(self) -> str:
        """The side's name."""
        return self.task.order.side

    @property
    def failure(self) -> Failure | None:
        """The failure that the worker ended with, if any."""
        return self.result.failure if isinstance(self.result, WorkerFailure) else None

    @property
    def is_unfinished(self) -> bool:
        """Return whether the worker failed because it takes far longer than the other side."""
        return self.failure is not None and self.failure.kind == _UNFINISHED

    @property
    def in_block(self) -> bool:
        """Return whether the worker has a block to end."""
        return bool(self._ordered)

    def step_s(self) -> tuple[float, float, float | None]:
        """Return the time of the worker's step, and of the other side's: besides calls, and calls.

        A step is a block, or else a stage. The last is missing until the other side has passed it.
        """
        living, other = self.living, self.other
        spent_s = living.now() - (self._ordered or living.entered)
        if not (other and other.worker):
            return spent_s, 0.0, None
        took_s = other.block_s if self.in_block else other.worker.took_s.get(living.stage)
        if took_s and living.stage == "warmup":  # lasts for a while, or for two slow calls
            return spent_s, took_s, 2 * other.call_s
        return spent_s, 0.0, took_s

    def is_late(self, times: float) -> bool:
        """Return whether the worker takes more than ``times`` as long as the other side."""
        if self.worker is None or (other := self.other) is None:
            return False
        spent_s, besides_s, calls_s = self.step_s()
        if calls_s is None:
            return other.worker is None and spent_s >= _LATE_ALONE_S
        slow = self.call_s > times * other.call_s > 0.0
        return slow or spent_s > besides_s + times * calls_s

    def unfinished(self) -> WorkerEnded:
        """Return the exception for a worker that takes far longer than the other side."""
        spent_s, besides_s, calls_s = self.step_s()
        others = format_value(besides_s + (calls_s or 0.0), "s")
        side = "head" if self.side == "base" else "base"
        message = f"not ended after {format_value(spent_s, 's')}; {side}: {others}"
        return self.living.ended(_UNFINISHED, message)

    @property
    def living(self) -> Worker:
        """The worker of a slot that has no result yet."""
        assert self.worker is not None  # noqa: S101 (a slot without a worker has a result)
        return self.worker

    def await_ready(self, gpu: GpuWatches) -> None:
        """Wait until the worker is warm. Raises WorkerEnded and BudgetEnded."""
        answer = self.living.expect("ready", self.task.timeout_s)
        self.ready = True
        self.call_s = max(0.0, self.living.field(answer, "call_s", float))
        self.most_calls = self.living.field({"most_calls": 0, **answer}, "most_calls", int)
        if self.living.field(answer, "on_device", bool):
            self.cards = gpu.group(self.living.field(answer, "uuids", tuple[str, ...]))
        else:
            self.cards = gpu.of_session(self.living.pid)

    def order_block(self, order: Mapping[str, object]) -> None:
        """Order a block of bursts."""
        self._before = read_as_one(self.cards)
        self._throttled_s = throttled_s()
        self._ordered = self.living.now()
        self.living.send({"do": "block", **order})

    def take_block(self, values: Mapping[str, object], workers: Sequence[int]) -> None:
        """Keep the block that was ordered. ``workers`` are the ids of the round's processes.

        Raises WorkerEnded for a block whose times are impossible.
        """
        block = self.living.record(values, WorkerBlock)
        if wrong := wrong_time(block, self._ordered, self.living.now()):
            raise self.living.ended("wrong_clock", f"its clock isn't perfci's: {wrong}")
        if self._before and (after := read_as_one(self.cards)):
            block = replace(block, set_aside=set_aside_reason(self._before, after, workers))
        throttled = throttled_s() - self._throttled_s
        block = replace(block, calls_before=self._calls_between, throttled=throttled)
        self._calls_between, self._ordered = 0, 0.0
        self.measured_s += block.duration
        if block.bursts:  # a block has none if the other side ended before the first burst
            self.blocks.append(block)

    def try_power_limit(self) -> None:
        """Make calls while the other side waits, and see whether a card reaches its power limit."""
        if not self.cards:
            return
        calls = max(1, math.ceil(_ALONE_S / (self.call_s + SAMPLE_S)))
        ordered = self.living.now()
        order = {"lead_ins": [calls], "calls": 0, "collector": "perfci", "turn": None}
        self.living.send({"do": "block", **order})
        self.at_power_limit |= reach_power_limit(self.cards, _READ_AFTER * _ALONE_S)
        within_s = self.task.timeout_s + calls * self.call_s
        self.living.expect("block", within_s, since=ordered)
        self._calls_between += calls

    def learn_call(self) -> None:
        """Take the call's time from the blocks, if it is shorter there than in the warm-up."""
        shown = (
            block.duration / (block.bursts * (block.samples + block.timed_apart))
            for block in self.blocks
            if block.samples
        )
        self.call_s = min(self.call_s, *shown, math.inf)

    def request_output(self) -> None:
        """Have the worker make its last calls."""
        self.living.send({"do": "finish"})

    def take_output(self) -> None:
        """Wait for the worker's output. Raises WorkerEnded."""
        self._output = self.living.expect("output", self.task.timeout_s)
        self.living.enter("done")

    def reduce(self, round_number: int) -> None:
        """Make the worker's output the result. Raises WorkerEnded."""
        raw = self._measurement()
        order = self.task.order
        try:
            output = reduce(
                replace(raw, blocks=tuple(self.blocks)),
                case=order.case,
                side=order.side,
                round_number=round_number,
                cold_cache=order.cold_cache,
                installed=order.metrics,
                server=self.server,
            )
            to_plain(output.values)
        except UsageError as error:
            raise self.living.ended("broken_plugin", str(error)) from error
        except (ValueError, ArithmeticError) as error:  # CodecError for a value that isn't finite
            raise self.living.nonsense(f"its samples can't be reduced: {error}") from error
        self.result = output

    def end(self, round_number: int) -> None:
        """End the worker and all that it started. Fail it if it left processes, or ran wrong code.

        Code is wrong if it isn't the side's own.
        """
        if self.worker is None or self.has_ended:
            return
        self.has_ended = True
        left = self.worker.close()
        self.log = self.worker.log
        if left and self.result is not None and not self.failure:
            why = f"the benchmark left {counted(left, 'process')} running, ended by perfci"
            failure = self.worker.ended("left_processes", why).failure
            self.result = WorkerFailure(round_number, failure)
        if self.task.watched and self.result is not None:
            self._judge(self.task.watched, round_number)

    def _judge(self, watched: WorkerWatch, round_number: int) -> None:
        """Fail a worker that ran code which isn't its side's, even if it failed otherwise."""
        self.used = watched.used()
        if self.used.wrong:
            tail = self.failure.log_tail if self.failure else ""
            failure = wrong_code(self.used.wrong, self.task.order.case, self.side, tail)
            self.result = WorkerFailure(round_number, failure)

    def _measurement(self) -> Measurement:
        """Return what the worker measured. WorkerEnded if perfci's worker never sends such."""
        raw = self.living.field(self._output, "measurement", Measurement)
        try:
            raw = with_results(raw)
        except PerfciError as error:
            raise self.living.ended("bad_results", f"{error.message}\n{error.advice}") from error
        for metric in raw.extra_metrics:
            if wrong := unfit_reason(metric):
                raise self.living.nonsense(f"a metric that isn't perfci's: {wrong}")
            if (known := METRICS.get(metric.name, metric)) != metric:
                what = f"its metric `{metric.name}` is another one than that installed with perfci"
                raise self.living.ended(
                    "broken_plugin",
                    f"{what}: {metric}, and {known}\n"
                    "Install the same version in both, or rename one.",
                )
        for remark in raw.remarks.values():
            if remark.code not in OF_WORKERS or not sayable(remark):
                raise self.living.nonsense(f"a remark that no worker makes: {remark.code[:100]!r}")
        return raw


def wrong_time(block: WorkerBlock, ordered: float, answered: float) -> str:
    """Return why a block can't lie between its order and its answer, or "".

    Parent and worker read the machine's monotonic clock. If the worker's times don't fit, the
    benchmark has replaced the worker's clock.
    """
    elapsed = answered - ordered
    if not ordered - _CLOCK_ROUNDING_S <= block.started <= answered + _CLOCK_ROUNDING_S:
        apart = block.started - ordered
        return f"a block began {apart:.3g} s after its order, which it answered after {elapsed:.3g}"
    if not 0.0 <= block.duration <= answered - block.started + _CLOCK_ROUNDING_S:
        return f"{block.duration:.3g} s of bursts in a block that took {elapsed:.3g} s"
    return ""
