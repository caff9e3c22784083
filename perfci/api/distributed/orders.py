"""Orders that a worker gives to a rank, and what a rank does for them.

An order that needs steps is a generator, which yields for each of them. A ``FunctionRank`` makes
the step itself, a ``ScriptRank`` is inside a script that makes it. Both resume the generator.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from perfci.collector import OutputSketch, Steps
from perfci.metrics.accuracy import sketched
from perfci.metrics.memory import cards_in_use
from perfci.metrics.observed.allocator import give_back
from perfci.metrics.observed.processes import resident

_COLLECTIVES = ("gloo:", "nccl:")
"""Prefixes of torch's names for a collective's range, from its call until it is done."""
_KERNELS = ("ncclDevKernel", "ncclKernel")
"""Prefixes of the names of NCCL's kernels."""
_GAP_S = 20e-6
"""Time between two operators that counts as a part of computing: Python's, or a launch."""
_STEPS = "perfci:steps"
"""Name of the range around the profiled steps."""
_SIZES = {
    **dict.fromkeys(("bool", "unsigned char", "signed char"), 1),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short int", "short"), 2),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("double", "long int", "long", "c10::complex<float>"), 8),
    "c10::complex<double>": 16,
}
"""Bytes of an element, by the name of its type in a profile. Other types count as one byte."""
_PEAK_STEPS = 3
"""Steps for a peak of memory."""


@dataclass(frozen=True, slots=True, order=True)
class RankTrouble:
    """Reason why a rank can't go on. Of several reasons, the least (earliest) is the cause."""

    when_ns: int
    rank: int
    kind: str
    message: str


class ScriptEnded(Exception):
    """Reason why a script made fewer steps than were ordered."""


class Orders:
    """The worker's orders to a rank, and the rank's answers.

    Whoever makes a step sets its ``output``, or the ``error`` that it raised.
    """

    def __init__(self, channel: Connection, number: int) -> None:
        self._channel = channel
        self._number = number
        self.output: Any = None
        self.error: BaseException | None = None

    def served_by(self, rank: Rank) -> Iterator[None]:
        """Carry out orders until the worker hangs up. Yield whenever one needs a step."""
        while True:
            try:
                name, *arguments = self._channel.recv()
            except (EOFError, ConnectionError):
                return
            try:
                answer = getattr(rank, name)(*arguments)
                if isinstance(answer, Generator):
                    answer = yield from self._given_steps(answer)
            except GeneratorExit:  # a fork of the rank closes this generator, and must not answer
                raise
            except BaseException as error:  # noqa: BLE001 (user code may raise anything: reported)
                self.fail(error)
            else:
                self._channel.send(answer)

    def _given_steps(self, order: Generator[None, Any, Any]) -> Generator[None, None, Any]:
        """Yield for each step that the order needs, hand it the output, and return its result."""
        output = None
        while True:
            try:
                order.send(output)
            except StopIteration as end:
                return end.value
            del output  # not kept while this process waits
            yield
            output, self.output = self.output, None
            error, self.error = self.error, None
            if error:
                raise error

    def fail(self, error: BaseException) -> None:
        """Answer the order that is under way by the reason why the rank can't go on."""
        when_ns = time.monotonic_ns()
        kind, message = "script_ended", str(error)
        if not isinstance(error, ScriptEnded):
            traceback.print_exception(error.with_traceback(_beyond(error.__traceback__)))
            sys.stderr.flush()  # noqa: TID251 (a pipe that the worker drains)
            text = " ".join(f"{type(error).__name__}: {error}".split())
            kind, message = "rank_raised", f"raised {text.removesuffix(':')[:500]}"
        self._channel.send(RankTrouble(when_ns, self._number, kind, message))


def _beyond(trace: TracebackType | None) -> TracebackType | None:
    """Return ``trace`` without its outermost frames that are perfci's or ``runpy``'s."""
    folder = str(Path(__file__).parent)
    while trace and trace.tb_frame.f_code.co_filename.startswith((folder, "<frozen runpy")):
        trace = trace.tb_next
    return trace


