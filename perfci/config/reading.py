"""Check a TOML table against a struct. Errors name the key, its value and what is expected.

msgspec checks types and bounds. The keys are walked here, because msgspec's messages name neither
the nearest key nor the right way to write a value.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, UnsetType, ValidationError, convert
from msgspec.structs import fields

from perfci.errors import UsageError

S = TypeVar("S", bound=Struct)
_MOST_SHOWN = 200
"""Characters of a wrong value in a message."""


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """The location of a key in a file."""

    where: str
    path: str = ""

    def key(self, name: str) -> KeyLocation:
        """Return the location of a key of this table."""
        return replace(self, path=f"{self.path}.{name}" if self.path else name)

    def wrong(self, expected: str, value: Any) -> UsageError:
        """Return the error for a value that isn't what was expected."""
        return UsageError(
            "configuration-value",
            f"{self.where}: `{self.path}` is {_shown(value)}",
            f"Expected {expected}.",
        )

    def unknown(self, key: str, names: Iterable[str]) -> UsageError:
        """Return the error for a key that isn't one of the table's ``names``."""
        names = list(names)
        near = nearest(key, names)
        return UsageError(
            "unknown-key",
            f"{self.where}: `{self.key(key).path}` is not a key of perfci's",
            f"{f'Did you mean `{near}`? ' if near else ''}Keys here: {', '.join(names)}.",
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def read_table(kind: type[S], content: Any, location: KeyLocation) -> S:
    """Return a table as a struct. Raises UsageError for the first error in it."""
    if not isinstance(content, dict):
        raise location.wrong("a table", content)
    known = {field.name: field for field in fields(kind)}
    for key in content:
        if key not in known:
            raise location.unknown(key, known)
    for name, field in known.items():
        if name not in content and field.default is field.default_factory is NODEFAULT:
            missing = location.key(name).path
            raise UsageError(
                "missing-key",
                f"{location.where}: `{missing}` is missing",
                f"Add `{name} = …` there.",
            )
    return kind(
        **{key: _value(known[key].type, raw, location.key(key)) for key, raw in content.items()}
    )


def _value(hint: Any, raw: Any, location: KeyLocation) -> Any:
    kind, metas = _parts(hint)
    origin, arguments = get_origin(kind), get_args(kind)
    if _is_struct(kind):
        return read_table(kind, raw, location)
    if origin is dict:
        if not isinstance(raw, dict):
            raise location.wrong("a table", raw)
        return {
            name: _value(arguments[1], value, location.key(name)) for name, value in raw.items()
        }
    if origin is tuple and _is_struct(arguments[0]):
        if not isinstance(raw, list):
            raise location.wrong("a list of tables", raw)
        places = (
            replace(location, path=f"{location.path}[{number}]") for number in range(len(raw))
        )
        return tuple(map(read_table, (arguments[0],) * len(raw), raw, places))
    try:
        return _converted(hint, raw)
    except ValueError as error:
        written = next((meta.extra["expected"] for meta in metas if meta.extra), "")
        derived = _expected(kind, metas) if isinstance(error, ValidationError) else str(error)
        raise location.wrong(written or derived, raw) from None


def _converted(hint: Any, raw: Any) -> Any:
    """Return a value, or a list of values, as its type. Raises ValueError for a wrong one."""
    kind, metas = _parts(hint)
    for meta in metas:
        if meta.extra and meta.extra["read"]:
            raw = meta.extra["read"](raw)
    if get_origin(kind) is tuple and isinstance(raw, list):
        raw = [_converted(get_args(kind)[0], item) for item in raw]
    made = convert(raw, hint)
    if isinstance(made, float) and not math.isfinite(made):
        raise ValidationError
    return made


def _expected(kind: Any, metas: Iterable[Meta]) -> str:
    """Describe the values that a type and its bounds allow."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) is tuple:
        least = max((meta.min_length or 0 for meta in metas), default=0)
        return f"a list of at least {least} texts" if least else "a list of texts"
    if kind is bool:
        return "true or false"
    least_number = next((meta.ge for meta in metas if meta.ge is not None), None)
    what = "a whole number" if kind is int else "a number"
    return f"{what} above zero" if least_number is None else f"{what}, at least {least_number:g}"


def _parts(hint: Any) -> tuple[Any, tuple[Meta, ...]]:
    """Return a hint's type and annotations, without ``UnsetType``."""
    metas: tuple[Meta, ...] = ()
    while get_origin(hint) in {Annotated, Union, UnionType}:
        arguments = get_args(hint)
        if get_origin(hint) is Annotated:
            hint, metas = arguments[0], (*arguments[1:], *metas)
        elif UnsetType in arguments:
            hint = next(argument for argument in arguments if argument is not UnsetType)
        else:
            break
    return hint, metas


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def nearest(key: str, names: Iterable[str]) -> str:
    """Return the name most like ``key``, or an empty string.

    Of equally similar names it is the one with the longest common beginning. Of names that begin
    with ``key`` and ``_`` it is the first. So `latency` gives `latency_p50`, and `round` gives
    `rounds`, not `round_time`.
    """
    names = list(names)

    def likeness(name: str) -> tuple[float, int]:
        alike = difflib.SequenceMatcher(None, key, name).ratio()
        same = takewhile(lambda pair: pair[0] == pair[1], zip(key, name, strict=False))
        return (alike, len(list(same)))

    near = difflib.get_close_matches(key, names)
    best = max(near, key=likeness, default="")
    longer = [name for name in names if name.startswith(f"{key}_")]
    return longer[0] if best in longer else best
