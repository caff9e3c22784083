"""Reading one TOML table: known keys, expected types, and errors that say what to write."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeVar

from perfci.bench.definition import NAME
from perfci.errors import UsageError
from perfci.units import parse_duration

T = TypeVar("T")
D = TypeVar("D")
Read = Callable[[Any], T]
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?", re.IGNORECASE)
_STEPS = "KMGT"


class Unexpected(ValueError):
    """A value of the wrong type or out of range; the message says what was expected."""


class Table:
    """A TOML table whose keys are taken one by one; what is left in the end is unknown."""

    def __init__(self, content: Mapping[str, Any], where: str, name: str) -> None:
        self._content = content
        self._where = where
        self._name = name
        self._known: list[str] = []

    def has(self, key: str) -> bool:
        """Say whether ``key`` is there."""
        return key in self._content

    def names(self) -> tuple[str, ...]:
        """Return the keys that are there."""
        return tuple(self._content)

    def take(self, key: str, read: Read[T], default: D) -> T | D:
        """Return ``key``'s value as ``read`` makes of it, or ``default``."""
        self._known.append(key)
        if key not in self._content:
            return default
        try:
            return read(self._content[key])
        except Unexpected as error:
            raise self.wrong(key, str(error), self._content[key]) from None

    def require(self, key: str, read: Read[T]) -> T:
        """Return ``key``'s value, which has to be there."""
        if key not in self._content:
            raise UsageError(
                "missing-key",
                f"{self._where}: `{self._path(key)}` is missing",
                f"Add `{key} = …` there.",
            )
        value = self.take(key, read, None)
        assert value is not None  # noqa: S101 (it is there, and TOML has no null)
        return value

    def inner(self, key: str) -> Table:
        """Return the table under ``key``; an empty one where there is none."""
        return Table(self.take(key, _table, {}), self._where, self._path(key))

    def array(self, key: str) -> Iterable[Table]:
        """Return the tables of ``[[key]]``."""
        content = self.take(key, each(_table), ())
        return [
            Table(one, self._where, f"{self._path(key)}[{index}]")
            for index, one in enumerate(content)
        ]

    def finish(self, known: Iterable[str] = ()) -> None:
        """Refuse the first key that nobody took; ``known`` are right ones that weren't taken."""
        names = [*self._known, *known]
        for key in self._content:
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1)
                hint = f"Did you mean `{near[0]}`? " if near else ""
                raise UsageError(
                    "unknown-key",
                    f"{self._where}: `{self._path(key)}` is not a key of perfci's",
                    f"{hint}Keys here: {', '.join(names)}.",
                )

    def wrong(self, key: str, expected: str, value: Any) -> UsageError:
        """Return the error for a value that isn't what was expected."""
        return UsageError(
            "configuration-value",
            f"{self._where}: `{self._path(key)}` is {value!r}",
            f"Expected {expected}.",
        )

    def _path(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


def text(value: Any) -> str:
    """Read a text that isn't empty."""
    if not isinstance(value, str) or not value.strip():
        raise Unexpected('a text, such as "benchmarks"')
    return value


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
    """Read a chance above zero, at most a half."""
    found = number(0.0, 0.5)(value)
    if found == 0.0:
        raise Unexpected("a number above zero, at most 0.5")
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


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Unexpected("a table")
    return value
