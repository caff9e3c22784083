"""Damaged variants of a document: its bytes, its values or its structure changed at random."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from random import Random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**400, 0.0, -0.0, 5e-324,
    1e308, -1e308, "", " ", "\0", "\x1b[31m", "\u202e", "\ud800", "a" * 10_000, "../../etc/passwd",
    "/dev/zero",
    "<script>", "[a](javascript:b)", "@everyone", "`", "|", "\n", "::error::", "%0A", "1" * 5_000,
    "2026-02-30T25:61:61+99:99", "0" * 40, "F" * 40, [], {}, [[]], [{}], {"": None}, ["a"] * 2_000,
)  # fmt: skip
ODD_TEXT = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"[" * 3_000, b"{" * 3_000, b'"', b"'''", b"=", b"]",
    b"}", b"9" * 5_000, b"1e999", b"-1e309", b"nan", b"inf", b"1979-05-27T07:32:00Z", b"\\ud800",
    b"\\u0000",
    b"\r", b"\n", b"#", b",", b"true", b"0x", b"1__0", b"\xef\xbb\xbf", b'"""', b"${{ a }}",
)  # fmt: skip
_MOST = 200_000


def damaged(seeds: Sequence[bytes], random: Random, *, lines: bool = False) -> bytes:
    """Return one of ``seeds`` with one to six changes; with ``lines``, JSON a line."""
    content = random.choice(seeds)
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        changed = None
        if random.random() < 0.7:
            changed = (
                _restructured_line(content, random) if lines else _restructured(content, random)
            )
        content = (changed or _bytes(content, random))[:_MOST]
    return content


def _bytes(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    upto = min(len(content), at + random.choice((1, 1, 2, 8, 64, 1_000)))
    piece = content[at:upto]
    new = random.choice((b"", piece * 2, piece[::-1], random.choice(ODD_TEXT), random.randbytes(2)))
    return content[:at] + new + content[upto:] if random.random() < 0.95 else content[:at]


def _restructured_line(content: bytes, random: Random) -> bytes | None:
    lines = content.splitlines(keepends=True)
    if not lines:
        return None
    at = random.randrange(len(lines))
    how = random.random()
    if how < 0.1:
        del lines[at]
    elif how < 0.2:
        lines.insert(random.randrange(len(lines) + 1), lines[at])
    else:
        changed = _restructured(lines[at], random)
        if changed is None:
            return None
        lines[at] = changed + b"\n"
    return b"".join(lines)


def _restructured(content: bytes, random: Random) -> bytes | None:
    """Return JSON with one value changed; nothing where ``content`` is none."""
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return _encoded(_changed(plain, random))


def _changed(plain: Any, random: Random) -> Any:
    """Change a value anywhere below; the way down prefers nothing, so that depths are alike."""
    if not isinstance(plain, dict | list) or not plain or random.random() < 0.12:
        return copy.deepcopy(random.choice(ODD))
    if isinstance(plain, list):
        at = random.randrange(len(plain))
        _change_at(plain, at, random)
        return plain
    key = random.choice(sorted(plain))
    how = random.random()
    if how < 0.06:
        del plain[key]
    elif how < 0.12:
        plain[random.choice((key + "x", "", "schema", "__proto__"))] = random.choice(ODD)
    else:
        plain[key] = _changed(plain[key], random)
    return plain


def _change_at(plain: list[Any], at: int, random: Random) -> None:
    how = random.random()
    if how < 0.06:
        del plain[at]
    elif how < 0.12:
        plain.insert(at, copy.deepcopy(plain[at]))
    else:
        plain[at] = _changed(plain[at], random)


def _encoded(plain: Any) -> bytes:
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass")
