"""One side's place in a round: its worker while it lives, what that answers, then its result."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.errors import UsageError
from perfci.machine.gpu_watch import GpuState, GpuWatches, Watch, set_aside_reason
from perfci.metrics import METRICS
from perfci.model.codec import to_plain
from perfci.model.finding import OF_WORKERS
from perfci.model.metric import why_unfit
from perfci.model.words import sayable
from perfci.model.worker import Block, Measurement, WorkerFailure, WorkerResult, WorkOrder
from perfci.session.conversation import Worker
from perfci.session.executor import Executor, OpenStarters
from perfci.session.launch import Launch
from perfci.session.provenance.attribution import Provenance
from perfci.session.provenance.watch import Watched, record_removed, wrong_code
from perfci.verdict.reduction import reduce

_CLOCK_S = 1e-6
"""Readings of one clock, as floating numbers, are that far apart at most."""


@dataclass(frozen=True, slots=True)
class Task:
    """One worker of a round: what it does, how it is started, and where it says what it ran."""

    order: WorkOrder
    launch: Launch
    environment: Mapping[str, str]
    timeout_s: float
    watched: Watched | None = None


def start_worker(
    task: Task, turns: int, *, executor: Executor, forking: OpenStarters | None, budget_end: float
) -> Worker:
    """Start one worker: forked by its side's starter, or afresh."""
    if forking:
        order = replace(
            task.order,
            cold_start=not forking.at_once,
            fresh_state=forking.fresh_states.get(task.order.side, {}),
        )
        starter = forking.by_side[order.side]
        return starter.fork(order, task.environment, budget_end=budget_end, turns=turns)
    launch = replace(task.launch, environment={**task.launch.environment, **task.environment})
    return executor.start(task.order, launch, budget_end=budget_end, turns=turns)


