"""Dynamo's counters, whoever called torch.compile. They are private to torch, and read guarded."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any


def counters() -> dict[str, Counter[str]] | None:
    """Return ``torch._dynamo.utils.counters``, copied; None where there are none (yet)."""
    groups: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if not isinstance(groups, dict):
        return None
    return {group: Counter(counts) for group, counts in groups.items()}


def frames_traced() -> int:
    """Return how many frames Dynamo has looked at in this process; nothing is imported for it."""
    return (counters() or {}).get("frames", Counter())["total"]
