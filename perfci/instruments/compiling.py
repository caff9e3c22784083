"""Time that the first call spends in torch.compile, by phase, with each phase's products.

This instrument listens to the steps of a compilation that Dynamo reports to its own logger (since
torch 2.5). A step's time counts for its phase, without the time of other phases within it. For
compilers in other processes, the time is that of waiting for them.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from perfci.clock import perf_counter_ns
from perfci.errors import Unusable
from perfci.finding import Difference
from perfci.instruments import Recorded, RecordingScene, Words
from perfci.metrics.graphs import counters, frames_traced, kernels_generated
from perfci.units import counted, format_value

PLACE = 12
WHEN = "first_call"

_DYNAMO, _AOT, _INDUCTOR = "Dynamo", "AOTAutograd (or another backend)", "Inductor"
_COMPILERS, _TUNING = "the C++ and Triton compilers", "autotuning"
_PHASES = {
    "_compile.compile_inner": _DYNAMO,
    "entire_frame_compile": _DYNAMO,
    "backend_compile": _AOT,
    "entire_backward_compile": _AOT,
    "AOTAutogradCache.inductor_load": _INDUCTOR,
    "inductor_compile": _INDUCTOR,
    "PyCodeCache.load_by_key_path": _COMPILERS,
    "compile_file": _COMPILERS,
    "async_compile.wait": _COMPILERS,
    "CachingAutotuner.slow_precompile_config": _COMPILERS,
    "CachingAutotuner.benchmark_all_configs": _TUNING,
    "CachingAutotuner.coordinate_descent_tuning": _TUNING,
    "benchmark_fused_nodes": _TUNING,
}
"""Phases by the steps (as of torch 2.13) that begin them. Other steps count for the one around."""
_PRODUCTS = {_DYNAMO: "call", _AOT: "graph", _INDUCTOR: "kernel", _COMPILERS: "file"}
"""Products of each phase. Their number is exact."""
_LEAST_S, _LEAST_SHARE = 0.05, 0.1
"""Least reported difference of a phase: in s, and as a share of base's whole compile time."""

# In the worker.


@dataclass(slots=True)
class _Phases:
    """Each phase's time in ns, without other phases within it. Each thread has a stack of steps."""

    took_ns: Counter[str] = field(default_factory=Counter)
    files: int = 0
    _stacks: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    _since_ns: dict[int, int] = field(default_factory=dict)

    def begin(self, step: str) -> None:
        """Note that a step begins, within its thread's latest step that hasn't ended."""
        stack = self._settled_stack()
        self.files += step == "compile_file"
        stack.append((step, _PHASES.get(step) or (stack[-1][1] if stack else "")))

    def end(self, step: str) -> None:
        """Note that a step ends. Steps that began within it end as well."""
        stack = self._settled_stack()
        if any(begun == step for begun, _ in stack):
            while stack.pop()[0] != step:
                pass

    def _settled_stack(self) -> list[tuple[str, str]]:
        """Return this thread's stack, after adding the time until now to its innermost phase."""
        thread, now = threading.get_ident(), perf_counter_ns()
        stack = self._stacks.setdefault(thread, [])
        if stack and stack[-1][1]:
            self.took_ns[stack[-1][1]] += now - self._since_ns[thread]
        self._since_ns[thread] = now
        return stack


@contextmanager
def record(_scene: RecordingScene) -> Iterator[dict[str, Any]]:
    """Listen to the steps of all compilations in the first call.

    Raises Unusable if this torch doesn't report them.
    """
    recorded: dict[str, Any] = {"phases": None}
    if "torch" not in sys.modules:
        yield recorded
        return
    traced, before, phases = frames_traced(), _products(), _Phases()
    with _listening(phases):
        yield recorded
    if frames_traced() == traced:
        return
    after = _products() | {_COMPILERS: phases.files}
    recorded["phases"] = {name: took / 1e9 for name, took in phases.took_ns.items()}
    recorded["made"] = {name: count - before.get(name, 0) for name, count in after.items()}


@contextmanager
def _listening(phases: _Phases) -> Iterator[None]:
    try:
        from torch._dynamo.utils import ChromiumEventLogger as Logger

        begins, ends = Logger.log_event_start, Logger.log_event_end
    except (ImportError, AttributeError) as error:
        raise Unusable("torch", f"this torch doesn't report steps of compiling: {error}") from error

    def begun(logger: Any, step: str, *others: Any, **named: Any) -> Any:
        phases.begin(step)
        return begins(logger, step, *others, **named)

    def ended(logger: Any, step: str, *others: Any, **named: Any) -> Any:
        phases.end(step)
        return ends(logger, step, *others, **named)

    Logger.log_event_start, Logger.log_event_end = begun, ended
    try:
        yield
    finally:
        Logger.log_event_start, Logger.log_event_end = begins, ends


def _products() -> dict[str, int]:
    """Return the number of each phase's products so far, as far as this torch counts them."""
    dynamo = counters() or {}
    made = {
        _DYNAMO: dynamo.get("stats", Counter())["calls_captured"],
        _AOT: dynamo.get("stats", Counter())["unique_graphs"],
    }
    kernels = kernels_generated()
    return made if kernels is None else made | {_INDUCTOR: kernels}


# In the parent. Pure.


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterable[Difference]:
    """Yield the phases that take longer or shorter.

    Each side's time is that of a single process. So perfci.verdict.why reports a phase only if a
    metric of the case moved the same way, or if the number of the phase's products differs too.
    """
    before, after = base[0]["phases"], head[0]["phases"]
    if before is None or after is None:
        return
    was, now = base[0]["made"], head[0]["made"]
    least = max(_LEAST_S, _LEAST_SHARE * sum(before.values()))
    for phase in sorted({*before, *after}):
        slower_by = after.get(phase, 0.0) - before.get(phase, 0.0)
        if abs(slower_by) < least:
            continue
        made = was.get(phase, 0), now.get(phase, 0)
        yield Difference(
            "compiling",
            "compiling-phase",
            {
                "phase": phase,
                "before": before.get(phase, 0.0),
                "after": after.get(phase, 0.0),
                "made_before": made[0],
                "made_after": made[1],
            },
            seconds=slower_by,
            metric="compile_time",
            exact=made[0] != made[1],
        )


def _phase(*, phase: str, before: float, after: float, made_before: int, made_after: int) -> str:
    times = f"{format_value(before, 's')} → {format_value(after, 's')}"
    what = _PRODUCTS.get(phase)
    if what is None or not (made_before or made_after):
        made = ""
    elif made_before == made_after:
        made = f", for {counted(made_after, what)} as before"
    else:
        made = f", for {made_before} → {counted(made_after, what)}"
    return f"{phase} takes {times} of the first call{made}"


WORDS: Words = {
    "compiling-phase": _phase,
}
