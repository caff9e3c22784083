"""Frequent mistakes that head's calls show. No verdict depends on them."""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from perfci.clock import perf_counter
from perfci.instruments import Recorded, RecordingScene, Words
from perfci.model.why import Hint
from perfci.units import counted, format_share

PLACE = 90
WHEN = "work"
ON_DEMAND = True  # `hints = false` switches them off

_TIMED_S, _MOST_CALLS, _FEWEST_CALLS = 0.3, 120, 30
"""Limits of timing calls: a time and a number. With fewer calls, the warm-up isn't judged."""
_MOST_PLACES = 20
_FALLS = 0.10
"""Calls are not warm if the last third of them is quicker than the first third by this share."""
_MANY_READS = 10
"""Without a device, fewer reads of single values per call have no visible cost."""
_FUSED_SHARE, _FEWEST_FUSED = 0.5, 5
"""Elementwise operators are worth fusing from this share of all time, and this number, on."""
_COPIES = frozenset({"aten::clone", "aten::_to_copy", "aten::copy_"})
"""Operators that torch tags as elementwise, but that aren't counted: better avoided than fused."""

# In the worker.


@dataclass(slots=True)
class _Operations:
    """One call's operations. ``items`` counts reads of single values, by file and line.

    ``copies`` counts copies between devices, by file and line. ``elementwise`` counts elementwise
    operators by name. ``loads`` counts a DataLoader's batches. ``backward`` tells whether a
    backward ran.
    """

    items: Counter[tuple[str, int]] = field(default_factory=Counter)
    copies: Counter[tuple[str, int]] = field(default_factory=Counter)
    elementwise: Counter[str] = field(default_factory=Counter)
    loads: int = 0
    backward: bool = False


def record(scene: RecordingScene) -> Recorded:
    """Time some calls one by one, and inspect the operators and the outputs of one more."""
    times = _times(scene)
    seen, keeps_graph = _Operations(), False
    if "torch" in sys.modules:
        with _counting_loads(seen):
            if scene.compiled:  # a dispatch mode would recompile it, or keep it from being compiled
                output = scene.call()
            else:
                with _watching(scene, seen):
                    output = scene.call()
        keeps_graph = _keeps_graph(output)
        del output
    elementwise = seen.elementwise.total()
    return {
        "times": times,
        "device": scene.device is not None,
        "watched": not scene.compiled,
        "keeps_graph": keeps_graph,
        "backward": seen.backward,
        "items": [[*place, count] for place, count in seen.items.most_common(_MOST_PLACES)],
        "copies": [[*place, count] for place, count in seen.copies.most_common(_MOST_PLACES)],
        "loads": seen.loads,
        "elementwise": elementwise,
        "share": _share(scene, seen.elementwise) if elementwise >= _FEWEST_FUSED else 0.0,
    }


def _share(scene: RecordingScene, names: Collection[str]) -> float:
    """Return the share of the named operators in all operators' own time.

    The time is the device's, if there is any, or else the host's.
    """
    rows = scene.profiled(3).key_averages()
    for clock in ("self_device_time_total", "self_cpu_time_total"):
        times = {row.key: getattr(row, clock, 0.0) for row in rows if row.key.startswith("aten::")}
        if whole := sum(times.values()):
            return float(sum(took for name, took in times.items() if name in names) / whole)
    return 0.0


def _times(scene: RecordingScene) -> list[float]:
    """Return the time of each of some calls, in s."""
    times: list[float] = []
    ended = perf_counter() + _TIMED_S
    while len(times) < _MOST_CALLS and perf_counter() < ended:
        started = perf_counter()
        scene.once()
        times.append(perf_counter() - started)
    return times