class Slot:
    """One side of a round. Times in s."""

    def __init__(self, task: Task, ancestor: int = 0) -> None:
        self.task = task
        self.ancestor = ancestor
        self.worker: Worker | None = None
        self.turns: socket.socket | None = None
        self.call_s = 0.0
        self.blocks: list[Block] = []
        self.measured_s = 0.0
        self.on_device = False
        self.watch: Watch | None = None
        self.energy = math.nan
        self.crowded = False
        self.result: WorkerResult | None = None
        self.log = ""
        self.ran: Provenance | None = None
        self._before: GpuState | None = None
        self._ordered = 0.0

    @property
    def living(self) -> Worker:
        """The worker of a slot that has no result yet."""
        assert self.worker is not None  # noqa: S101 (a slot without a worker has a result)
        return self.worker

    def await_ready(self, gpu: GpuWatches) -> None:
        """Wait until it is warm. Raises WorkerEnded, and BudgetEnded."""
        said = self.living.expect("ready", self.task.timeout_s)
        self.call_s = max(0.0, self.living.field(said, "call_s", float))
        self.on_device = self.living.field(said, "on_device", bool)
        if self.on_device:
            self.watch = gpu.of(self.living.field(said, "uuid", str))

    def order_block(self, order: Mapping[str, object]) -> None:
        """Order a block of bursts."""
        self._before = self.watch.read() if self.watch else None
        self._ordered = self.living.now()
        self.living.send({"do": "block", **order})

    def take_block(self, said: Mapping[str, object], workers: Sequence[int]) -> None:
        """Keep the block that was ordered; ``workers`` are the round's processes.

        Raises WorkerEnded for one that can't be true.
        """
        fields = {name: value for name, value in said.items() if name != "say"}
        block = self.living.field({"say": "block", "block": fields}, "block", Block)
        if wrong := wrong_time(block, self._ordered, self.living.now()):
            raise self.living.wrong_clock(wrong)
        if self._before is not None and self.watch is not None:
            reason = set_aside_reason(self._before, self.watch.read(), workers)
            block = replace(block, set_aside=reason)
        self.measured_s += block.duration
        if block.bursts:  # none, where the other side was gone at once
            self.blocks.append(block)

    def learn_call(self) -> None:
        """Believe the blocks, where they show a shorter call than the warm-up did."""
        shown = (one.duration / (one.bursts * one.samples) for one in self.blocks if one.samples)
        self.call_s = min(self.call_s, *shown, math.inf)

    def finish(self, round_number: int) -> None:
        """Have its output as the result. Raises WorkerEnded."""
        self.living.send({"do": "finish"})
        said = self.living.expect("output", self.task.timeout_s)
        self.living.stage = "done"
        self.result = self._reduced(said, round_number)

    def end(self, round_number: int) -> None:
        """End its worker and all that this started; fail one that ran what isn't its side's."""
        if self.worker is None:
            return
        left = self.worker.close()
        self.log = self.worker.log
        finished = not isinstance(self.result, WorkerFailure) and self.result is not None
        if left and finished:
            self.result = WorkerFailure(round_number, self.worker.left_behind(left))
        if self.task.watched and self.result is not None:
            self._judge(self.task.watched, round_number)

    def _judge(self, watched: Watched, round_number: int) -> None:
        """Fail a worker that ran what isn't its side's, whatever else it came to."""
        failure = self.result.failure if isinstance(self.result, WorkerFailure) else None
        self.ran = watched.provenance(failed=self.living.pid if failure else 0)
        if self.ran.wrong:
            order = self.task.order
            tail = failure.log_tail if failure else ""
            failure = wrong_code(self.ran.wrong, order.case, order.side, tail)
        elif failure is None and not self.ran.watched:
            failure = record_removed(self.task.order.case, self.task.order.side)
        elif failure and self.ran.advice:
            failure = replace(failure, message=f"{failure.message}\n{self.ran.advice}")
        if failure:
            self.result = WorkerFailure(round_number, failure)

    def _reduced(self, said: Mapping[str, object], round_number: int) -> WorkerResult:
        raw = self.living.field(said, "measurement", Measurement)
        for metric in raw.extra_metrics:
            if wrong := why_unfit(metric):
                raise self.living.nonsense(f"a metric that isn't perfci's: {wrong}")
            if (known := METRICS.get(metric.name, metric)) != metric:
                what = (
                    f"its metric `{metric.name}` is another one than that installed beside perfci"
                )
                raise self.living.broken_plugin(
                    f"{what}: {metric}, and {known}\n"
                    "Install the same version in both, or rename one."
                )
        for remark in raw.remarks.values():
            if remark.code not in OF_WORKERS or not sayable(remark):
                raise self.living.nonsense(f"a remark that no worker makes: {remark.code[:100]!r}")
        order = self.task.order
        try:
            output = reduce(
                replace(raw, blocks=tuple(self.blocks)),
                case=order.case,
                side=order.side,
                round_number=round_number,
                cold_cache=order.cold_cache,
                energy=self.energy if self.on_device else None,
                installed=order.metrics,
                ancestor=self.ancestor,
            )
            to_plain(output.values)
        except UsageError as error:
            raise self.living.broken_plugin(str(error)) from error
        except (ValueError, ArithmeticError) as error:  # CodecError for what isn't finite
            raise self.living.nonsense(f"its samples can't be reduced: {error}") from error
        return output


def wrong_time(block: Block, ordered: float, answered: float) -> str:
    """Return why a block can't lie between its order and its answer, by the parent's clock.

    Both read the machine's monotonic clock: a worker's that says otherwise was replaced.
    """
    elapsed = answered - ordered
    if not ordered - _CLOCK_S <= block.started <= answered + _CLOCK_S:
        apart = block.started - ordered
        return f"a block began {apart:.3g} s after its order, which it answered after {elapsed:.3g}"
    if not 0.0 <= block.duration <= answered - block.started + _CLOCK_S:
        return f"{block.duration:.3g} s of bursts in a block that took {elapsed:.3g} s"
    return ""
