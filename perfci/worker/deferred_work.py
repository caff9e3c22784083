"""Finds outputs that stand for work still to be done, whose time no sample would contain."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import CoroutineType, FunctionType, GeneratorType, MethodType

from perfci.errors import Unusable

_MOST_VALUES = 100
"""Most values of a container that are checked."""
_ITERATE = "go through it inside the work, `for _ in steps(): pass`"
_LAZY_TYPES = (
    (CoroutineType, "a coroutine", "call asyncio.run inside it"),
    (GeneratorType, "a generator", _ITERATE),
    (AsyncIterator, "an async generator", "go through it inside, with asyncio.run"),
    (Iterator, "an iterator", _ITERATE),
    (Awaitable, "an awaitable", "await it inside, with asyncio.run"),
    ((FunctionType, MethodType, partial), "a function", "call it inside the work"),
)
_FUTURES = (
    ("concurrent.futures", "Future", "done"),
    ("multiprocessing.pool", "AsyncResult", "ready"),
    ("torch.futures", "Future", "done"),
)
"""Module, class, and the method that tells whether the work has ended.

The modules are not imported for this check: a future exists only if its module is loaded.
"""


def require_ran(output: object) -> None:
    """Raise Unusable if ``output``, or a value in it, runs only on request.

    The values of a tuple, list, set or mapping are checked, but not the values of containers in it.
    A file is an iterator, but not a lazy one.
    """
    for value in (output, *_values_of(output)):
        for kind, article, advice in _LAZY_TYPES:
            if isinstance(value, kind) and not isinstance(value, io.IOBase):
                if isinstance(value, (CoroutineType, GeneratorType)):
                    value.close()  # Python would complain that it was never awaited
                raise _deferred(output, value, f"{article}; nothing ran: {advice}")


def require_ended(output: object) -> None:
    """Raise Unusable if ``output``, or a value in it, is a future whose work still runs.

    The same values as in ``require_ran`` are checked. A future that has ended is a plain result.
    """
    for module, name, ended in _FUTURES:
        kind = getattr(sys.modules.get(module), name, None)
        for value in (output, *_values_of(output)) if kind else ():
            if isinstance(value, kind) and not getattr(value, ended)():  # type: ignore[arg-type]
                raise _deferred(
                    output,
                    value,
                    "a future before its work had ended: wait for its result inside the work",
                )


def _deferred(output: object, value: object, what: str) -> Unusable:
    held = "" if value is output else "what holds "
    return Unusable("nothing_ran", f"the work returned {held}{what}")


def _values_of(output: object) -> tuple[object, ...]:
    if isinstance(output, Mapping):
        return tuple(islice(output.values(), _MOST_VALUES))
    if isinstance(output, (tuple, list, set, frozenset)):
        return tuple(islice(output, _MOST_VALUES))
    return ()
