"""A TOML table held to a struct; errors name the key, what it is, and what is right.

msgspec checks types and bounds. Keys are walked here, because its messages name neither the nearest
key nor what a person would have to write.
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
"""Characters of a wrong value that a message has."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file something is written."""

    where: str
    path: str = ""

    def key(self, name: str) -> Place:
        """Return the place of a key of this table."""
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


def read(kind: type[S], content: Any, place: Place) -> S:
    """Return the struct that a table stands for; UsageError for the first thing wrong in it."""
    if not isinstance(content, dict):
        raise place.wrong("a table", content)
    known = {one.name: one for one in fields(kind)}
    for key in content:
        if key not in known:
            raise place.unknown(key, known)
    for name, one in known.items():
        if name not in content and one.default is one.default_factory is NODEFAULT:
            missing = place.key(name).path
            raise UsageError(
                "missing-key", f"{place.where}: `{missing}` is missing", f"Add `{name} = …` there."
            )
    return kind(
        **{key: _value(known[key].type, raw, place.key(key)) for key, raw in content.items()}
    )


def _value(hint: Any, raw: Any, place: Place) -> Any:
    kind, metas = _parts(hint)
    origin, arguments = get_origin(kind), get_args(kind)
    if _is_struct(kind):
        return read(kind, raw, place)
    if origin is dict:
        if not isinstance(raw, dict):
            raise place.wrong("a table", raw)
        return {name: _value(arguments[1], one, place.key(name)) for name, one in raw.items()}
    if origin is tuple and _is_struct(arguments[0]):
        if not isinstance(raw, list):
            raise place.wrong("a list of tables", raw)
        places = (replace(place, path=f"{place.path}[{number}]") for number in range(len(raw)))
        return tuple(map(read, (arguments[0],) * len(raw), raw, places))
    try:
        return _converted(hint, raw)
    except ValueError as error:
        said = next((one.extra["expected"] for one in metas if one.extra), "")
        derived = _expected(kind, metas) if isinstance(error, ValidationError) else str(error)
        raise place.wrong(said or derived, raw) from None


def _converted(hint: Any, raw: Any) -> Any:
    """Return a single value, or a list of them, as its type has it; ValueError for any other."""
    kind, metas = _parts(hint)
    for meta in metas:
        if meta.extra and meta.extra["read"]:
            raw = meta.extra["read"](raw)
    if get_origin(kind) is tuple and isinstance(raw, list):
        raw = [_converted(get_args(kind)[0], one) for one in raw]
    made = convert(raw, hint)
    if isinstance(made, float) and not math.isfinite(made):
        raise ValidationError
    return made


def _expected(kind: Any, metas: Iterable[Meta]) -> str:
    """Return in words what a type and its bounds allow."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) is tuple:
        least = max((one.min_length or 0 for one in metas), default=0)
        return f"a list of at least {least} texts" if least else "a list of texts"
    if kind is bool:
        return "true or false"
    least_number = next((one.ge for one in metas if one.ge is not None), None)
    what = "a whole number" if kind is int else "a number"
    return f"{what} above zero" if least_number is None else f"{what}, at least {least_number:g}"


def _parts(hint: Any) -> tuple[Any, tuple[Meta, ...]]:
    """Return a hint's type and what is annotated; whether it may be unset doesn't matter."""
    metas: tuple[Meta, ...] = ()
    while get_origin(hint) in {Annotated, Union, UnionType}:
        arguments = get_args(hint)
        if get_origin(hint) is Annotated:
            hint, metas = arguments[0], (*arguments[1:], *metas)
        elif UnsetType in arguments:
            hint = next(one for one in arguments if one is not UnsetType)
        else:
            break
    return hint, metas


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def nearest(key: str, names: Iterable[str]) -> str:
    """Return the name most like ``key``, of those equally like the one that begins most alike.

    Where that one begins with ``key`` as its first words, so may others, and it is the first of
    these: `latency` is `latency_p50`, and `round` is `rounds`, not `round_time`.
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
