"""One round: a worker of each side, both alive, taking bursts in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from perfci.errors import UsageError
from perfci.machine.gpu_watch import (
    GpuState,
    GpuWatch,
    GpuWatches,
    energy_between,
    set_aside_reason,
)
from perfci.metrics import METRICS
from perfci.model.case import Failure
from perfci.model.codec import to_plain
from perfci.model.metric import why_unfit
from perfci.model.settings import MeasureSettings
from perfci.model.worker import (
    Burst,
    Measurement,
    WorkerFailure,
    WorkerOutput,
    WorkerResult,
    WorkOrder,
)
from perfci.session.conversation import Worker, WorkerEnded
from perfci.session.executor import Executor, OpenStarters
from perfci.session.launch import Launch
from perfci.session.provenance.attribution import Provenance
from perfci.session.provenance.watch import Watched, record_removed, wrong_code
from perfci.session.schedule import burst_count, burst_order, lead_in_s
from perfci.verdict.reduction import reduce

# Pure: both sides of a round live at once, and need room for both.

KIND = "no_room_for_both"
_KINDS = frozenset({"OutOfMemoryError", "MemoryError", "out_of_memory"})
_WORDS = ("out of memory", "alloc_failed", "can't allocate memory")
"""Of CUDA, of its libraries, and of torch on the host, in RuntimeErrors that have no name."""


def ran_out_of_memory(failure: Failure) -> bool:
    """Say whether it failed for memory, the device's or the host's."""
    said = failure.message.lower()
    return failure.kind in _KINDS or any(word in said for word in _WORDS)


def no_room_for_both(failure: Failure, side: str) -> Failure:
    """Return ``side``'s failure where ``failure`` came up beside the other side, and not alone.

    Which side got the memory first depends on the order: neither is to blame.
    """
    first_line = next(iter(failure.message.strip().splitlines()), failure.kind)
    return replace(
        failure,
        side=side,
        kind=KIND,
        message=f"both sides don't fit at once: beside the other one {failure.side} failed in "
        f"{failure.stage}, and alone it ran: {first_line}\n"
        "Make the benchmark smaller (its batch, say), or measure where there is more memory: a "
        "round needs it for both sides.",
    )


@dataclass(frozen=True, slots=True)
class Task:
    """One worker of a round: what it does, how it is started, and where it says what it ran."""

    order: WorkOrder
    launch: Launch
    environment: Mapping[str, str]
    timeout_s: float
    watched: Watched | None = None


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What a round gave: a result a side, what the workers printed, and time inside bursts.

    ``ran`` is what each side's worker and its children ran.
    """

    results: tuple[WorkerResult, ...]
    logs: Mapping[str, str]
    measured_s: float
    ran: Mapping[str, Provenance] = field(default_factory=dict)


class _Slot:
    """One side's place in a round: its worker while it lives, then its result."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.worker: Worker | None = None
        self.call_s = 0.0
        self.result: WorkerResult | None = None
        self.log = ""
        self.measured_s = 0.0
        self.bursts: list[Burst] = []
        self.on_device = False
        self.watch: GpuWatch | None = None
        self.energy = 0.0
        self.crowded = False
        self.ran: Provenance | None = None


def measure_round(
    tasks: Sequence[Task],
    round_number: int,
    settings: MeasureSettings,
    *,
    executor: Executor,
    budget_end: float,
    starters: OpenStarters | None = None,
    gpu: GpuWatches,
) -> RoundResult:
    """Measure one round; ``tasks`` come in starting order. A failed side leaves the other going.

    Where a side has no memory beside the other, and enough alone, both fail: they don't fit at
    once. Workers are forked by their side's starter where there are ``starters`` and all live, else
    both are started afresh.
    Raises BudgetEnded (nothing of the round is kept) and KeyboardInterrupt; no worker outlives it.
    """
    slots = [_Slot(task) for task in tasks]

    def measure(slots: Sequence[_Slot]) -> None:
        forking = starters if starters and starters.alive() else None
        start = partial(_started, executor=executor, forking=forking, budget_end=budget_end)
        _take_turns(slots, round_number, settings, start, gpu)

    measure(slots)
    crowded = next((slot for slot in slots if slot.crowded), None)
    if crowded and isinstance(crowded.result, WorkerFailure):
        alone = _Slot(crowded.task)
        if crowded.task.watched:
            crowded.task.watched.begin()
        measure([alone])
        if isinstance(alone.result, WorkerOutput):
            failure = crowded.result.failure
            for slot in slots:
                shared = no_room_for_both(failure, slot.task.order.side)
                slot.result = WorkerFailure(round_number, shared)
    return RoundResult(
        results=tuple(slot.result for slot in slots if slot.result is not None),
        logs={slot.task.order.side: slot.log for slot in slots},
        measured_s=sum(slot.measured_s for slot in slots),
        ran={slot.task.order.side: slot.ran for slot in slots if slot.ran},
    )


def _take_turns(
    slots: Sequence[_Slot],
    round_number: int,
    settings: MeasureSettings,
    started: Callable[[Task], Worker],
    gpu: GpuWatches,
) -> None:
    """Start the workers of ``slots``, let them take bursts in turn, and end them."""

    def attempt(slot: _Slot, step: Callable[[_Slot], None]) -> None:
        if slot.result is None:
            try:
                step(slot)
            except WorkerEnded as ended:  # of a starter that died, it doesn't name the case
                failure = replace(ended.failure, case=slot.task.order.case)
                slot.crowded = ran_out_of_memory(failure) and _lives_beside(slot, slots)
                slot.result = WorkerFailure(round_number, failure)

    def start(slot: _Slot) -> None:
        slot.worker = started(slot.task)
        said = slot.worker.expect("ready", slot.task.timeout_s)
        slot.call_s = max(0.0, slot.worker.field(said, "call_s", float))
        slot.on_device = slot.worker.field(said, "on_device", bool)
        if slot.on_device:
            slot.watch = gpu.of(slot.worker.field(said, "uuid", str))

    def burst(slot: _Slot) -> None:
        before = slot.watch.read() if slot.watch else None
        worker = _alive(slot)
        worker.send({"do": "burst", "seconds": settings.burst, "least": 1, "lead_in": lead_in})
        said = worker.expect("burst", slot.task.timeout_s)
        after = slot.watch.read() if slot.watch else None
        done = _watched(worker, said, before, after, slots)
        slot.measured_s += done.duration
        slot.bursts.append(done)
        slot.energy += energy_between(before, after)

    def finish(slot: _Slot) -> None:
        worker = _alive(slot)
        worker.send({"do": "finish"})
        said = worker.expect("output", slot.task.timeout_s)
        worker.stage = "done"
        slot.result = _result(slot, said, round_number)

    try:
        for slot in slots:  # one after the other: cold starts never overlap
            attempt(slot, start)
        slowest = max(slot.call_s for slot in slots)
        lead_in = lead_in_s(slowest, settings.burst)
        bursts = burst_count(slowest, settings.burst, settings.round_time)
        for slot in burst_order(slots, bursts):
            attempt(slot, burst)
        for slot in slots:
            attempt(slot, finish)
    finally:
        for slot in slots:
            _end(slot, round_number)


def _lives_beside(slot: _Slot, slots: Sequence[_Slot]) -> bool:
    """Say whether the other side's worker is there too, and so holds memory."""
    others = (other for other in slots if other is not slot)
    return any(other.worker and not isinstance(other.result, WorkerFailure) for other in others)