class Rank:
    """Carries out the orders that are the same for all ranks. The subclasses in ``rank`` set up."""

    def __init__(self) -> None:
        self._cards: Sequence[int] = ()

    def cards(self) -> Sequence[int]:
        """Return the CUDA devices that the steps use: asked once, because that takes 0.1 ms."""
        self._cards = self._cards or cards_in_use()
        return self._cards

    def wait(self) -> None:
        """Wait until the work launched on all of these devices has ended."""
        for card in self.cards():
            sys.modules["torch"].cuda.synchronize(card)

    def step(self) -> Generator[None, Any, None]:
        """Need one step. Whoever makes it waits for its end."""
        yield

    def begin(self) -> None:
        """Get ready for the bursts: garbage collections skip all objects that exist by now."""
        if os.environ.get("PERFCI_GC") != "1":
            gc.freeze()

    def peaks(self) -> Generator[None, Any, dict[str, float]]:
        """Return the peaks of memory of a few more steps, by metric, as far as they are known.

        Before each step the heap gives back its free pages, as it does for a worker's own peak.
        """
        import torch

        gc.collect()  # what garbage holds would be part of a peak that is reset before
        for card in self.cards():
            torch.cuda.reset_peak_memory_stats(card)
        most = 0
        for _ in range(_PEAK_STEPS):
            gc.collect()
            give_back()
            try:
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            except OSError:  # this kernel has no high-water mark that can be reset
                return {}
            yield
            most = max(most, resident("VmHWM") or 0)
        bytes_by_metric = {"rank_peak_memory": float(most)}
        if self.cards():
            peaks = map(torch.cuda.max_memory_allocated, self.cards())
            bytes_by_metric["rank_peak_device_memory"] = float(sum(peaks))
        return bytes_by_metric

    def inspected(self, count: int) -> Generator[None, Any, Steps]:
        """Make ``count`` more steps under torch's profiler, and return them.

        The profiler is ``torch.autograd``'s, because ``torch.profiler`` imports all of
        torch._dynamo, which takes seconds.
        """
        from torch.autograd.profiler import profile, record_function

        with profile(record_shapes=True, use_device="cuda" if self.cards() else None) as seen:
            yield  # brings the ranks, whose profilers begin at different times, into step
            with record_function(_STEPS):
                for _ in range(count):
                    yield
        return _steps_of(seen.kineto_results.events(), count)

    def outputs(self) -> Generator[None, Any, OutputSketch]:
        """Return a sketch of what one more step returns."""
        return sketched((yield))


def _steps_of(events: Sequence[Any], count: int) -> Steps:
    ((began, ended),) = (_times(event) for event in events if event.name() == _STEPS)
    calls = [
        event
        for event in events
        if event.name().startswith(_COLLECTIVES) and began <= _times(event)[0] < ended
    ]
    # NCCL's range covers only the call, so use the times of NCCL's kernels
    kernels = [event for event in events if event.name().startswith(_KERNELS)]
    return Steps(
        count,
        began,
        ended,
        tuple((call.name().partition(":")[2], _bytes_of(call)) for call in calls),
        tuple(_times(event) for event in kernels or calls),
        tuple(os.sched_getaffinity(0)),
        _computing(events, began, ended, on_device=bool(kernels)),
    )


def _computing(
    events: Sequence[Any], began: float, ended: float, *, on_device: bool
) -> tuple[tuple[float, float], ...]:
    """Return the times of operators, or of a device's kernels and copies, joined to a few."""
    joined: list[tuple[float, float]] = []

    def computes(event: Any) -> bool:
        if not on_device:
            return str(event.name()).startswith("aten::")
        on_cuda = str(event.device_type()).endswith("CUDA")
        return on_cuda and not str(event.name()).startswith(_KERNELS)

    for start, end in sorted(_times(event) for event in events if computes(event)):
        if joined and start - joined[-1][1] < _GAP_S:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif began <= start < ended:
            joined.append((start, end))
    return tuple(joined)


def _times(event: Any) -> tuple[float, float]:
    began = event.start_ns()
    return began / 1e9, (began + event.duration_ns()) / 1e9


def _bytes_of(event: Any) -> float:
    tensors = zip(event.shapes(), event.dtypes(), strict=False)
    return float(sum(prod(shape) * _SIZES.get(kind, 1) for shape, kind in tensors))
