"""More steps of one rank, looked at from inside of it: their collectives and their memory."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

from perfci.collecting import Steps
from perfci.metrics.memory import give_back
from perfci.metrics.observed.tree import resident

_COLLECTIVES = ("gloo:", "nccl:")
"""How torch names the range from a collective's call until it is done; """
_KERNELS = ("ncclDevKernel", "ncclKernel")
_STEPS = "perfci:steps"
_SIZES = {
    **dict.fromkeys(("bool", "unsigned char", "signed char"), 1),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short int", "short"), 2),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("double", "long int", "long", "c10::complex<float>"), 8),
    "c10::complex<double>": 16,
}
"""Bytes of an element, by torch's name of its type in a profile; others are of eight bits."""
_CALLS = 3


def inspected(step: Callable[[], None], count: int, *, cuda: bool) -> Steps:
    """Make ``count`` steps under torch's profiler, and return what they were like.

    By the one of ``torch.autograd``: ``torch.profiler`` imports all of torch._dynamo, which takes
    seconds.
    """
    from torch.autograd.profiler import profile, record_function

    with profile(record_shapes=True, use_device="cuda" if cuda else None) as seen:
        step()  # the ranks' profilers don't begin at one time
        with record_function(_STEPS):
            for _ in range(count):
                step()
    return _steps_of(seen.kineto_results.events(), count)


def _steps_of(events: Sequence[Any], count: int) -> Steps:
    ((began, ended),) = (_times(one) for one in events if one.name() == _STEPS)
    calls = [
        one
        for one in events
        if one.name().startswith(_COLLECTIVES) and began <= _times(one)[0] < ended
    ]
    # NCCL's range is that of the call alone: its kernels are the collective
    kernels = [one for one in events if one.name().startswith(_KERNELS)]
    return Steps(
        count,
        began,
        ended,
        tuple((one.name().partition(":")[2], _bytes_of(one)) for one in calls),
        tuple(_times(one) for one in kernels or calls),
        tuple(os.sched_getaffinity(0)),
    )


def _times(event: Any) -> tuple[float, float]:
    began = event.start_ns()
    return began / 1e9, (began + event.duration_ns()) / 1e9


def _bytes_of(event: Any) -> float:
    tensors = zip(event.shapes(), event.dtypes(), strict=False)
    return float(sum(prod(shape) * _SIZES.get(kind, 1) for shape, kind in tensors))


def peaks(step: Callable[[], None], *, cuda: bool) -> dict[str, float]:
    """Return the most memory of a few steps, by metric; nothing that the kernel doesn't say.

    Like a worker's own: of a heap whose free pages were given back.
    """
    if cuda:
        import torch

        torch.cuda.reset_peak_memory_stats()
    most = 0
    for _ in range(_CALLS):
        gc.collect()
        give_back()
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        except OSError:  # a kernel that has no high-water mark to reset
            return {}
        step()
        most = max(most, resident("VmHWM") or 0)
    found = {"rank_peak_memory": float(most)}
    if cuda:
        found["rank_peak_device_memory"] = float(torch.cuda.max_memory_allocated())
    return found