def _started(
    task: Task, *, executor: Executor, forking: OpenStarters | None, budget_end: float
) -> Worker:
    """Start one worker: forked by its side's starter, or afresh."""
    if forking:
        order = replace(task.order, cold_start=not forking.at_once)
        starter = forking.by_side[order.side]
        return starter.fork(order, task.environment, budget_end=budget_end)
    launch = replace(task.launch, environment={**task.launch.environment, **task.environment})
    return executor.start(task.order, launch, budget_end=budget_end)


def _alive(slot: _Slot) -> Worker:
    assert slot.worker is not None  # noqa: S101 (a slot without a worker has a result)
    return slot.worker


def _end(slot: _Slot, round_number: int) -> None:
    if slot.worker is None:
        return
    left = slot.worker.close()
    slot.log = slot.worker.log
    finished = not isinstance(slot.result, WorkerFailure) and slot.result is not None
    if left and finished:
        slot.result = WorkerFailure(round_number, slot.worker.left_behind(left))
    if slot.task.watched and slot.result is not None:
        _judge(slot, slot.task.watched, round_number)


def _judge(slot: _Slot, watched: Watched, round_number: int) -> None:
    """Fail a worker that ran what isn't its side's, whatever else it came to."""
    slot.ran = watched.provenance()
    failure = slot.result.failure if isinstance(slot.result, WorkerFailure) else None
    if slot.ran.wrong:
        order = slot.task.order
        tail = failure.log_tail if failure else ""
        failure = wrong_code(slot.ran.wrong, order.case, order.side, tail)
    elif failure is None and not slot.ran.watched:
        failure = record_removed(slot.task.order.case, slot.task.order.side)
    elif failure and slot.ran.advice:
        failure = replace(failure, message=f"{failure.message}\n{slot.ran.advice}")
    if failure:
        slot.result = WorkerFailure(round_number, failure)


def _watched(
    worker: Worker,
    said: Mapping[str, object],
    before: GpuState | None,
    after: GpuState | None,
    slots: Sequence[_Slot],
) -> Burst:
    fields = {name: value for name, value in said.items() if name != "say"}
    burst = worker.field({"say": "burst", "burst": fields}, "burst", Burst)
    if before is None or after is None:
        return burst
    own = [slot.worker.pid for slot in slots if slot.worker]
    return replace(burst, set_aside=set_aside_reason(before, after, own))


def _result(slot: _Slot, said: Mapping[str, object], round_number: int) -> WorkerResult:
    raw = _alive(slot).field(said, "measurement", Measurement)
    for metric in raw.extra_metrics:
        if wrong := why_unfit(metric):
            raise _alive(slot).nonsense(f"a metric that isn't perfci's: {wrong}")
        if (known := METRICS.get(metric.name, metric)) != metric:
            what = f"its metric `{metric.name}` is another one than that installed beside perfci"
            raise _alive(slot).broken_plugin(
                f"{what}: {metric}, and {known}\nInstall the same version in both, or rename one."
            )
    order = slot.task.order
    try:
        output = reduce(
            replace(raw, bursts=tuple(slot.bursts)),
            case=order.case,
            side=order.side,
            round_number=round_number,
            cold_cache=order.cold_cache,
            energy=slot.energy if slot.on_device else None,
            installed=order.metrics,
        )
        to_plain(output.values)
    except UsageError as error:
        raise _alive(slot).broken_plugin(str(error)) from error
    except (ValueError, ArithmeticError) as error:  # CodecError for what isn't finite
        raise _alive(slot).nonsense(f"its samples can't be reduced: {error}") from error
    return output
