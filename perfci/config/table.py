"""Reading one TOML table: known keys, and errors that name the key and the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any, TypeVar

from perfci.config.values import Read, Unexpected, each, table
from perfci.errors import UsageError

T = TypeVar("T")
D = TypeVar("D")


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
        return Table(self.take(key, table, {}), self._where, self._path(key))

    def array(self, key: str) -> Iterable[Table]:
        """Return the tables of ``[[key]]``."""
        content = self.take(key, each(table), ())
        return [
            Table(one, self._where, f"{self._path(key)}[{index}]")
            for index, one in enumerate(content)
        ]

    def finish(self, known: Iterable[str] = ()) -> None:
        """Refuse the first key that nobody took; ``known`` are right ones that weren't taken."""
        names = [*self._known, *known]
        for key in self._content:
            if key not in names:
                near = nearest(key, names)
                hint = f"Did you mean `{near}`? " if near else ""
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


def nearest(key: str, names: Iterable[str]) -> str:
    """Return the name most like ``key``, of those equally like the one that begins most alike."""

    def likeness(name: str) -> tuple[float, int]:
        alike = difflib.SequenceMatcher(None, key, name).ratio()
        same = takewhile(lambda pair: pair[0] == pair[1], zip(key, name, strict=False))
        return (alike, len(list(same)))

    near = difflib.get_close_matches(key, names)
    return max(near, key=likeness, default="")