@contextmanager
def _watching(scene: RecordingScene, seen: _Operations) -> Iterator[None]:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    copies = (aten._to_copy.default, aten.copy_.default)  # noqa: SLF001 (an operator's name)

    class Watching(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            name = getattr(func, "_schema", func).name
            if torch.Tag.pointwise in func.tags and name not in _COPIES:
                seen.elementwise[name] += 1
            seen.backward |= torch._C._current_autograd_node() is not None  # noqa: SLF001 (there is no other way)
            crosses = func in copies and result.device != args[-1].device
            if crosses or func is aten._local_scalar_dense.default:  # noqa: SLF001 (an operator's name)
                file, line, _ = scene.caller(sys._getframe(1))  # noqa: SLF001 (there is no other way)
                (seen.copies if crosses else seen.items)[file, line] += 1
            return result

    with Watching():
        yield


@contextmanager
def _counting_loads(seen: _Operations) -> Iterator[None]:
    """Count the batches that a DataLoader makes in the process that waits for them."""
    loader: Any = getattr(
        sys.modules.get("torch.utils.data.dataloader"), "_SingleProcessDataLoaderIter", None
    )
    real = getattr(loader, "_next_data", None)
    if real is None:
        yield
        return

    def counted_load(self: Any) -> Any:
        batch = real(self)
        seen.loads += 1
        return batch

    loader._next_data = counted_load  # noqa: SLF001 (as above)
    try:
        yield
    finally:
        loader._next_data = real  # noqa: SLF001 (as above)


def _keeps_graph(output: Any) -> bool:
    """Return whether an output still holds a graph for a backward."""
    if isinstance(output, dict):
        return any(map(_keeps_graph, output.values()))
    if isinstance(output, (list, tuple)):
        return any(map(_keeps_graph, output))
    return getattr(output, "grad_fn", None) is not None


# In the parent. Pure.


def hints(head: Sequence[Recorded]) -> Iterator[Hint]:
    """Yield the mistakes that head's calls show."""
    seen = head[0]
    if seen["keeps_graph"] and not seen["backward"] and seen["watched"]:
        yield Hint("hints", "hint-gradients")
    for file, line, count in seen["copies"]:
        yield Hint("hints", "hint-copies", {"count": count}, file, line)
    for file, line, count in seen["items"]:
        if seen["device"] or count >= _MANY_READS:
            yield Hint("hints", "hint-item", {"count": count}, file, line)
    if seen["loads"]:
        yield Hint("hints", "hint-loader", {"count": seen["loads"]})
    if seen["elementwise"] >= _FEWEST_FUSED and seen["share"] >= _FUSED_SHARE:
        count, share = seen["elementwise"], min(1.0, seen["share"])
        yield Hint("hints", "hint-eager", {"count": count, "share": share})
    if falls := _fall(seen["times"]):
        yield Hint("hints", "hint-warmup", {"share": falls})


def _fall(times: Sequence[float]) -> float:
    """Return the share by which calls still became quicker, or 0 if they didn't do so steadily."""
    if len(times) < _FEWEST_CALLS:
        return 0.0
    third = len(times) // 3
    first, middle, last = (
        statistics.median(times[start : start + third]) for start in (0, third, len(times) - third)
    )
    return 1 - last / first if first * (1 - _FALLS) > middle > last * (1 + _FALLS / 2) else 0.0


WORDS: Words = {
    "hint-gradients": (
        "the outputs keep a graph that no call uses: `torch.inference_mode()` saves its time and "
        "memory"
    ),
    "hint-copies": (
        "copies a call between host and device, each of which may wait for the device: {count}"
    ),
    "hint-item": lambda *, count: (
        f"{counted(count, 'read')} a call of a single value (`.item()`, `float()`, `if tensor`), "
        "each of which waits for all that was launched"
    ),
    "hint-loader": (
        "a DataLoader without workers makes its batches within the call, {count} of them: "
        "`num_workers=` makes them meanwhile"
    ),
    "hint-eager": lambda *, count, share: (
        f"`torch.compile` may pay: {format_share(share)} of the operators' time is in {count} "
        "elementwise ones, which it fuses"
    ),
    "hint-warmup": lambda *, share: (
        f"warm calls still become quicker by {format_share(share)}: `warmup` may be too short"
    ),
}
