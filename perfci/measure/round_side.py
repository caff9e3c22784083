"""One side of a round: its worker, what it measured, and how it ended."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from perfci.errors import PerfciError, UsageError
from perfci.measure.code_guard import CodeUsed, WorkerWatch, wrong_code
from perfci.measure.command_results import with_results
from perfci.measure.machine.cores import throttled_s
from perfci.measure.machine.gpu_watch import (
    GpuState,
    GpuWatch,
    GpuWatches,
    reach_power_limit,
    read_as_one,
    set_aside_reason,
)
from perfci.measure.selection import SAMPLE_S
from perfci.measure.workers import Launch, Worker, WorkerEnded
from perfci.metrics import METRICS
from perfci.model.case import Failure, unfit_reason
from perfci.model.codec import to_plain
from perfci.model.measuring import WorkerFailure, WorkerResult
from perfci.model.words import OF_WORKERS, sayable
from perfci.model.worker import Measurement, WorkerBlock, WorkOrder
from perfci.units import counted, format_value
from perfci.verdict.reduction import reduce

_UNFINISHED = "unfinished"
"""Kind of failure of a worker that, when the budget ends, has been at a step for far longer than
the other side was."""
_LATE_ALONE_S = 2.0
"""A worker is late after this time at a step if the other side hasn't started yet."""
_ALONE_S, _READ_AFTER = 0.5, 0.9
"""Time for which a side runs alone to see whether it reaches its card's power limit (a card shows
that within 0.4 s), and the share of it after which the card is read."""
_CLOCK_ROUNDING_S = 1e-6
"""Tolerance for a clock's readings, which are rounded as floating-point numbers."""


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


class StepTimes(NamedTuple):
    """How long a worker has been at its step, and how long the other side was at the same step.

    A step is a block, or else a stage. The other side's time has two parts: ``fixed_s`` is allowed
    once, ``scaled_s`` as many times as the worker may be slower. ``scaled_s`` is None until the
    other side has passed the step.
    """

    spent_s: float
    fixed_s: float
    scaled_s: float | None


class RoundSide:
    """One side of a round: its worker, and what the worker measured. Times in s.

    ``server`` is the number of the worker's fork server, 0 for a fresh process. The sides take
    turns on the socket ``turns``. ``call_s`` is the time of a call, ``block_s`` the planned time of
    a block. ``most_calls`` limits the calls in a round, unless it is 0. ``failed_beside_other``
    says that the worker failed next to the other side's, which may be why. ``crowding`` is the
    failure for which the sides were then measured one at a time.
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
        self.ready = self.failed_beside_other = False
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
        self._block_ordered_at = 0.0
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
        return bool(self._block_ordered_at)

    def step_times(self) -> StepTimes:
        """Return the times of the step that the worker is at."""
        living, other = self.living, self.other
        spent_s = living.now() - (self._block_ordered_at or living.entered)
        if not (other and other.worker):
            return StepTimes(spent_s, 0.0, None)
        took_s = other.block_s if self.in_block else other.worker.took_s.get(living.stage)
        if took_s and living.stage == "warmup":  # it has a fixed length, or two calls if longer
            return StepTimes(spent_s, took_s, 2 * other.call_s)
        return StepTimes(spent_s, 0.0, took_s)

    def is_late(self, times: float) -> bool:
        """Return whether the worker takes more than ``times`` as long as the other side."""
        if self.worker is None or (other := self.other) is None:
            return False
        step = self.step_times()
        if step.scaled_s is None:
            return other.worker is None and step.spent_s >= _LATE_ALONE_S
        slow = self.call_s > times * other.call_s > 0.0
        return slow or step.spent_s > step.fixed_s + times * step.scaled_s

    def unfinished(self) -> WorkerEnded:
        """Return the exception for a worker that takes far longer than the other side."""
        step = self.step_times()
        others = format_value(step.fixed_s + (step.scaled_s or 0.0), "s")
        side = "head" if self.side == "base" else "base"
        message = f"not ended after {format_value(step.spent_s, 's')}; {side}: {others}"
        return self.living.ended(_UNFINISHED, message)

    @property
    def living(self) -> Worker:
        """The worker of a side that has no result yet."""
        assert self.worker is not None  # noqa: S101 (a side without a worker has a result)
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
        self._block_ordered_at = self.living.now()
        self.living.send({"do": "block", **order})

    def take_block(self, values: Mapping[str, object], workers: Sequence[int]) -> None:
        """Keep the block that was ordered. ``workers`` are the ids of the round's processes.

        Raises WorkerEnded for a block whose times are impossible.
        """
        block = self.living.record(values, WorkerBlock)
        if wrong := wrong_time(block, self._block_ordered_at, self.living.now()):
            raise self.living.ended("wrong_clock", f"its clock isn't perfci's: {wrong}")
        if self._before and (after := read_as_one(self.cards)):
            block = replace(block, set_aside=set_aside_reason(self._before, after, workers))
        throttled = throttled_s() - self._throttled_s
        block = replace(block, calls_before=self._calls_between, throttled=throttled)
        self._calls_between, self._block_ordered_at = 0, 0.0
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
        self.call_s = min((self.call_s, *shown))

    def request_output(self) -> None:
        """Have the worker make its last calls."""
        self.living.send({"do": "finish"})

    def take_output(self) -> None:
        """Wait for the worker's output. Raises WorkerEnded."""
        self._output = self.living.expect("output", self.task.timeout_s)
        self.living.enter("done")

    def make_result(self, round_number: int) -> None:
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
            to_plain(output.values)  # CodecError, a ValueError, if one isn't finite
        except UsageError as error:
            raise self.living.ended("broken_plugin", str(error)) from error
        except (ValueError, ArithmeticError) as error:
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
        """Return the worker's measurement. Raises WorkerEnded for what perfci never sends."""
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
