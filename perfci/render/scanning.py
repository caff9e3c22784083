"""JSON from strangers, looked through once before it is decoded; nothing is built of it.

A decoder takes the last of two equal keys and builds whatever is there, a million empty results
too. This walks along the shape that is expected and stops at the first thing that has no place
in it. Grammar stays the decoder's: what passes here may still be no JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from perfci.model.codec import CodecError
from perfci.render.limits import (
    KEY,
    LARGEST_WHOLE,
    LONGEST_NUMBER,
    MOST_FIELDS,
    Fields,
    Many,
    Named,
    Shape,
    Text,
)

_TAIL = re.compile(r"[ \t\r\n]*+\Z")
_TOKEN = re.compile(
    r"[ \t\r\n,]*+(?:"
    r'(?P<text>"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+")(?P<key>[ \t\r\n]*+:)?'
    r"|(?P<open>[\[{])|(?P<close>[\]}])"
    r"|(?P<number>-?[0-9][0-9.eE+-]*+)|(?P<word>true|false|null))"
)


def check_amounts(text: str, shape: Shape) -> None:
    """Raise CodecError, naming the place, at the first thing that ``shape`` has no room for."""
    walk = _Walk(shape)
    position = 0
    while (match := _TOKEN.match(text, position)) is not None:
        group = match.lastgroup or ""
        walk.step(group, match["text"] if group == "key" else match[group])
        position = match.end()
    if _TAIL.match(text, position) is None:
        raise CodecError(f"not JSON from character {position} on: cut off, or edited")
    walk.end()


@dataclass(slots=True)
class _Open:
    """An object or list that isn't closed yet.

    ``keys`` are an object's so far; a list has none. ``item`` is what the next value should be,
    ``fields`` where it is found for a record.
    """

    keys: set[str] | None
    most: int
    item: Shape | None
    fields: Mapping[str, Shape] | None = None
    key: str = ""
    count: int = 0


class _Walk:
    """Where in a document the walk is, and what may come next."""

    def __init__(self, root: Shape) -> None:
        self._root: Shape | None = root
        self._stack: list[_Open] = []

    def step(self, group: str, token: str) -> None:
        """Take one token; CodecError where it has no place."""
        match group:
            case "key":
                self._key(token)
            case "text":
                self._text(token)
            case "number":
                self._number(token)
            case "open":
                self._stack.append(self._opened(self._begin(), token))
            case "close":
                if not self._stack:
                    raise CodecError(f"not JSON: nothing is open, and {token} closes it")
                self._stack.pop()
            case _:
                self._begin()

    def end(self) -> None:
        """Take the end of the text; CodecError where it comes too early."""
        if self._stack:
            raise CodecError("not JSON: it is cut off, its end is missing")
        if self._root is not None:
            raise CodecError("not JSON: it is empty")

    def _begin(self) -> Shape | None:
        """Count the value that begins, and return what it should be; None: nobody knows it."""
        if not self._stack:
            shape, self._root = self._root, None
            if shape is None:
                raise CodecError("not JSON: more follows after its end")
            return shape
        parent = self._stack[-1]
        if parent.keys is None:
            parent.count += 1
            if parent.count > parent.most:
                raise self._refused(f"more than {parent.most:,} entries")
        return parent.item

    def _opened(self, shape: Shape | None, bracket: str) -> _Open:
        if bracket == "[" and isinstance(shape, Many):
            return _Open(None, shape.most, shape.item)
        if bracket == "{" and isinstance(shape, Named):
            return _Open(set(), shape.most, shape.item)
        if bracket == "{" and isinstance(shape, Fields):
            return _Open(set(), MOST_FIELDS, None, shape.of)
        raise self._refused(f"{'a list' if bracket == '[' else 'an object'} where none belongs")

    def _key(self, token: str) -> None:
        top = self._stack[-1] if self._stack else None
        if top is None or top.keys is None:
            raise CodecError("not JSON: a key outside an object")
        top.key = _decoded(token)
        if top.key in top.keys:
            raise self._refused("a key that stands there twice")
        top.keys.add(top.key)
        if len(top.keys) > top.most:
            raise self._refused(f"more than {top.most:,} entries")
        if top.fields is not None:
            top.item = top.fields.get(top.key)
        elif len(top.key) > KEY.longest:
            raise self._refused(f"a name of more than {KEY.longest:,} characters")

    def _text(self, token: str) -> None:
        shape = self._begin()
        longest = shape.longest if isinstance(shape, Text) else KEY.longest
        # an escape is longer than what it stands for, so most texts needn't be decoded
        if len(token) - 2 > longest and len(_decoded(token)) > longest:
            raise self._refused(f"more than {longest:,} characters")

    def _number(self, token: str) -> None:
        self._begin()
        if len(token) > LONGEST_NUMBER:
            raise self._refused(f"a number of {len(token):,} characters")
        try:
            value = float(token)
        except ValueError as error:
            raise CodecError(f"not JSON: {token} is no number") from error
        if not math.isfinite(value):
            raise self._refused("a number that is not finite")
        whole = token.lstrip("-").isdigit()
        if whole and abs(int(token)) > LARGEST_WHOLE:
            raise self._refused("a whole number of more than 64 bits")

    def _refused(self, why: str) -> CodecError:
        steps = (
            f"[{one.count - 1}]" if one.keys is None else f".{one.key[:100]}" for one in self._stack
        )
        return CodecError(f"{why} at `${''.join(steps)}`")


def _decoded(token: str) -> str:
    """Return the string that a token with its quotes stands for."""
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token))
    except ValueError as error:
        raise CodecError(f"not JSON: {error}") from error
