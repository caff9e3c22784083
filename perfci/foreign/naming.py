"""Strangers' names as case ids: ``name[axis=value]``, visible characters only.

A NUL is refused by PostgreSQL and a lone surrogate by every UTF-8 encoder, so both end here. What
may stand in a name is kept as it is otherwise: people have to find their benchmarks again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_LONGEST_NAME = 200
_LONGEST_LABEL = 60
_IN_NAME = str.maketrans("[]", "()")
_IN_LABEL = str.maketrans("[],=", "();:")
_QUOTED = re.compile(r"""(?P<quote>['"])(?P<word>[A-Za-z_][\w.+-]*)(?P=quote)""")
_SHA = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_PLAIN = re.compile(r"[^A-Za-z0-9._]+")
_METRIC = re.compile(r"[^A-Za-z0-9_]+")


def visible(text: str, limit: int) -> str:
    """Return ``text`` on one line without what can't be seen, at most ``limit`` characters.

    A longer one ends in a hash of the whole, so that two long names stay two.
    """
    if not text.isprintable():  # most are, and looking at each character takes long
        text = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    digest = hashlib.sha256(line.encode()).hexdigest()[:8]
    return f"{line[: limit - 9]}~{digest}"


def case_id(name: str, axes: Mapping[str, str] | None = None) -> str:
    """Return the id of a benchmark at one point of its axes."""
    shown = visible(name, _LONGEST_NAME).translate(_IN_NAME)
    inner = ",".join(f"{_label(axis)}={_label(value)}" for axis, value in (axes or {}).items())
    return f"{shown}[{inner}]" if inner else shown


def metric_name(text: str) -> str:
    """Return ``text`` as the name of a metric: letters, digits and ``_``."""
    return _METRIC.sub("_", visible(text, 60)).strip("_") or "value"


def plain(text: str, limit: int = 40) -> str:
    """Return ``text`` as a part of an environment's key."""
    return _PLAIN.sub("_", text).lower()[:limit].strip("_.") or "unknown"


def sha_of(text: Any) -> str:
    """Return ``text`` where it is a commit's hash, in lower case; else nothing."""
    return text.lower() if isinstance(text, str) and _SHA.fullmatch(text) else ""


@lru_cache(maxsize=10_000)  # a suite has many points and few labels
def _label(text: str) -> str:
    word = _QUOTED.fullmatch(text)
    return visible(word["word"] if word else text, _LONGEST_LABEL).translate(_IN_LABEL)
