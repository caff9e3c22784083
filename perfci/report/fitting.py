"""A report cut to the table of limits, so that perfci reads whatever perfci wrote."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import islice
from typing import Any

from perfci.report.limits import (
    KEY,
    LARGEST_WHOLE,
    LIMITS,
    Fields,
    Many,
    Named,
    Shape,
    Text,
)

_SHORT = 300
"""Names and all else that is short is never cut for the sake of the file's size."""
_WORTH = {"regressed": 0, "failed": 1, "improved": 2, "inconclusive": 3}


def fit(plain: dict[str, Any], shape: Fields, share: int = 1) -> dict[str, Any]:
    """Return a report's ``plain`` form cut to ``shape``; a note says what was left out.

    ``share`` divides every limit but those of names: the whole file has one, too.
    """
    left_out: Counter[str] = Counter()
    fitted: dict[str, Any] = _fitted(plain, shape, share, "", left_out)
    if any(left_out.values()):
        said = ", ".join(f"{count:,} of {name}" for name, count in left_out.items() if count)
        most = LIMITS["Report.notes"].most
        fitted["notes"] = [
            *fitted["notes"][: most - 1],
            f"this file would be too large: left out are {said}",
        ]
    return fitted


def shortened(text: str, limit: Text, share: int = 1) -> str:
    """Return ``text`` if it is short enough, else its part that ``limit`` keeps, with a mark.

    A name ends with a digest of the whole, so that two that begin alike stay two.
    """
    longest = max(min(limit.longest, _SHORT), limit.longest // share)
    if len(text) <= longest:
        return text
    match limit.keep:
        case "end":
            return "…" + text[1 - longest :]
        case "name":
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            return f"{text[: longest - 9]}…{digest}"
        case "start":
            return text[: longest - 1] + "…"


def _fitted(plain: Any, shape: Shape, share: int, name: str, left_out: Counter[str]) -> Any:
    if isinstance(shape, Text) and isinstance(plain, str):
        return shortened(plain, shape, share)
    if isinstance(shape, Many) and isinstance(plain, (list, tuple)):
        kept = _worthiest(plain, max(1, shape.most // share))
        left_out[name] += len(plain) - len(kept)
        return [_fitted(one, shape.item, share, name, left_out) for one in kept]
    if isinstance(shape, Named) and isinstance(plain, dict):
        entries = dict(islice(plain.items(), max(1, shape.most // share)))
        left_out[name] += len(plain) - len(entries)
        return {
            shortened(key, KEY): _fitted(value, shape.item, share, name, left_out)
            for key, value in entries.items()
        }
    if isinstance(shape, Fields) and isinstance(plain, dict):
        return {
            field: _fitted(value, shape.of[field], share, field, left_out)
            for field, value in plain.items()
        }
    if isinstance(plain, int) and not isinstance(plain, bool):
        return max(-LARGEST_WHOLE, min(LARGEST_WHOLE, plain))
    return plain


def _worthiest(items: list[Any] | tuple[Any, ...], most: int) -> list[Any]:
    """Return the first ``most``; of comparisons those that moved, in the order they had."""
    if len(items) <= most:
        return list(items)
    ranked = sorted(range(len(items)), key=lambda index: _worth(items[index]))
    return [items[index] for index in sorted(ranked[:most])]


def _worth(item: Any) -> tuple[int, bool]:
    if not isinstance(item, dict):
        return (len(_WORTH), False)
    return (_WORTH.get(item.get("status", ""), len(_WORTH)), item.get("gate") != "fail")
