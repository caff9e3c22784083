"""Dynamo's and Inductor's counters, which are private to torch, so each may be missing.

Reading them imports nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any


def counters() -> dict[str, Counter[str]] | None:
    """Return a copy of ``torch._dynamo.utils.counters``, or None if there are none (yet)."""
    groups: Any = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if not isinstance(groups, dict):
        return None
    return {group: Counter(counts) for group, counts in groups.items()}


def frames_traced() -> int:
    """Return how many frames Dynamo has traced in this process."""
    return (counters() or {}).get("frames", Counter())["total"]


def kernels_generated() -> int | None:
    """Return how many kernels Inductor has generated or taken from its cache, or None."""
    count = getattr(sys.modules.get("torch._inductor.metrics"), "generated_kernel_count", None)
    return count if isinstance(count, int) else None
