"""Reading single values of the configuration; what isn't expected says what to write instead."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeVar

from perfci.model.case import NAME
from perfci.model.metric import Metric
from perfci.units import parse_duration, parse_share

T = TypeVar("T")
Read = Callable[[Any], T]
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?", re.IGNORECASE)
_STEPS = "KMGT"
_CLASS = re.compile(r"\[!?[^]]+\]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Unexpected(ValueError):
    """A value of the wrong type or out of range; the message says what was expected."""


def text(value: Any) -> str:
    """Read a text that isn't empty."""
    if not isinstance(value, str) or not value.strip():
        raise Unexpected('a text, such as "benchmarks"')
    return value


def file_pattern(value: Any) -> str:
    """Read a pattern of file names; one that can match nothing would read as "no benchmarks"."""
    if (
        not isinstance(value, str)
        or not value.strip()
        or value.startswith("/")
        or "[" in _CLASS.sub("", value)
    ):
        raise Unexpected('a pattern of file names, such as "bench_*.py"')
    return value


def texts(accepts: Callable[[str], object], what: str) -> Read[tuple[str, ...]]:
    """Read a list of texts each of which ``accepts`` takes; ``what`` they are called."""

    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(
            isinstance(one, str) and accepts(one) for one in value
        ):
            raise Unexpected(f"a list of {what}")
        return tuple(value)

    return read


commands = texts(str.strip, "texts, none of them empty")
variables = texts(_VARIABLE.fullmatch, 'names of environment variables, such as ["HF_HOME"]')


def benchmark_name(value: Any) -> str:
    """Read a name that can stand in a case's id."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise Unexpected("a name of letters, digits, `_`, `.` and `-`")
    return value


def inside(value: Any) -> str:
    """Read a path inside the repository: one outside would be measured for both sides alike."""
    path = PurePosixPath(text(value))
    if path.is_absolute() or ".." in path.parts:
        raise Unexpected("a path inside the repository, relative to its root")
    return str(path)


def flag(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise Unexpected("true or false")
    return value


def whole(least: int) -> Read[int]:
    """Read a whole number of at least ``least``."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise Unexpected(f"a whole number, at least {least}")
        return value

    return read


def number(least: float, most: float = math.inf) -> Read[float]:
    """Read a finite number between ``least`` and ``most``."""
    bound = f" from {least:g} to {most:g}" if math.isfinite(most) else f", at least {least:g}"

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Unexpected(f"a number{bound}")
        if not math.isfinite(value) or not least <= value <= most:
            raise Unexpected(f"a number{bound}")
        return float(value)

    return read


def positive(value: Any) -> float:
    """Read a finite number above zero."""
    found = number(0.0)(value)
    if found == 0.0:
        raise Unexpected("a number above zero")
    return found


def share(value: Any) -> float:
    """Read a share: "5%" or 0.05."""
    try:
        return parse_share(value)
    except ValueError as error:
        raise Unexpected(str(error)) from None


def threshold(metric: Metric) -> Read[float]:
    """Read what ``metric``'s threshold is: a share of base, or an amount in its unit."""

    def read(value: Any) -> float:
        if not metric.absolute:
            return share(value)
        try:
            return number(0.0)(value)
        except Unexpected:
            raise Unexpected(f"an amount in {metric.unit}, as a number, at least 0") from None

    return read


def chance(value: Any) -> float:
    """Read a chance above zero, at most a half."""
    wrong = Unexpected("a number above zero, at most 0.5")
    try:
        found = parse_share(value)
    except ValueError:
        raise wrong from None
    if not 0.0 < found <= 0.5:
        raise wrong
    return found


def duration(value: Any) -> float:
    """Read seconds, or a text such as "10m"."""
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise Unexpected('seconds above zero, or a text such as "90s", "10m" or "1h"')
        return parse_duration(str(value))
    except ValueError:
        raise Unexpected('seconds above zero, or a text such as "90s", "10m" or "1h"') from None


def size(value: Any) -> int:
    """Read bytes, or a text such as "8GiB"; 0 for none."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise Unexpected('a number of bytes, or a text such as "8GiB" or "500MB"')
    unit = match[2] or ""
    base = 1024 if unit.lower().endswith("i") else 1000
    power = _STEPS.index(unit[0].upper()) + 1 if unit else 0
    return int(float(match[1]) * base**power)


def choice(*allowed: Any) -> Read[Any]:
    """Read one of ``allowed``."""

    def read(value: Any) -> Any:
        if value not in allowed:
            raise Unexpected(f"one of {', '.join(allowed)}")
        return value

    return read


def each(read_one: Read[T], least: int = 0) -> Read[tuple[T, ...]]:
    """Read a list whose every value ``read_one`` reads."""

    def read(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list) or len(value) < least:
            raise Unexpected("a list" + (f" of at least {least}" if least else ""))
        return tuple(read_one(one) for one in value)

    return read


def table(value: Any) -> Mapping[str, Any]:
    """Read a table."""
    if not isinstance(value, dict):
        raise Unexpected("a table")
    return value
