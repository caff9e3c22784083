"""Bytes to plain JSON, and plain JSON to what a tool writes; anything else says what it is.

The standard library's decoder, not msgspec's: asv and pytest-benchmark write ``NaN``, which is no
JSON and yet a result that was skipped, not a damaged file.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from perfci.errors import DamagedFile, UsageError
from perfci.foreign.gathering import visible

T = TypeVar("T")

MOST_BYTES = 64 << 20
"""Of a file, and of what is packed in it. Raw data of ten thousand benchmarks come near it."""
_GZIP = b"\x1f\x8b"
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_PATH = re.compile(r" - at `(?P<path>[^`]+)`$")


def load(content: bytes, name: str) -> Any:
    """Return the JSON in ``content``, which may be packed by gzip; DamagedFile where it is none."""
    if len(content) > MOST_BYTES:
        raise _too_large(name)
    packed = _unpacked(content, name) if content.startswith(_GZIP) else content
    try:
        text = packed.decode("utf-8-sig")
        plain = json.loads(text, object_pairs_hook=_without_twins)
        if _HALF.search(text):  # half a character: no encoder takes it, msgspec neither
            again = json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")
            plain = json.loads(again, object_pairs_hook=_without_twins)
        return plain
    except RecursionError as error:
        raise _damaged(name, "it is nested too deeply") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise _damaged(name, str(error) or "not JSON") from error


def fill(plain: Any, kind: type[T], name: str, tool: str) -> T:
    """Return the ``kind`` that ``plain`` stands for; what is not known is let be."""
    try:
        return msgspec.convert(plain, type=kind, strict=True)
    except msgspec.ValidationError as error:
        raise DamagedFile(
            "foreign-layout",
            f"{visible(name, 300)} looks like a result file of {tool}, but {explained(error)}",
            f"Write it again with {tool}, or take the file out.",
        ) from error


def explained(error: msgspec.ValidationError) -> str:
    """Return msgspec's message as ``$.a.b: Expected …, got …``."""
    said = str(error)
    found = _PATH.search(said)
    place = found["path"] if found else "$"
    return visible(f"at {place}: {_PATH.sub('', said)}", 300)


def keys_of(plain: Any) -> Sequence[str]:
    """Return an object's keys; none of anything else."""
    return tuple(plain) if isinstance(plain, dict) else ()


def _unpacked(content: bytes, name: str) -> bytes:
    unpack = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        text = unpack.decompress(content, MOST_BYTES + 1)
    except zlib.error as error:
        raise _damaged(name, f"it can't be unpacked: {error}") from error
    if len(text) > MOST_BYTES:
        raise _too_large(name)
    if not unpack.eof:
        raise _damaged(name, "it can't be unpacked: its end is missing")
    return text


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twin = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {visible(twin, 100)!r} stands there twice")
    return found


def _damaged(name: str, why: str) -> DamagedFile:
    return DamagedFile(
        "foreign-damaged",
        f"{visible(name, 300)} is no JSON: {visible(why, 300)}",
        "It may have been cut off while it was written or copied: get it again.",
    )


def _too_large(name: str) -> UsageError:
    return UsageError(
        "foreign-too-large",
        f"{visible(name, 300)} holds more than {MOST_BYTES >> 20} MiB",
        "Leave out the raw data (pytest-benchmark: not --benchmark-save-data), or split it.",
    )
