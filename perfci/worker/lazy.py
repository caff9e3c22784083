"""Results that run only later: a call that returns one has timed nothing."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import CoroutineType, FunctionType, GeneratorType, MethodType

from perfci.errors import Unusable

_LOOKED_AT = 100
"""How many values of a container are looked at."""
_ITERATE = "go through it inside the work, `for _ in steps(): pass`"
_LAZY = (
    (CoroutineType, "a coroutine", "call asyncio.run inside it"),
    (GeneratorType, "a generator", _ITERATE),
    (AsyncIterator, "an async generator", "go through it inside, with asyncio.run"),
    (Iterator, "an iterator", _ITERATE),
    (Awaitable, "an awaitable", "await it inside, with asyncio.run"),
    ((FunctionType, MethodType, partial), "a function", "call it inside the work"),
)


def require_ran(output: object) -> None:
    """Raise Unusable where ``output``, or a value in it, runs only when somebody asks for it.

    Values of a tuple, list, set or mapping are looked at, those of containers in it are not. A file
    is an iterator that is not lazy.
    """
    for value in (output, *_values_of(output)):
        for kind, article, advice in _LAZY:
            if isinstance(value, kind) and not isinstance(value, io.IOBase):
                if isinstance(value, (CoroutineType, GeneratorType)):
                    value.close()  # Python would complain that it was never awaited
                held = "" if value is output else "what holds "
                message = f"the work returned {held}{article}; nothing ran: {advice}"
                raise Unusable("nothing_ran", message)


def _values_of(output: object) -> tuple[object, ...]:
    if isinstance(output, Mapping):
        return tuple(islice(output.values(), _LOOKED_AT))
    if isinstance(output, (tuple, list, set, frozenset)):
        return tuple(islice(output, _LOOKED_AT))
    return ()
