"""Calls of the work: the loops that time them, and outputs that stand for work still to be done.

Each statement inside a loop costs time in every sample.
"""

from __future__ import annotations

import io
import math
import sys
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import CoroutineType, FunctionType, GeneratorType, MethodType
from typing import Any

from perfci.clock import perf_counter_ns
from perfci.errors import Unusable
from perfci.worker.devices import BurstDevice

_HELD = 1.2
"""The device is held for this many times a call's latency while the call is launched."""
_MOST_VALUES = 100
"""Most values of a container that are checked."""
_LAZY_TYPES = (
    *(CoroutineType, GeneratorType, AsyncIterator, Iterator, Awaitable),
    *(FunctionType, MethodType, partial),
)
_FUTURES = (
    ("concurrent.futures", "Future", "done"),
    ("multiprocessing.pool", "AsyncResult", "ready"),
    ("torch.futures", "Future", "done"),
)
"""Module, class, and the method that tells whether the work has ended.

The modules are not imported for this check: a future exists only if its module is loaded.
"""


def burst(
    call: Callable[[], Any], samples: array[int], most: int, seconds: float = math.inf
) -> None:
    """Make ``most`` calls, or fewer once ``seconds`` have passed, and append their samples in ns.

    The next call's assignment drops a call's output inside the timed region, as a user's loop
    frees its outputs too. Only a burst's last output is dropped untimed, on both sides alike.
    """
    append = samples.append
    deadline = perf_counter_ns() + seconds * 1e9
    for _ in range(most):
        started = perf_counter_ns()
        output = call()  # noqa: F841 (kept alive until the next call, see above)
        ended = perf_counter_ns()
        append(ended - started)
        if ended >= deadline:
            return


def prepared_burst(
    prepare: Callable[[], object],
    call: Callable[[], Any],
    samples: array[int],
    most: int,
    seconds: float = math.inf,
) -> None:
    """Do as ``burst``, but ``prepare`` each call and drop its output, both untimed."""
    deadline = perf_counter_ns() + seconds * 1e9
    for _ in range(most):
        prepare()
        started = perf_counter_ns()
        output = call()
        ended = perf_counter_ns()
        del output
        samples.append(ended - started)
        if ended >= deadline:
            return


def synchronised_burst(
    call: Callable[[], Any],
    samples: array[int],
    device: BurstDevice,
    settle: Callable[[], object],
    most: int,
    seconds: float = math.inf,
) -> None:
    """Do as ``burst``, but synchronise before each clock reading: the first time by ``settle``."""
    append, synchronize = samples.append, device.synchronize
    deadline = perf_counter_ns() + seconds * 1e9
    for _ in range(most):
        settle()
        started = perf_counter_ns()
        output = call()  # noqa: F841 (kept alive until the next one)
        synchronize()
        ended = perf_counter_ns()
        append(ended - started)
        if ended >= deadline:
            return


def device_burst(
    call: Callable[[], Any],
    device_samples: array[int],
    device: BurstDevice,
    settle: Callable[[], object],
    most: int,
    *,
    latency_ns: int = 0,
    samples: array[int] | None = None,
) -> None:
    """Append the device's own time, in ns, of ``most`` calls: from an event before to one after.

    With the ``latency_ns`` of a call, the device is held until the call is launched, so that the
    device never waits for a launch. NVBench does the same with a kernel that blocks
    (``detail/measure_cold.cu``). Without, the latency goes to ``samples``: that is for long calls,
    in whose latency the two events don't matter. Work that a call launches in another stream
    without waiting for it isn't included.
    """
    hold = getattr(device, "hold", None) if latency_ns else None
    first, last = device.event(), device.event()
    stream = device.stream()
    for _ in range(most):
        settle()
        if hold:
            hold(latency_ns * _HELD / 1e9)
        started = perf_counter_ns()
        first.record(stream)
        output = call()  # noqa: F841 (kept alive until the next one)
        last.record(stream)
        device.synchronize()
        ended = perf_counter_ns()
        if samples is not None:
            samples.append(ended - started)
        device_samples.append(int(first.elapsed_time(last) * 1e6))


def require_ran(output: object) -> None:
    """Raise Unusable if ``output``, or a value in it, runs only on request.

    The values of a tuple, list, set or mapping are checked, but not the values of containers in it.
    A file is an iterator, but not a lazy one.
    """
    for value in (output, *_values_of(output)):
        if isinstance(value, _LAZY_TYPES) and not isinstance(value, io.IOBase):
            if isinstance(value, (CoroutineType, GeneratorType)):
                value.close()  # Python would complain that it was never awaited
            raise Unusable(
                "nothing_ran",
                f"the work returned a lazy `{type(value).__name__}`, and nothing ran: call it, go "
                "through it, or await it by asyncio.run, inside the work",
            )


def require_ended(output: object) -> None:
    """Raise Unusable if ``output``, or a value in it, is a future whose work still runs.

    The same values as in ``require_ran`` are checked. A future that has ended is a plain result.
    """
    for module, name, ended in _FUTURES:
        kind = getattr(sys.modules.get(module), name, None)
        for value in (output, *_values_of(output)) if kind else ():
            if isinstance(value, kind) and not getattr(value, ended)():  # type: ignore[arg-type]
                raise Unusable(
                    "nothing_ran",
                    "the work returned a future before its work had ended: wait for its result "
                    "inside the work",
                )


def _values_of(output: object) -> tuple[object, ...]:
    if isinstance(output, Mapping):
        return tuple(islice(output.values(), _MOST_VALUES))
    if isinstance(output, (tuple, list, set, frozenset)):
        return tuple(islice(output, _MOST_VALUES))
    return ()
