"""The operators that a call runs: how often, on what, how long, and from which line.

``torch.profiler`` counts them and takes their time; kernels and copies of a device, too.
"""

from __future__ import annotations

from perfci.instruments.operators.comparing import RUNS, differences
from perfci.instruments.operators.profile import record
from perfci.units import counted, format_value

__all__ = ["PLACE", "RUNS", "WHEN", "WORDS", "differences", "record"]
PLACE = 30
WHEN = "work"

# In words.


def _number(count: float) -> str:
    return f"{count:.4g}"


def _gain(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{format_value(abs(seconds), 's')}"


def _calls(*, operator: str, before: float, after: float, seconds: float, others: int) -> str:
    more = f", with {counted(others, 'other operator')}" if others else ""
    return f"`{operator}` {_number(before)} → {_number(after)} calls, {_gain(seconds)}{more}"


def _tensors(
    *, operator: str, before: str, after: str, calls: float, seconds: float, others: int
) -> str:
    more = f", with {counted(others, 'other operator')}" if others else ""
    times = f"{_number(calls)} calls, {_gain(seconds)}{more}"
    return f"`{operator}` on {after}, before on {before}, {times}"


def _kernel(*, operator: str, before: float, after: float, seconds: float, others: int) -> str:
    more = f", with {counted(others, 'other kernel')}" if others else ""
    times = f"{_number(before)} → {_number(after)} times"
    return f"on the device `{operator}` {times}, {_gain(seconds)}{more}"


def _time(*, operator: str, calls: float, before: float, after: float) -> str:
    return (
        f"`{operator}` takes {format_value(before, 's')} → {format_value(after, 's')} "
        f"in {_number(calls)} calls"
    )


WORDS = {
    "operator-calls": _calls,
    "operator-tensors": _tensors,
    "operator-kernel": _kernel,
    "operator-time": _time,
}
